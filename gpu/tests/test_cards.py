"""Tests the table of cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cards
from cutroom_engine.model_map import read_model_map


def test_table_is_up_to_date() -> None:
    said = "gpu/cards.tsv is out of date: cd gpu && ../.tools/engine/bin/python -m bench table"
    assert cards.TABLE.read_text(encoding="utf-8") == cards.table(), said


def test_table_has_every_row_of_every_map() -> None:
    rows = [line.split("\t")[2:4] for line in cards.table().splitlines()[1:]]
    for card in cards.CARDS:
        for name in read_model_map(cards.FOLDER / card.map, "gen").pipelines:
            assert rows.count([card.map, name]) == 1


def test_measured_figures_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "measured.yaml"
    file.write_text(
        "- {card: L40S, map: models.yaml, pipeline: vace, date: '2026-12-01', seconds: 321.4, load: 12, "
        "peak_gib: 20.2, silence: 3.5, share: 0.4}"
    )
    shown = cards.measurements(file)
    monkeypatch.setattr(cards, "measurements", lambda: shown)
    (row,) = [line for line in cards.table().splitlines() if line.endswith("measured 2026-12-01")]
    cells = row.split("\t")
    assert cells[0] == "L40S"
    assert cells[3] == "vace"
    assert cells[8] == "321"
    assert cells[10] == "20"
