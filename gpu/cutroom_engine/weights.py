"""Finds weights: in a folder, or in an S3 prefix that is copied to a folder."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .sync import Bucket, Cancelled, WeightsError, synchronize

__all__ = ["Weights", "WeightsError"]

_logger = logging.getLogger(__name__)


class _Copy:
    """The copy of one S3 prefix. It has ended when folder or error is set."""

    def __init__(self, weights: str) -> None:
        self.weights = weights
        self.wanted = False
        self.folder: Path | None = None
        self.error: WeightsError | None = None
        # Setting this stops the copy, so that another prefix can be copied first.
        self.stop = threading.Event()

    @property
    def ended(self) -> bool:
        return self.folder is not None or self.error is not None


class Weights:
    """Finds the folders of weights.

    Weights in S3 are copied into the cache in the background, one prefix at a time, requested ones first.
    """

    def __init__(self, cache: Path, bucket: Callable[[], Bucket] | None = None) -> None:
        self._cache = cache
        self._bucket = bucket or _bucket
        # This lock protects all fields below. Waiting threads are notified when weights are requested.
        self._asked = threading.Condition()
        self._copies: dict[str, _Copy] = {}
        self._current: _Copy | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="weights", daemon=True)
        self._thread.start()

    def start(self, weights: Iterable[str]) -> None:
        """Starts to copy all weights from S3, in this order."""
        with self._asked:
            for one in weights:
                self._copy(one)

    def want(self, weights: Iterable[str]) -> None:
        """Moves these weights to the front. A copy in progress that was not requested is postponed. Failed copies are
        tried again."""
        with self._asked:
            wanted = [copy for one in weights if (copy := self._copy(one)) is not None and copy.folder is None]
            for copy in wanted:
                copy.wanted, copy.error = True, None
            if wanted and self._current is not None and not self._current.wanted:
                self._current.stop.set()
            self._asked.notify()

    def ready(self, weights: Iterable[str]) -> bool:
        """Reports whether each of the weights is on the disk or is known to be unavailable."""
        with self._asked:
            copies = [self._copy(one) for one in weights]
            return all(copy is None or copy.ended for copy in copies)

    def folder(self, weights: str) -> Path:
        """Returns the folder of weights for which ready is true. Raises WeightsError if they are unavailable."""
        with self._asked:
            copy = self._copy(weights)
        if copy is None:
            return Path(weights)
        if copy.error is not None:
            raise copy.error
        if copy.folder is None:
            raise WeightsError(f"{weights}: still being copied", retryable=True)
        return copy.folder

    def close(self) -> None:
        """Stops copying. The parts that have arrived are kept, and the next start continues from there."""
        with self._asked:
            self._closed = True
            if self._current is not None:
                self._current.stop.set()
            self._asked.notify()
        self._thread.join()

    def _copy(self, weights: str) -> _Copy | None:
        """Returns the copy of a prefix, or None if the weights are in a folder. The caller must hold the lock."""
        if not weights.startswith("s3://"):
            return None
        if weights not in self._copies:
            self._copies[weights] = _Copy(weights)
            self._asked.notify()
        return self._copies[weights]

    def _work(self) -> None:
        while (copy := self._next()) is not None:
            folder, failure = None, None
            try:
                folder = synchronize(self._bucket(), copy.weights, self._cache, copy.stop)
            except Cancelled:
                pass  # the copy continues when its turn comes again
            except WeightsError as error:
                failure = error
            except Exception as error:  # boto3 looks for credentials here, which may fail
                failure = WeightsError(f"{copy.weights}: {error}", retryable=True)
            if failure is not None:
                _logger.error("cannot get the weights", extra={"weights": copy.weights, "reason": str(failure)})
            with self._asked:
                self._current = None
                copy.stop.clear()
                copy.folder, copy.error = folder, failure

    def _next(self) -> _Copy | None:
        """Waits for the next copy. Returns None when the server stops."""
        with self._asked:
            while not self._closed:
                waiting = [copy for copy in self._copies.values() if not copy.ended]
                if waiting:
                    self._current = next((copy for copy in waiting if copy.wanted), waiting[0])
                    return self._current
                self._asked.wait()
            return None


def _bucket() -> Any:
    import boto3  # boto3 is needed only for weights in S3
    from botocore.config import Config

    # Each part that is fetched concurrently needs a connection from the pool. A short read timeout matters, because
    # the server cannot stop before a hanging read ends.
    config = Config(max_pool_connections=16, retries={"mode": "standard", "total_max_attempts": 6}, read_timeout=20)
    return boto3.client("s3", config=config)
