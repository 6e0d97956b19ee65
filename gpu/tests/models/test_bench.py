"""Checks that the benchmark runs; its figures on a processor mean nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bench import rows, transformer

_FOLDER = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=_FOLDER, env=hidden, capture_output=True, text=True, check=False)


def test_every_figure_of_a_transformer_is_printed() -> None:
    ended = bench("transformer", "--device", "cpu", "--tiny", "--steps", "1", "--windows", "2")
    assert ended.returncode == 0, ended.stderr
    for name in (
        "one call",
        "of a product of matrices",
        "pipeline alone",
        "edit, one after the other",
        "edit, overlapped",
        "job, submission to result",
        "over the pipeline alone",
    ):
        assert any(line.startswith(name) for line in ended.stdout.splitlines()), ended.stdout


def test_every_figure_of_a_row_is_printed() -> None:
    ended = bench("--tiny", "--maps", "models.yaml", "models-24gb.yaml", "--rows", "image-edit", "dress")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert any("no figure here says anything of a card" in line for line in lines), ended.stdout
    found = [line for line in lines if line.startswith(("image-edit ", "dress "))]
    assert len(found) == 4, ended.stdout
    for line in found:
        # Seconds, load and the longest silence; on the processor no memory and no share.
        assert re.match(r"[a-z-]+ +[0-9.]+ s +[0-9.]+ s +- +[0-9.]+ s +- +[0-9]+ s  \S", line), line
    assert all("huggingface.co" in line for line in found if line.startswith("image-edit"))


@pytest.mark.parametrize("kind", [rows, transformer])
def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: ModuleType
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert kind.main([]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "There is no GPU here" in said.err
