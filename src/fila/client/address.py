"""Where the broker is: `host:port`.

Owns reading an address. Never resolves or connects.
"""

from typing import Final, NamedTuple

DEFAULT_PORT: Final = 5555


class Address(NamedTuple):
    host: str
    port: int
    tls: bool  # the address itself asked for it, by https://

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """`localhost:5555`, `broker`, `[::1]:5555`; a leading http:// or https:// is dropped."""
    rest = text.strip()
    tls = rest.lower().startswith("https://")
    for scheme in ("http://", "https://"):
        if rest.lower().startswith(scheme):
            rest = rest[len(scheme) :]
    rest = rest.rstrip("/")
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError(f"address {text!r} is not [ipv6]:port")
        port = tail[1:]
    elif rest.count(":") > 1:
        raise ValueError(f"address {text!r}: write an IPv6 address as [{rest}]:{DEFAULT_PORT}")
    else:
        host, _, port = rest.partition(":")
    if not host:
        raise ValueError(f"address {text!r} has no host; write host:port, e.g. localhost:5555")
    return Address(host, _port_of(port, text), tls)


def _port_of(port: str, text: str) -> int:
    if not port:
        return DEFAULT_PORT
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"address {text!r}: {port!r} is not a port from 1 to 65535")
    return int(port)
