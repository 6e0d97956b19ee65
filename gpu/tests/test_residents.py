from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from cutroom_engine.residents import Residents

from .conftest import Inverter, model_map


def residents(memory: int | None, need: str | None) -> tuple[Residents, list[str], dict[str, Inverter]]:
    rows = model_map(**({"memory": need} if need else {})).pipelines
    loads: list[str] = []
    made: dict[str, Inverter] = {}

    def load(name: str, _: object) -> Inverter:
        loads.append(name)
        made[name] = Inverter()
        return made[name]

    return Residents(rows, memory, load), loads, made


def test_least_recently_used_is_evicted_first() -> None:
    kept, loads, made = residents(2 * 2**30, "1GiB")
    for name in ("edit", "vace", "edit", "text"):
        kept.get(name)
    assert kept.names() == ["edit", "text"]
    assert loads == ["edit", "vace", "text"]
    assert made["vace"].closed
    assert not made["edit"].closed


@pytest.mark.parametrize(("memory", "need"), [(None, "1GiB"), (2**40, None), (2**30, "1GiB"), (2**20, "1GiB")])
def test_one_pipeline_is_kept_if_memory_is_unknown_or_small(memory: int | None, need: str | None) -> None:
    kept, _, made = residents(memory, need)
    kept.get("edit")
    kept.get("vace")
    assert kept.names() == ["vace"]
    assert made["edit"].closed


class Scale:
    """Measures the memory that a test pretends to use."""

    def __init__(self) -> None:
        self.taken = self.highest = 0

    def take(self, size: float) -> None:
        self.taken += int(size * GIB)
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


GIB = 2**30


def measured(room: float, weights: float, working: float, **row: object) -> tuple[Residents, Callable[[str], None]]:
    """Returns a Residents object whose pipelines and runs use the given GiB, and a function that performs a run."""
    scale = Scale()

    class Weighed(Inverter):
        """A model that uses memory while it is loaded."""

        def close(self) -> None:
            """Implements pipeline.Pipeline."""
            scale.take(-weights)

    def load(_: str, __: object) -> Inverter:
        scale.take(weights)
        return Weighed()

    kept = Residents(model_map(**row).pipelines, int(room * GIB), load, scale)

    def run(name: str) -> None:
        kept.get(name)
        with kept.measured(name):
            scale.take(working)
            scale.take(-working)

    return kept, run


@pytest.mark.parametrize(
    ("room", "weights", "working", "stay"),
    [
        (4.5, 1.0, 0.5, ["edit", "text"]),  # both need less than the 2 GiB that the map states
        (5.0, 1.0, 2.0, ["edit", "text"]),  # a run needs more than stated, but only one runs at a time
        (4.5, 1.0, 2.0, ["text"]),  # both together need too much
        (4.5, 2.5, 0.1, ["text"]),  # the weights need more than stated
    ],
)
def test_map_figures_are_corrected_by_measurements(
    room: float, weights: float, working: float, stay: list[str]
) -> None:
    kept, run = measured(room, weights, working, memory="2GiB")
    for name in ("edit", "text"):
        run(name)
    run("text")  # now the memory of both is measured
    kept.get("edit")
    run("edit")
    run("text")
    assert sorted(kept.names()) == stay
    said = kept.memory()["edit"]
    assert said["computed"] == 2 * GIB
    assert said["needed"] == pytest.approx(max(2, weights + working) * GIB)
    assert said["measured"] >= (weights + working - 0.01) * GIB


def test_weights_smaller_than_computed_leave_space() -> None:
    shape = {"shape": "wan2.1-1.3b", "precision": "bf16"}
    kept, run = measured(100, 5, 0.1, **shape)
    before = kept.memory()["text"]
    run("text")
    after = kept.memory()["text"]
    assert before["computed"] == before["needed"] == after["computed"]
    assert after["needed"] < after["computed"], "loaded weights have a known size"
    assert after["needed"] > 5 * GIB, "a short run must not lower the estimate for a long one"
    assert "measured" not in before
    assert after["measured"] == pytest.approx(5.1 * GIB)


def test_failed_load_keeps_other_pipelines() -> None:
    rows = model_map(memory="1GiB").pipelines

    def load(name: str, _: object) -> Inverter:
        if name == "vace":
            raise OSError("no weights")
        return Inverter()

    kept = Residents(rows, 2**40, load)
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

    kept = Residents(model_map().pipelines, None, load)
    gc.disable()
    try:
        with pytest.raises(MemoryError):
            kept.get("edit")
        kept.evict_all()
        assert left[0]() is None
    finally:
        gc.enable()
