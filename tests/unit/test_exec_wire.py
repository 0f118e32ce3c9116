"""The exec server's frames, cut from pieces of any size."""

import struct

import pytest

from gymsuite.sandbox import wire
from gymsuite.sandbox.wire import FrameReader, MalformedError

FRAMES = [(1, 3, b""), (2, 0, b"abc"), (1 << 31, 9, bytes(70_000))]
BYTES = b"".join(
    struct.pack("<IIB", 5 + len(payload), request, 0x80 | kind) + payload
    for request, kind, payload in FRAMES
)


def cut(data: bytes, size: int) -> list[tuple[int, int, bytes]]:
    reader = FrameReader()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    frames = [frame for piece in pieces for frame in reader.feed(piece)]
    return [(frame.request, frame.kind, bytes(frame.payload)) for frame in frames]


@pytest.mark.parametrize("size", [1, 3, 9, 1000, 1 << 16, 1 << 20])
def test_frames_are_the_same_whatever_the_pieces_are(size: int) -> None:
    assert cut(BYTES, size) == FRAMES


@pytest.mark.parametrize("length", [0, 4, wire.MAX_FRAME + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_length_that_no_frame_has_is_refused_before_the_rest_comes(
    length: int, size: int
) -> None:
    with pytest.raises(MalformedError, match="a frame of"):
        cut(BYTES + struct.pack("<I", length), size)


def test_a_request_larger_than_a_frame_is_refused() -> None:
    with pytest.raises(wire.Unsendable, match="at most"):
        wire.frame(1, wire.Request.WRITE, bytes(wire.MAX_FRAME))
