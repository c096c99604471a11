"""The administration half of the asynchronous client: queues, config, keys.

Owns the shape of these methods and nothing else; what is sent and what comes back is in `calls`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fila.client import calls
from fila.client.async_methods.shell import AsyncShell
from fila.client.calls import (
    Acl,
    ApiKey,
    BackupList,
    Caller,
    QueueList,
    QueueSettings,
    QueueStats,
)
from fila.client.errors import QueueAlreadyExistsError
from fila.wire.bodies import ApiKeySummary, GetLimits, LimitUse, QueueVersion


class AsyncAdministration(AsyncShell):
    async def create_queue(
        self,
        name: str,
        *,
        on_enqueue: str | None = None,
        on_failure: str | None = None,
        visibility_timeout_ms: int = 0,
        max_attempts: int = 0,
        cost: str = "",
        exist_ok: bool = False,
        timeout: float | None = None,
    ) -> str:
        """Create a queue and its dead letter queue; returns the queue's id. A message that failed
        `max_attempts` times is a dead letter, whatever the hook says; 0 is no limit. `cost` is
        what a message costs its fairness key: "messages" (1, the default) or "bytes". With
        `exist_ok` a queue that is there already is left as it is, whatever its hooks are."""
        call = calls.create_queue(
            name, on_enqueue, on_failure, visibility_timeout_ms, max_attempts, cost
        )
        try:
            return await self._call(call, timeout)
        except QueueAlreadyExistsError:
            if not exist_ok:
                raise
            return name

    async def update_queue(
        self,
        queue: str,
        settings: Mapping[str, str | int] | None = None,
        *,
        expected_version: int = 0,
        from_version: int = 0,
        note: str = "",
        unrehearsed: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Change the settings that are named, all or none, while the queue works: `on_enqueue`,
        `on_failure`, `visibility_timeout_ms`, `max_attempts`, `hook_timeout_ms`,
        `hook_memory_limit_bytes`, `fail_mode`; an empty text is none, or the default. Returns the
        version that holds then.

        With `expected_version` it is refused (VersionConflictError) if somebody else was faster;
        `from_version` brings an older version back. New hooks are tried on messages that the
        present ones decided, unless `unrehearsed` is given. `note` says why, for the history."""
        call = calls.update_queue(
            queue, settings or {}, expected_version, from_version, note, unrehearsed
        )
        return await self._call(call, timeout)

    async def get_queue(
        self, queue: str, version: int = 0, *, timeout: float | None = None
    ) -> QueueSettings:
        """A queue's settings as they are, or as they were in an older version."""
        return await self._call(calls.get_queue(queue, version), timeout)

    async def list_versions(
        self, queue: str, *, timeout: float | None = None
    ) -> list[QueueVersion]:
        """The versions of a queue's settings that are kept, the newest first."""
        return await self._call(calls.list_versions(queue), timeout)

    async def delete_queue(self, queue: str, *, timeout: float | None = None) -> None:
        await self._call(calls.delete_queue(queue), timeout)

    async def list_queues(self, *, timeout: float | None = None) -> QueueList:
        return await self._call(calls.list_queues(), timeout)

    async def get_stats(self, queue: str, *, timeout: float | None = None) -> QueueStats:
        return await self._call(calls.get_stats(queue), timeout)

    async def set_config(
        self, key: str, value: str | None, *, timeout: float | None = None
    ) -> None:
        """Set a runtime setting; None or an empty value removes it."""
        await self._call(calls.set_config(key, value), timeout)

    async def get_config(self, key: str, *, timeout: float | None = None) -> str | None:
        """A runtime setting, or None when it is not set."""
        return await self._call(calls.get_config(key), timeout)

    async def list_config(
        self, prefix: str = "", *, timeout: float | None = None
    ) -> dict[str, str]:
        return await self._call(calls.list_config(prefix), timeout)

    async def redrive(self, dlq_queue: str, count: int = 0, *, timeout: float | None = None) -> int:
        """Move messages of a dead letter queue back to where they came from; 0 means all."""
        return await self._call(calls.redrive(dlq_queue, count), timeout)

    async def explain(
        self,
        queue: str = "",
        *,
        key: str | None = None,
        message_id: str | None = None,
        keys_max: int = 10,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Why a message, the next one of a key, or a queue's keys wait (spec/explain.md).

        Without a queue: every queue the key may see, in short.
        """
        return await self._call(calls.explain(queue, key, message_id, keys_max), timeout)

    async def pause_queue(
        self, queue: str, reason: str = "", *, timeout: float | None = None
    ) -> None:
        """Deliver nothing from this queue until it is resumed; it still takes messages in."""
        await self._call(calls.pause_queue(queue, reason), timeout)

    async def resume_queue(self, queue: str, *, timeout: float | None = None) -> None:
        await self._call(calls.resume_queue(queue), timeout)

    async def pause_key(
        self, queue: str, key: str, reason: str = "", *, timeout: float | None = None
    ) -> None:
        """Deliver nothing of a fairness key until it is resumed."""
        await self._call(calls.pause_key(queue, key, reason), timeout)

    async def resume_key(self, queue: str, key: str, *, timeout: float | None = None) -> None:
        await self._call(calls.resume_key(queue, key), timeout)

    async def set_override(
        self,
        queue: str,
        key: str,
        settings: Mapping[str, str | float],
        *,
        note: str = "",
        timeout: float | None = None,
    ) -> None:
        """Let what is named hold for a fairness key, for what waits too, whatever its messages
        say: `weight`, `rate` (messages per second), `burst`, `expires_in_ms`. What is not named
        stays as it is; an empty text takes it away. `note` says why, for others to see."""
        await self._call(calls.set_override(queue, key, settings, note), timeout)

    async def clear_override(self, queue: str, key: str, *, timeout: float | None = None) -> None:
        """Let the key's messages say again what holds for it."""
        await self._call(calls.clear_override(queue, key), timeout)

    async def list_overrides(
        self, queue: str, *, timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """What operators said of keys of the queue, each with `key`, `weight`, `rate`, `burst`,
        `expires_ms` (None where nothing is said), `since_ms`, `by` and `note`."""
        return await self._call(calls.list_overrides(queue), timeout)

    async def reclassify(
        self,
        queue: str,
        *,
        rate: int = 0,
        dry_run: bool = False,
        cancel: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Let the hook judge what waits in a queue again, in the background, so many messages a
        second at most (0: as the broker has room). With `dry_run` nothing moves, and what would is
        counted. Returns how it stands, as `get_reclassify` does."""
        return await self._call(calls.reclassify(queue, rate, dry_run, cancel), timeout)

    async def get_reclassify(self, queue: str, *, timeout: float | None = None) -> dict[str, Any]:
        """How far the queue's reclassification is, or what the last one came to: `state` (none,
        running, done, cancelled, failed), `judged` of `waiting`, `moved`, `reweighed`,
        `undecided`, and the `differences`."""
        return await self._call(calls.get_reclassify(queue), timeout)

    async def purge(
        self, queue: str, *, key: str | None = None, timeout: float | None = None
    ) -> int:
        """Drop what is pending, of one key or of all; what is leased stays. Returns how many."""
        return await self._call(calls.purge(queue, key), timeout)

    async def create_api_key(
        self,
        name: str,
        *,
        expires_at_ms: int = 0,
        is_superadmin: bool = False,
        timeout: float | None = None,
    ) -> ApiKey:
        return await self._call(calls.create_api_key(name, expires_at_ms, is_superadmin), timeout)

    async def revoke_api_key(self, key_id: str, *, timeout: float | None = None) -> None:
        await self._call(calls.revoke_api_key(key_id), timeout)

    async def list_api_keys(self, *, timeout: float | None = None) -> list[ApiKeySummary]:
        return await self._call(calls.list_api_keys(), timeout)

    async def set_acl(
        self,
        key_id: str,
        permissions: Iterable[tuple[str, str]],
        *,
        timeout: float | None = None,
    ) -> None:
        """Replace a key's permissions, (kind, pattern) pairs such as ("produce", "orders.*")."""
        await self._call(calls.set_acl(key_id, permissions), timeout)

    async def get_acl(self, key_id: str, *, timeout: float | None = None) -> Acl:
        return await self._call(calls.get_acl(key_id), timeout)

    async def get_limits(self, *, timeout: float | None = None) -> list[LimitUse]:
        """What is used of each limit that all clients of the broker share."""
        call = calls.call_of(GetLimits(), lambda r: list(r.limits))
        return await self._call(call, timeout)

    async def who_am_i(self, *, timeout: float | None = None) -> Caller:
        """Who the broker takes this client for, what it may do, and the broker's release."""
        return await self._call(calls.who_am_i(), timeout)

    async def create_backup(self, *, timeout: float | None = None) -> str:
        """Begin a backup of everything that is acknowledged; its name. The broker copies while it
        works, to where its configuration says; `list_backups` tells when the state is "done"."""
        return await self._call(calls.create_backup(), timeout)

    async def list_backups(self, *, timeout: float | None = None) -> BackupList:
        """The backups there are, the oldest first, those under way and failed among them."""
        return await self._call(calls.list_backups(), timeout)
