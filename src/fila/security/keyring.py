"""The API keys: made, found, revoked. Only hashes of the secrets are kept.

A secret is 32 random hex digits, shown once. It is found by its SHA-256: 128 random bits need no
slow hash, and looking up a hash tells nothing about the secret by the time it takes.
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

    def all(self) -> list[ApiKey]:
        return sorted(self._keys.values(), key=lambda key: (key.created_ms, key.id))

    def create(
        self,
        name: str,
        expires_ms: int,
        superadmin: bool,
        now_ms: int,
        random_hex: Callable[[int], str],
        made_open: bool = False,
    ) -> tuple[ApiKey, str, Row]:
        """A new key, its secret, and the row that keeps it."""
        id, secret = random_hex(8), random_hex(16)
        key = ApiKey(id, name, digest_of(secret), now_ms, expires_ms, superadmin, (), made_open)
        self._keep(key)
        return key, secret, _row(key)

    def revoke(self, id: str) -> Row:
        key = self._keys.pop(id)
        del self._by_digest[key.digest]
        self._grants.pop(id, None)
        return Row(b"key/" + id.encode(), None)

    def set_permissions(self, id: str, permissions: tuple[Permission, ...]) -> Row:
        key = self._keys[id]._replace(permissions=permissions)
        self._keep(key)
        return _row(key)

    def _keep(self, key: ApiKey) -> None:
        self._keys[key.id] = key
        self._grants.pop(key.id, None)
        self._by_digest[key.digest] = key.id


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _row(key: ApiKey) -> Row:
    return Row(b"key/" + key.id.encode(), json.dumps({"version": 1, **key._asdict()}).encode())


def _read(value: bytes) -> ApiKey:
    record = json.loads(value)
    version = record.pop("version")
    if version != 1:
        raise ValueError(f"a stored API key has version {version}; this Fila reads version 1")
    record["permissions"] = tuple(Permission(*pair) for pair in record["permissions"])
    return ApiKey(**record)
