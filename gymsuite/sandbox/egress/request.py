"""Reads one request of a client to its proxy, so strictly that no two readers can disagree on it.

Whatever is odd is refused: one line ending, one of each header that frames or names something, no
folding, no transfer encoding.
"""

import re
from typing import NamedTuple

from gymsuite.sandbox.egress.names import Endpoint, parse_endpoint

HEAD_BYTES = 16 << 10
_MOST_HEADERS = 100
_LONGEST_LENGTH = 15
_LONGEST_METHOD = 32
_HTTP_PORT = 80
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_VALUE = re.compile(rb"[\x20-\x7e\x80-\xff\t]*")
_VERSIONS = (b"HTTP/1.1", b"HTTP/1.0")
_SINGLE = (b"host", b"content-length", b"transfer-encoding")
_BETWEEN_NEIGHBOURS = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    )
)


class Refusal(Exception):  # noqa: N818 - what a client gets
    """An answer that is no. `verdict` is the word for it in the log."""

    def __init__(self, status: str, verdict: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.verdict = verdict


class Request(NamedTuple):
    """A request. `head` is what the server is sent first, empty for a tunnel."""

    method: str
    endpoint: Endpoint
    head: bytes = b""
    body_bytes: int = 0

    @property
    def is_tunnel(self) -> bool:
        """Whether the client wants a connection, and will speak to the server itself."""
        return not self.head


def end_of_head(data: bytes) -> int | None:
    """Where the body begins, or None as long as the head is not complete. Raises `Refusal`."""
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[:end]
    if len(head) > HEAD_BYTES:
        raise Refusal("431 Request Header Fields Too Large", "request", "too many headers")
    if b"\n" in head.replace(b"\r\n", b"") or b"\r" in head.replace(b"\r\n", b"")[:-1]:
        raise _malformed("a line does not end with CR LF")
    return None if end < 0 else end + 4


def parse_request(head: bytes) -> Request:
    """Read a complete head. Raises `Refusal`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or words[2] not in _VERSIONS:  # noqa: PLR2004 - method, target, version
        raise _malformed("the first line is no METHOD TARGET HTTP/1.1")
    method, target, version = words
    if (
        len(method) > _LONGEST_METHOD
        or not _TOKEN.fullmatch(method)
        or not _TARGET.fullmatch(target)
    ):
        raise _malformed("the first line is no METHOD TARGET HTTP/1.1")
    headers = _headers(lines)
    if method == b"CONNECT":
        return _tunnel(target, headers)
    return _forwarded(method, target, version, headers)


def _headers(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    if len(lines) > _MOST_HEADERS:
        raise Refusal("431 Request Header Fields Too Large", "request", "too many headers")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise _malformed("a header is no NAME: VALUE")
        headers.append((name, value.strip(b" \t")))
    for name in _SINGLE:
        if sum(own.lower() == name for own, _ in headers) > 1:
            raise _malformed(f"there are two headers {name.decode()}")
    return headers


def _tunnel(target: bytes, headers: list[tuple[bytes, bytes]]) -> Request:
    endpoint = parse_endpoint(target.decode("ascii"))
    if endpoint is None:
        raise _malformed("CONNECT takes HOST:PORT")
    _check_host(headers, endpoint, endpoint.port)
    if _value(headers, b"transfer-encoding") is not None or _length(headers):
        raise _malformed("CONNECT has no body")
    return Request("CONNECT", endpoint)


def _forwarded(
    method: bytes, target: bytes, version: bytes, headers: list[tuple[bytes, bytes]]
) -> Request:
    scheme, rest = target[:7], target[7:]
    if scheme.lower() != b"http://" or b"#" in rest:
        raise _malformed("a proxy takes http://HOST/PATH, and CONNECT for https")
    authority = re.split(rb"[/?]", rest, maxsplit=1)[0]
    endpoint = parse_endpoint(authority.decode("ascii"), _HTTP_PORT)
    if endpoint is None:
        raise _malformed("the URL names no host")
    _check_host(headers, endpoint, _HTTP_PORT)
    if _value(headers, b"transfer-encoding") is not None:
        raise Refusal("411 Length Required", "request", "a body needs its Content-Length")
    path = rest[len(authority) :]
    # A client of HTTP/1.0 would take the chunks of a later version's answer for its content.
    line = b"%s %s %s" % (method, path if path.startswith(b"/") else b"/" + path, version)
    kept = [b"%s: %s" % header for header in _end_to_end(headers)]
    head = [line, b"Host: " + authority, *kept, b"Connection: close", b"", b""]
    return Request(method.decode(), endpoint, b"\r\n".join(head), _length(headers))


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    named = b",".join(value for own, value in headers if own.lower() == b"connection")
    dropped = {name.strip() for name in named.lower().split(b",")} | _BETWEEN_NEIGHBOURS
    if b"content-length" in dropped:
        raise _malformed("Connection names a header that frames the body")
    return [pair for pair in headers if pair[0].lower() not in {*dropped, b"host"}]


def _check_host(headers: list[tuple[bytes, bytes]], endpoint: Endpoint, port: int) -> None:
    host = _value(headers, b"host")
    if host is not None and parse_endpoint(host.decode("latin-1"), port) != endpoint:
        raise _malformed("the header Host names another host")


def _length(headers: list[tuple[bytes, bytes]]) -> int:
    value = _value(headers, b"content-length")
    if value is None:
        return 0
    if not re.fullmatch(rb"[0-9]{1,%d}" % _LONGEST_LENGTH, value):
        raise _malformed("Content-Length is no number")
    return int(value)


def _value(headers: list[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    return next((value for own, value in headers if own.lower() == name), None)


def _malformed(message: str) -> Refusal:
    return Refusal("400 Bad Request", "request", message)
