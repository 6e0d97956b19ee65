"""Inputs: files on disk, bytes, open files, and files that the service has stored."""

from __future__ import annotations

import hashlib
import io
import mimetypes
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Union, cast

from .generated.models import File

#: A path, bytes, a seekable binary file that is open for reading, or a stored file or its id.
Source = Union[str, "os.PathLike[str]", bytes, BinaryIO, File]

_FILE_ID = re.compile(r"file_[0-9A-Za-z]{1,64}")
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Content:
    """Bytes that can be read repeatedly."""

    name: str
    #: The size in bytes.
    size: int
    #: Opens the content for reading, from its start.
    open: Callable[[], BinaryIO]

    def __iter__(self) -> Iterator[bytes]:
        with self.open() as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def md5(self) -> str:
        digest = hashlib.md5(usedforsecurity=False)
        for chunk in self:
            digest.update(chunk)
        return digest.hexdigest()

    @property
    def mime_type(self) -> str:
        """The media type that the file name suggests. The service detects the real type from the content."""
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


def content_of(source: Source) -> Content | str:
    """Returns the content of a source, or the id of a stored file."""
    if isinstance(source, File):
        return source.id
    if isinstance(source, bytes):
        return Content("data", len(source), lambda: io.BytesIO(source))
    if isinstance(source, str) and _FILE_ID.fullmatch(source) and not os.path.exists(source):
        return source
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return Content(path.name, path.stat().st_size, lambda: path.open("rb"))
    return _opened(source)


def _opened(file: BinaryIO) -> Content:
    size = file.seek(0, os.SEEK_END)
    name = os.path.basename(str(getattr(file, "name", "data")))

    def read() -> BinaryIO:
        file.seek(0)
        return cast(BinaryIO, _Lent(file))

    return Content(name, size, read)


class _Lent(io.RawIOBase):
    """Wraps a file that the caller owns, so that it is not closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
