"""Checks that the benchmark runs; its figures on a processor mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=_FOLDER, env=hidden, capture_output=True, text=True, check=False)


def test_every_figure_is_printed() -> None:
    ended = bench("--device", "cpu", "--tiny", "--steps", "1", "--windows", "2")
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


def test_without_a_gpu_it_says_so() -> None:
    ended = bench()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "There is no GPU here" in ended.stderr
