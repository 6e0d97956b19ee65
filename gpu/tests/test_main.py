"""Tests the settings that the program checks before it computes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cutroom_engine
from cutroom_engine.__main__ import fetch_command, main


def test_memory_segments_are_expandable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the setting, windows of many lengths would leave gaps in memory. PyTorch reads it when it is imported,
    which happens together with this module."""
    seen: list[str | None] = []

    class Stand(ModuleType):
        """Stands in for the module that computes."""

        class DeviceUnusable(Exception):
            """Stands in for diffusion.DeviceUnusable."""

        def check_device(self, device: str) -> None:
            """Stands in for diffusion.check_device."""
            seen.append(os.environ.get("PYTORCH_ALLOC_CONF"))
            raise self.DeviceUnusable(f"{device} is a stand-in")

    stand = Stand("cutroom_engine.diffusion")
    monkeypatch.setitem(sys.modules, "cutroom_engine.diffusion", stand)
    monkeypatch.setattr(cutroom_engine, "diffusion", stand, raising=False)
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert main() == 1
    assert seen == ["expandable_segments:True"]
    assert capsys.readouterr().err == "CUTROOM_ENGINE_DEVICE: cuda is a stand-in\n"


def test_printed_command_fetches_with_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a map").mkdir()
    monkeypatch.chdir(tmp_path / "a map")
    given = {"CUTROOM_ENGINE_WEIGHTS_SOURCE": "/my weights", "CUTROOM_ENGINE_MEMORY": "20GiB"}
    monkeypatch.setattr(os, "environ", given)
    program = f"{sys.executable} -m cutroom_engine.prepare --download models.yaml"
    settings = "env CUTROOM_ENGINE_MEMORY=20GiB 'CUTROOM_ENGINE_WEIGHTS_SOURCE=/my weights'"
    assert fetch_command(Path("models.yaml")) == f"cd '{tmp_path}/a map' && {settings} {program}"
    (tmp_path / "Makefile").touch()
    assert fetch_command(Path("models.yaml")).endswith("models.yaml # or: make run-gpu DOWNLOAD=yes")
