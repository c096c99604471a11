"""Handlers of the table: API keys and their permissions.

What the table cannot express (only a superadmin makes or revokes another; a caller grants only what
lies inside its own patterns) is asked of the guard here. A change counts, for open connections
too, when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila import __version__
from fila.core.rejection import OK, Rejection, invalid_value
from fila.distribution import form
from fila.security.keyring import NAME_BYTES_MAX, PERMISSIONS_MAX, Row
from fila.security.permission import Permission
from fila.wire import bodies as b

if TYPE_CHECKING:
    from fila.broker.session import Session


def create_api_key(session: Session, request: b.CreateApiKey) -> b.CreateApiKeyResult | Rejection:
    """A new key and its secret, which is shown this once."""
    refused = session.guard.may_create(session.identity, request.is_superadmin)
    if refused is not None:
        return refused
    name = request.name
    if not name or len(name.encode()) > NAME_BYTES_MAX or not name.isprintable():
        return invalid_value("API key name", f"use 1 to {NAME_BYTES_MAX} printable bytes")
    now_ms = session.sessions.now_ms()
    if 0 < request.expires_at_ms <= now_ms:
        return invalid_value("expiry", "it lies in the past")
    key, secret, row = session.guard.keyring.create(
        name,
        request.expires_at_ms,
        request.is_superadmin,
        now_ms,
        session.sessions.random_hex,
        made_open=not session.guard.enabled,
    )
    _store(session, row, key.id)
    return b.CreateApiKeyResult(OK, key.id, secret, key.superadmin)


def revoke_api_key(session: Session, request: b.RevokeApiKey) -> b.RevokeApiKeyResult | Rejection:
    refused = session.guard.may_revoke(session.identity, request.key_id)
    found = refused or session.guard.key(request.key_id)
    if isinstance(found, Rejection):
        return found
    row = session.guard.keyring.revoke(request.key_id)
    _store(session, row, request.key_id)
    return b.RevokeApiKeyResult(OK)


def list_api_keys(session: Session, request: b.ListApiKeys) -> b.ListApiKeysResult:
    keys = [
        b.ApiKeySummary(one.id, one.name, one.created_ms, one.expires_ms, one.superadmin)
        for one in session.guard.keyring.all()
    ]
    return b.ListApiKeysResult(OK, tuple(keys))


def set_acl(session: Session, request: b.SetAcl) -> b.SetAclResult | Rejection:
    permissions = tuple([Permission(one.kind, one.pattern) for one in request.permissions])
    refused = session.guard.may_set_acl(session.identity, request.key_id, permissions)
    if refused is not None:
        return refused
    if len(permissions) > PERMISSIONS_MAX:
        return invalid_value("ACL", f"a key may have {PERMISSIONS_MAX} permissions")
    found = session.guard.key(request.key_id)
    if isinstance(found, Rejection):
        return found
    row = session.guard.keyring.set_permissions(request.key_id, permissions)
    _store(session, row, request.key_id)
    return b.SetAclResult(OK)


def get_acl(session: Session, request: b.GetAcl) -> b.GetAclResult | Rejection:
    found = session.guard.key(request.key_id)
    if isinstance(found, Rejection):
        return found
    permissions = tuple([b.Permission(kind, pattern) for kind, pattern in found.permissions])
    return b.GetAclResult(OK, found.id, found.superadmin, permissions)


def who_am_i(session: Session, request: b.WhoAmI) -> b.WhoAmIResult:
    """The caller's own key, which it may see without any permission."""
    guard, (key_id, superadmin, label) = session.guard, session.identity
    key = guard.keyring.get(key_id) if key_id else None
    name, expires_ms = (key.name, key.expires_ms) if key is not None else (label, 0)
    permissions = tuple([b.Permission(*one) for one in key.permissions]) if key else ()
    return b.WhoAmIResult(
        OK, __version__, form(), guard.enabled, key_id, name, expires_ms, superadmin, permissions
    )


def _store(session: Session, row: Row, key_id: str) -> None:
    """The keyring, and connections that are open, follow when the row is committed."""

    def committed() -> None:
        session.guard.keyring.follow(row)
        session.sessions.keys_changed(key_id)

    session.broker.store_auth(row.key, row.value)
    session.broker.after_commit(committed)


AT_ONCE: Final[dict[Any, Callable[[Session, Any], Any]]] = {
    b.CreateApiKey: create_api_key,
    b.RevokeApiKey: revoke_api_key,
    b.ListApiKeys: list_api_keys,
    b.SetAcl: set_acl,
    b.GetAcl: get_acl,
    b.WhoAmI: who_am_i,
}
