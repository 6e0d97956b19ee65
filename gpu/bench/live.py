"""Prints the speed of the live video models on this machine's card: frames per second, and seconds per frame."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from cutroom_engine import diffusion
from cutroom_engine import live_wire as wire
from cutroom_engine.live_diffusion import LiveDiffusion, load_live
from cutroom_engine.model_map import LivePipelineRow, read_model_map
from cutroom_engine.settings import read_settings
from cutroom_engine.weights import Weights, WeightsError

from .cards import FOLDER

# Common camera sizes.
_SIZES = ((640, 360), (1280, 720))


def main(arguments: list[str]) -> int:
    """Measures and prints a table. It fails without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m bench live", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 ...")
    parser.add_argument("--maps", nargs="+", default=["models-live.yaml"], help="files")
    parser.add_argument("--pictures", type=int, default=200, help="pictures of each size")
    parser.add_argument("--tiny", action="store_true", help="tiny random models on the CPU")
    chosen = parser.parse_args(arguments)
    if not chosen.tiny and not torch.cuda.is_available():
        print("This machine has no GPU to measure.", file=sys.stderr)
        print("To check only that the program runs: python -m bench live --tiny", file=sys.stderr)
        return 1
    diffusion.hide_progress()
    name = "processor" if chosen.tiny else torch.cuda.get_device_name(chosen.device)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {name}, PyTorch {torch.__version__}")
    if chosen.tiny:
        print("Tiny models of these classes on the CPU. The figures do not apply to any GPU.")
    print(f"{'':22}{'picture':>10}{'load':>9}{'first':>10}{'median':>10}{'99 %':>10}{'a second':>10}{'peak':>11}")
    for file in chosen.maps:
        _map(chosen, file)
    return 0


def _map(chosen: argparse.Namespace, file: str) -> None:
    settings = read_settings(os.environ)
    weights = Weights(settings.weights)
    with tempfile.TemporaryDirectory() as folder:
        for name, row in read_model_map(FOLDER / file, "gen", settings.weights_source).live.pipelines.items():
            if chosen.tiny:
                # Import this late, because it needs the packages for tests.
                tiny = importlib.import_module("tests.models.tiny")
                row = LivePipelineRow.model_validate(tiny.live_row(row.class_name, Path(folder), pixels=64 * 64))
            device = "cpu" if chosen.tiny else chosen.device
            began = time.monotonic()
            try:
                model = load_live(row, weights.folder, device)
            except (WeightsError, OSError):
                print(f"{name:<22}{'no weights':>47}")
                continue
            model.warm(lambda: None)
            load = time.monotonic() - began
            for size in _SIZES:
                _line(name, model, size, load, chosen.pictures, device)
            model.close()
    weights.close()


def _line(name: str, model: LiveDiffusion, size: tuple[int, int], load: float, pictures: int, device: str) -> None:
    luma, chroma = wire.planes_of(*size)
    drawn = np.random.default_rng(0).integers(16, 235, luma + 2 * chroma, dtype=np.uint8)
    picture = wire.Picture(1, *size, True, drawn.tobytes())
    prompt, _ = model.encode("a quiet winter evening")
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
    took = []
    for _ in range(pictures):
        began = time.monotonic()
        model.edit(picture, prompt, None, 7, lambda: None)
        took.append(time.monotonic() - began)
    first, median, late = took[0], float(np.median(took)), float(np.quantile(took, 0.99))
    peak = "-" if device == "cpu" else f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB"
    shown = f"{size[0]}x{size[1]}"
    times = "".join(f"{seconds * 1000:>7.1f} ms" for seconds in (first, median, late))
    print(f"{name:<22}{shown:>10}{load:>7.1f} s{times}{1 / median:>10.1f}{peak:>11}", flush=True)
