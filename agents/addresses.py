"""Which addresses of the network an agent's tools may connect to: public ones, and what a setting allows."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from fnmatch import fnmatchcase

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Allowed:
    """``general.web_fetch.allow_private``: host names (with ``*``) and networks beside the public ones."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._names: list[str] = []
        self._networks: list[Network] = []
        for entry in entries:
            try:
                self._networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                self._names.append(entry.lower().rstrip("."))

    def permits(self, host: str, address: str) -> bool:
        """``address`` is what ``host`` was resolved to. An address that can't be read is refused."""
        name = host.lower().rstrip(".")
        if any(fnmatchcase(name, pattern) for pattern in self._names):
            return True
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        meant = _meant(found)
        if any(found in network or meant in network for network in self._networks):
            return True
        return _is_public(found) and _is_public(meant)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 one leads to (mapped, 6to4, Teredo, NAT64, compatible), else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address in _NAT64):
        return True  # the address that it leads to is looked at instead
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False  # out of use since 2004, and still some networks' own; ``is_global`` says yes
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
    )
