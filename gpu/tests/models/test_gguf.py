"""Transformers with the weights of GGUF files."""

from __future__ import annotations

from pathlib import Path

import diffusers
import gguf
import numpy as np
import pytest
import torch

from cutroom_engine.weights import WeightsError

from .test_diffusion import nothing, pipeline, same, shot
from .tiny import make

# How the files of Wan's publishers name what diffusers names otherwise.
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


def published(name: str) -> str:
    """Returns the name of a tensor of diffusers in such a file."""
    if name == "scale_shift_table":
        return "head.modulation"
    name = name.replace("scale_shift_table", "modulation")
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def write(pipe: Path, file: Path) -> str:
    """Writes the transformer of a pipeline's folder as a GGUF in 8 bits, where layers are wide
    enough for its blocks."""
    model = diffusers.WanTransformer3DModel.from_pretrained(str(pipe), subfolder="transformer")
    writer = gguf.GGUFWriter(file, "wan")
    for name, tensor in model.state_dict().items():
        values = np.ascontiguousarray(tensor.float().numpy())
        if values.ndim == 2 and values.shape[1] % 32 == 0 and "blocks" in name:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(published(name), gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(published(name), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(file)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    make("WanPipeline", folder)
    return folder


def test_a_gguf_is_nearly_what_it_was_made_from(weights: Path, tmp_path: Path) -> None:
    file = write(weights / "WanPipeline", tmp_path / "tiny-Q8_0.gguf")
    model = pipeline(weights, "WanPipeline", gguf=file)
    layers = [one for one in model._pipe.transformer.modules() if type(one).__name__ == "GGUFLinear"]
    assert any(layer.weight.dtype == torch.uint8 for layer in layers), "nothing is in fewer bits"
    made = model.run(shot("WanPipeline"), nothing, nothing)
    full = pipeline(weights, "WanPipeline").run(shot("WanPipeline"), nothing, nothing)
    apart = np.abs(np.stack(made).astype(int) - np.stack(full).astype(int))
    assert apart.max() > 0, "it has the weights of the folder"
    assert apart.mean() < 3, "it makes something else"
    assert same(made, model.run(shot("WanPipeline"), nothing, nothing))


def test_a_gguf_that_is_not_there(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such file"):
        pipeline(weights, "WanPipeline", gguf=str(tmp_path / "none.gguf"))
