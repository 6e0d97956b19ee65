"""Creates the table of cards, with computed or measured times, and with published figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel

from cutroom_engine.estimates import Estimates
from cutroom_engine.footprint import footprint
from cutroom_engine.frames import working_size
from cutroom_engine.model_map import ModelMap, PipelineRow, read_model_map
from cutroom_engine.protocol import Input, RunRequest

FOLDER = Path(__file__).parents[1]
MEASURED = Path(__file__).parent / "measured.yaml"


@dataclass(frozen=True)
class Card:
    """A GPU card, and the model map for its memory size."""

    name: str
    gigabytes: int
    map: str


CARDS = (
    Card("RTX 4090", 24, "models-24gb.yaml"),
    Card("L40S", 48, "models.yaml"),
    Card("H100", 80, "models-80gb.yaml"),
    Card("H200", 141, "models-141gb.yaml"),
)


@dataclass(frozen=True)
class Published:
    """A published figure and its source."""

    says: str
    where: str


_WAN21 = "https://github.com/Wan-Video/Wan2.1#readme"
_WAN22 = "https://github.com/Wan-Video/Wan2.2#readme"
_VACE = "https://github.com/ali-vilab/VACE/issues/105"

# Keys are model sizes. There are no published times for other sizes.
PUBLISHED = {
    "wan2.1-1.3b": Published("5 s at 480P in about 4 minutes on an RTX 4090", _WAN21),
    "wan2.1-vace-1.3b": Published("20 to 40 % longer than text to video by Wan 2.1 of its size", _VACE),
    "wan2.1-vace-14b": Published("20 to 40 % longer than text to video by Wan 2.1 of its size", _VACE),
    "wan2.2-5b": Published("5 s at 720P in less than 9 minutes on an RTX 4090", _WAN22),
    "flux2-klein-4b": Published("less than 1 s, in 13 GB", "https://huggingface.co/black-forest-labs/FLUX.2-klein-4B"),
}


class Measured(BaseModel):
    """A measured time on a card: how many seconds the row takes for five seconds of a clip, or for an image."""

    card: str
    map: str
    pipeline: str
    date: str
    seconds: float
    load: float
    peak_gib: float
    silence: float


def measurements(path: Path = MEASURED) -> dict[tuple[str, str, str], Measured]:
    """Returns the file's measurements by card, map and pipeline. Later entries override earlier ones."""
    found = [Measured.model_validate(one) for one in yaml.safe_load(path.read_text())]
    return {(one.card, one.map, one.pipeline): one for one in found}


def request_of(row: PipelineRow, seconds: float = 5, size: tuple[int, int] = (1280, 720), fps: int = 20) -> RunRequest:
    """Returns a typical catalog request for the row: a 720p clip or image. A clip comes with a
    reference if the row takes references. The files do not exist."""
    image, text = row.takes == "image", row.takes == "text"
    file = Input(path="", mime="")
    return RunRequest.model_construct(
        job="bench",
        model="bench",
        kind="image" if image else "text-to-video" if text else "edit",
        prompt="a quiet winter evening",
        seed=7,
        data=None if text else file,
        reference=file if row.references and not image else None,
        width=size[0],
        height=size[1],
        fps=0 if image else fps,
        duration=0.0 if image else float(seconds),
        options=None,
    )


def computed(models: ModelMap, name: str, seconds: float = 5) -> float | None:
    """Returns the computed time for five seconds of a clip, or for an image, in seconds. The weights are already
    loaded."""
    return Estimates(models.pipelines, models.card).seconds(name, request_of(models.pipelines[name], seconds))


def longest(models: ModelMap, name: str) -> int:
    """Returns the length of the longest clip, up to five minutes, whose edit takes less than ten minutes."""
    fits = [clip for clip in range(1, 301) if (computed(models, name, clip) or 0) <= 600]
    return max(fits, default=0)


def published(row: PipelineRow) -> Published | None:
    """Returns the published times of the row's model."""
    return PUBLISHED.get(row.shape)


TABLE = FOLDER / "cards.tsv"

_COLUMNS = (
    "card",
    "GB",
    "map",
    "pipeline",
    "serves",
    "size",
    "fps",
    "steps",
    "seconds",
    "longest clip in seconds",
    "memory in GiB",
    "source",
)


def table() -> str:
    """Returns gpu/cards.tsv. It has, for each pipeline of each map, the seconds that it takes for five seconds of a
    720p clip, or for an image, with the weights loaded. Times that were not measured are computed from the model's
    number of operations, and may be off by half."""
    seen = measurements()
    lines = ["\t".join(_COLUMNS)]
    for card in CARDS:
        models = read_model_map(FOLDER / card.map, "gen")
        for name, row in models.pipelines.items():
            lines.append(_line(card, models, name, row, seen.get((card.name, card.map, name))))
    return "\n".join(lines) + "\n"


def _steps(row: PipelineRow) -> str:
    guided = row.guidance is None or row.guidance > 1
    return f"{row.steps} steps" + (" with guidance" if guided else "")


def _line(card: Card, models: ModelMap, name: str, row: PipelineRow, seen: Measured | None) -> str:
    width, height = working_size(1280, 720, row.multiple, row.pixels)
    takes = seen.seconds if seen is not None else computed(models, name)
    memory = seen.peak_gib if seen is not None else footprint(row).alone / 2**30
    cells = [
        card.name,
        str(card.gigabytes),
        card.map,
        name,
        ", ".join(_served(models, name)),
        f"{width}x{height}",
        str(row.fps or ""),
        _steps(row),
        "unknown" if takes is None else f"{takes:.0f}",
        "" if row.takes != "video" else str(longest(models, name)),
        f"{memory:.0f}",
        "computed" if seen is None else f"measured {seen.date}",
    ]
    return "\t".join(cells)


def _served(models: ModelMap, name: str) -> Iterator[str]:
    for model, to in models.models.items():
        if name == to.pipeline:
            yield model
        elif name == to.with_reference:
            yield f"{model} with a reference"
