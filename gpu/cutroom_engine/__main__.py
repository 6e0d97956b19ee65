"""Serves: python -m cutroom_engine"""

from __future__ import annotations

import os
import sys

import uvicorn

from .logs import configure_logging
from .model_map import ModelMapError, PipelineRow, read_model_map
from .pipeline import Pipeline
from .residents import Residents
from .runs import Runner
from .server import create_app
from .settings import SettingError, Settings, read_settings
from .weights import local_folder

# Share of the device's memory that pipelines may take: the rest is for what the
# driver and fragments of memory take.
_USABLE = 0.95


def main() -> int:
    """Serves until it is told to end."""
    try:
        settings = read_settings(os.environ)
        runner = _runner(settings)
    except (SettingError, ModelMapError) as error:
        print(error, file=sys.stderr)
        return 1
    configure_logging()
    # A caller's run ends with its connection, so that there is little to wait for.
    uvicorn.run(
        create_app(runner),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    return 0


def _runner(settings: Settings) -> Runner:
    models = read_model_map(settings.models, settings.family)
    # Late, as it takes seconds, which no wrong setting needs to wait for.
    from . import diffusion

    diffusion.hide_progress()
    device = settings.device or diffusion.default_device()
    memory = settings.memory
    if memory is None and (whole := diffusion.device_memory(device)) is not None:
        memory = int(whole * _USABLE)

    def load(_: str, row: PipelineRow) -> Pipeline:
        return diffusion.DiffusersPipeline(row, local_folder(row.weights, settings.weights), device)

    return Runner(models, Residents(models.pipelines, memory, load), root=settings.scratch)


if __name__ == "__main__":
    sys.exit(main())
