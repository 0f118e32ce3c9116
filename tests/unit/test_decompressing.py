"""Bytes of unknown origin, decompressed: all of it, in bounded memory, or an error."""

import bz2
import gzip
import io
import lzma
import random
import struct
import zlib
from collections.abc import Callable

import pytest

from gymsuite.sandbox.decompressing import damages, decompressed

DATA = random.Random(1).randbytes(300_000) + bytes(3 << 20)


def xz_with(dictionary: int) -> bytes:
    """A stream whose header asks for a dictionary of a size, by its six bits."""
    packed = bytearray(lzma.compress(b"data", check=lzma.CHECK_NONE))
    flags = packed.index(b"\x21\x01", 12)
    packed[flags + 2] = dictionary
    end = 12 + (packed[12] + 1) * 4
    packed[end - 4 : end] = struct.pack("<I", zlib.crc32(packed[12 : end - 4]))
    return bytes(packed)


@pytest.mark.parametrize(
    "packed",
    [
        DATA,
        gzip.compress(DATA),
        bz2.compress(DATA),
        lzma.compress(DATA),
        lzma.compress(DATA[:5]) + bytes(8) + lzma.compress(DATA[5:]) + bytes(4),
    ],
)
def test_whatever_compressed_it_all_of_it_is_read(packed: bytes) -> None:
    assert decompressed(io.BytesIO(packed)).read() == DATA


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_is_cut_off_is_an_error(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(DATA)
    with pytest.raises((OSError, *damages())):
        decompressed(io.BytesIO(packed[: len(packed) // 2])).read()


def test_what_would_take_gigabytes_to_decompress_is_refused() -> None:
    assert decompressed(io.BytesIO(xz_with(22))).read() == b"data"
    with pytest.raises(damages(), match="Memory usage limit"):
        decompressed(io.BytesIO(xz_with(38))).read()
