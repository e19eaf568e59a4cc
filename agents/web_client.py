"""HTTP for agents: connects only to addresses that were checked, and reads no more than it was told to.

The check and the connection are one step: a name is resolved once, the addresses are checked, and the socket
is opened to one of them. A name that answers differently the next time (DNS rebinding) gains nothing, and
every redirect goes through the same step. No proxy of the environment is used, no cookie is kept.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpcore2

from agents.addresses import Allowed

MAX_REDIRECTS = 5
CONNECT_SEC = 10.0
SILENCE_SEC = 30.0
WHOLE_SEC = 120.0
KEPT_ON_REDIRECT = frozenset({"accept", "accept-language", "user-agent"})
"""What of the caller's headers goes along to another origin: nothing that could be a key."""

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchRefused(Exception):
    """The request isn't made, or its answer can't be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """``truncated``: the body is longer than what was read. ``url``: after redirects."""

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    truncated: bool


async def resolve_here(host: str, port: int) -> list[str]:
    """The addresses of ``host`` as the machine's resolver says, each once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True)
class WebClient:
    """``allowed`` says where a connection may go; ``max_bytes`` bounds the body, also an unpacked one."""

    allowed: Allowed
    max_bytes: int
    resolve: Resolve = resolve_here
    tls: Any = field(default=None)

    async def fetch(self, url: str, *, method: str = "GET", headers: Mapping[str, str]) -> Fetched:
        """Raises FetchRefused."""
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=self.tls,
            network_backend=_CheckedBackend(self.allowed, self.resolve),
            max_connections=1,
        )
        try:
            async with asyncio.timeout(WHOLE_SEC), pool:
                return await self._follow(pool, url, method, dict(headers))
        except (TimeoutError, httpcore2.TimeoutException):
            raise FetchRefused(f"{_shown(url)} did not answer in time.") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
            raise FetchRefused(f"{_shown(url)} can't be reached: {error or type(error).__name__}") from error

    async def _follow(
        self, pool: httpcore2.AsyncConnectionPool, url: str, method: str, headers: dict[str, str]
    ) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask(pool, _checked(url), method, headers)
            target = answer.headers.get("location")
            if answer.status not in (301, 302, 303, 307, 308) or not target:
                return answer
            following = urljoin(url, target)
            if _origin(following) != _origin(url):
                headers = {name: text for name, text in headers.items() if name.lower() in KEPT_ON_REDIRECT}
            if answer.status == 303 and method != "HEAD":
                method = "GET"
            url = following
        raise FetchRefused(f"More than {MAX_REDIRECTS} redirects; the last one led to {_shown(url)}.")

    async def _ask(
        self, pool: httpcore2.AsyncConnectionPool, url: str, method: str, headers: dict[str, str]
    ) -> Fetched:
        parts = urlsplit(url)
        sent = {
            "Host": _host_header(url),
            "User-Agent": "Halo",
            "Accept": "*/*",
            **headers,
            "Accept-Encoding": "identity",
        }
        limits = {"connect": CONNECT_SEC, "read": SILENCE_SEC, "write": SILENCE_SEC, "pool": CONNECT_SEC}
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        asked = httpcore2.URL(
            scheme=parts.scheme.encode(),
            host=_ascii_host(parts.hostname or "").encode(),
            port=parts.port,
            target=target.encode("ascii", "strict"),
        )
        async with pool.stream(
            method, asked, headers=list(sent.items()), extensions={"timeout": limits}
        ) as answer:
            received = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers
            }
            body, truncated = await self._body(answer.aiter_stream(), received.get("content-encoding", ""))
            reason = answer.extensions.get("reason_phrase", b"").decode("latin-1")
            return Fetched(url, answer.status, reason, received, body, truncated)

    async def _body(self, pieces: Any, encoding: str) -> tuple[bytes, bool]:
        """As many bytes as may be read; a packed body is unpacked within the same bound."""
        packing = _packing(encoding)
        body = bytearray()
        async for piece in pieces:
            body += packing.unpacked(piece, self.max_bytes + 1 - len(body)) if packing else piece
            if len(body) > self.max_bytes:
                return bytes(body[: self.max_bytes]), True
            if packing and packing.is_at_end:  # what a server sends behind it is no part of the answer
                break
        return bytes(body), False


class _CheckedBackend(httpcore2.AnyIOBackend):
    """Opens sockets to checked addresses only; TLS still verifies the name of the URL."""

    def __init__(self, allowed: Allowed, resolve: Resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise FetchRefused(f"The name {host} can't be resolved: {error}") from error
        addresses = [address for address in found if self._allowed.permits(host, address)]
        if not addresses:
            raise FetchRefused(
                f"{host} is a private, loopback, link-local or otherwise non-public address and may not be "
                "reached. A person can allow it with the setting general.web_fetch.allow_private."
            )
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await super().connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def connect_unix_socket(self, *_args: Any, **_options: Any) -> httpcore2.AsyncNetworkStream:
        raise FetchRefused("Only http and https addresses can be fetched.")


def _checked(url: str) -> str:
    """``url`` in ASCII without a fragment; FetchRefused for what is no plain http or https address."""
    if any(character <= " " or character == "\x7f" for character in url):
        raise FetchRefused(f"{url!a} is no address: it holds white space or control characters.")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii_host(parts.hostname or "")
    except (ValueError, UnicodeError) as error:
        raise FetchRefused(f"{url!a} is no address: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise FetchRefused(f"Only http and https addresses can be fetched, not {_shown(url)}.")
    if not host:
        raise FetchRefused(f"{_shown(url)} names no host.")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused("An address with a user name in it is not fetched; use the header Authorization.")
    shown_host = f"[{host}]" if ":" in host else host
    netloc = shown_host if port is None else f"{shown_host}:{port}"
    return parts._replace(
        netloc=netloc, path=_quoted(parts.path), query=_quoted(parts.query), fragment=""
    ).geturl()


def _ascii_host(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="%/:@!$&'()*+,;=?~-._[]")


def _host_header(url: str) -> str:
    return urlsplit(url).netloc


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "", url, None


class _Packing:
    """A packed body, unpacked piece by piece."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    @property
    def is_at_end(self) -> bool:
        return self._unpacking.eof

    def unpacked(self, piece: bytes, most: int) -> bytes:
        """``most``: the bytes that are wanted; what is left of ``piece`` comes with the next call."""
        try:
            return self._unpacking.decompress(self._unpacking.unconsumed_tail + piece, max(most, 1))
        except zlib.error as error:
            raise FetchRefused(f"The answer says it is packed with {self._name} and isn't: {error}") from None


def _packing(encoding: str) -> _Packing | None:
    """None for plain bytes. We ask for those; some servers pack them all the same."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise FetchRefused(f"The answer is packed with {name[:40]!a}, which is not understood.")
    return _Packing(name)


def _shown(url: str) -> str:
    return url if len(url) <= 200 else url[:200] + "…"
