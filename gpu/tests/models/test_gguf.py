"""Tests transformers whose weights come from GGUF files."""

from __future__ import annotations

import json
from pathlib import Path

import diffusers
import gguf
import numpy as np
import pytest
import torch

from cutroom_engine.weights import WeightsError

from .test_diffusion import nothing, pipeline, same, shot, small_conditions  # noqa: F401  # a fixture
from .tiny import make

# Maps diffusers' layer names to the names in the files of Wan's publishers.
_NAMES = {
    "condition_embedder.time_embedder.linear_1": "time_embedding.0",
    "condition_embedder.time_embedder.linear_2": "time_embedding.2",
    "condition_embedder.text_embedder.linear_1": "text_embedding.0",
    "condition_embedder.text_embedder.linear_2": "text_embedding.2",
    "condition_embedder.time_proj": "time_projection.1",
    "attn1": "self_attn",
    "attn2": "cross_attn",
    "to_out.0": "o",
    "to_q": "q",
    "to_k": "k",
    "to_v": "v",
    "proj_out": "head.head",
    "ffn.net.0.proj": "ffn.0",
    "ffn.net.2": "ffn.2",
    "norm2": "norm3",
}


# Maps diffusers' layer names to the names in FLUX.2's files.
_NAMES_OF_FLUX = {
    "single_transformer_blocks": "single_blocks",
    "transformer_blocks": "double_blocks",
    "attn.to_qkv_mlp_proj": "linear1",
    "attn.to_out.0": "img_attn.proj",
    "attn.to_add_out": "txt_attn.proj",
    "attn.to_out": "linear2",
    "attn.norm_added_q.weight": "txt_attn.norm.query_norm.scale",
    "attn.norm_added_k.weight": "txt_attn.norm.key_norm.scale",
    "ff.linear_in": "img_mlp.0",
    "ff.linear_out": "img_mlp.2",
    "ff_context.linear_in": "txt_mlp.0",
    "ff_context.linear_out": "txt_mlp.2",
    "context_embedder": "txt_in",
    "x_embedder": "img_in",
    "time_guidance_embed.timestep_embedder.linear_1": "time_in.in_layer",
    "time_guidance_embed.timestep_embedder.linear_2": "time_in.out_layer",
    "modulation.linear": "modulation.lin",
    "modulation_img.linear": "modulation_img.lin",
    "modulation_txt.linear": "modulation_txt.lin",
    "norm_out.linear": "final_layer.adaLN_modulation.1",
    "proj_out": "final_layer.linear",
}


def published(weights: dict[str, torch.Tensor], class_name: str) -> dict[str, torch.Tensor]:
    """Renames weights from diffusers' names to the names in GGUF files."""
    if class_name == "Flux2KleinPipeline":
        return _published_of_flux(weights)
    if not class_name.startswith("Wan"):
        return weights

    def renamed(name: str) -> str:
        if name == "scale_shift_table":
            return "head.modulation"
        return _replaced(name.replace("scale_shift_table", "modulation"), _NAMES)

    return {renamed(name): tensor for name, tensor in weights.items()}


def _published_of_flux(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    made: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        block, _, part = name.partition(".attn.")
        single = "single" in block
        if part in ("to_q.weight", "add_q_proj.weight"):
            three = [weights[f"{block}.attn.{part.replace('q', each)}"] for each in "qkv"]
            of = "img" if part == "to_q.weight" else "txt"
            made[f"{_replaced(block, _NAMES_OF_FLUX)}.{of}_attn.qkv.weight"] = torch.cat(three)
        elif part in ("norm_q.weight", "norm_k.weight"):
            norm = "norm.query_norm.scale" if "q" in part else "norm.key_norm.scale"
            made[f"{_replaced(block, _NAMES_OF_FLUX)}.{norm if single else f'img_attn.{norm}'}"] = tensor
        elif name == "norm_out.linear.weight":
            made["final_layer.adaLN_modulation.1.weight"] = torch.cat(tensor.chunk(2)[::-1])
        elif part not in ("to_k.weight", "to_v.weight", "add_k_proj.weight", "add_v_proj.weight"):
            made[_replaced(name, _NAMES_OF_FLUX)] = tensor
    return made


def _replaced(name: str, names: dict[str, str]) -> str:
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def write(pipe: Path, file: Path) -> str:
    """Writes the transformer in a pipeline's folder as a GGUF file. Layers that are wide enough for a block are
    stored in 8 bits."""
    index = json.loads((pipe / "model_index.json").read_text())
    model = getattr(diffusers, index["transformer"][1]).from_pretrained(str(pipe), subfolder="transformer")
    writer = gguf.GGUFWriter(file, "wan")
    for name, tensor in published(model.state_dict(), index["_class_name"]).items():
        values = np.ascontiguousarray(tensor.float().numpy())
        if values.ndim == 2 and values.shape[1] % 32 == 0 and "blocks" in name:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(file)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    for name in PUBLISHED:
        make(name, folder)
    return folder


# The classes for which GGUF files are published.
PUBLISHED = ["WanPipeline", "WanVACEPipeline", "QwenImageEditPlusPipeline", "Flux2KleinPipeline"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_gguf_is_close_to_its_source(weights: Path, tmp_path: Path, name: str) -> None:
    file = write(weights / name, tmp_path / "tiny-Q8_0.gguf")
    model = pipeline(weights, name, gguf=file)
    layers = [one for one in model._pipe.transformer.modules() if type(one).__name__ == "GGUFLinear"]
    assert any(layer.weight.dtype == torch.uint8 for layer in layers), "no layer has fewer bits"
    made = model.run(shot(name), nothing, nothing)
    full = pipeline(weights, name).run(shot(name), nothing, nothing)
    apart = np.abs(np.stack(made).astype(int) - np.stack(full).astype(int))
    assert apart.max() > 0, "the weights come from the folder, not from the file"
    assert apart.mean() < 3, "the result is unrelated"
    assert same(made, model.run(shot(name), nothing, nothing))


def test_missing_gguf_is_reported(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such file"):
        pipeline(weights, "WanPipeline", gguf=str(tmp_path / "none.gguf"))
