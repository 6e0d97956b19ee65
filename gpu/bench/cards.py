"""Prints the table of cards in docs/gpu.md: python -m bench.cards

Seconds are for five seconds of a 720p clip, or for an image, with the weights loaded. They and the memory are computed,
and may be off by half.
"""

from __future__ import annotations

from pathlib import Path

from cutroom_engine.cards import USABLE, Card, choose, seconds
from cutroom_engine.footprint import footprint, together
from cutroom_engine.frames import working_size
from cutroom_engine.model_map import PipelineRow, read_model_file

# The pipelines that the table shows. The others take as long as the first.
_SHOWN = ("vace", "text-to-video", "image-edit")

_NAMES = {
    "wan2.1-vace-14b": "VACE 14B",
    "wan2.1-vace-1.3b": "VACE 1.3B",
    "fastwan2.2-ti2v-5b": "FastWan",
    "flux2-klein-4b": "klein",
    "qwen-image-edit-2511": "Qwen 2511",
}


def table() -> str:
    file = read_model_file(Path(__file__).parents[1] / "models.yaml", "gen")
    chosen = [choose(file, Card(card.name, int(card.gib * 2**30))) for card in file.cards]
    labels = [[_label(models.pipelines[name]) for name in _SHOWN] for models in chosen]
    # A label that is the same for all cards stands in the head.
    same = [len(set(column)) == 1 for column in zip(*labels, strict=True)]
    kinds = zip(("edits of clips", "text to video", "images"), labels[0], same, strict=True)
    head = [kind + (f" ({label})" if common else "") for kind, label, common in kinds]
    lines = [f"| card | {' | '.join(head)} | all stay loaded |", "|---|---|---|---|---|"]
    for card, models, named in zip(file.cards, chosen, labels, strict=True):
        fit = together(map(footprint, models.pipelines.values())) <= card.gib * USABLE * 2**30
        cells = [
            ("" if common else f"{label}: ") + f"{seconds(models.pipelines[name], models.teraflops) or 0:.0f} s"
            for name, label, common in zip(_SHOWN, named, same, strict=True)
        ]
        lines.append(f"| {card.name}, {card.gib:.0f} GiB | {' | '.join(cells)} | {'yes' if fit else 'no'} |")
    return "\n".join(lines) + "\n"


def _label(row: PipelineRow) -> str:
    _, height = working_size(1280, 720, row.multiple, row.pixels)
    name = _NAMES[Path(row.weights).name] + (f" {row.storage}" if row.storage else "")
    return f"{name}, {'480p' if height < 500 else '720p'}, {footprint(row).alone / 2**30:.0f} GiB"


if __name__ == "__main__":
    print(table(), end="")
