"""Prints the speed of the pipelines that this machine's card serves, and how much memory their runs need."""

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
from PIL import Image

from cutroom_engine import diffusion
from cutroom_engine.cards import Card, find_card, read_model_map, seconds
from cutroom_engine.edits import Edit
from cutroom_engine.files import missing
from cutroom_engine.frames import Frame
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.protocol import Input, RunError, RunRequest
from cutroom_engine.settings import read_settings
from cutroom_engine.stages import Stages
from cutroom_engine.write import VideoWriter

from .cards import FOLDER


def main(arguments: list[str]) -> int:
    """Measures and prints a table. It fails without a GPU."""
    chosen = _arguments(arguments)
    if not chosen.tiny and not torch.cuda.is_available():
        print("This machine has no GPU to measure.", file=sys.stderr)
        print("To check only that the program runs: python -m bench --tiny", file=sys.stderr)
        return 1
    diffusion.hide_progress()
    device = "cpu" if chosen.tiny else chosen.device
    name = "processor" if chosen.tiny else torch.cuda.get_device_name(device)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {name}, PyTorch {torch.__version__}")
    if chosen.tiny:
        print("Tiny models of these classes on the CPU. The figures do not apply to any GPU.")
    settings = read_settings(os.environ)
    card = Card("L40S", 44 * 2**30) if chosen.tiny else find_card(device)
    models = read_model_map(FOLDER / chosen.map, "gen", settings.weights_source, card)
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(device, Path(folder), chosen.tiny)
        print(f"{'':22}{'5 s':>9}{'load':>9}{'peak':>11}{'silence':>9}{'computed':>10}")
        for name, row in models.pipelines.items():
            if chosen.rows is None or name in chosen.rows:
                bench.print(name, row, seconds(row, models.teraflops))
    return 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench rows", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 ...")
    parser.add_argument("--map", default="models.yaml", help="the model map")
    parser.add_argument("--rows", nargs="+", help="pipelines of the map; by default all")
    parser.add_argument("--tiny", action="store_true", help="tiny random models on the CPU")
    return parser.parse_args(arguments)


class _Bench:
    """Measures one row at a time."""

    def __init__(self, device: str, folder: Path, tiny: bool) -> None:
        self._device, self._folder, self._tiny = device, folder, tiny

    def print(self, name: str, row: PipelineRow, computed: float | None) -> None:
        """Measures a row and prints a line."""
        last = f"{'' if computed is None else f'{computed:.0f} s':>10}"
        if self._tiny:
            # Import this late, because it needs the packages for tests.
            row = importlib.import_module("tests.models.tiny").stand_in(row, self._folder)
        elif absent := missing(row, Path):
            print(f"{name:<22}{'no weights':>38}{last}  {absent[0]}")
            return
        if self._device != "cpu":
            torch.cuda.reset_peak_memory_stats(self._device)
        began = time.monotonic()
        pipeline = Loader(Path, self._device).load(row)
        load = time.monotonic() - began
        heard = _Heard()
        try:
            request = self._request(row)
            began = time.monotonic()
            Edit(request, row, pipeline, heard.report, heard.check, Stages()).run()
            took = time.monotonic() - began
        except (MemoryError, RunError) as error:
            print(f"{name:<22}{'does not fit' if isinstance(error, MemoryError) else 'failed':>38}{last}")
            return
        finally:
            pipeline.close()
        peak = "-" if self._device == "cpu" else f"{torch.cuda.max_memory_allocated(self._device) / 2**30:.1f} GiB"
        print(f"{name:<22}{took:>7.1f} s{load:>7.1f} s{peak:>11}{heard.longest:>7.1f} s{last}", flush=True)

    def _request(self, row: PipelineRow) -> RunRequest:
        """Returns the row's typical request, and creates its files."""
        image, text, tiny = row.takes == "image", row.takes == "text", self._tiny
        file = Input(path="", mime="")
        request = RunRequest.model_construct(
            job="bench",
            model="bench",
            kind="image" if image else "text-to-video" if text else "edit",
            prompt="a quiet winter evening",
            seed=7,
            data=None if text else file,
            reference=file if row.references and not image else None,
            width=96 if tiny else 1280,
            height=64 if tiny else 720,
            fps=0 if image else 10 if tiny else 25,
            duration=0.0 if image else 0.5 if tiny else 5.0,
            options=None,
        )
        size = request.width, request.height
        changes: dict[str, object] = {"folder": str(self._folder), "output": str(self._folder / "output")}
        picture = self._folder / "picture.png"
        Image.fromarray(_noise(*size)).save(picture)
        still = Input(path=str(picture), mime="image/png", width=size[0], height=size[1])
        if request.kind == "image":
            changes |= {"data": still, "output": str(self._folder / "output.png")}
        elif request.data is not None:
            path = self._folder / "clip.mp4"
            with VideoWriter(str(path), *size, request.fps, None) as writer:
                for _ in range(request.frame_count):
                    writer.write(_noise(*size))
            changes["data"] = Input(path=str(path), mime="video/mp4", width=size[0], height=size[1])
        if request.reference is not None:
            changes["reference"] = still
        return request.model_copy(update=changes)


class _Heard:
    """Records the longest time between two calls by a run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.monotonic()

    def check(self) -> None:
        """Notes a call by the run."""
        now = time.monotonic()
        self.longest, self._last = max(self.longest, now - self._last), now

    def report(self, _fraction: float, _stage: str) -> None:
        self.check()


def _noise(width: int, height: int) -> Frame:
    # Draw a coarse pattern, so that the encoded clip is small.
    drawn = np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(drawn).resize((width, height), Image.Resampling.BICUBIC), dtype=np.uint8)
