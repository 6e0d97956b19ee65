"""Reads the settings from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .model_map import parse_bytes


class SettingError(Exception):
    """A setting is invalid. The message is a single line with the variable's name."""


@dataclass(frozen=True)
class Settings:
    """The server's settings, which docs/gpu.md explains. If `memory` is None, nearly all of the free memory is used. An
    empty `weights_source` keeps the map's folders. If `scratch` is None, runs may use any folder."""

    host: str
    port: int
    models: Path
    family: str
    device: str
    memory: int | None
    weights_source: str
    scratch: Path | None


def read_settings(env: Mapping[str, str]) -> Settings:
    address = env.get("CUTROOM_ENGINE_ADDR") or "127.0.0.1:8090"
    found = re.fullmatch(r"(.*):([0-9]{1,5})", address)
    if found is None or int(found[2]) > 65535:
        raise SettingError(f"CUTROOM_ENGINE_ADDR: {address!r} is not an address such as 127.0.0.1:8090")
    memory = None
    if env.get("CUTROOM_ENGINE_MEMORY"):
        try:
            memory = int(parse_bytes(env["CUTROOM_ENGINE_MEMORY"]))
        except ValueError as error:
            raise SettingError(f"CUTROOM_ENGINE_MEMORY: {error}") from error
    device = env.get("CUTROOM_ENGINE_DEVICE") or "cuda"
    if not re.fullmatch(r"cpu|cuda(:[0-9]+)?", device):
        raise SettingError(f"CUTROOM_ENGINE_DEVICE: {device!r} is neither cpu nor cuda")
    source = env.get("CUTROOM_ENGINE_WEIGHTS_SOURCE", "")
    if not re.fullmatch(r"|/.*", source):
        raise SettingError(f"CUTROOM_ENGINE_WEIGHTS_SOURCE: {source!r} is not an absolute path")
    scratch = env.get("CUTROOM_ENGINE_SCRATCH")
    return Settings(
        host=found[1] or "0.0.0.0",
        port=int(found[2]),
        models=Path(env.get("CUTROOM_ENGINE_MODELS") or "models.yaml"),
        family=env.get("CUTROOM_FAMILY") or "gen",
        device=device,
        memory=memory,
        weights_source=source,
        scratch=Path(scratch).resolve() if scratch else None,
    )
