"""Loads transformers from GGUF files, which store weights with fewer bits than the computation uses."""

from __future__ import annotations

import json
from pathlib import Path

import diffusers
import torch

from .weights import WeightsError


def transformer(file: Path, pipeline: Path, precision: torch.dtype) -> torch.nn.Module:
    """Returns the transformer of a pipeline's folder, with the weights in the file. Each layer converts its weights
    to the precision when it computes."""
    if not file.is_file():
        raise WeightsError(f"{file}: no such file", retryable=False)
    kind = getattr(diffusers, json.loads((pipeline / "model_index.json").read_text())["transformer"][1])
    if not hasattr(kind, "from_single_file"):
        raise WeightsError(f"{file}: a {kind.__name__} cannot be read from a single file", retryable=False)
    made: torch.nn.Module = kind.from_single_file(
        str(file),
        config=str(pipeline),
        subfolder="transformer",
        quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=precision),
        dtype=precision,
        local_files_only=True,
    )
    return made
