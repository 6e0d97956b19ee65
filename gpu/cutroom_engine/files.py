"""Lists the files that a row needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .model_map import LivePipelineRow, PipelineRow

# A component's files apart from its weights, by the end of its folder's name. Each entry lists alternatives.
_TOKENIZER = (("tokenizer_config.json",), ("tokenizer.json", "spiece.model", "vocab.json"))
_SMALL = {"scheduler": (("scheduler_config.json",),), "processor": (("preprocessor_config.json",),)}

# The components of live models, in case their index is missing too.
_LIVE = ("scheduler", "text_encoder", "tokenizer", "unet", "vae")


def missing(row: PipelineRow | LivePipelineRow) -> list[Path]:
    """Returns the files that the row needs and that do not exist."""
    found: list[Path] = []
    replaced = {"text_encoder", "tokenizer"}
    if isinstance(row, LivePipelineRow):
        replaced = {"safety_checker", "feature_extractor", "image_encoder", *(["vae"] if row.vae else [])}
        found += _weights(Path(row.vae)) if row.vae else []
    else:
        models = [of.model for of in (row.control, row.mask) if of is not None and of.model is not None]
        for model in map(Path, models):
            found += [*_weights(model), *_absent(model, ("preprocessor_config.json",))]
        found += [path for lora in row.loras if not (path := Path(lora.file)).is_file()]
        found += [*_weights(Path(row.text) / "text_encoder"), *_component(Path(row.text) / "tokenizer")]
    base = Path(row.weights)
    try:
        index = json.loads((base / "model_index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found.insert(0, base / "model_index.json")
        names = _LIVE if isinstance(row, LivePipelineRow) else ("scheduler", "transformer", "vae")
        index = {name: ["diffusers"] for name in names}
    for name, kind in index.items():
        if not name.startswith("_") and isinstance(kind, list) and kind[0] is not None and name not in replaced:
            found += _component(base / name)
    return list(dict.fromkeys(found))


def _component(folder: Path) -> Iterator[Path]:
    if folder.name.startswith("tokenizer"):
        wanted: tuple[tuple[str, ...], ...] = _TOKENIZER
    elif folder.name not in _SMALL:
        yield from _weights(folder)
        return
    else:
        wanted = _SMALL[folder.name]
    for names in wanted:
        yield from _absent(folder, names)


def _absent(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    if not any((folder / name).is_file() for name in names):
        yield folder / names[0]


def _weights(folder: Path) -> Iterator[Path]:
    """Yields the missing files of a model: its configuration, and its weights or all shards that an index lists."""
    yield from _absent(folder, ("config.json",))
    if any(path for path in folder.glob("*.safetensors") if "-of-" not in path.name):
        return
    index = next(iter(folder.glob("*.safetensors.index.json")), None)
    if index is None:
        yield folder / "*.safetensors"
        return
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        yield index
        return
    yield from (folder / shard for shard in sorted(shards) if not (folder / shard).is_file())
