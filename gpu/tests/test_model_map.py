from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cutroom_engine.estimates import Estimates
from cutroom_engine.footprint import Footprint, footprint, together
from cutroom_engine.model_map import ModelMapError, PipelineRow, read_model_map
from cutroom_engine.settings import SettingError, read_settings

from .conftest import Ask

FOLDER = Path(__file__).parents[1]

# Our model maps, and how many GiB their cards report: RTX 4090, L40S, H100, H200.
CARDS = {"models-24gb.yaml": 23.9, "models.yaml": 44.4, "models-80gb.yaml": 79.1, "models-141gb.yaml": 139.8}

GOOD = """
pipelines:
  lucy: {class: LucyEditPipeline, weights: /weights/lucy, steps: 30, memory: 30GiB}
  vace: {class: WanVACEPipeline, weights: "s3://bucket/vace", steps: 30, control: {kind: gray}}
models:
  $family-2.5: {pipeline: lucy, with_reference: vace}
"""


def test_family_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD)
    models = read_model_map(path, "acme")
    assert list(models.models) == ["acme-2.5"]
    assert models.pipelines["lucy"].memory == 30 * 2**30


@pytest.mark.parametrize("source", ["s3://bucket/prefix", "s3://bucket/prefix/", "/mnt/prefix"])
def test_weights_source_replaces_the_folder(tmp_path: Path, source: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD.replace("/weights/lucy", "/models/lucy"))
    rows = read_model_map(path, "gen", source).pipelines
    assert rows["lucy"].weights == source.rstrip("/") + "/lucy"
    assert rows["vace"].weights == "s3://bucket/vace"
    assert read_model_map(path, "gen").pipelines["lucy"].weights == "/models/lucy"
    assert read_settings({"CUTROOM_ENGINE_WEIGHTS_SOURCE": source}).weights_source == source


def test_weights_source_applies_to_pose_models(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    poses = "poses: {detector: /models/detector, estimator: s3://bucket/estimator}"
    path.write_text(
        GOOD.replace(
            "class: LucyEditPipeline, weights: /weights/lucy", f"class: WanAnimatePipeline, weights: /models/a, {poses}"
        )
    )
    row = read_model_map(path, "gen", "s3://other").pipelines["lucy"]
    assert row.all_weights == ["s3://other/a", "s3://other/detector", "s3://bucket/estimator"]


def test_weights_source_applies_to_all_models_of_a_row(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    more = (
        "control: {kind: depth, model: /models/depth}, mask: {of: parts, model: /models/clothes, labels: [hat]}, "
        "loras: [{file: /models/few/a.safetensors}, {file: /models/few/b.safetensors, weight: 0.5}], "
        "lora_choices: {clay: {file: /models/looks/clay.safetensors}}"
    )
    path.write_text(GOOD.replace("control: {kind: gray}", more))
    row = read_model_map(path, "gen", "s3://other").pipelines["vace"]
    assert row.all_weights == [
        "s3://bucket/vace",
        "s3://other/depth",
        "s3://other/clothes",
        "s3://other/few",
        "s3://other/looks",
    ]
    assert row.lora_choices["clay"].file == "s3://other/looks/clay.safetensors"
    assert [(lora.name, lora.weight) for lora in row.loras] == [("a.safetensors", 1.0), ("b.safetensors", 0.5)]


@pytest.mark.parametrize("name", CARDS)
def test_our_maps_serve_every_model_of_the_catalog(name: str) -> None:
    assert set(read_model_map(FOLDER / name, "gen").models) == {
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


@pytest.mark.parametrize("name", CARDS)
def test_all_pipelines_of_a_map_fit_into_memory(name: str) -> None:
    """Otherwise a run would wait for weights because another run used different ones."""
    found = [footprint(pipeline, row) for pipeline, row in read_model_map(FOLDER / name, "gen").pipelines.items()]
    known = [one for one in found if one is not None]
    assert len(known) == len(found)
    assert together(known) <= CARDS[name] * 0.95 * 2**30


@pytest.mark.parametrize("name", CARDS)
def test_five_seconds_are_edited_in_time(name: str, ask: Ask) -> None:
    """Computed times are rough, so they must stay a quarter below the limits of ten minutes for a clip and one minute
    for an image."""
    models = read_model_map(FOLDER / name, "gen")
    known = Estimates(models.pipelines, models.card)
    clip = Path("/clip")
    for pipeline, row in models.pipelines.items():
        image = row.takes == "image"
        length = {"kind": "image", "fps": 0, "duration": 0} if image else {"fps": 20, "duration": 5}
        request = ask(width=1280, height=720, data=clip, reference=Path("/reference"), **length)
        seconds = known.seconds(pipeline, request)
        assert seconds is not None
        assert seconds < (45 if image else 450), f"{pipeline} takes {seconds:.0f} s"


def test_footprints_match_published_weights() -> None:
    """Sizes are in GiB, and match the published folders."""

    def weights(shape: str, **changes: str) -> float:
        fields = {"class": "WanPipeline", "weights": "/w", "steps": 1, "shape": shape, "parts": {"vae": "fp32"}}
        found = footprint("row", PipelineRow.model_validate(fields | changes))
        assert found is not None
        return sum(found.parts.values()) / 2**30

    assert weights("wan2.1-1.3b") == pytest.approx(13.7, abs=0.1)
    assert weights("wan2.2-5b") == pytest.approx(22.5, abs=0.1)
    assert weights("wan2.1-14b") == pytest.approx(37.7, abs=0.1)
    # The 14.29 billion weights are stored in 4.5 bits instead of 16.
    assert weights("wan2.1-14b", gguf="/w/wan2.1-t2v-14b-Q4_K_M.gguf") == pytest.approx(37.7 - 19.1, abs=0.1)
    assert weights("wan2.1-14b", gguf="/w/weights.gguf") == pytest.approx(37.7, abs=0.1)
    assert weights("wan2.1-14b", storage="fp8") == pytest.approx(37.7 - 13.3, abs=0.1)


def test_weights_source_applies_to_gguf_files(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(GOOD.replace("memory: 30GiB", "gguf: /models/few-bits/lucy-Q8_0.gguf"))
    row = read_model_map(path, "gen", "s3://other").pipelines["lucy"]
    assert row.all_weights == ["/weights/lucy", "s3://other/few-bits"]
    assert row.shared != read_model_map(path, "gen").pipelines["lucy"].shared


def test_speed_options_need_memory() -> None:
    fields = {"class": "WanPipeline", "weights": "/w", "steps": 30, "shape": "wan2.1-14b", "guidance": 5.0}

    def need(**changes: object) -> Footprint:
        found = footprint("row", PipelineRow.model_validate(fields | changes))
        assert found is not None
        return found

    plain, cached = need(), need(cache=0.05)
    assert cached.working == pytest.approx(plain.working * 1.5), "three vectors more for each of two passes, to twelve"
    assert sum(cached.parts.values()) == sum(plain.parts.values())
    assert need(cache=0.05, guidance=1.0).working == pytest.approx(plain.working * 1.25)
    for way in ("fp8", "fp8-weights"):
        assert need(quantize=way).alone == pytest.approx(plain.alone - 14.29e9, rel=1e-6)
    # Rows that quantize differently do not share weights.
    row = PipelineRow.model_validate(fields | {"quantize": "fp8"})
    apart = footprint("other", row)
    assert apart is not None
    assert together([plain, apart]) > plain.alone + 14.29e9


def test_shared_weights_count_once() -> None:
    fields = {"class": "WanPipeline", "weights": "/w", "steps": 1, "shape": "wan2.1-14b"}
    text = {"weights": "/text", "leaves": True}
    one, other = (PipelineRow.model_validate(fields | {"text": text, "fps": fps}) for fps in (16, 24))
    first, second = footprint("one", one), footprint("other", other)
    assert first is not None
    assert second is not None
    assert together([first, second]) == first.alone
    apart = footprint("apart", PipelineRow.model_validate(fields | {"weights": "/others", "text": text}))
    assert apart is not None
    assert together([first, apart]) == first.alone + sum(apart.parts.values())


def test_text_encoders_in_two_precisions_count_twice() -> None:
    fields = {"class": "WanPipeline", "weights": "/w", "steps": 1, "shape": "wan2.1-1.3b", "text": {"weights": "/text"}}
    found = [
        footprint(name, PipelineRow.model_validate(fields | {"parts": {"text_encoder": precision}}))
        for name, precision in (("one", "bf16"), ("same", "bf16"), ("other", "fp32"))
    ]
    one, same, other = (each for each in found if each is not None)
    assert together([one, same]) == one.alone
    assert together([one, other]) - one.alone >= 4 * 5.68e9


@pytest.mark.parametrize("name", ["models-80gb.yaml", "models-141gb.yaml"])
def test_row_for_animate_is_valid(tmp_path: Path, name: str) -> None:
    """The example in the comment at the top of the map is a valid row."""
    lines = (FOLDER / name).read_text().splitlines()
    begin = lines.index("#   animate:")
    row = list(itertools.takewhile(lambda line: line.startswith("#"), lines[begin:]))
    path = tmp_path / name
    added = ["pipelines:", *(line.removeprefix("# ").rstrip() for line in row)]
    path.write_text("\n".join(lines).replace("pipelines:", "\n".join(added), 1))
    with_it, without = (read_model_map(of, "gen") for of in (path, FOLDER / name))
    assert set(with_it.pipelines) - set(without.pipelines) == {"animate"}
    animate = with_it.pipelines["animate"]
    assert animate.poses is not None
    assert any("relight" in lora.file for lora in animate.loras)
    whole, before = (
        together(one for key, row in models.pipelines.items() if (one := footprint(key, row)) is not None) / 2**30
        for models in (with_it, without)
    )
    said = re.search(r"takes (\d+) GiB more", " ".join(line.strip("# ") for line in lines))
    assert said is not None
    assert whole - before == pytest.approx(int(said[1]), abs=0.6)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("30GiB}", "30GiB, text: {weights: /t}, offload: model}", "text: with offload model a pipeline has its own"),
        ("LucyEditPipeline", "MagicPipeline", "class: MagicPipeline is not one of"),
        ("steps: 30, ", "", "pipelines.lucy.steps: Field required"),
        ("steps: 30, ", "steps: 0, ", "pipelines.lucy.steps"),
        ("steps: 30, ", "steps: 30, stpes: 3, ", "pipelines.lucy.stpes: Extra inputs"),
        ("30GiB", "30 gigs", "'30 gigs' is not a size such as 24GiB"),
        ("30GiB}", "30GiB, window: {frames: 80}}", "frames: 80 is not one more than a multiple of 4"),
        ("30GiB}", "30GiB, precision: int1}", "pipelines.lucy.precision"),
        (", control: {kind: gray}", "", "WanVACEPipeline needs a control or a mask"),
        ("30GiB}", "30GiB, mask: {of: box}}", "LucyEditPipeline takes no control and no mask"),
        ("kind: gray", "kind: depth", "depth needs a model"),
        ("kind: gray", "kind: pose", "poses: WanVACEPipeline needs pose models"),
        ("control: {kind: gray}", "mask: {of: parts, model: /m}", "needs model and labels"),
        ("control: {kind: gray}", "mask: {of: box, box: [0.8, 0, 0.2, 1]}", "box: left, top, right and bottom"),
        ("30GiB}", "30GiB, loras: [{file: a.bin}]}", "pipelines.lucy.loras.0.file"),
        ("30GiB}", "30GiB, lora_choices: {A b: {file: /a.safetensors}}}", "pipelines.lucy.lora_choices"),
        ("30GiB}", "30GiB, storage: fp8, lora_choices: {a: {file: /a.safetensors}}}", "combined with lora_choices"),
        ("30GiB}", "30GiB, gguf: /models/a.safetensors}", "pipelines.lucy.gguf"),
        (
            "30GiB}",
            "30GiB, gguf: /a.gguf, loras: [{file: /a.safetensors}]}",
            "gguf: these weights do not support LoRAs",
        ),
        ("30GiB}", "30GiB, call: {guidance_scale: 3.0}}", "call: guidance_scale has its own key"),
        ("LucyEditPipeline", "QwenImageEditPipeline, guidance: 4.0", "supports it only with a negative prompt"),
        ("30GiB}", "30GiB, shift: 0}", "pipelines.lucy.shift"),
        ("30GiB}", "30GiB, sigmas: [1.0, 0.5]}", "sigmas: there must be one"),
        ("30, memory: 30GiB}", "2, sigmas: [0.5, 1.0]}", "each lower than the one before"),
        ("30GiB}", "30GiB, attention: fast}", "pipelines.lucy.attention"),
        ("30GiB}", "30GiB, storage: fp8, quantize: fp8}", "quantize: cannot be combined with storage"),
        ("30GiB}", "30GiB, compile: true, lora_choices: {a: {file: /a.safetensors}}}", "combined with lora_choices"),
        ("30GiB}", "30GiB, compile: true, offload: model}", "compile: not supported for offloaded weights"),
        ("30GiB}", "30GiB, storage: fp8, offload: model}", "storage: not supported for offloaded weights"),
        ("kind: gray}", "kind: gray}, cache: 0.1", "cache: the blocks of WanVACEPipeline cannot be skipped"),
        ("LucyEditPipeline", "WanVideoToVideoPipeline, cache: 0.1", "supports it only without guidance"),
        ("pipeline: lucy", "pipeline: lucky", "there is no pipeline lucky"),
        ("with_reference: vace", "with_reference: lucy", "lucy takes no reference image"),
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
    models = read_model_map(FOLDER / "models-live.yaml", "gen", "s3://bucket/weights")
    assert (models.pipelines, models.models, models.live.sessions) == ({}, {}, 1)
    assert set(models.live.models) == {"gen-restyle-2", "gen-2.5", "gen-2.6", "gen-2.1"}
    (row,) = models.live.pipelines.values()
    assert row.all_weights == ["s3://bucket/weights/sd-turbo", "s3://bucket/weights/taesd"]
    assert models.live.memory == 4 * 2**30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"class": "FluxPipeline"}, "Input should be"),
        ({"weights": ""}, "at least 1 character"),
        ({"steps": 1, "strength": 0.5}, "at least one step"),
        ({"guidance": 7.5}, "for distilled models"),
        ({"multiple": 12}, "multiple of 8"),
        ({"pixels": 10}, "greater than or equal to 4096"),
        ({"image": {"file": "/a/b.bin", "encoder": "/e"}}, "match pattern"),
        ({"text": "x"}, "not permitted"),
    ],
)
def test_invalid_live_rows_are_rejected(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    row = {"class": "StableDiffusionImg2ImgPipeline", "weights": "/models/a", "steps": 2} | change
    file = tmp_path / "models.yaml"
    file.write_text(yaml.safe_dump({"live": {"pipelines": {"a": row}}}))
    with pytest.raises(ModelMapError, match=says):
        read_model_map(file, "gen")
    file.write_text(yaml.safe_dump({"live": {"models": {"gen-2.5": "b"}}}))
    with pytest.raises(ModelMapError, match="there is no pipeline b"):
        read_model_map(file, "gen")
