"""Tests that every missing file of the weights is reported at the start, and that such runs are not tried again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutroom_engine.cards import Card
from cutroom_engine.files import missing
from cutroom_engine.model_map import ModelMap

from .conftest import Ask, Clip, read_model_map
from .test_server import Serve, serve, servers

__all__ = ["serve", "servers"]

FOLDER = Path(__file__).parents[1]

# The files that the map needs.
FILES = {
    "wan2.1-vace-14b": [
        "model_index.json",
        "scheduler/scheduler_config.json",
        "transformer/config.json",
        "transformer/diffusion_pytorch_model-00001-of-00002.safetensors",
        "transformer/diffusion_pytorch_model-00002-of-00002.safetensors",
        "transformer/diffusion_pytorch_model.safetensors.index.json",
        "vae/config.json",
        "vae/diffusion_pytorch_model.safetensors",
    ],
    "wan2.1-distill-loras": ["wan2.1_t2v_14b_lora_rank64_lightx2v_4step.safetensors"],
    "depth-anything-v2-small": ["config.json", "model.safetensors", "preprocessor_config.json"],
    "segformer-b2-clothes": ["config.json", "model.safetensors", "preprocessor_config.json"],
    "fastwan2.2-ti2v-5b": [
        "model_index.json",
        "scheduler/scheduler_config.json",
        "text_encoder/config.json",
        "text_encoder/model.safetensors",
        "tokenizer/spiece.model",
        "tokenizer/tokenizer_config.json",
        "transformer/config.json",
        "transformer/diffusion_pytorch_model.safetensors",
        "vae/config.json",
        "vae/diffusion_pytorch_model.safetensors",
    ],
    "flux2-klein-4b": [
        "model_index.json",
        "scheduler/scheduler_config.json",
        "text_encoder/config.json",
        "text_encoder/model.safetensors",
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
        "transformer/config.json",
        "transformer/diffusion_pytorch_model.safetensors",
        "vae/config.json",
        "vae/diffusion_pytorch_model.safetensors",
    ],
}

_INDEX = {"weight_map": {str(i): f"diffusion_pytorch_model-0000{i}-of-00002.safetensors" for i in (1, 2)}}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Creates all files."""
    for folder, names in FILES.items():
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_INDEX if name.endswith("index.json") else {}))
        parts = {name.partition("/")[0]: ["diffusers", "Any"] for name in names if "/" in name}
        if "model_index.json" in names:
            index = {
                "_class_name": "Any",
                "text_encoder": ["transformers", "Any"],
                "image_encoder": [None, None],
                **parts,
            }
            (tmp_path / folder / "model_index.json").write_text(json.dumps(index))
    return tmp_path


def models_of(weights: Path) -> ModelMap:
    return read_model_map(FOLDER / "models.yaml", "gen", str(weights), Card("NVIDIA L40S", 44 * 2**30))


def absent(models: ModelMap) -> set[Path]:
    return {path for row in models.pipelines.values() for path in missing(row)}


def test_nothing_is_missing(weights: Path) -> None:
    assert absent(models_of(weights)) == set()


@pytest.mark.parametrize("path", [f"{folder}/{name}" for folder, names in FILES.items() for name in names])
def test_every_missing_file_is_listed(weights: Path, path: str) -> None:
    (weights / path).unlink()
    (found,) = absent(models_of(weights))
    one_of_several = path.endswith(("model.safetensors", "index.json")) and "model_index" not in path
    if one_of_several:
        assert found == (weights / path).parent / "*.safetensors"
    else:
        assert found in (weights / path, (weights / path).with_name("tokenizer.json"))


def test_everything_is_listed_in_an_empty_folder(tmp_path: Path) -> None:
    found = {str(path.relative_to(tmp_path)) for path in absent(models_of(tmp_path))}
    assert {name.partition("/")[0] for name in found} == set(FILES)
    for name in ("text_encoder/config.json", "transformer/*.safetensors", "vae/config.json"):
        assert f"fastwan2.2-ti2v-5b/{name}" in found


def test_health_lists_missing_files_and_runs_fail_at_once(serve: Serve, weights: Path, clip: Clip, ask: Ask) -> None:
    gone = weights / "wan2.1-vace-14b/vae/config.json"
    gone.unlink()
    models = models_of(weights)
    client = serve(models=models, missing=missing, fetch="fetch it")
    health = client.get("/healthz")
    assert health.status_code == 200
    missed = {"missing": [str(gone)], "fetch": "fetch it"}
    assert health.json() == {"status": "ok", "resident": [], "loaded": [], **missed}
    answer = client.post("/v1/runs", json=ask(clip()).model_dump())
    assert answer.status_code == 422
    assert answer.json()["error"] == {
        "code": "engine_error",
        "message": "The engine's weights are missing. The command cutroom doctor lists them.",
        "retryable": False,
    }
    gone.touch()
    assert "missing" not in client.get("/healthz").json(), "files that have arrived need no restart"
