"""greenstalk. It has no way to send many commands at once, so those are written through its socket;
single ones go through its methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import greenstalk

from bench.rivals.clients.contract import Message

_TIME_TO_RUN_S = 600
_PUT = b"put 65536 0 %d %d\r\n%b\r\n"
_TENANT_BYTES = 8


def connect(address: str, queue: str) -> Beanstalkd:
    return Beanstalkd(address, queue)


class Beanstalkd:
    def __init__(self, address: str, queue: str) -> None:
        host, port = address.rsplit(":", 1)
        self._client: Any = greenstalk.Client(
            (host, int(port)), encoding=None, use=queue, watch=queue
        )
        self._held: list[int] = []

    def declare(self) -> None:
        pass  # a tube is there when it is used

    def publish(self, messages: Sequence[Message]) -> None:
        bodies = [tenant.encode().ljust(_TENANT_BYTES) + payload for tenant, payload in messages]
        if len(bodies) == 1:
            self._client.put(bodies[0], ttr=_TIME_TO_RUN_S)
            return
        self._ask([_PUT % (_TIME_TO_RUN_S, len(body), body) for body in bodies], b"INSERTED")

    def flush(self) -> None:
        pass

    def subscribe(self, prefetch: int) -> None:
        pass

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        """Waits for one, then asks for all the others at once."""
        try:
            job = self._client.reserve(timeout=max(int(timeout_s), 1))
        except greenstalk.TimedOutError:
            return []
        self._held.append(job.id)
        bodies = [job.body]
        if limit > 1:
            more = limit - 1
            self._client._sock.sendall(b"reserve-with-timeout 0\r\n" * more)
            reader = self._client._reader
            for _ in range(more):
                words = reader.readline().split()
                if words[0] == b"RESERVED":
                    self._held.append(int(words[1]))
                    bodies.append(reader.read(int(words[2]) + 2)[:-2])
                elif words[0] != b"TIMED_OUT":
                    raise RuntimeError(f"beanstalkd answered {words!r}")
        return [(body[:_TENANT_BYTES].rstrip().decode(), body[_TENANT_BYTES:]) for body in bodies]

    def settle(self, wait: bool = True) -> None:
        if len(self._held) == 1:
            self._client.delete(self._held[0])
        elif self._held:
            self._ask([b"delete %d\r\n" % number for number in self._held], b"DELETED")
        self._held.clear()

    def close(self) -> None:
        self._client.close()

    def _ask(self, commands: list[bytes], expected: bytes) -> None:
        self._client._sock.sendall(b"".join(commands))
        for _ in commands:
            line = self._client._reader.readline()
            if not line.startswith(expected):
                raise RuntimeError(f"beanstalkd answered {line!r}")
