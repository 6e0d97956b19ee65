"""Weights: a folder, or a prefix in S3 that is copied to one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import Any

from .sync import Bucket, Cancelled, WeightsError, synchronize

__all__ = ["Weights", "WeightsError"]

_logger = logging.getLogger(__name__)

# How often who waits for weights looks whether anybody waits for the run, in seconds.
_LOOK = 0.5


class Weights:
    """The folders of weights. What is in S3 is copied below the cache in the
    background, one prefix after the other."""

    def __init__(self, cache: Path, bucket: Callable[[], Bucket] | None = None) -> None:
        self._cache = cache
        self._bucket = bucket or _bucket
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="weights")
        self._lock = threading.Lock()
        self._copies: dict[str, Future[Path]] = {}

    def start(self, weights: Iterable[str]) -> None:
        """Begins to copy all that is in S3, in this order."""
        for one in weights:
            if one.startswith("s3://"):
                self._copy(one)

    def wait(self, weights: str, check: Callable[[], None]) -> None:
        """Waits until the weights are on the disk. Meanwhile check is called now and
        then; what it raises ends the wait. Raises WeightsError when they cannot be had,
        which the next call tries anew."""
        if not weights.startswith("s3://"):
            return
        copy = self._copy(weights)
        while True:
            check()
            try:
                copy.result(_LOOK)
                return
            except NotYet:
                continue
            except (Cancelled, CancelledError):
                raise WeightsError("the server is about to end", retryable=True) from None

    def folder(self, weights: str) -> Path:
        """The folder of weights that were waited for."""
        return self._copy(weights).result() if weights.startswith("s3://") else Path(weights)

    def close(self) -> None:
        """Ends the copying; what has come is kept, and the next start goes on from it."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def _copy(self, weights: str) -> Future[Path]:
        with self._lock:
            copy = self._copies.get(weights)
            if copy is None or (copy.done() and (copy.cancelled() or copy.exception() is not None)):
                copy = self._copies[weights] = self._pool.submit(self._synchronize, weights)
            return copy

    def _synchronize(self, weights: str) -> Path:
        try:
            return synchronize(self._bucket(), weights, self._cache, self._stop)
        except WeightsError as error:
            _logger.error("the weights cannot be had", extra={"weights": weights, "reason": str(error)})
            raise


def _bucket() -> Any:
    import boto3  # only who keeps weights in S3 needs it
    from botocore.config import Config

    # At least as many connections as parts are fetched at once. The server ends no
    # sooner than a read that hangs.
    config = Config(max_pool_connections=16, retries={"mode": "standard", "total_max_attempts": 6}, read_timeout=20)
    return boto3.client("s3", config=config)
