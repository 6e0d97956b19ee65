"""Checks that the benchmark runs. Its figures mean nothing on a CPU."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
import torch

from bench.__main__ import main

Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the machine's GPU, if there is one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Runs the benchmark, and returns its exit status and its output."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        return main(), *capsys.readouterr()

    return run


def test_every_figure_of_a_row_is_printed(bench: Bench) -> None:
    status, out, _ = bench("--tiny", "--rows", "image-edit", "dress")
    assert status == 0
    assert "The figures do not apply to any GPU" in out
    found = [line for line in out.splitlines() if line.startswith(("image-edit ", "dress "))]
    assert len(found) == 2, out
    for line in found:
        # The columns are seconds, loading time, memory (missing on a CPU), the longest silence and the computed time.
        assert re.match(r"[a-z-]+ +[0-9.]+ s +[0-9.]+ s +- +[0-9.]+ s +[0-9]+ s$", line), line


def test_missing_gpu_is_reported(bench: Bench) -> None:
    status, out, err = bench()
    assert (status, out) == (1, "")
    assert "This machine has no GPU" in err
