"""Checks that the benchmark runs. Its figures mean nothing on a CPU."""

from __future__ import annotations

import re
import sys

import httpx2
import pytest

from bench.__main__ import main

from .test_program import Start, client, models, start

__all__ = ["Start", "client", "models", "start"]


def test_every_figure_of_a_model_is_printed(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--url", str(client.base_url), "--size", "96x64", "--seconds", "0.2"]
    monkeypatch.setattr(sys, "argv", ["bench", *arguments, "--models", "gen-2.5", "gen-image-2"])
    assert main() == 0
    # The columns are seconds, loading time, memory and computed time (both missing on a CPU), and the longest silence.
    found = re.findall(r"^gen-\S+ +[0-9.]+ s +[0-9.]+ s +- +[0-9.]+ s +-$", capsys.readouterr().out, re.M)
    assert len(found) == 2
