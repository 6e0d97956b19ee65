"""Tests that converted weights give the same results and are smaller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cutroom_engine.loading import Loader
from cutroom_engine.model_map import read_model_map
from cutroom_engine.prepare import main

from .test_diffusion import nothing, same, shot
from .test_loras import lora
from .tiny import make, make_depth


def size(folder: Path, part: str) -> int:
    return sum(path.stat().st_size for path in (folder / part).glob("*.safetensors"))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with weights in fp32, and with a map that asks for lower precision."""
    folder = tmp_path_factory.mktemp("published")
    text = str(make("WanPipeline", folder))
    row: dict[str, Any] = {"shape": "wan2.1-1.3b", "steps": 2, "text": text, "window": {"frames": 9, "overlap": 1}}
    vace = {"class": "WanVACEPipeline", "weights": str(make("WanVACEPipeline", folder)), **row}
    few = {"loras": [{"file": lora(folder)}], "guidance": 1.0, "shift": 5.0}
    pipelines = {
        "film": {"class": "WanPipeline", "weights": text, "storage": "fp8", **few, **row},
        "depth": vace | {"control": {"kind": "depth", "model": make_depth(folder)}},
        "line": vace | {"control": {"kind": "line"}},
    }
    models = {"$family-2.5": {"pipeline": "depth", "with_reference": "line"}, "$family-pro-t2v": {"pipeline": "film"}}
    (folder / "models.yaml").write_text(yaml.safe_dump({"pipelines": pipelines, "models": models}))
    return folder


def test_converted_weights_give_the_same_result(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "ready"
    assert main(["--map", str(published / "models.yaml"), str(to)]) == 0
    assert capsys.readouterr().out.count("GiB") == 3, "pipelines with the same weights are written once"
    before, after = (read_model_map(folder / "models.yaml", "gen") for folder in (published, to))
    assert after.models == before.models
    for row in after.pipelines.values():
        assert all(Path(folder).is_relative_to(to) and Path(folder).is_dir() for folder in row.all_weights)
        assert row.loras == []
    assert after.pipelines["depth"].weights == after.pipelines["line"].weights
    # bf16 halves the size. FP8 halves it again, except for layers that keep their precision.
    assert size(to / "WanVACEPipeline", "transformer") < 0.75 * size(published / "WanVACEPipeline", "transformer")
    assert size(to / "WanPipeline", "transformer") < 0.6 * size(published / "WanPipeline", "transformer")
    assert size(to / "WanPipeline-text", "text_encoder") < 0.6 * size(published / "WanPipeline", "text_encoder")
    assert not (to / "WanPipeline" / "text_encoder").exists()
    loader = Loader(Path, "cpu")
    for name, row in before.pipelines.items():
        made = loader.load(row).run(shot(row.class_name), nothing, nothing)
        assert same(made, loader.load(after.pipelines[name]).run(shot(row.class_name), nothing, nothing)), name


def test_only_the_named_pipeline_is_converted(published: Path, tmp_path: Path) -> None:
    assert main(["--map", str(published / "models.yaml"), "--only", "line", str(tmp_path)]) == 0
    rows = read_model_map(tmp_path / "models.yaml", "gen").pipelines
    assert Path(rows["line"].weights).parent == tmp_path
    assert rows["film"] == read_model_map(published / "models.yaml", "gen").pipelines["film"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "none"], "the map has no pipeline none"),
        (["--map", "/none.yaml"], "No such file"),
    ],
)
def test_impossible_edits_are_reported(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["--map", str(published / "models.yaml"), *arguments, str(tmp_path / "ready")]) == 1
    assert says in capsys.readouterr().err


def test_existing_folder_is_not_overwritten(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch()
    assert main(["--map", str(published / "models.yaml"), str(tmp_path)]) == 1
    assert "not empty" in capsys.readouterr().err
