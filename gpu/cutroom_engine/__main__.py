"""Starts the engine server: python -m cutroom_engine"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import uvicorn

from .cards import choose, crowded, describe, find_card
from .files import missing
from .live import Live
from .logs import configure_logging
from .metrics import Metrics
from .model_map import ModelMap, ModelMapError, read_model_file
from .residents import Residents
from .runs import Runner
from .server import Server, create_app
from .settings import SettingError, Settings, read_settings

_logger = logging.getLogger(__name__)

# The exit status (EX_TEMPFAIL in sysexits.h) that asks for a restart of the server.
_LOST = os.EX_TEMPFAIL

# The settings that decide which weights are needed, and where.
_CHOOSING = (
    *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "CUTROOM_ENGINE_DEVICE", "CUTROOM_ENGINE_MEMORY"),
    *("CUTROOM_ENGINE_WEIGHTS_SOURCE", "CUTROOM_FAMILY"),
)


def main() -> int:
    """Serves until a signal stops the server, or until it can run nothing more."""
    try:
        settings = read_settings(os.environ)
        file = read_model_file(settings.models, settings.family, settings.weights_source)
    except (SettingError, ModelMapError) as error:
        print(error, file=sys.stderr)
        return 1
    # Without this, windows of many lengths would leave gaps in memory that are too small to use.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    # Import this late, because the import takes seconds and invalid settings should be reported immediately.
    from . import diffusion

    try:
        diffusion.check_device(settings.device)
    except diffusion.DeviceUnusable as error:
        print(f"CUTROOM_ENGINE_DEVICE: {error}", file=sys.stderr)
        return 1
    configure_logging()
    diffusion.hide_progress()
    card = find_card(settings.device)
    models = choose(file, card, settings.memory, missing)
    _logger.info("found the card", extra={"card": card and card.name, "free_gib": card and round(card.free / 2**30, 1)})
    for chosen in describe(models):
        _logger.info("chose a pipeline", extra=dict(chosen))
    if left := sorted(set(file.models) - set(models.models)):
        _logger.warning("the card has too little memory for these models", extra={"models": left})
    if need := crowded(models):
        _logger.warning("other programs must free memory of the card", extra={"needed_gib": round(need / 2**30, 1)})
    metrics = Metrics()
    live = _live(settings, models, metrics)
    fetch = fetch_command(settings.models)
    runner = _runner(settings, models, metrics, live)
    if absent := runner.missing():
        _logger.error("files are missing", extra={"missing": absent, "fetch": fetch})
    config = uvicorn.Config(
        create_app(runner, metrics, live, fetch=fetch),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    # The server raises the signal again after it has stopped. Ctrl-C should not print a traceback.
    with suppress(KeyboardInterrupt):
        Server(config, runner, live).run()
    if runner.lost or live.lost:
        # Exit immediately. A thread that hangs in the driver would block a normal exit forever, and if the device has
        # failed, releasing its memory fails too.
        logging.shutdown()
        os._exit(_LOST)
    return 0


def fetch_command(models: Path) -> str:
    """Returns the shell command that fetches the weights with this server's settings."""
    kept = [f"{name}={value}" for name in _CHOOSING if (value := os.environ.get(name))]
    program = [sys.executable, "-m", "cutroom_engine.prepare", "--download", str(models)]
    command = f"cd {shlex.quote(str(Path.cwd()))} && {shlex.join([*(['env'] if kept else []), *kept, *program])}"
    # A shell ignores the comment, so the whole text can be pasted.
    return command + (" # or: make run-gpu DOWNLOAD=yes" if Path("../Makefile").is_file() else "")


def _live(settings: Settings, models: ModelMap, metrics: Metrics) -> Live:
    from .live_diffusion import load_live

    return Live(models.live, lambda row: load_live(row, settings.device), metrics.live_picture)


def _runner(settings: Settings, models: ModelMap, metrics: Metrics, live: Live) -> Runner:
    from . import diffusion
    from .loading import Loader

    residents = Residents(models.pipelines, models.memory, Loader(settings.device).load)
    runner = Runner(models, residents, metrics, root=settings.scratch)
    metrics.read_off(runner.unfinished, runner.resident, lambda: diffusion.memory_in_use(settings.device), live.count)
    return runner


if __name__ == "__main__":
    sys.exit(main())
