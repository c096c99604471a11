"""The guard: lets callers in, and answers what they may do, at the moment they ask.

An identity is only a name for a key; what it may do is looked up with every request, so expiry,
revocation and changed permissions act at once on open connections.
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

from fila.core.rejection import INVALID_CONFIG_VALUE, Rejection
from fila.error_codes import API_KEY_NOT_FOUND, FORBIDDEN, UNAUTHORIZED
from fila.security.keyring import ApiKey, Keyring, digest_of
from fila.security.permission import (
    ADMIN,
    ALL,
    KINDS,
    Grants,
    Permission,
    fault_of,
)

_NO_ADMIN: Final = Rejection(FORBIDDEN, "key does not have admin permission")


class Identity(NamedTuple):
    """Who a connection is. Without a key id: the bootstrap key, or no key where auth is off."""

    key_id: str
    superadmin: bool
    label: str  # for the audit log


ANYBODY: Final = Identity("", True, "anybody")
BOOTSTRAP: Final = Identity("", True, "bootstrap key")


class Guard:
    """`bootstrap` None: authentication is off, and everybody may do everything."""

    def __init__(self, keyring: Keyring, bootstrap: str | None, enabled: bool) -> None:
        self.keyring = keyring
        self.enabled = enabled
        self._bootstrap = digest_of(bootstrap) if bootstrap else None

    @property
    def has_bootstrap(self) -> bool:
        return self._bootstrap is not None

    def admit(self, secret: str | None, now_ms: int) -> Identity | Rejection:
        """Let a caller in by its API key."""
        if not self.enabled:
            return ANYBODY
        if not secret:
            return Rejection(UNAUTHORIZED, "API key required")
        if self._bootstrap and hmac.compare_digest(self._bootstrap, digest_of(secret)):
            return BOOTSTRAP
        key = self.keyring.find(secret)
        if key is None:
            return Rejection(UNAUTHORIZED, "the API key is not valid")
        if key.expired(now_ms):
            return Rejection(UNAUTHORIZED, "the API key has expired")
        return _identity(key)

    def admit_key(self, key_id: str, now_ms: int) -> Identity | Rejection:
        """Let a caller in who has shown otherwise that it has this key: by a signature."""
        key = self.keyring.get(key_id)
        if key is None:
            return Rejection(UNAUTHORIZED, "the API key is not valid")
        if key.expired(now_ms):
            return Rejection(UNAUTHORIZED, "the API key has expired")
        return _identity(key)

    def still_valid(self, identity: Identity, now_ms: int) -> Rejection | None:
        """Why an admitted caller is no longer welcome, if so."""
        if not identity.key_id:
            return None
        key = self.keyring.get(identity.key_id)
        if key is None:
            return Rejection(UNAUTHORIZED, "the API key was revoked")
        if key.expired(now_ms):
            return Rejection(UNAUTHORIZED, "the API key has expired")
        return None

    def permit(self, identity: Identity, kind: str, queue: str) -> Rejection | None:
        """Why the caller may not do this to the queue, if so."""
        if identity.superadmin or self._grants(identity).allow(kind, queue):
            return None
        return Rejection(FORBIDDEN, f'no {kind} permission on queue "{queue}"')

    def permit_admin(self, identity: Identity, queue: str) -> Rejection | None:
        """Administer one queue."""
        grants = self._grants(identity)
        if identity.superadmin or grants.allow(ADMIN, queue):
            return None
        if ADMIN not in grants.kinds:
            return _NO_ADMIN
        return Rejection(FORBIDDEN, f'no admin permission on queue "{queue}"')

    def permit_some(self, identity: Identity) -> Rejection | None:
        """Administer any queue at all."""
        if identity.superadmin or ADMIN in self._grants(identity).kinds:
            return None
        return _NO_ADMIN

    def permit_all(self, identity: Identity) -> Rejection | None:
        """Administer the broker: config and keys."""
        if identity.superadmin or self._grants(identity).administer(ALL):
            return None
        return _NO_ADMIN

    def sees(self, identity: Identity, queue: str) -> bool:
        """Whether a list of queues shows this one."""
        if identity.superadmin:
            return True
        grants = self._grants(identity)
        return any(grants.allow(kind, queue) for kind in KINDS)

    def may_create(self, identity: Identity, superadmin: bool) -> Rejection | None:
        refused = self.permit_all(identity)
        if refused is None and superadmin and not identity.superadmin:
            return Rejection(FORBIDDEN, "only superadmin keys can create other superadmin keys")
        return refused

    def may_revoke(self, identity: Identity, id: str) -> Rejection | None:
        refused = self.permit_all(identity)
        key = self.keyring.latest(id)
        if refused is None and key and key.superadmin and not identity.superadmin:
            return Rejection(FORBIDDEN, "only superadmin keys can revoke superadmin keys")
        return refused

    def may_set_acl(
        self, identity: Identity, id: str, wanted: tuple[Permission, ...]
    ) -> Rejection | None:
        """Grant only what lies inside the caller's own admin patterns, and take no more away."""
        mine = self._grants(identity)
        if not identity.superadmin and ADMIN not in mine.kinds:
            return _NO_ADMIN
        for permission in wanted:
            fault = fault_of(permission)
            if fault is not None:
                return Rejection(INVALID_CONFIG_VALUE, fault)
        if identity.superadmin:
            return None
        key = self.keyring.latest(id)
        touched = wanted + (key.permissions if key is not None else ())
        within = all(mine.administer(one.pattern) for one in touched)
        if not within or (key is not None and key.superadmin):
            return Rejection(FORBIDDEN, "one or more permissions exceed the caller's admin scope")
        return None

    def key(self, id: str) -> ApiKey | Rejection:
        found = self.keyring.latest(id)
        return found or Rejection(API_KEY_NOT_FOUND, f'API key "{id}" does not exist')

    def made_open(self, now_ms: int) -> list[ApiKey]:
        """Keys that may do everything and were made while anybody could make them."""
        return [
            key
            for key in self.keyring.all()
            if key.made_open
            and not key.expired(now_ms)
            and (key.superadmin or self.keyring.grants(key.id).administer(ALL))
        ]

    def _grants(self, identity: Identity) -> Grants:
        return self.keyring.grants(identity.key_id)


def _identity(key: ApiKey) -> Identity:
    return Identity(key.id, key.superadmin, f'key {key.id} "{key.name}"')
