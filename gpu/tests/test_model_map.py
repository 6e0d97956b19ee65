from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cutroom_engine.cards import Card, choose, crowded, find_card, seconds
from cutroom_engine.footprint import footprint, together, vae_memory
from cutroom_engine.model_map import ModelMapError, PipelineRow, read_model_file
from cutroom_engine.settings import SettingError, read_settings

from .conftest import read_model_map

FOLDER = Path(__file__).parents[1]

OURS = read_model_file(FOLDER / "models.yaml", "gen")
CARDS = {row.name: choose(OURS, Card(f"NVIDIA {row.name}", int(row.gib * 2**30))) for row in OURS.cards}

GOOD = """
pipelines:
  text: {class: WanPipeline, weights: /weights/wan, text: /t, shape: wan2.2-5b, steps: 30, fps: 16}
  vace: {class: WanVACEPipeline, weights: /bucket/vace, text: /t, control: {kind: line},
         shape: wan2.1-vace-14b, steps: 30}
  image: {class: Flux2KleinPipeline, weights: /klein, text: /t, shape: flux2-klein-4b, steps: 4}
models:
  $family-pro-t2v: {pipeline: text}
  $family-2.5: {pipeline: vace, first: image}
"""


def test_family_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD)
    models = read_model_map(path, "acme")
    assert list(models.models) == ["acme-pro-t2v", "acme-2.5"]
    assert models.pipelines["text"].fps == 16


@pytest.mark.parametrize("source", ["/mnt/prefix/", "/mnt/prefix"])
def test_weights_source_replaces_the_folder(tmp_path: Path, source: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD.replace("/weights/wan", "/models/wan"))
    rows = read_model_map(path, "gen", source).pipelines
    assert rows["text"].weights == source.rstrip("/") + "/wan"
    assert rows["vace"].weights == "/bucket/vace"
    assert read_model_map(path, "gen").pipelines["text"].weights == "/models/wan"
    assert read_settings({"CUTROOM_ENGINE_WEIGHTS_SOURCE": source}).weights_source == source


def test_weights_source_applies_to_all_models_of_a_row(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    more = (
        "control: {kind: depth, model: /models/depth}, mask: {model: /models/clothes, labels: [hat]}, "
        "loras: [{file: /models/few/a.safetensors}, {file: /models/few/b.safetensors}]"
    )
    path.write_text(GOOD.replace("control: {kind: line}", more).replace("text: /t", "text: /models/t"))
    row = read_model_map(path, "gen", "/other").pipelines["vace"]
    assert (row.weights, row.text) == ("/bucket/vace", "/other/t")
    assert [of and of.model for of in (row.control, row.mask)] == ["/other/depth", "/other/clothes"]
    assert [lora.file for lora in row.loras] == ["/other/few/a.safetensors", "/other/few/b.safetensors"]


@pytest.mark.parametrize("name", CARDS)
def test_every_card_serves_every_model_of_the_catalog(name: str) -> None:
    assert set(CARDS[name].models) == {
        "gen-restyle-2",
        "gen-2.5",
        "gen-2.6",
        "gen-2.1",
        "gen-vton-3.6",
        "gen-vton-3.5",
        "gen-clip",
        "gen-pro-t2v",
        "gen-image-2",
    }


@pytest.mark.parametrize(
    ("name", "vace", "image"),
    [
        ("RTX 4080", ("wan2.1-vace-1.3b", None, 399360), ("flux2-klein-4b", None)),
        ("L4", ("wan2.1-vace-14b", "fp8", 399360), ("flux2-klein-4b", None)),
        ("RTX 3090", ("wan2.1-vace-14b", "fp8", 399360), ("flux2-klein-4b", None)),
        ("RTX 4090", ("wan2.1-vace-14b", "fp8", 399360), ("flux2-klein-4b", None)),
        ("L40S", ("wan2.1-vace-14b", "fp8", 399360), ("flux2-klein-4b", None)),
        ("A100", ("wan2.1-vace-14b", "fp8", 399360), ("qwen-image-edit-2511", None)),
        ("H100", ("wan2.1-vace-14b", None, None), ("flux2-klein-4b", None)),
        ("H200", ("wan2.1-vace-14b", None, None), ("qwen-image-edit-2511", None)),
    ],
)
def test_card_gets_the_best_rows_that_fit(name: str, vace: tuple[object, ...], image: tuple[object, ...]) -> None:
    row, other = CARDS[name].pipelines["vace"], CARDS[name].pipelines["image-edit"]
    assert (Path(row.weights).name, row.storage, row.pixels) == vace
    assert (Path(other.weights).name, other.storage) == image


@pytest.mark.parametrize("name", ["L40S", "A6000", "RTX 6000 Ada", "A100", "H100", "RTX PRO 6000", "H200"])
def test_pipelines_fit_into_memory_together(name: str) -> None:
    """Otherwise a run would wait for weights because another run used different ones."""
    free = next(row.gib for row in OURS.cards if row.name == name)
    assert together(footprint(row) for row in CARDS[name].pipelines.values()) <= free * 0.95 * 2**30


@pytest.mark.parametrize("name", set(CARDS) - {"RTX 4080", "RTX 5080", "RTX 3090"})
def test_five_seconds_are_edited_in_time(name: str) -> None:
    for pipeline, row in CARDS[name].pipelines.items():
        took = seconds(row, CARDS[name].teraflops)
        assert took is not None
        assert took < (45 if row.takes == "image" else 450), f"{pipeline} takes {took:.0f} s"


def test_full_or_unknown_card_gets_what_fits() -> None:
    busy = choose(OURS, Card("NVIDIA H100 80GB HBM3", 30 * 2**30))
    assert busy.pipelines["vace"].storage == "fp8"
    assert busy.teraflops == 400
    unknown = choose(OURS, Card("Radeon", 79 * 2**30))
    assert (unknown.pipelines["vace"].pixels, unknown.teraflops) == (None, None)
    assert choose(OURS, Card("NVIDIA L40S", 45 * 2**30), 12 * 2**30).pipelines["vace"].shape == "wan2.1-vace-1.3b"
    small = choose(OURS, Card("Quadro", 10 * 2**30))
    assert "gen-image-2" in small.models
    assert choose(OURS, Card("Quadro", 2**30)).models == {}


def test_weights_on_the_disk_are_kept() -> None:
    """The memory that other programs use changes from day to day, and must not decide which weights are fetched."""
    total = 24564 * 2**20
    idle, busy = (Card("NVIDIA GeForce RTX 4090", free * 2**20, total) for free in (24076, 21800))

    def pick(card: Card, *folders: str) -> tuple[str, int]:
        models = choose(OURS, card, missing=lambda row: [Path()] * (Path(row.weights).name not in folders))
        return models.pipelines["vace"].shape, crowded(models)

    large, small, others = "wan2.1-vace-14b", "wan2.1-vace-1.3b", ("flux2-klein-4b", "fastwan2.2-ti2v-5b")
    assert [pick(card, *others) for card in (idle, busy)] == [(large, 0), (small, 0)]
    shape, need = pick(busy, large, *others)
    assert shape == large
    assert busy.free < need < idle.free
    assert pick(idle, small, *others) == (small, 0)
    assert pick(busy, small, large, *others) == (small, 0), "a smaller model that works is better than none"
    card = Card("NVIDIA H100 80GB HBM3", 30 * 2**30, 80 * 2**30)
    assert choose(OURS, card).pipelines["vace"].storage == "fp8", "the same weights fit if they are compressed"


@pytest.mark.parametrize(
    ("visible", "device", "asked"),
    [("", "cuda", "0"), ("2,3", "cuda:1", "3"), ("GPU-7", "cuda", "GPU-7")],
)
def test_card_is_found_by_nvidia_smi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, device: str, asked: str
) -> None:
    script = tmp_path / "nvidia-smi"
    script.write_text('#!/bin/sh\necho "$@" >"$0.asked"\necho "NVIDIA GeForce RTX 4090, 23500, 24564"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    card = find_card(device)
    assert card == Card("NVIDIA GeForce RTX 4090", 23500 * 2**20, 24564 * 2**20)
    assert f"--id {asked}\n" in (tmp_path / "nvidia-smi.asked").read_text()
    assert choose(OURS, card).teraflops == 65
    script.write_text("#!/bin/sh\nexit 9\n")
    assert find_card(device) is None
    assert find_card("cpu") is None


def test_footprints_match_published_weights() -> None:
    """Sizes are in GiB, and match the published folders."""

    def weights(shape: str, **changes: str) -> float:
        fields = {"class": "WanPipeline", "weights": "/w", "text": "/t", "steps": 1, "shape": shape}
        return sum(footprint(PipelineRow.model_validate(fields | changes)).parts.values()) / 2**30

    assert weights("wan2.1-vace-1.3b") == pytest.approx(4.2, abs=0.1)
    assert weights("wan2.2-5b") == pytest.approx(10.6, abs=0.1)
    assert weights("wan2.1-vace-14b") == pytest.approx(32.5, abs=0.1)
    assert weights("wan2.1-vace-14b", storage="fp8") == pytest.approx(32.5 - 16.1, abs=0.1)


@pytest.mark.parametrize(("shape", "gigabytes"), [("wan2.1-vace-14b", 25.8), ("wan2.2-5b", 29.5), ("qwen-image", 8.1)])
def test_vae_memory_is_what_comfyui_measured(shape: str, gigabytes: float) -> None:
    """Figures for 1280x720 in fp32."""
    fields = {"class": "WanPipeline", "weights": "/w", "text": "/t", "steps": 1, "shape": shape, "precision": "fp32"}
    need = vae_memory(PipelineRow.model_validate(fields), 1280 * 720)
    assert need / 1e9 == pytest.approx(gigabytes, abs=0.1)


def test_shared_weights_count_once() -> None:
    fields = {"class": "WanPipeline", "weights": "/w", "steps": 1, "shape": "wan2.1-vace-14b", "text": "/text"}
    one, other = (footprint(PipelineRow.model_validate(fields | {"fps": fps})) for fps in (16, 24))
    assert together([one, other]) == one.alone
    apart = footprint(PipelineRow.model_validate(fields | {"weights": "/others"}))
    assert together([one, apart]) == one.alone + sum(apart.parts.values())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("WanPipeline", "MagicPipeline", "class: MagicPipeline is not one of"),
        ("steps: 30, ", "", "pipelines.text.0.steps: Field required"),
        ("steps: 30, ", "steps: 0, ", "pipelines.text.0.steps"),
        ("fps: 16}", "stpes: 3}", "pipelines.text.0.stpes: Extra inputs"),
        ("fps: 16}", "window: {frames: 80}}", "frames: 80 is not one more than a multiple of 4"),
        ("fps: 16}", "precision: int1}", "pipelines.text.0.precision"),
        (", control: {kind: line}", "", "WanVACEPipeline needs a control or a mask"),
        ("fps: 16}", "control: {kind: line}}", "WanPipeline takes no control and no mask"),
        ("kind: line", "kind: depth", "depth needs a model"),
        ("control: {kind: line}", "mask: {model: /m}", "mask.labels"),
        ("fps: 16}", "loras: [{file: a.bin}]}", "pipelines.text.0.loras.0.file"),
        ("WanPipeline", "QwenImageEditPlusPipeline, guidance: 4.0", "supports it only with a negative prompt"),
        ("fps: 16}", "shift: 0}", "pipelines.text.0.shift"),
        ("fps: 16}", "sigmas: [1.0, 0.5]}", "sigmas: there must be one"),
        ("30, fps: 16}", "2, sigmas: [0.5, 1.0]}", "each lower than the one before"),
        ("wan2.2-5b", "wan9", "shape: wan9 is not one of"),
        ("pipeline: text", "pipeline: next", "there is no pipeline next"),
        ("first: image", "first: text", "text edits no images"),
        ("vace, first", "text, first", "text cannot follow a first frame"),
        ("pipelines:", "pipelines: [", "expected"),
        (GOOD, "- 1", "valid"),
    ],
)
def test_map_errors_are_reported_in_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ModelMapError) as wrong:
        read_model_map(path, "gen")
    assert says in str(wrong.value)
    assert str(path) in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_missing_map_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelMapError, match="No such file"):
        read_model_map(tmp_path / "none.yaml", "gen")


def test_settings_have_defaults() -> None:
    settings = read_settings({})
    assert (settings.host, settings.port, settings.family, settings.device) == ("127.0.0.1", 8090, "gen", "cuda")
    assert (settings.memory, settings.scratch) == (None, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUTROOM_ENGINE_ADDR", "localhost"),
        ("CUTROOM_ENGINE_ADDR", "localhost:99999"),
        ("CUTROOM_ENGINE_MEMORY", "lots"),
        ("CUTROOM_ENGINE_DEVICE", "abacus"),
        ("CUTROOM_ENGINE_WEIGHTS_SOURCE", "bucket/prefix"),
    ],
)
def test_invalid_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"{name}.*{value}"):
        read_settings({name: value})


def test_settings_are_read(tmp_path: Path) -> None:
    settings = read_settings(
        {
            "CUTROOM_ENGINE_ADDR": ":9000",
            "CUTROOM_ENGINE_MEMORY": "24GiB",
            "CUTROOM_ENGINE_DEVICE": "cuda:1",
            "CUTROOM_ENGINE_SCRATCH": str(tmp_path),
        }
    )
    assert (settings.host, settings.port, settings.memory, settings.device) == ("0.0.0.0", 9000, 24 * 2**30, "cuda:1")
    assert settings.scratch == tmp_path.resolve()


def test_live_map_has_every_live_model() -> None:
    models = read_model_map(FOLDER / "models-live.yaml", "gen", "/bucket/weights")
    assert (models.pipelines, models.models, models.live.sessions) == ({}, {}, 1)
    assert set(models.live.models) == {"gen-restyle-2", "gen-2.5", "gen-2.6", "gen-2.1"}
    (row,) = models.live.pipelines.values()
    assert (row.weights, row.vae) == ("/bucket/weights/sd-turbo", "/bucket/weights/taesd")
    assert models.live.memory == 4 * 2**30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights": ""}, "at least 1 character"),
        ({"steps": 1, "strength": 0.5}, "at least one step"),
        ({"pixels": 10}, "greater than or equal to 4096"),
        ({"text": "x"}, "not permitted"),
    ],
)
def test_invalid_live_rows_are_rejected(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    row = {"weights": "/models/a", "steps": 2} | change
    file = tmp_path / "models.yaml"
    file.write_text(yaml.safe_dump({"live": {"pipelines": {"a": row}}}))
    with pytest.raises(ModelMapError, match=says):
        read_model_map(file, "gen")
    file.write_text(yaml.safe_dump({"live": {"models": {"gen-2.5": "b"}}}))
    with pytest.raises(ModelMapError, match="there is no pipeline b"):
        read_model_map(file, "gen")
