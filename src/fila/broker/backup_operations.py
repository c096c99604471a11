"""Handlers of the table: backups. The caller's permission has been asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila.backup.backups import Backups, Standing
from fila.broker.stepping import Steps
from fila.core.rejection import OK, STORAGE_ERROR, Rejection
from fila.wire import bodies as b

if TYPE_CHECKING:
    from fila.broker.session import Session

Done = Callable[[Any], Steps | None]

_NONE: Final = Rejection(STORAGE_ERROR, "this broker keeps nothing on disk to back up")


def create_backup(session: Session, request: b.CreateBackup) -> b.CreateBackupResult | Rejection:
    backups = session.sessions.backups
    if backups is None:
        return _NONE
    begun = backups.create()
    return begun if isinstance(begun, Rejection) else b.CreateBackupResult(OK, begun)


def list_backups(session: Session, request: b.ListBackups, done: Done) -> Rejection | None:
    backups: Backups | None = session.sessions.backups
    if backups is None:
        return _NONE
    target = backups.target  # empty: the broker has no place for backups

    def told(found: list[Standing] | Rejection) -> None:
        if isinstance(found, Rejection):
            done(found)
        else:
            done(b.ListBackupsResult(OK, target, tuple([b.Backup(*one) for one in found])))

    return backups.standings(told)


AT_ONCE: Final[dict[Any, Callable[[Session, Any], Any]]] = {b.CreateBackup: create_backup}
LATER: Final[dict[Any, Callable[[Session, Any, Done], Rejection | None]]] = {
    b.ListBackups: list_backups
}
