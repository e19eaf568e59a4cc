"""``web_fetch``: where it may go, whatever a name, an address or a redirect says, and how much it reads."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agents import sandbox, views
from agents.addresses import Allowed
from agents.tools.context import ToolContext, ToolError, WebRules
from agents.tools.web_fetch import web_fetch
from agents.web_client import FetchRefused, WebClient

from .conftest import Place


class Site:
    """Pages on loopback: path → (status, headers, body). ``asked`` holds each request's line and headers."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                status, headers, body = site.pages.get(self.path, (404, {}, b"nothing here"))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body if self.command != "HEAD" else b"")

            do_HEAD = do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def context(place: Place, *, level: str = "full", **rules: Any) -> ToolContext:
    view = views.full_view(place.root) if level == "full" else views.workspace_view(place.root, place.home)
    return ToolContext(view=view, web=WebRules(**{"allow_private": ("127.0.0.1",), **rules}))


async def test_a_page_with_status_and_type(place: Place, site: Site) -> None:
    site.pages["/a?b=1"] = (200, {"Content-Type": "text/plain; charset=latin-1"}, "schön".encode("latin-1"))
    url = f"http://127.0.0.1:{site.port}/a?b=1#part"
    told = await web_fetch(context(place), url, headers={"X-Mark": "yes"})
    assert told.splitlines() == [
        "HTTP 200 OK",
        f"URL: http://127.0.0.1:{site.port}/a?b=1",
        "Content-Type: text/plain; charset=latin-1",
        "",
        "schön",
    ]
    assert site.asked[0][2]["x-mark"] == "yes"
    assert "nothing here" in await web_fetch(context(place), f"http://127.0.0.1:{site.port}/none")
    head = await web_fetch(context(place), f"http://127.0.0.1:{site.port}/a?b=1", method="head")
    assert head.endswith("\n\n") and site.asked[-1][0] == "HEAD"


@pytest.mark.parametrize(
    "charset", ["undefined", "idna", "punycode", "rot_13", "hex_codec", "zlib_codec", "none"]
)
async def test_a_charset_that_reads_no_text_is_read_as_utf_8(place: Place, site: Site, charset: str) -> None:
    site.pages["/a"] = (200, {"Content-Type": f"text/plain; charset={charset}"}, "schön".encode() + b"\xff")
    told = await web_fetch(context(place), f"http://127.0.0.1:{site.port}/a")
    assert told.endswith("\n\nschön\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::1", "::", "fe80::1", "fe80::1%1", "fc00::1", "fd12::1", "fec0::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a9fe:a9fe::",
        "2001:0:53aa:64c:0:fb10:80ff:fffe", "not an address", "",
        "0.0.0.0",  # noqa: S104 - nothing binds here
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not Allowed().permits("example.org", address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public_ones_are_not(address: str) -> None:
    assert Allowed().permits("example.org", address)


def test_what_a_setting_allows() -> None:
    allowed = Allowed(["10.1.0.0/16", "wiki.internal", "*.lab.internal", "fd00::/8"])
    assert allowed.permits("x", "10.1.2.3") and not allowed.permits("x", "10.2.0.1")
    assert allowed.permits("x", "::ffff:10.1.2.3"), "the address that is meant counts"
    assert allowed.permits("WIKI.internal.", "192.168.0.9") and allowed.permits("a.lab.internal", "10.9.9.9")
    assert not allowed.permits("wiki.internal.evil.org", "192.168.0.9")
    assert allowed.permits("x", "fd00::5") and not allowed.permits("x", "fe80::5")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://2130706433:{port}/",
        "http://0x7f.0.0.1:{port}/", "http://0177.0.0.1:{port}/", "http://127.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/", "http://[::1]:{port}/", "http://0:{port}/",
    ],
)  # fmt: skip
async def test_loopback_is_refused_however_it_is_spelled(place: Place, site: Site, url: str) -> None:
    site.pages["/"] = (200, {}, b"inside")
    with pytest.raises(ToolError, match=r"may not be reached|can't be resolved|no address"):
        await web_fetch(context(place, allow_private=()), url.format(port=site.port))
    assert site.asked == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.org/", "Only http and https"),
        ("file:///etc/passwd", "Only http and https"),
        ("//example.org", "Only http and https"),
        ("http://", "names no host"),
        ("http://user:pw@example.org/", "user name"),
        ("http://a\r\nHost: b/", "control characters"),
        ("http://a b/", "white space"),
        ("http://[::1/", "no address"),
        ("http://example.org:99999/", "no address"),
    ],
)
async def test_what_is_no_address_is_refused(place: Place, url: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await web_fetch(context(place), url)


async def test_a_redirect_into_the_private_network_is_refused(site: Site) -> None:
    site.pages["/go"] = (302, {"Location": f"http://127.0.0.1:{site.port}/secret"}, b"")
    site.pages["/secret"] = (200, {}, b"inside")
    client = WebClient(Allowed(["public.test"]), 1000, resolve=answering({"public.test": ["127.0.0.1"]}))
    with pytest.raises(FetchRefused, match="may not be reached"):
        await client.fetch(f"http://public.test:{site.port}/go", headers={})
    assert [path for _, path, _ in site.asked] == ["/go"]


async def test_the_address_that_was_checked_is_the_one_connected_to(site: Site) -> None:
    """The name leads elsewhere at every asking; it is asked once for each connection."""
    site.pages["/"] = (200, {}, b"rebound")
    answers = [["203.0.113.9"], ["127.0.0.1"]]
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked) - 1, 1)]

    client = WebClient(Allowed(["203.0.113.0/24"]), 1000, resolve=rebinding)
    with pytest.raises(FetchRefused, match=r"can't be reached|in time"):
        async with asyncio.timeout(3):
            try:
                await client.fetch(f"http://rebind.test:{site.port}/", headers={})
            except TimeoutError:
                raise FetchRefused("it is not answered in time, as it should") from None
    assert asked == ["rebind.test"], "what was checked is not looked up again"
    assert site.asked == []
    with pytest.raises(FetchRefused, match="may not be reached"):
        await client.fetch(f"http://rebind.test:{site.port}/", headers={})
    assert site.asked == []


async def test_of_several_addresses_only_the_allowed_are_tried(site: Site) -> None:
    site.pages["/"] = (200, {}, b"here")
    names = {"two.test": ["10.0.0.1", "127.0.0.1"]}
    client = WebClient(Allowed(["127.0.0.0/8"]), 1000, resolve=answering(names))
    fetched = await client.fetch(f"http://two.test:{site.port}/", headers={})
    assert fetched.body == b"here"
    assert site.asked[0][2]["host"] == f"two.test:{site.port}"


async def test_a_key_does_not_go_along_to_another_origin(site: Site) -> None:
    other = Site()
    try:
        site.pages["/go"] = (307, {"Location": f"http://127.0.0.1:{other.port}/end"}, b"")
        site.pages["/near"] = (307, {"Location": "/end"}, b"")
        other.pages["/end"] = site.pages["/end"] = (200, {}, b"ok")
        client = WebClient(Allowed(["127.0.0.1"]), 1000)
        headers = {"Authorization": "Bearer x", "Accept": "text/plain"}
        await client.fetch(f"http://127.0.0.1:{site.port}/go", headers=headers)
        await client.fetch(f"http://127.0.0.1:{site.port}/near", headers=headers)
    finally:
        other.close()
    assert "authorization" not in other.asked[0][2] and other.asked[0][2]["accept"] == "text/plain"
    assert site.asked[-1][1] == "/end" and site.asked[-1][2]["authorization"] == "Bearer x"


async def test_redirects_end(site: Site) -> None:
    site.pages["/"] = (302, {"Location": "/"}, b"")
    with pytest.raises(FetchRefused, match="More than 5 redirects"):
        await WebClient(Allowed(["127.0.0.1"]), 99).fetch(f"http://127.0.0.1:{site.port}/", headers={})
    assert len(site.asked) == 6


async def test_no_more_is_read_than_allowed_also_of_a_packed_answer(place: Place, site: Site) -> None:
    site.pages["/long"] = (200, {}, b"x" * 500_000)
    site.pages["/bomb"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"y" * 5_000_000))
    site.pages["/odd"] = (200, {"Content-Encoding": "br"}, b"?")
    site.pages["/binary"] = (200, {}, b"\x00\x01\x02")
    base = f"http://127.0.0.1:{site.port}"
    small = context(place, max_bytes=2_000)
    for path, letter in (("/long", "x"), ("/bomb", "y")):
        told = await web_fetch(small, base + path)
        assert told.count(letter) <= 2_003 and "cut here: the answer is longer than 2,000 bytes" in told
    with pytest.raises(ToolError, match="packed with 'br'"):
        await web_fetch(small, base + "/odd")
    assert "3 bytes that are no text" in await web_fetch(small, base + "/binary")


async def test_what_comes_behind_a_packed_answer_is_not_read(place: Place) -> None:
    """It used to be kept, without a bound, until the time for the whole answer was up."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello"))
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        except ConnectionError:
            ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        told = await web_fetch(context(place), f"http://127.0.0.1:{port}/")
        await asyncio.wait_for(ended.wait(), 30)
    assert told.endswith("\n\nhello")


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Host": "x"}, "by the program"),
        ({"Proxy-Authorization": "x"}, "by the program"),
        ({"X": "a\r\nB: c"}, "plain ASCII"),
        ({"X Y": "a"}, "no name of a header"),
        ({"": "a"}, "no name of a header"),
    ],
)
async def test_headers_that_would_steer_the_connection(
    place: Place, site: Site, headers: dict[str, str], why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        await web_fetch(context(place), f"http://127.0.0.1:{site.port}/", headers=headers)
    assert site.asked == []


async def test_below_full_it_needs_the_sandbox_to_be_there(
    place: Place, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/"] = (200, {}, b"ok")
    url = f"http://127.0.0.1:{site.port}/"
    monkeypatch.setattr(sandbox, "why_unavailable", lambda: "bubblewrap is not installed.")
    with pytest.raises(ToolError, match=r"bubblewrap is not installed.*apt install bubblewrap"):
        await web_fetch(context(place, level="workspace"), url)
    assert site.asked == []
    assert "ok" in await web_fetch(context(place), url)
    monkeypatch.setattr(sandbox, "why_unavailable", lambda: "")
    assert "ok" in await web_fetch(context(place, level="workspace"), url)


async def test_an_evaluation_has_no_network(place: Place, site: Site) -> None:
    with pytest.raises(ToolError, match="not available in an evaluation"):
        await web_fetch(context(place, refusal="web_fetch is not available in an evaluation."), "http://x/")


async def test_nobody_listens(place: Place) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ToolError, match="can't be reached"):
        await web_fetch(context(place), f"http://127.0.0.1:{port}/")


def answering(names: dict[str, list[str]]) -> Any:
    async def resolve(host: str, port: int) -> list[str]:
        return names.get(host, [host])

    return resolve
