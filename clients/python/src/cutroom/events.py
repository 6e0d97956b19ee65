"""Parses server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def read(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the name and the data of each event of a stream."""
    name, data = "", list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
