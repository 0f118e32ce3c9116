import ipaddress
import ssl

import pytest

from gymsuite import DefinitionError
from gymsuite.sandbox.egress.dialing import is_own
from gymsuite.sandbox.egress.hello import examine
from gymsuite.sandbox.egress.names import Endpoint, is_public, parse_endpoint, parse_host
from gymsuite.sandbox.egress.policy import Policy
from gymsuite.sandbox.egress.request import Refusal, end_of_head, parse_request

POLICY = Policy.parse(("pypi.example", "*.example.org", "mirror.example:8443", "203.0.113.7"))


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("pypi.example", 443, True),
        ("pypi.example", 80, True),
        ("pypi.example", 22, False),
        ("PyPI.Example.", 443, True),
        ("sub.pypi.example", 443, False),
        ("xpypi.example", 443, False),
        ("a.example.org", 443, True),
        ("a.b.example.org", 443, True),
        ("example.org", 443, False),
        ("badexample.org", 443, False),
        ("example.org.evil.example", 443, False),
        ("mirror.example", 8443, True),
        ("mirror.example", 443, False),
        ("203.0.113.7", 443, True),
        ("203.0.113.8", 443, False),
    ],
)
def test_what_is_listed_and_nothing_else_is_allowed(host: str, port: int, *, allowed: bool) -> None:
    name = parse_host(host)
    assert name is not None
    assert POLICY.allows(Endpoint(name, port)) is allowed


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.", "http://pypi.example", "pypi.example/simple", "a b", "pypi.example:0",
     "pypi.example:65536", "127.1", "**.example", "user@pypi.example", "*.203.0.113.7",
     "*.203.0.113.7:80"],
)  # fmt: skip
def test_an_entry_that_is_no_host_is_the_authors_mistake(entry: str) -> None:
    with pytest.raises(DefinitionError, match="write 'example.org'"):
        Policy.parse((entry,))


@pytest.mark.parametrize(
    "text",
    ["127.1", "2130706433", "0x7f000001", "0x7f.1", "127.0.0.01", "1.2.3.4.5", "a..b", ".a", "-a.b",
     "a-.b", "a.b..", "é.example", "a" * 64 + ".b", "a." * 130 + "b", "[::1", "[::1%eth0]", "::1",
     "a:b", "a\x00b", ""],
)  # fmt: skip
def test_odd_hosts_are_no_hosts(text: str) -> None:
    assert parse_host(text) is None


def test_addresses_are_hosts_in_their_usual_form_only() -> None:
    assert parse_endpoint("127.0.0.1:80") == Endpoint("127.0.0.1", 80)
    assert parse_endpoint("[2001:DB8:0::1]:443") == Endpoint("2001:db8::1", 443)
    assert str(Endpoint("2001:db8::1", 443)) == "[2001:db8::1]:443"
    assert parse_endpoint("a.example:+80") is None
    assert parse_endpoint("a.example:080") is None


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
     "0.0.0.1", "224.0.0.1", "224.0.1.1", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1",
     "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
     "2002:7f00:1::", "2001:db8::1", "fec0::1", "3fff::1", "::ffff:93.184.216.34", "192.0.0.8",
     "192.0.0.192", "192.88.99.1", "168.63.129.16"],
)  # fmt: skip
def test_what_is_not_the_internet_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1"])
def test_what_is_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.5", "::1"])
def test_what_is_this_machine_is_not_elsewhere(address: str) -> None:
    assert is_own(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["192.0.2.1", "93.184.216.34", "2001:db8::1"])
def test_what_is_another_machine_is_not_this_one(address: str) -> None:
    assert not is_own(ipaddress.ip_address(address))


def head(first: str, *headers: str) -> bytes:
    return "\r\n".join((first, *headers, "", "")).encode("latin-1")


def test_a_forwarded_request_is_written_anew_for_its_server() -> None:
    request = parse_request(
        head(
            "GET http://Pypi.Example/simple/?q=1 HTTP/1.1",
            "Host: pypi.example",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic eHg6eXk=",
            "Connection: keep-alive, X-Hop",
            "X-Hop: 1",
            "Upgrade: websocket",
            "Accept: */*",
        )
    )
    assert request.endpoint == Endpoint("pypi.example", 80)
    assert request.head == (
        b"GET /simple/?q=1 HTTP/1.1\r\nHost: Pypi.Example\r\nAccept: */*\r\n"
        b"Connection: close\r\n\r\n"
    )


def test_what_any_connection_header_names_stays_between_neighbours() -> None:
    lines = ("Connection: close", "Connection: X-Hop, x-other", "X-Hop: 1", "X-Other: 2", "X: 3")
    request = parse_request(head("GET http://a.example/ HTTP/1.1", *lines))
    assert request.head.split(b"\r\n")[2:-2] == [b"X: 3", b"Connection: close"]
    framed = ("Content-Length: 1", "Connection: close", "Connection: content-length")
    with pytest.raises(Refusal):
        parse_request(head("PUT http://a.example/ HTTP/1.1", *framed))


def test_a_server_is_spoken_to_in_the_version_that_the_client_understands() -> None:
    request = parse_request(head("GET http://a.example/ HTTP/1.0"))
    assert request.head.startswith(b"GET / HTTP/1.0\r\nHost: a.example\r\n")


def test_a_body_is_as_long_as_it_says() -> None:
    request = parse_request(head("POST http://a.example HTTP/1.1", "Content-Length: 12"))
    assert (request.body_bytes, request.head.split(b" ")[1]) == (12, b"/")


def test_a_tunnel_has_a_host_and_a_port() -> None:
    request = parse_request(head("CONNECT a.example:443 HTTP/1.1", "Host: a.example:443"))
    assert request.is_tunnel
    assert request.endpoint == Endpoint("a.example", 443)
    assert parse_request(head("CONNECT a.example:443 HTTP/1.0")).is_tunnel


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("GET / HTTP/1.1", "Host: a.example"), "400"),
        (("GET https://a.example/ HTTP/1.1",), "400"),
        (("GET http://u:p@a.example/ HTTP/1.1",), "400"),
        (("GET http://a.example/#x HTTP/1.1",), "400"),
        (("GET http://a.example/ HTTP/2.0",), "400"),
        (("GET  http://a.example/ HTTP/1.1",), "400"),
        (("GET http://a.example/ x HTTP/1.1",), "400"),
        (("GET http://a.example/\x01 HTTP/1.1",), "400"),
        ((f"{'G' * 33} http://a.example/ HTTP/1.1",), "400"),
        (("G(T http://a.example/ HTTP/1.1",), "400"),
        (("GET http://a.example/ HTTP/1.1", "Host: b.example"), "400"),
        (("GET http://a.example/ HTTP/1.1", "Host: a.example", "Host: a.example"), "400"),
        (("GET http://a.example/ HTTP/1.1", "Host : a.example"), "400"),
        (("GET http://a.example/ HTTP/1.1", "X: 1", " folded"), "400"),
        (("GET http://a.example/ HTTP/1.1", "X: a\x00b"), "400"),
        (("GET http://a.example/ HTTP/1.1", "no colon"), "400"),
        (("POST http://a.example/ HTTP/1.1", "Transfer-Encoding: chunked"), "411"),
        (("GET http://a.example/ HTTP/1.1", "Transfer-Encoding: x", "Transfer-Encoding: y"), "400"),
        (("POST http://a.example/ HTTP/1.1", "Content-Length: 1", "content-length: 1"), "400"),
        (("POST http://a.example/ HTTP/1.1", "Content-Length: 1, 1"), "400"),
        (("POST http://a.example/ HTTP/1.1", "Content-Length: +1"), "400"),
        (("POST http://a.example/ HTTP/1.1", "Content-Length: 0x1"), "400"),
        (("POST http://a.example/ HTTP/1.1", f"Content-Length: {'9' * 30}"), "400"),
        (("PUT http://a.b/ HTTP/1.1", "Content-Length: 1", "Connection: content-length"), "400"),
        (("CONNECT a.example HTTP/1.1",), "400"),
        (("CONNECT a.example:443 HTTP/1.1", "Host: b.example:443"), "400"),
        (("CONNECT a.example:443 HTTP/1.1", "Content-Length: 5"), "400"),
        (("CONNECT http://a.example:443 HTTP/1.1",), "400"),
        (("GET http://a.example/ HTTP/1.1", *(f"X: {i}" for i in range(101))), "431"),
    ],
)  # fmt: skip
def test_odd_requests_are_refused(lines: tuple[str, ...], status: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_request(head(*lines))
    assert caught.value.status.startswith(status)
    assert caught.value.verdict == "request"


def test_a_head_ends_with_an_empty_line_and_lines_with_cr_lf() -> None:
    assert end_of_head(b"GET / HTTP/1.1\r\nA: b\r") is None
    assert end_of_head(b"A\r\n\r\nbody\n") == 5
    for odd in (b"GET / HTTP/1.1\nA: b\n\n", b"GET / HTTP/1.1\rX\r\n", b"a\r\n\nb\r\n\r\n"):
        with pytest.raises(Refusal):
            end_of_head(odd)
    with pytest.raises(Refusal) as caught:
        end_of_head(b"x" * (17 << 10))
    assert caught.value.status.startswith("431")


def in_records(payload: bytes, size: int) -> bytes:
    pieces = (payload[at : at + size] for at in range(0, len(payload), size))
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def client_hello(name: str | None) -> bytes:
    """What Python's own TLS says first."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_hello_says_which_server_it_asks_for() -> None:
    hello = client_hello("pypi.example")
    assert examine(hello) == ("hello", "pypi.example")
    assert examine(client_hello(None)) == ("hello", "")


def test_a_hello_may_come_in_pieces() -> None:
    hello = client_hello("pypi.example")
    assert {examine(hello[:size]).kind for size in range(len(hello))} == {"part"}
    payload = hello[5:]
    assert examine(in_records(payload, 100)) == ("hello", "pypi.example")


def test_a_hello_in_countless_records_is_broken() -> None:
    assert examine(in_records(client_hello("pypi.example")[5:], 1)).kind == "broken"


@pytest.mark.parametrize(
    "record", ["1503010002015a", "140303000101", "1703030000", "180301000101", "1603010000"]
)
def test_a_hello_behind_another_record_is_broken(record: str) -> None:
    assert examine(bytes.fromhex(record) + client_hello("evil.example")).kind == "broken"


def test_a_hello_in_the_form_of_ssl_2_is_broken_since_it_names_no_server() -> None:
    old = bytes.fromhex("802f010303000600000020")
    assert {examine(old[:size]).kind for size in range(4)} == {"part"}
    assert {examine(old[:size]).kind for size in range(4, len(old))} == {"broken"}
    assert examine(b"\x80\x00\x00").kind == "other"


def test_what_is_not_tls_is_something_else() -> None:
    assert examine(b"GET / HTTP/1.1\r\n").kind == "other"
    assert examine(b"SSH-2.0-x").kind == "other"


def test_a_hello_that_hides_or_doubles_its_server_is_broken() -> None:
    hello = client_hello("pypi.example")
    name = b"\x00\x00\x00\x11\x00\x0f\x00\x00\x0cpypi.example"
    assert name in hello
    grown = hello.replace(name, name + name)
    sizes = {3: 2, 6: 3}
    for at, size in sizes.items():
        value = int.from_bytes(grown[at : at + size], "big") + len(name)
        grown = grown[:at] + value.to_bytes(size, "big") + grown[at + size :]
    at = 5 + 4 + 2 + 32
    at += 1 + grown[at]
    at += 2 + int.from_bytes(grown[at : at + 2], "big")
    at += 1 + grown[at]
    value = int.from_bytes(grown[at : at + 2], "big") + len(name)
    assert examine(grown[:at] + value.to_bytes(2, "big") + grown[at + 2 :]).kind == "broken"
    hidden = hello.replace(name, b"\xfe\x0d" + name[2:])
    assert examine(hidden).kind == "broken"


@pytest.mark.parametrize("at", range(0, 200, 7))
def test_a_spoilt_hello_never_raises(at: int) -> None:
    hello = bytearray(client_hello("pypi.example"))
    hello[at] ^= 0xFF
    assert examine(bytes(hello)).kind in {"part", "hello", "broken", "other"}
