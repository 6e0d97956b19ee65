"""Reads ahead and writes behind, each in its own thread.

So the device computes while other frames are decoded and encoded. The order and the content of the frames stay the
same.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

_Item = TypeVar("_Item")

# How often a waiting thread checks whether to stop, in seconds.
_LOOK = 0.1


class ReadAhead(Generic[_Item]):
    """Reads items from an iterator in a thread, up to a fixed number ahead of the consumer.

    If the iterator fails, the consumer first gets the items before the error. Use it as a context manager: leaving it
    ends the thread, which closes the iterator.
    """

    def __init__(self, items: Iterator[_Item], ahead: int) -> None:
        self._items = items
        self._queue: queue.Queue[_Item | _End] = queue.Queue(maxsize=ahead)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="read ahead", daemon=True)

    def __enter__(self) -> Iterator[_Item]:
        self._thread.start()
        return self._read()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> Iterator[_Item]:
        while not isinstance(item := self._queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    def _work(self) -> None:
        failure: BaseException | None = None
        try:
            for item in self._items:
                if not _put(self._queue, item, self._stop):
                    break
        except BaseException as error:
            failure = error
        finally:
            if (close := getattr(self._items, "close", None)) is not None:
                close()
            _put(self._queue, _End(failure), self._stop)


class WriteBehind(Generic[_Item]):
    """Passes items to a function in a thread, which is at most a fixed number of items behind.

    If the function fails, a later put or the end raises the error. Use it as a context manager: leaving it without an
    error waits until everything is written; leaving it with an error drops the rest.
    """

    def __init__(self, write: Callable[[_Item], None], behind: int) -> None:
        self._write = write
        self._queue: queue.Queue[_Item | _End] = queue.Queue(maxsize=behind)
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="write behind", daemon=True)

    def __enter__(self) -> Callable[[_Item], None]:
        self._thread.start()
        return self._give

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stop.set()
        else:
            _put(self._queue, _End(None), self._stop)
        self._thread.join()
        if kind is None and self._failure is not None:
            raise self._failure

    def _give(self, item: _Item) -> None:
        if not _put(self._queue, item, self._stop) and self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                item = self._queue.get(timeout=_LOOK)
            except queue.Empty:
                continue
            if isinstance(item, _End):
                return
            try:
                self._write(item)
            except BaseException as error:
                self._failure = error
                self._stop.set()


class _End:
    """Follows the last item in the queue."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _put(to: queue.Queue[_Item | _End], item: _Item | _End, stop: threading.Event) -> bool:
    """Waits for space in the queue and adds the item. Returns False if it should stop instead."""
    while not stop.is_set():
        try:
            to.put(item, timeout=_LOOK)
            return True
        except queue.Full:
            continue
    return False
