"""Creates the table of cards: for each card the pipelines that it serves, with computed times and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cutroom_engine.cards import USABLE, Card, choose, seconds
from cutroom_engine.footprint import footprint, together
from cutroom_engine.frames import working_size
from cutroom_engine.model_map import CardRow, ModelFile, ModelMap, PipelineRow, read_model_file

FOLDER = Path(__file__).parents[1]
TABLE = FOLDER / "cards.tsv"

_COLUMNS = (
    "card",
    "free GiB",
    "pipeline",
    "serves",
    "weights",
    "storage",
    "size",
    "fps",
    "steps",
    "seconds",
    "longest clip in seconds",
    "memory in GiB",
    "stays loaded",
)


def longest(row: PipelineRow, teraflops: float | None) -> int:
    """Returns the length of the longest clip, up to five minutes, whose edit takes less than ten minutes."""
    fits = [clip for clip in range(1, 301) if (seconds(row, teraflops, clip) or 0) <= 600]
    return max(fits, default=0)


def chosen_for(file: ModelFile, card: CardRow) -> ModelMap:
    return choose(file, Card(card.name, int(card.gib * 2**30)))


def table() -> str:
    """Returns gpu/cards.tsv. Seconds are for five seconds of a 720p clip, or for an image, with the weights loaded.
    They are computed from the model's number of operations, and may be off by half."""
    file = read_model_file(FOLDER / "models.yaml", "gen")
    lines = ["\t".join(_COLUMNS)]
    for card in file.cards:
        models = chosen_for(file, card)
        all_fit = together(map(footprint, models.pipelines.values())) <= card.gib * USABLE * 2**30
        for name, row in models.pipelines.items():
            width, height = working_size(1280, 720, row.multiple, row.pixels)
            guided = row.guidance is None or row.guidance > 1
            cells = [
                card.name,
                f"{card.gib:.0f}",
                name,
                ", ".join(_served(models, name)),
                Path(row.weights).name,
                row.storage or row.precision,
                f"{width}x{height}",
                str(row.fps or ""),
                f"{row.steps} steps" + (" with guidance" if guided else ""),
                f"{seconds(row, models.teraflops) or 0:.0f}",
                str(longest(row, models.teraflops)) if row.takes == "video" else "",
                f"{footprint(row).alone / 2**30:.0f}",
                "yes" if all_fit else "no",
            ]
            lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def _served(models: ModelMap, name: str) -> Iterator[str]:
    for model, to in models.models.items():
        if name == to.pipeline:
            yield model
        elif name == to.with_reference:
            yield f"{model} with a reference"
