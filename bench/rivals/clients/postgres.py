"""psycopg with its C implementation: rows are inserted, deleted under SKIP LOCKED, and gone with
the commit; NOTIFY wakes a consumer that waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from bench.rivals.clients.contract import Message

_LOCK = 77


def connect(address: str, queue: str) -> Postgres:
    return Postgres(address, queue)


class Postgres:
    def __init__(self, address: str, queue: str) -> None:
        host, port = address.rsplit(":", 1)
        self._table = queue
        self._connection: Any = psycopg.connect(
            host=host, port=port, user="bench", dbname="postgres", autocommit=True
        )
        self._insert = f"""
            INSERT INTO {queue} (tenant, payload) SELECT * FROM unnest(%s::text[], %s::bytea[])"""
        self._take = f"""
            DELETE FROM {queue} WHERE id = ANY (ARRAY(
                SELECT id FROM {queue} ORDER BY id FOR UPDATE SKIP LOCKED LIMIT %s
            )) RETURNING tenant, payload"""
        self._holds = False

    def declare(self) -> None:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (id bigint GENERATED ALWAYS AS IDENTITY "
                "PRIMARY KEY, tenant text NOT NULL, payload bytea NOT NULL)"
            )

    def publish(self, messages: Sequence[Message]) -> None:
        tenants = [tenant for tenant, _ in messages]
        payloads = [payload for _, payload in messages]
        with self._connection.transaction(), self._connection.pipeline():
            self._connection.execute(self._insert, [tenants, payloads], binary=True)
            self._connection.execute(f"NOTIFY {self._table}")

    def flush(self) -> None:
        pass

    def subscribe(self, prefetch: int) -> None:
        self._connection.execute(f"LISTEN {self._table}")

    def receive(self, limit: int, timeout_s: float) -> list[Message]:
        found = self._receive_now(limit)
        if not found and list(self._connection.notifies(timeout=timeout_s, stop_after=1)):
            found = self._receive_now(limit)
        return found

    def settle(self, wait: bool = True) -> None:
        if self._holds:
            self._connection.execute("COMMIT")
            self._holds = False

    def close(self) -> None:
        self._connection.close()

    def _receive_now(self, limit: int) -> list[Message]:
        if not self._holds:
            self._connection.execute("BEGIN")
        rows: list[Message] = self._connection.execute(self._take, [limit], binary=True).fetchall()
        self._holds = True
        if not rows:
            self.settle()  # nothing is held; waiting inside a transaction would hear nothing
        return rows
