"""Tests pipelines of the real classes, with tiny random weights, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus
from PIL import Image

from cutroom_engine import diffusion
from cutroom_engine.diffusion import DiffusersPipeline
from cutroom_engine.frames import Frame, shown
from cutroom_engine.loading import Loader
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.pipeline import DeviceLost
from cutroom_engine.protocol import RunCancelled
from cutroom_engine.styles import STYLES, Shot

from .tiny import MAKERS, fields, make, make_depth, make_parser


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in MAKERS:
        make(name, folder)
    make_depth(folder)
    make_parser(folder)
    return folder


def pipeline(weights: Path, name: str, **changes: Any) -> DiffusersPipeline:
    row = fields(name, weights) | changes
    if STYLES[name].conditioned and not {"control", "mask"} & set(changes):
        row["control"] = {"kind": "line"}
    return Loader("cpu").load(PipelineRow.model_validate(row))


def noise(count: int) -> list[Frame]:
    return [np.random.default_rng(i).integers(0, 255, (64, 96, 3), dtype=np.uint8) for i in range(count)]


def shot(name: str, seed: int = 7, length: int = 9, **changes: Any) -> Shot:
    style = STYLES[name]
    length = 1 if style.takes == "image" else length
    frames = [] if style.takes == "text" else noise(length)
    references = [Image.fromarray(frame) for frame in noise(1)] if style.references else []
    given: dict[str, Any] = {"prompt": "a quiet winter evening", "frames": frames, "references": references}
    return Shot(seed=seed, width=96, height=64, length=length, **(given | changes))


def nothing(*_: object) -> None:
    """Ignores everything that a pipeline reports."""


def same(a: list[Frame], b: list[Frame]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(autouse=True)
def small_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes Qwen's pipeline process inputs at a size that the CPU can handle."""
    monkeypatch.setattr(pipeline_qwenimage_edit_plus, "VAE_IMAGE_SIZE", 64 * 64)
    monkeypatch.setattr(pipeline_qwenimage_edit_plus, "CONDITION_IMAGE_SIZE", 64 * 64)


@pytest.mark.parametrize("name", MAKERS)
def test_every_class_follows_the_seed(weights: Path, name: str) -> None:
    model = pipeline(weights, name)
    steps: list[float] = []
    made = model.run(shot(name), steps.append, nothing)
    assert len(made) == shot(name).length
    assert {frame.shape for frame in made} == {(64, 96, 3)}
    assert {frame.dtype for frame in made} == {np.dtype(np.uint8)}
    assert steps == sorted(steps)
    assert steps[-1] == 1
    assert same(made, model.run(shot(name), nothing, nothing)), "the same seed changed the frames"
    assert not same(made, model.run(shot(name, seed=8), nothing, nothing)), "another seed gave the same frames"
    model.close()
    assert same(made, pipeline(weights, name).run(shot(name), nothing, nothing)), (
        "the same seed changed the frames after a reload"
    )


@pytest.mark.parametrize("name", ["WanVACEPipeline", "Flux2KleinPipeline"])
def test_result_depends_on_the_input(weights: Path, name: str) -> None:
    model = pipeline(weights, name)
    other = shot(name, frames=[255 - frame for frame in shot(name).frames])
    assert not same(model.run(shot(name), nothing, nothing), model.run(other, nothing, nothing))


@pytest.mark.parametrize("name", [name for name in MAKERS if STYLES[name].references])
def test_references_may_have_any_shape(weights: Path, name: str) -> None:
    model = pipeline(weights, name)
    for size in ((1, 1), (1000, 3)):
        references = [shown(Image.new("RGB", size, "red"))]
        assert len(model.run(shot(name, references=references), nothing, nothing)) == shot(name).length


def test_klein_edits_a_small_picture(weights: Path) -> None:
    small = [frame[:48, :64] for frame in noise(1)]
    assert (
        len(pipeline(weights, "Flux2KleinPipeline").run(shot("Flux2KleinPipeline", frames=small), nothing, nothing))
        == 1
    )


def test_result_depends_on_the_prompt(weights: Path) -> None:
    model = pipeline(weights, "WanPipeline")
    summer = shot("WanPipeline", prompt="a summer morning")
    assert not same(model.run(shot("WanPipeline"), nothing, nothing), model.run(summer, nothing, nothing))


def test_vace_follows_references_and_the_previous_window(weights: Path) -> None:
    model = pipeline(weights, "WanVACEPipeline")
    plain = model.run(shot("WanVACEPipeline", references=[]), nothing, nothing)
    assert not same(plain, model.run(shot("WanVACEPipeline"), nothing, nothing))
    before = [np.zeros((64, 96, 3), dtype=np.uint8)] * 3
    assert not same(plain, model.run(shot("WanVACEPipeline", references=[], before=before), nothing, nothing))


def test_run_can_be_cancelled_between_steps(weights: Path) -> None:
    steps = []

    def stop(share: float) -> None:
        steps.append(share)
        raise RunCancelled

    model = pipeline(weights, "WanPipeline")
    with pytest.raises(RunCancelled):
        model.run(shot("WanPipeline"), stop, nothing)
    assert steps == [0.5]
    assert len(model.run(shot("WanPipeline"), nothing, nothing)) == 9, "it serves the next run"


@pytest.mark.parametrize("name", MAKERS)
def test_run_can_be_cancelled_at_any_point(weights: Path, name: str) -> None:
    """A run can be cancelled at every call of a model: while it encodes, denoises or decodes."""
    model = pipeline(weights, name)
    calls: list[None] = []
    made = model.run(shot(name), nothing, lambda: calls.append(None))
    assert len(calls) >= 5, "two encoders, two steps and a decoder"
    for number in (1, 2, len(calls) // 2, len(calls)):
        left = iter(range(number - 1))

        def stop(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise RunCancelled

        with pytest.raises(RunCancelled):
            # Known prompts are not encoded again.
            model.run(shot(name, prompt=f"a summer morning {number}"), nothing, stop)
    assert same(made, model.run(shot(name), nothing, nothing)), "an interrupted run left something behind"


def test_row_determines_the_pipeline(weights: Path) -> None:
    model = pipeline(
        weights,
        "WanPipeline",
        precision="bf16",
        scheduler={"class": "FlowMatchEulerDiscreteScheduler", "options": {"shift": 5.0}},
        steps=3,
        guidance=1.0,
    )
    steps: list[float] = []
    assert len(model.run(shot("WanPipeline"), steps.append, nothing)) == 9
    assert len(steps) == 3
    pipe = model._pipe
    assert (pipe.transformer.dtype, pipe.vae.dtype) == (torch.bfloat16, torch.bfloat16)
    assert type(pipe.scheduler).__name__ == "FlowMatchEulerDiscreteScheduler"


def test_device_errors_are_distinguished(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pipeline(weights, "WanPipeline")
    cudnn = RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")
    for error, answers, wanted in (
        (torch.OutOfMemoryError("CUDA out of memory"), True, MemoryError),
        (torch.AcceleratorError("CUDA error: out of memory"), True, MemoryError),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True, MemoryError),
        (torch.AcceleratorError("CUDA error: an illegal memory access was encountered"), False, DeviceLost),
        (cudnn, False, DeviceLost),
        (cudnn, True, RuntimeError),
    ):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        def synchronize(*_: Any, answers: bool = answers) -> None:
            if not answers:
                raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

        monkeypatch.setattr(model._pipe.transformer, "forward", fail)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
        with pytest.raises(Exception) as raised:  # noqa: PT011  # the next line checks the class
            model.run(shot("WanPipeline"), nothing, nothing)
        assert raised.type is wanted


def test_failed_decode_is_repeated_in_tiles(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the decoding is repeated, not the run."""
    model = pipeline(weights, "WanPipeline")
    vae, steps, whole = model._pipe.vae, list[float](), 0
    plain = model.run(shot("WanPipeline"), nothing, nothing)
    decode = vae.decode

    def full(*arguments: Any, **options: Any) -> Any:
        nonlocal whole
        if not vae.use_tiling:
            whole += 1
            raise torch.OutOfMemoryError("CUDA out of memory")
        return decode(*arguments, **options)

    monkeypatch.setattr(type(vae), "decode", lambda _, *rest, **more: full(*rest, **more))
    assert same(plain, model.run(shot("WanPipeline"), steps.append, nothing))
    assert (steps, whole, vae.use_tiling) == ([0.5, 1.0], 1, False)
    monkeypatch.setattr(diffusion, "free_memory", lambda _: 10)
    assert same(plain, model.run(shot("WanPipeline"), nothing, nothing))
    assert whole == 1, "it tried the whole picture although the memory was known to be too small"
