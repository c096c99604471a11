"""Wrong keys: how many an address has shown lately.

The right key opens at any time, from any address, whatever others there have tried: several
clients may share an address. What is limited is what wrong ones cost: beyond so many a minute they
are answered late, and the log counts them instead of telling each. API keys have 128 random bits,
so that nobody guesses one at any rate.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict, deque
from typing import Final

audit = logging.getLogger("fila.audit")

PERIOD_MS: Final = 60_000
ADDRESSES_MAX: Final = 10_000
LINES_MAX: Final = 200  # of all addresses together, per period
_V6_NETWORK: Final = 64  # bits of what one customer is given


class Attempts:
    def __init__(self, wrong_max: int = 10) -> None:
        """`wrong_max` keys of one address are answered at once and logged, per minute."""
        self._wrong_max = wrong_max
        self._times: OrderedDict[str, deque[int]] = OrderedDict()
        self._lines_since_ms = 0
        self._lines = 0
        self._unsaid = 0
        self.refused = 0  # since the start

    def wrong(self, host: str, now_ms: int) -> int:
        """Somebody showed a wrong key. Returns how long its address had better wait, in ms; 0 while
        it is within the rate."""
        self.refused += 1
        address = network_of(host)
        times = self._times.pop(address, None)
        if times is None:
            times = deque(maxlen=self._wrong_max + 1)
            if len(self._times) >= ADDRESSES_MAX:
                self._times.popitem(last=False)
        self._times[address] = times
        while times and times[0] <= now_ms - PERIOD_MS:
            times.popleft()
        times.append(now_ms)
        return times[0] + PERIOD_MS - now_ms if len(times) > self._wrong_max else 0

    def may_tell(self, wait_ms: int, now_ms: int) -> bool:
        """Whether the log takes a line about a wrong key; those it does not take are counted."""
        if now_ms - self._lines_since_ms >= PERIOD_MS:
            if self._unsaid:
                audit.warning("more wrong keys were shown", extra={"keys": self._unsaid})
            self._lines_since_ms, self._lines, self._unsaid = now_ms, 0, 0
        if wait_ms or self._lines >= LINES_MAX:
            self._unsaid += 1
            return False
        self._lines += 1
        return True


def network_of(host: str) -> str:
    """What counts as one address: an IPv4 address, or the network an IPv6 address is in."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found) >> 64 << 64, _V6_NETWORK)))
    return host
