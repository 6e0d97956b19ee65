"""Prints the speed of every row of every model map on this machine's card."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image

from cutroom_engine import diffusion
from cutroom_engine.edits import Edit
from cutroom_engine.frames import Frame
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import ModelMap, PipelineRow, read_model_map
from cutroom_engine.protocol import Input, RunError, RunRequest
from cutroom_engine.settings import read_settings
from cutroom_engine.stages import Stages
from cutroom_engine.weights import Weights, WeightsError
from cutroom_engine.write import VideoWriter

from .cards import CARDS, FOLDER, Measured, computed, published, request_of

# The edit for tiny models is half a second of a small clip.
_TINY = {"seconds": 0.5, "size": (96, 64), "fps": 10}


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
    with tempfile.TemporaryDirectory() as folder:
        found = list(_Bench(chosen, device, name, Path(folder)).all())
    if chosen.record is not None and not chosen.tiny:
        _record(chosen.record, found)
    return 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench rows", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 ...")
    parser.add_argument(
        "--maps", nargs="+", default=[card.map for card in CARDS], help="map files; by default all in the repository"
    )
    parser.add_argument("--rows", nargs="+", help="pipelines of the maps; by default all")
    parser.add_argument("--tiny", action="store_true", help="tiny random models on the CPU")
    parser.add_argument("--record", type=Path, help="adds the measurements to the file")
    return parser.parse_args(arguments)


class _Bench:
    """Measures one row at a time."""

    def __init__(self, chosen: argparse.Namespace, device: str, name: str, folder: Path) -> None:
        self._chosen = chosen
        self._device = device
        self._name = name
        self._folder = folder
        self._settings = read_settings(os.environ)
        self._weights = Weights(self._settings.weights)

    def all(self) -> Iterator[Measured]:
        """Prints a line for every row and yields the measured ones."""
        for file in self._chosen.maps:
            models = read_model_map(FOLDER / file, "gen", self._settings.weights_source)
            print(f"\n{file}")
            print(f"{'':22}{'5 s':>9}{'load':>9}{'peak':>11}{'silence':>9}{'computed':>10}  published")
            for name, row in models.pipelines.items():
                if self._chosen.rows is None or name in self._chosen.rows:
                    yield from self._line(file, models, name, row)

    def _line(self, file: str, models: ModelMap, name: str, row: PipelineRow) -> Iterator[Measured]:
        takes, figure = computed(models, name), published(row)
        beside = f"{'' if takes is None else f'{takes:.0f} s':>10}  " + (
            "nothing" if figure is None else f"{figure.says} ({figure.where})"
        )
        try:
            one = self._measured(file, name, row)
        except (WeightsError, MemoryError, RunError) as error:
            reason = {WeightsError: "no weights", MemoryError: "does not fit"}.get(type(error), "failed")
            print(f"{name:<22}{reason:>38}{beside}")
            return
        peak = f"{one.peak_gib:.1f} GiB" if one.peak_gib else "-"
        print(
            f"{name:<22}{one.seconds:>7.1f} s{one.load:>7.1f} s{peak:>11}{one.silence:>7.1f} s{beside}",
            flush=True,
        )
        yield one

    def _measured(self, file: str, name: str, row: PipelineRow) -> Measured:
        if self._chosen.tiny:
            # Import this late, because it needs the packages for tests.
            row = importlib.import_module("tests.models.tiny").stand_in(row, self._folder)
        if self._device != "cpu":
            torch.cuda.reset_peak_memory_stats(self._device)
        began = time.monotonic()
        pipeline = Loader(self._weights.folder, self._device).load(row)
        load = time.monotonic() - began
        try:
            request, stages, heard = self._request(row), Stages(), _Heard()
            began = time.monotonic()
            Edit(request, row, pipeline, heard.report, heard.check, stages).run()
            seconds = time.monotonic() - began
        finally:
            pipeline.close()
        peak = 0.0 if self._device == "cpu" else torch.cuda.max_memory_allocated(self._device) / 2**30
        return Measured(
            card=next((card.name for card in CARDS if card.name in self._name), self._name),
            map=file,
            pipeline=name,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            seconds=round(seconds, 3),
            load=round(load, 3),
            peak_gib=round(peak, 2),
            silence=round(heard.longest, 3),
        )

    def _request(self, row: PipelineRow) -> RunRequest:
        """Returns the row's typical request, and creates its files."""
        request = request_of(row, **_TINY) if self._chosen.tiny else request_of(row)  # type: ignore[arg-type]
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


def _record(path: Path, found: list[Measured]) -> None:
    """Appends measurements to the file and keeps its heading."""
    head = "".join(line for line in path.read_text().splitlines(keepends=True) if line.startswith("#"))
    before = yaml.safe_load(path.read_text()) or []
    path.write_text(head + yaml.safe_dump([*before, *(one.model_dump() for one in found)], sort_keys=False))
