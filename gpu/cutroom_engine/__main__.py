"""Serves: python -m cutroom_engine"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress

import uvicorn

from .logs import configure_logging
from .metrics import Metrics
from .model_map import ModelMap, ModelMapError, PipelineRow, read_model_map
from .pipeline import Pipeline
from .residents import Residents
from .runs import Runner
from .server import Server, create_app
from .settings import SettingError, Settings, read_settings
from .weights import Weights

# Share of the device's memory that pipelines may take: the rest is for what the
# driver and fragments of memory take.
_USABLE = 0.95

# The exit status of a server that is to be started anew, as sysexits.h names it.
_LOST = os.EX_TEMPFAIL


def main() -> int:
    """Serves until it is told to end, or can do no more runs."""
    try:
        settings = read_settings(os.environ)
        models = read_model_map(settings.models, settings.family, settings.weights_source)
    except (SettingError, ModelMapError) as error:
        print(error, file=sys.stderr)
        return 1
    # Late, as it takes seconds, which no wrong setting needs to wait for.
    from . import diffusion

    try:
        diffusion.check_device(settings.device)
    except diffusion.DeviceUnusable as error:
        print(f"CUTROOM_ENGINE_DEVICE: {error}", file=sys.stderr)
        return 1
    configure_logging()
    diffusion.hide_progress()
    metrics = Metrics()
    weights = Weights(settings.weights)
    try:
        runner = _runner(settings, models, metrics, weights)
        weights.start(one for row in models.pipelines.values() for one in row.all_weights)
        config = uvicorn.Config(
            create_app(runner, metrics),
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        # It raises the signal anew once it has ended; of Ctrl-C nobody needs a trace.
        with suppress(KeyboardInterrupt):
            Server(config, runner).run()
    finally:
        weights.close()
    if runner.lost:
        # At once: a thread that hangs in the driver is not to be waited for, and what
        # gives memory back at the end fails where the device does.
        logging.shutdown()
        os._exit(_LOST)
    return 0


def _runner(settings: Settings, models: ModelMap, metrics: Metrics, weights: Weights) -> Runner:
    from . import diffusion

    device = settings.device
    memory = settings.memory
    if memory is None and (whole := diffusion.device_memory(device)) is not None:
        memory = int(whole * _USABLE)

    def load(_: str, row: PipelineRow) -> Pipeline:
        return diffusion.load(row, weights.folder, device)

    runner = Runner(models, Residents(models.pipelines, memory, load), metrics, root=settings.scratch, weights=weights)
    metrics.read_off(unfinished=runner.unfinished, resident=runner.resident, memory=lambda: diffusion.memory_in_use(device))
    return runner


if __name__ == "__main__":
    sys.exit(main())
