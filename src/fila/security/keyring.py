"""The API keys: made, found, revoked. Only hashes of the secrets are kept.

A secret is 32 random hex digits, shown once. It is found by its SHA-256: 128 random bits need no
slow hash, and looking up a hash tells nothing about the secret by the time it takes.

Whom the broker lets in follows committed rows only: a change is a row, and counts when `follow` is
told that it is stored. Who changes keys sees what is under way: one change builds on another.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import NamedTuple

from fila.security.permission import NOTHING, Grants, Permission

NAME_BYTES_MAX = 255
PERMISSIONS_MAX = 1_000
_PREFIX = b"key/"


class ApiKey(NamedTuple):
    id: str
    name: str
    digest: str
    created_ms: int
    expires_ms: int  # 0: never
    superadmin: bool
    permissions: tuple[Permission, ...]
    made_open: bool = False  # while authentication was off: by anybody

    def expired(self, now_ms: int) -> bool:
        return 0 < self.expires_ms <= now_ms


class Row(NamedTuple):
    """A row of the auth family; no value removes it."""

    key: bytes
    value: bytes | None


class Keyring:
    def __init__(self, stored: list[tuple[bytes, bytes]]) -> None:
        self._keys: dict[str, ApiKey] = {}
        self._by_digest: dict[str, str] = {}
        self._grants: dict[str, Grants] = {}  # of keys that were asked about
        # What rows under way say of a key, None that it is revoked; and how many there are.
        self._under_way: dict[str, tuple[ApiKey | None, int]] = {}
        for _, value in stored:
            self._keep(_read(value))

    def find(self, secret: str) -> ApiKey | None:
        """The key with this secret, expired or not."""
        digest = digest_of(secret)
        id = self._by_digest.get(digest)
        if id is None or not hmac.compare_digest(self._keys[id].digest, digest):
            return None
        return self._keys[id]

    def get(self, id: str) -> ApiKey | None:
        return self._keys.get(id)

    def grants(self, id: str) -> Grants:
        """What a key may do; nothing, when there is no such key."""
        found = self._grants.get(id)
        if found is None:
            key = self._keys.get(id)
            if key is None:
                return NOTHING
            found = self._grants[id] = Grants(key.permissions)
        return found

    def latest(self, id: str) -> ApiKey | None:
        """As it will be when everything that is under way is stored."""
        found = self._under_way.get(id)
        return found[0] if found is not None else self._keys.get(id)

    def all(self) -> list[ApiKey]:
        """The latest."""
        changed = {id: key for id, (key, _) in self._under_way.items()}
        keys = [key for key in {**self._keys, **changed}.values() if key is not None]
        return sorted(keys, key=lambda key: (key.created_ms, key.id))

    def follow(self, row: Row) -> None:
        """The row is stored."""
        id = row.key.removeprefix(_PREFIX).decode()
        newest, left = self._under_way.pop(id)
        if left > 1:
            self._under_way[id] = (newest, left - 1)
        old = self._keys.pop(id, None)
        if old is not None:
            del self._by_digest[old.digest]
            self._grants.pop(id, None)
        if row.value is not None:
            self._keep(_read(row.value))

    def create(
        self,
        name: str,
        expires_ms: int,
        superadmin: bool,
        now_ms: int,
        random_hex: Callable[[int], str],
        made_open: bool = False,
    ) -> tuple[ApiKey, str, Row]:
        """A new key, its secret, and the row that is to keep it."""
        id, secret = random_hex(8), random_hex(16)
        key = ApiKey(id, name, digest_of(secret), now_ms, expires_ms, superadmin, (), made_open)
        return key, secret, self._change(key.id, key)

    def revoke(self, id: str) -> Row:
        return self._change(id, None)

    def set_permissions(self, id: str, permissions: tuple[Permission, ...]) -> Row:
        key = self.latest(id)
        assert key is not None, "it was just found"
        return self._change(id, key._replace(permissions=permissions))

    def _change(self, id: str, key: ApiKey | None) -> Row:
        _, before = self._under_way.get(id, (None, 0))
        self._under_way[id] = (key, before + 1)
        return Row(_PREFIX + id.encode(), _value(key) if key is not None else None)

    def _keep(self, key: ApiKey) -> None:
        self._keys[key.id] = key
        self._grants.pop(key.id, None)
        self._by_digest[key.digest] = key.id


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _value(key: ApiKey) -> bytes:
    return json.dumps({"version": 1, **key._asdict()}).encode()


def _read(value: bytes) -> ApiKey:
    record = json.loads(value)
    version = record.pop("version")
    if version != 1:
        raise ValueError(f"a stored API key has version {version}; this Fila reads version 1")
    record["permissions"] = tuple(Permission(*pair) for pair in record["permissions"])
    return ApiKey(**record)
