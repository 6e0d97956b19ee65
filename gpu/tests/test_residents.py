from __future__ import annotations

import gc
import weakref

import pytest

from cutroom_engine.footprint import footprint
from cutroom_engine.model_map import PipelineRow
from cutroom_engine.residents import Residents

from .conftest import Inverter, model_map

ROWS = model_map().pipelines
NAMES = {row.weights: name for name, row in ROWS.items()}
ONE = footprint(ROWS["edit"])


def residents(memory: float | None) -> tuple[Residents, list[str], dict[str, Inverter]]:
    loads: list[str] = []
    made: dict[str, Inverter] = {}

    def load(row: PipelineRow) -> Inverter:
        loads.append(name := NAMES[row.weights])
        made[name] = Inverter()
        return made[name]

    return Residents(ROWS, None if memory is None else int(memory), load), loads, made


def test_least_recently_used_is_evicted_first() -> None:
    kept, loads, made = residents(2 * ONE.alone)
    for name in ("edit", "vace", "edit", "text"):
        kept.get(name)
    assert kept.names() == ["edit", "text"]
    assert loads == ["edit", "vace", "text"]
    assert made["vace"].closed
    assert not made["edit"].closed


@pytest.mark.parametrize("memory", [None, ONE.alone, 2**20])
def test_one_pipeline_is_kept_if_memory_is_unknown_or_small(memory: int | None) -> None:
    kept, _, made = residents(memory)
    kept.get("edit")
    kept.get("vace")
    assert kept.names() == ["vace"]
    assert made["edit"].closed


def test_failed_load_keeps_other_pipelines() -> None:
    def load(row: PipelineRow) -> Inverter:
        if row.weights == "/vace":
            raise OSError("no weights")
        return Inverter()

    kept = Residents(ROWS, 2**40, load)
    kept.get("edit")
    with pytest.raises(OSError, match="no weights"):
        kept.get("vace")
    assert kept.names() == ["edit"]


def test_failed_load_releases_memory() -> None:
    class Part:
        """An object that refers to itself, as the parts of pipelines do."""

        def __init__(self) -> None:
            self.whole = self

    left: list[weakref.ref[Part]] = []

    def load(_: object) -> Inverter:
        part = Part()
        left.append(weakref.ref(part))
        raise MemoryError

    kept = Residents(ROWS, None, load)
    gc.disable()
    try:
        with pytest.raises(MemoryError):
            kept.get("edit")
        kept.evict_all()
        assert left[0]() is None
    finally:
        gc.enable()
