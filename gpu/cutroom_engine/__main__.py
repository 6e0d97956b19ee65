"""Starts the engine server: python -m cutroom_engine"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress

import uvicorn

from .live import Live, LiveModel
from .logs import configure_logging
from .metrics import Metrics
from .model_map import LivePipelineRow, ModelMap, ModelMapError, PipelineRow, read_model_map
from .pipeline import Pipeline
from .residents import Residents
from .runs import Runner
from .server import Server, create_app
from .settings import SettingError, Settings, read_settings
from .weights import Weights

# The fraction of the device's memory that pipelines may use. The rest is for the driver and for fragmentation.
_USABLE = 0.95

# The exit status (EX_TEMPFAIL in sysexits.h) that asks for a restart of the server.
_LOST = os.EX_TEMPFAIL


def main() -> int:
    """Serves until a signal stops the server, or until it can run nothing more."""
    try:
        settings = read_settings(os.environ)
        models = read_model_map(settings.models, settings.family, settings.weights_source)
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
    metrics = Metrics()
    weights = Weights(settings.weights, models.all_weights)
    try:
        live = _live(settings, models, metrics, weights)
        runner = _runner(settings, models, metrics, weights, live)
        config = uvicorn.Config(
            create_app(runner, metrics, live),
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        # The server raises the signal again after it has stopped. Ctrl-C should not print a traceback.
        with suppress(KeyboardInterrupt):
            Server(config, runner, live).run()
    finally:
        weights.close()
    if runner.lost or live.lost:
        # Exit immediately. A thread that hangs in the driver would block a normal exit forever, and if the device has
        # failed, releasing its memory fails too.
        logging.shutdown()
        os._exit(_LOST)
    return 0


def _live(settings: Settings, models: ModelMap, metrics: Metrics, weights: Weights) -> Live:
    from .live_diffusion import load_live

    def load(row: LivePipelineRow) -> LiveModel:
        return load_live(row, weights.folder, settings.device)

    return Live(models.live, load, weights, metrics.live_picture)


def _runner(settings: Settings, models: ModelMap, metrics: Metrics, weights: Weights, live: Live) -> Runner:
    from . import diffusion
    from .loading import Loader

    device = settings.device
    loader = Loader(weights.folder, device)
    memory = settings.memory
    if memory is None and (whole := diffusion.device_memory(device)) is not None:
        memory = int(whole * _USABLE)
    if memory is not None:
        memory -= models.live.memory

    def load(_: str, row: PipelineRow) -> Pipeline:
        return loader.load(row)

    meter = diffusion.DeviceMeter(device) if device.startswith("cuda") else None
    residents = Residents(models.pipelines, memory, load, meter)
    runner = Runner(models, residents, metrics, root=settings.scratch, weights=weights)
    metrics.read_off(
        unfinished=runner.unfinished,
        resident=runner.resident,
        memory=lambda: diffusion.memory_in_use(device),
        pipelines=residents.memory,
        live=live.count,
    )
    return runner


if __name__ == "__main__":
    sys.exit(main())
