"""Converts weights to the form that the model map asks for: in its precision, with LoRAs merged, or in FP8. Then they
are loaded faster and take half the disk space or less.

    python -m cutroom_engine.prepare [--map MAP] [--only NAME]... FOLDER

creates a folder below FOLDER for each of the map's weights, and FOLDER/models.yaml, a map that uses them. It needs no
GPU, but enough memory for one pipeline at a time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .model_map import ModelMap, ModelMapError, PipelineRow, read_model_map
from .settings import SettingError, read_settings
from .weights import Weights, WeightsError

# How often to check for weights from S3, in seconds.
_LOOK = 1.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m cutroom_engine.prepare", description="Converts weights once.")
    parser.add_argument("folder", type=Path, help="output folder, which must be new or empty")
    parser.add_argument("--map", type=Path, help="the model map (CUTROOM_ENGINE_MODELS, else models.yaml)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a pipeline of the map; repeatable")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(os.environ)
        models = read_model_map(given.map or settings.models, settings.family, settings.weights_source)
        if unknown := set(given.only) - set(models.pipelines):
            raise ModelMapError(f"--only: the map has no pipeline {min(unknown)}")
        if given.folder.exists() and any(given.folder.iterdir()):
            raise SettingError(f"{given.folder}: not empty")
        names = set(given.only) or set(models.pipelines)
        weights = Weights(settings.weights, [one for name in names for one in models.pipelines[name].all_weights])
        try:
            prepare(models, given.folder, weights, names)
        finally:
            weights.close()
    except (SettingError, ModelMapError, WeightsError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def prepare(models: ModelMap, folder: Path, weights: Weights, names: set[str]) -> None:
    """Writes the weights of these pipelines to the folder, and a map that uses them."""
    from .loading import Loader  # this import takes seconds

    folder.mkdir(parents=True, exist_ok=True)
    loader = Loader(weights.folder, "cpu")
    written: dict[Hashable, str] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name, row in models.pipelines.items():
        fields = row.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if name in names:
            while not weights.ready(row.all_weights):
                time.sleep(_LOOK)
            fields |= _written(loader, row, folder, written, weights)
        rows[name] = fields
    whole = models.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"pipelines": rows}
    (folder / "models.yaml").write_text(yaml.safe_dump(whole, sort_keys=False, width=100), encoding="utf-8")


def _written(
    loader: Any, row: PipelineRow, folder: Path, written: dict[Hashable, str], weights: Weights
) -> dict[str, Any]:
    """Writes the row's weights unless they were already written. Returns the row's changed fields."""
    changes: dict[str, Any] = {}
    if row.shared not in written:
        to = _named(folder, row.weights, set(written.values()))
        loader.convert(row, to)
        written[row.shared] = str(to)
        print(f"{to}: {_size(to):.1f} GiB, of {row.class_name}")
    changes["weights"] = written[row.shared]
    if row.loras:
        changes["loras"] = []
    if row.text is not None:
        key = "text", row.text, row.precision
        if key not in written:
            to = _named(folder, f"{row.text}-text", set(written.values()))
            loader.convert_text(row.text, row, to)
            written[key] = str(to)
            print(f"{to}: {_size(to):.1f} GiB, of the text encoder")
        changes["text"] = written[key]
    return changes | _copied(row, folder, written, weights)


def _copied(row: PipelineRow, folder: Path, written: dict[Hashable, str], weights: Weights) -> dict[str, Any]:
    """Copies the pipeline's small models unchanged."""

    def copied(of: str) -> str:
        if of not in written:
            to = _named(folder, of, set(written.values()))
            shutil.copytree(weights.folder(of), to)
            written[of] = str(to)
        return written[of]

    changes: dict[str, Any] = {}
    for name, of in (("control", row.control), ("mask", row.mask)):
        if of is not None and of.model is not None:
            changes[name] = of.model_dump(mode="json") | {"model": copied(of.model)}
    return changes


def _named(folder: Path, weights: str, taken: set[str]) -> Path:
    """Returns a new folder, named after the weights."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", weights.rstrip("/").rpartition("/")[2]) or "weights"
    number = 1
    while str(to := folder / (name if number == 1 else f"{name}-{number}")) in taken:
        number += 1
    return to


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**30


if __name__ == "__main__":
    sys.exit(main())
