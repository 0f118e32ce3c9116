"""Reads bytes of unknown origin: decompressed, hashed, counted, and never more than was allowed."""

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import BinaryIO

from gymsuite.errors import UsageError

CHUNK_BYTES = 1 << 20
_BLOCK_BYTES = 4096
# What xz -9 takes is a quarter of it; what the format allows is 4 GiB.
_XZ_MEMORY_BYTES = 256 << 20
HEADER_BYTES = 8 << 20
"""The most that one header of a tar may take. They are read into memory as a whole."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_LONGEST_MAGIC = max(len(magic) for magic, _ in _MAGIC)


class Budget:
    """How much may still be unpacked, by all who share it."""

    def __init__(self, size_bytes: int, entries: int) -> None:
        self._most = size_bytes
        self._bytes = size_bytes
        self._entries = entries

    def take_bytes(self, size: int) -> None:
        """Use some of it. Raises `UsageError` where nothing is left."""
        self._bytes -= size
        if self._bytes < 0:
            raise UsageError(
                f"it unpacks to more than the {self._most} bytes that are allowed, by --max-size"
                " or by what the disk has left"
            )

    def take_entry(self) -> None:
        """Use one entry, with the block of a disk that it takes, of which no archive knows.

        Raises `UsageError` where none is left.
        """
        self._entries -= 1
        if self._entries < 0:
            raise UsageError("it holds more files than any image should")
        self.take_bytes(_BLOCK_BYTES)


class Reader:
    """A stream that goes forward only. `digest` is that of all that was read.

    `tarfile` reads headers of whatever length into memory, so a header has a limit: `begin_header`.
    """

    def __init__(self, stream: BinaryIO, budget: Budget | None = None) -> None:
        self._stream = stream
        self._budget = budget
        self._hash = hashlib.sha256()
        self._at = 0
        self._header = HEADER_BYTES

    @property
    def digest(self) -> str:
        """The digest of what was read: sha256, a colon, and the number."""
        return f"sha256:{self._hash.hexdigest()}"

    def begin_header(self) -> None:
        """Allow another header to be read."""
        self._header = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read part of a header."""
        if not 0 <= size <= self._header:
            raise UsageError(f"it has a header of more than {HEADER_BYTES} bytes")
        self._header -= size
        return self.data(size)

    def data(self, size: int) -> bytes:
        """Read up to so many bytes, fewer only at the end."""
        data = self._stream.read(size)
        self._at += len(data)
        self._hash.update(data)
        if self._budget is not None:
            self._budget.take_bytes(len(data))
        return data

    def tell(self) -> int:
        """How much was read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go forward, and no way else."""
        if whence != io.SEEK_SET or offset < self._at:
            raise UsageError("its members overlap")
        while self._at < offset and self.data(min(CHUNK_BYTES, offset - self._at)):
            pass
        return self._at

    def drain(self) -> bool:
        """Read to the end, and say whether there was nothing but zeros."""
        blank = True
        while data := self.data(CHUNK_BYTES):
            blank = blank and not data.strip(b"\0")
        return blank


def decompressed(stream: BinaryIO) -> BinaryIO:
    """Return what a stream holds, whatever compressed it. Raises `UsageError`."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(_Raw(stream))
    head = buffered.peek(_LONGEST_MAGIC)
    kind = next((name for magic, name in _MAGIC if head.startswith(magic)), "")
    match kind:
        case "gzip":
            return gzip.GzipFile(fileobj=buffered)  # type: ignore[return-value]  # it reads alike
        case "bzip2":
            return bz2.BZ2File(buffered)  # type: ignore[return-value]  # it reads alike
        case "xz":
            return io.BufferedReader(_Xz(buffered))
        case "zstd":
            return _zstd()(buffered)
    return buffered


def damages() -> tuple[type[Exception], ...]:
    """What decompressors raise for what is damaged, beside OSError without a number."""
    loaded = [
        sys.modules[name] for name in ("compression.zstd", "zstandard") if name in sys.modules
    ]
    return (zlib.error, lzma.LZMAError, EOFError, *(module.ZstdError for module in loaded))


def raw(reader: Reader) -> BinaryIO:
    """A reader in the form that a decompressor takes."""
    return io.BufferedReader(_Raw(reader))


def is_compressed(stream: BinaryIO) -> bool:
    """Look at where a file begins, and go back there."""
    head = stream.read(_LONGEST_MAGIC)
    stream.seek(0)
    return any(head.startswith(magic) for magic, _ in _MAGIC)


class _Raw(io.RawIOBase):
    """A stream in the form that a buffer takes."""

    def __init__(self, stream: BinaryIO | Reader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]  # narrower
        read = self._stream.data if isinstance(self._stream, Reader) else self._stream.read
        data = read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Xz(io.RawIOBase):
    """What one or more xz streams hold, decompressed in bounded memory."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]  # narrower
        data = b""
        while not data:
            more = b""
            if self._decoder.eof:
                more = self._next_stream()
                if not more:
                    return 0
                self._decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)
            elif self._decoder.needs_input and not (more := self._packed.read(CHUNK_BYTES)):
                raise EOFError("it ends in the middle")
            data = self._decoder.decompress(more, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next_stream(self) -> bytes:
        """The first bytes of what follows; there may be zeros before it."""
        data = self._decoder.unused_data or self._packed.read(CHUNK_BYTES)
        while data and not (rest := data.lstrip(b"\0")):
            data = self._packed.read(CHUNK_BYTES)
        return data and rest


def _zstd() -> Callable[[BinaryIO], BinaryIO]:
    for module, attribute in (("compression.zstd", "ZstdFile"), ("zstandard", "open")):
        try:
            found: Callable[[BinaryIO], BinaryIO] = getattr(
                importlib.import_module(module), attribute
            )
        except ImportError:
            continue
        return found
    raise UsageError(
        "it is compressed by zstd, which this Python cannot read; `pip install zstandard`, or"
        " compress it by gzip"
    )
