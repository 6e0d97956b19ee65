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
    lines = ["| card | edits of clips | text to video | images | all stay loaded |", "|---|---|---|---|---|"]
    file = read_model_file(Path(__file__).parents[1] / "models.yaml", "gen")
    for card in file.cards:
        models = choose(file, Card(card.name, int(card.gib * 2**30)))
        fit = together(map(footprint, models.pipelines.values())) <= card.gib * USABLE * 2**30
        cells = [_cell(models.pipelines[name], models.teraflops) for name in _SHOWN]
        lines.append(f"| {card.name}, {card.gib:.0f} GiB | {' | '.join(cells)} | {'yes' if fit else 'no'} |")
    return "\n".join(lines) + "\n"


def _cell(row: PipelineRow, teraflops: float | None) -> str:
    _, height = working_size(1280, 720, row.multiple, row.pixels)
    name = _NAMES[Path(row.weights).name] + (f" {row.storage}" if row.storage else "")
    size = "480p" if height < 500 else "720p"
    return f"{name}, {size}: {seconds(row, teraflops) or 0:.0f} s, {footprint(row).alone / 2**30:.0f} GiB"


if __name__ == "__main__":
    print(table(), end="")
