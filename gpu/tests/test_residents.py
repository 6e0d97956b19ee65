from __future__ import annotations

import gc
import weakref

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


def test_the_least_recently_used_goes_first() -> None:
    kept, loads, made = residents(2 * 2**30, "1GiB")
    for name in ("edit", "vace", "edit", "text"):
        kept.get(name)
    assert kept.names() == ["edit", "text"]
    assert loads == ["edit", "vace", "text"]
    assert made["vace"].closed
    assert not made["edit"].closed


@pytest.mark.parametrize(("memory", "need"), [(None, "1GiB"), (2**40, None), (2**30, "1GiB"), (2**20, "1GiB")])
def test_one_is_kept_where_the_memory_is_not_known_or_small(memory: int | None, need: str | None) -> None:
    kept, _, made = residents(memory, need)
    kept.get("edit")
    kept.get("vace")
    assert kept.names() == ["vace"]
    assert made["edit"].closed


def test_what_cannot_be_loaded_leaves_the_rest_as_it_is() -> None:
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


def test_what_a_load_that_failed_has_left_is_let_go() -> None:
    class Part:
        """Refers to itself, as the parts of pipelines refer to each other."""

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
