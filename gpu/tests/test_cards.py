"""The page about cards, and what it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cards
from cutroom_engine.model_map import read_model_map

PAGE = Path(__file__).parents[2] / "docs" / "gpu-cards.md"


def test_the_page_is_the_one_that_is_made() -> None:
    said = "docs/gpu-cards.md is out of date: cd gpu && ../.tools/engine/bin/python -m bench page"
    assert PAGE.read_text(encoding="utf-8") == cards.page(), said


def test_every_row_of_every_map_is_on_the_page() -> None:
    lines = cards.page().splitlines()
    for card in cards.CARDS:
        models = read_model_map(cards.FOLDER / card.map, "gen")
        begin = lines.index(f"## {card.gigabytes} GB: {card.name}")
        of_card = lines[begin : begin + 6 + len(models.pipelines)]
        for name in models.pipelines:
            assert sum(line.startswith(f"| `{name}` |") for line in of_card) == 1


def test_what_is_measured_is_shown_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "measured.yaml"
    file.write_text(
        "- {card: L40S, map: models.yaml, pipeline: vace, date: '2026-12-01', seconds: 321.4, load: 12, "
        "peak_gib: 20.2, silence: 3.5, share: 0.4}"
    )
    shown = cards.measurements(file)
    monkeypatch.setattr(cards, "measurements", lambda: shown)
    lines = cards.page().splitlines()
    assert "Measured rows: 1 of 23." in lines
    (row,) = [line for line in lines if "measured 2026-12-01" in line]
    assert row.startswith("| `vace` |")
    assert " 321 s " in row
    assert " 20 GiB " in row
