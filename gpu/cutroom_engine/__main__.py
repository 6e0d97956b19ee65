"""Serves: python -m cutroom_engine"""

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
from .served import ServedPipeline
from .server import Server, create_app
from .settings import SettingError, Settings, read_settings
from .weights import Weights

# The fraction of the device's memory for pipelines. The rest is for the driver and for
# fragmentation.
_USABLE = 0.95

# The exit status of a server that should be restarted (EX_TEMPFAIL of sysexits.h).
_LOST = os.EX_TEMPFAIL


def main() -> int:
    """Serves until a stop signal or until no more runs are possible."""
    try:
        settings = read_settings(os.environ)
        models = read_model_map(settings.models, settings.family, settings.weights_source)
    except (SettingError, ModelMapError) as error:
        print(error, file=sys.stderr)
        return 1
    # Windows of many lengths would leave unusable gaps in memory.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    # Import this late, because it takes seconds and invalid settings should be reported
    # immediately.
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
        live = _live(settings, models, metrics, weights)
        runner = _runner(settings, models, metrics, weights, live)
        weights.start(one for row in models.pipelines.values() for one in row.all_weights)
        config = uvicorn.Config(
            create_app(runner, metrics, live),
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        # It raises the signal again after it has stopped. A traceback for Ctrl-C is useless.
        with suppress(KeyboardInterrupt):
            Server(config, runner, live).run()
    finally:
        weights.close()
    if runner.lost or live.lost:
        # Exit immediately: a thread that hangs in the driver would block forever, and releasing
        # memory fails if the device has failed.
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
        return loader.load(row) if row.server is None else ServedPipeline(row, settings.server_key)

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
