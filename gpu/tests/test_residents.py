from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from cutroom_engine.footprint import footprint
from cutroom_engine.residents import Residents

from .conftest import Inverter, model_map

ROWS = model_map().pipelines
ONE = footprint(ROWS["edit"])
WEIGHTS = sum(ONE.parts.values())


def residents(memory: float | None) -> tuple[Residents, list[str], dict[str, Inverter]]:
    loads: list[str] = []
    made: dict[str, Inverter] = {}

    def load(name: str, _: object) -> Inverter:
        loads.append(name)
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


class Scale:
    """Measures the memory that a test pretends to use."""

    def __init__(self) -> None:
        self.taken = self.highest = 0

    def take(self, size: float) -> None:
        self.taken += int(size)
        self.highest = max(self.highest, self.taken)

    def used(self) -> int:
        """Implements residents.Meter."""
        return self.taken

    def begin(self) -> None:
        """Implements residents.Meter."""
        self.highest = self.taken

    def most(self) -> int:
        """Implements residents.Meter."""
        return self.highest


def measured(memory: float, weights: float, working: float) -> tuple[Residents, Callable[[str], None]]:
    """Returns a Residents object whose pipelines and runs use the given bytes, and a function that performs a run."""
    scale = Scale()

    class Weighed(Inverter):
        """A model that uses memory while it is loaded."""

        def close(self) -> None:
            """Implements pipeline.Pipeline."""
            scale.take(-weights)

    def load(_: str, __: object) -> Inverter:
        scale.take(weights)
        return Weighed()

    kept = Residents(ROWS, int(memory), load, scale)

    def run(name: str) -> None:
        kept.get(name)
        with kept.measured(name):
            scale.take(working)
            scale.take(-working)

    return kept, run


@pytest.mark.parametrize(
    ("memory", "weights", "stay"),
    [
        (2 * WEIGHTS + ONE.working, WEIGHTS, ["edit", "text"]),
        (2 * WEIGHTS + ONE.working, 1.2 * WEIGHTS, ["text"]),
        (1.5 * WEIGHTS + ONE.working, WEIGHTS, ["text"]),
        (1.75 * WEIGHTS + ONE.working, 0.7 * WEIGHTS, ["edit", "text"]),
    ],
)
def test_computed_memory_is_corrected_by_measurements(memory: float, weights: float, stay: list[str]) -> None:
    kept, run = measured(memory, weights, 1000)
    for name in ("edit", "text", "edit", "text"):
        run(name)
    assert sorted(kept.names()) == stay
    reported = kept.memory()["text"]
    assert reported["computed"] == ONE.alone
    assert reported["needed"] == pytest.approx(weights + ONE.working)
    assert reported["measured"] >= weights + 990


def test_failed_load_keeps_other_pipelines() -> None:
    def load(name: str, _: object) -> Inverter:
        if name == "vace":
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

    def load(_: str, __: object) -> Inverter:
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
