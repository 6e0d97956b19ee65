"""Tests the table of cards."""

from __future__ import annotations

from bench import cards


def test_table_is_up_to_date() -> None:
    expected = "gpu/cards.tsv is out of date: cd gpu && ../.tools/engine/bin/python -m bench table"
    assert cards.TABLE.read_text(encoding="utf-8") == cards.table(), expected
