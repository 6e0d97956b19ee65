"""Finds the card and chooses the pipelines that it can serve."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .estimates import Estimates
from .footprint import Footprint, footprint, together
from .model_map import ModelFile, ModelMap, PipelineRow
from .protocol import EstimatedEdit

# The fraction of the free memory that pipelines may use. The rest is for the driver and for fragmentation.
USABLE = 0.95

# How many seconds five seconds of video, and an image, may take by calculation. Calculated times are rough, so these
# limits are a quarter below a job's ten minutes and an image call's minute.
_CLIP, _IMAGE = 450, 45


@dataclass(frozen=True)
class Card:
    """The device: its name, and its free and total memory in bytes."""

    name: str
    free: int
    total: int = 0


def find_card(device: str) -> Card | None:
    """Asks PyTorch if it is imported, and otherwise nvidia-smi. Returns None without a card."""
    if device == "cpu":
        return None
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        return Card(torch.cuda.get_device_name(device), *torch.cuda.mem_get_info(device))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or "0"
    index = int(device.partition(":")[2] or 0)
    try:
        asked = ["--query-gpu=name,memory.free,memory.total", "--format=csv,noheader,nounits"]
        asked += ["--id", visible.split(",")[index]]
        output = subprocess.run(["nvidia-smi", *asked], capture_output=True, text=True, check=True, timeout=30).stdout
        name, *mebibytes = output.strip().rsplit(", ", 2)
        return Card(name, *(int(one) * 2**20 for one in mebibytes))
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def choose(
    file: ModelFile,
    card: Card | None,
    memory: int | None = None,
    missing: Callable[[PipelineRow], list[Path]] = lambda _: [],
) -> ModelMap:
    """Chooses a row for each pipeline that a model uses: the first that is fast enough and fits into memory next to
    the pipelines before it, or else the first that fits without them. If no row is fast enough, it chooses the fastest,
    and without a card the last.

    Rows without missing files come first, even if they fit only when the card's whole memory is free. Otherwise other
    programs on the card would decide which weights the server asks for."""
    most = memory
    if memory is None and card is not None:
        memory, most = (int(free * USABLE) - file.live.memory for free in (card.free, max(card.free, card.total)))
    teraflops = None
    if card is not None:
        known = [row.teraflops for row in file.cards if re.search(rf"\b{re.escape(row.name)}\b", card.name)]
        teraflops = known[0] if known else None
    used = {name for row in file.models.values() for name in (row.pipeline, row.first)}
    chosen: dict[str, PipelineRow] = {}
    for name, rows in file.pipelines.items():
        if name not in used:
            continue
        if memory is None or most is None:
            chosen[name] = rows[-1]
            continue
        before = [footprint(row) for row in chosen.values()]
        ready = [row for row in rows if not missing(row)]
        for some, limit in ((ready, memory), (ready, most), (rows, memory)):
            if row := _best(some, before, limit, teraflops):
                chosen[name] = row
                break
    models = {
        model: row.model_copy(update={"first": row.first if row.first in chosen else None})
        for model, row in file.models.items()
        if row.pipeline in chosen
    }
    return ModelMap(teraflops=teraflops, memory=memory, pipelines=chosen, models=models, live=file.live)


def _best(rows: list[PipelineRow], before: list[Footprint], memory: int, teraflops: float | None) -> PipelineRow | None:
    took = {id(row): seconds(row, teraflops) or 0 for row in rows}
    fast = [row for row in rows if took[id(row)] <= (_IMAGE if row.takes == "image" else _CLIP)]
    return _fitting(fast, before, memory) or _fitting(sorted(rows, key=lambda row: took[id(row)]), before, memory)


def _fitting(rows: list[PipelineRow], before: list[Footprint], memory: int) -> PipelineRow | None:
    alone = [row for row in rows if footprint(row).alone <= memory]
    beside = [row for row in alone if together([*before, footprint(row)]) <= memory]
    return next(iter(beside or alone), None)


def crowded(models: ModelMap) -> int:
    """Returns how many bytes of the card must be free for the largest pipeline, or 0 if enough are free."""
    need = max((footprint(row).alone for row in models.pipelines.values()), default=0)
    return 0 if models.memory is None or need <= models.memory else int((need + models.live.memory) / USABLE)


def seconds(row: PipelineRow, teraflops: float | None, length: float = 5) -> float | None:
    """Returns the computed time for a clip of this length in 720p, or for an image, in seconds."""
    kind = {"image": "image", "text": "text-to-video", "video": "edit"}[row.takes]
    edit = EstimatedEdit.model_validate(
        {"model": "", "kind": kind, "width": 1280, "height": 720, "fps": 25, "lengths": [], "reference": True}
    )
    return Estimates({"row": row}, teraflops).seconds("row", edit.request(length))


def describe(models: ModelMap) -> Iterable[Mapping[str, object]]:
    """Returns log fields that describe each chosen pipeline."""
    for name, row in models.pipelines.items():
        took = seconds(row, models.teraflops)
        yield {
            "pipeline": name,
            "weights": row.weights,
            "storage": row.storage or row.precision,
            "memory_gib": round(footprint(row).alone / 2**30, 1),
            "seconds": None if took is None else round(took),
        }
