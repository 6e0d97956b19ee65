"""Prints the speed of the engine server on this machine's GPU, with a full-size transformer of random weights: python
-m bench transformer"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from cutroom_engine.diffusion import DiffusersPipeline, hide_progress
from cutroom_engine.edits import Edit
from cutroom_engine.frames import working_size
from cutroom_engine.model_map import ModelMap, PipelineRow
from cutroom_engine.protocol import RunRequest
from cutroom_engine.stages import Stages
from cutroom_engine.styles import Shot

from .random_weights import SIZES, Transformer, build, measure_transformer, measured_peak, sheet_peak
from .service import MODEL, job_seconds

# The size and rate of the catalog's result for this clip and model.
WIDTH, HEIGHT, FPS = 1088, 624, 20

# A job's time limit in seconds (docs/gpu-operations.md, "Benchmark"), minus a margin for finishing the job.
JOB_SECONDS = 580

# How much longer a job may take than its pipeline, as a fraction.
OVERHEAD_BAR = 0.02


def main(arguments: list[str]) -> int:
    """Measures and prints a table. It fails without a GPU."""
    chosen = _arguments(arguments)
    if chosen.device.startswith("cuda") and not torch.cuda.is_available():
        print("This machine has no GPU to measure.", file=sys.stderr)
        print(
            "To check only that the program runs: python -m bench transformer --device cpu --tiny",
            file=sys.stderr,
        )
        return 1
    hide_progress()
    with tempfile.TemporaryDirectory() as folder:
        _measure(chosen, Path(folder))
    return 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench transformer", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 ... or cpu")
    parser.add_argument("--size", choices=sorted(SIZES), default="1.3b", help="of the transformer")
    parser.add_argument("--tiny", action="store_const", dest="size", const="tiny", help="the same as --size tiny")
    parser.add_argument("--steps", type=int, default=10, help="denoising steps")
    parser.add_argument("--windows", type=int, default=3, help="windows of the clip that is edited")
    parser.add_argument("--program", type=Path, default=Path("../bin/cutroom"), help="the service")
    return parser.parse_args(arguments)


def _measure(chosen: argparse.Namespace, folder: Path) -> None:
    tiny = chosen.size == "tiny"
    row = PipelineRow.model_validate(
        {
            "class": "WanVideoToVideoPipeline",
            "weights": "/none",
            "steps": chosen.steps,
            "window": {"frames": 9, "overlap": 1, "step": 4} if tiny else {},
            "pixels": {"tiny": 96 * 64, "1.3b": 832 * 480}.get(chosen.size),
            "guidance": 5.0,
            "call": {"strength": 1.0},
        }
    )
    window = row.window.window()
    frames = window.frames + (chosen.windows - 1) * (window.frames - window.overlap)
    size = working_size(WIDTH, HEIGHT, row.multiple, row.pixels)
    clip = _clip(folder / "clip.mp4", frames)
    pipe = build(chosen.size, chosen.device)
    model = DiffusersPipeline(row, pipe)

    print(f"{datetime.now(UTC):%Y-%m-%d}, {_device(chosen.device)}, PyTorch {torch.__version__}")
    print(f"Wan 2.1 {chosen.size} with random weights, {frames} frames of {size[0]}x{size[1]}, {chosen.steps} steps\n")
    _print_transformer(chosen, measure_transformer(pipe, row, *size))

    _reset_peak(chosen.device)
    shot = _shot(size, window.frames)
    model.run(_shot(size, window.frames), _nothing, _nothing)  # the first call builds kernels
    bare = _seconds(lambda: [model.run(shot, _nothing, _nothing) for _ in range(chosen.windows)])
    _print("pipeline alone", bare, frames)
    if (peak := _peak(chosen.device)) is not None:
        print(f"{'most memory of tensors':<28}{peak / 2**30:9.2f} GiB")

    def edit(overlap: bool) -> float:
        request = _request(clip, folder, frames)
        return _seconds(lambda: Edit(request, row, model, _nothing, _nothing, Stages(), overlap=overlap).run())

    serial, overlapped = edit(False), edit(True)
    _print("edit, sequential", serial, frames)
    _print("edit, overlapped", overlapped, frames)
    print(f"{'overlap saves':<28}{(serial - overlapped) / serial:9.1%}")

    if bare * (1 + OVERHEAD_BAR) > JOB_SECONDS:
        print("no job: it would exceed its limit of ten minutes. Use fewer --steps or --windows")
        return
    models = ModelMap.model_validate({"pipelines": {"bench": row}, "models": {MODEL: {"pipeline": "bench"}}})
    whole = job_seconds(chosen.program, clip, models, model, folder)
    _print("job, submission to result", whole, frames)
    verdict = "" if chosen.device == "cpu" else " met" if whole <= bare * (1 + OVERHEAD_BAR) else " missed"
    print(f"{'over the pipeline':<28}{whole / bare - 1:9.1%}, bar {OVERHEAD_BAR:.0%}{verdict}")


def _print_transformer(chosen: argparse.Namespace, took: Transformer) -> None:
    reached = took.operations / took.seconds
    floor = measured_peak(chosen.device, 512 if chosen.size == "tiny" else 8192)
    print(f"{'transformer':<28}{took.parameters / 1e9:9.3f} billion parameters")
    print(f"{'one call':<28}{took.seconds:9.3f} s, {took.operations / 1e12:.3g} Tflop, {reached / 1e12:.3g} Tflop/s")
    print(f"{'of a product of matrices':<28}{reached / floor:9.1%} of {floor / 1e12:.3g} Tflop/s, measured")
    if chosen.device != "cpu" and (sheet := sheet_peak(_device(chosen.device))) is not None:
        print(f"{'of the data sheet':<28}{reached / sheet:9.1%} of {sheet / 1e12:.0f} Tflop/s in bf16")


def _print(name: str, seconds: float, frames: int) -> None:
    print(f"{name:<28}{seconds:9.2f} s, {frames / seconds:.2f} frames/s")


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _nothing(*_: object) -> None:
    """Ignores progress reports."""


def _device(device: str) -> str:
    return torch.cuda.get_device_name(device) if device != "cpu" else "the CPU; the figures do not apply to any GPU"


def _reset_peak(device: str) -> None:
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: str) -> int | None:
    return None if device == "cpu" else torch.cuda.max_memory_allocated(device)


def _clip(path: Path, frames: int) -> Path:
    source = f"testsrc2=s={WIDTH}x{HEIGHT}:r={FPS}"
    command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", source, "-frames:v", str(frames)]
    subprocess.run([*command, "-pix_fmt", "yuv420p", str(path)], check=True)
    return path


def _shot(size: tuple[int, int], length: int) -> Shot:
    drawn = np.random.default_rng(0)
    pictures = [drawn.integers(0, 255, (size[1], size[0], 3), dtype=np.uint8) for _ in range(length)]
    return Shot(prompt="winter", seed=7, width=size[0], height=size[1], length=length, frames=pictures)


def _request(clip: Path, folder: Path, frames: int) -> RunRequest:
    duration = frames / FPS
    data = {"path": str(clip), "mime": "video/mp4", "width": WIDTH, "height": HEIGHT, "duration": duration}
    return RunRequest.model_validate(
        {
            "job": "bench",
            "model": MODEL,
            "kind": "edit",
            "prompt": "winter",
            "seed": 7,
            "data": data,
            "width": WIDTH,
            "height": HEIGHT,
            "fps": FPS,
            "duration": duration,
            "folder": str(folder),
            "output": str(folder / "output.mp4"),
        }
    )
