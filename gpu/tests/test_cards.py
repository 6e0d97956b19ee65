"""Tests the table of cards."""

from __future__ import annotations

from pathlib import Path

from bench import cards

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def test_table_is_up_to_date() -> None:
    assert cards.table() in PAGE.read_text(encoding="utf-8"), "replace the table: cd gpu && python -m bench.cards"
