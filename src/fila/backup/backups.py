"""The backups of a running broker: one at a time, on a thread of its own, beside its turns.

Owns what the broker knows of them. All the loop does for a backup is to link the store's logs,
which takes a fraction of a millisecond; an image of the store is then copied by the thread. A
broker that dies over it forgets the backup, and the next one finds what was copied.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from fila.backup import manifest
from fila.backup.places import Place, PlaceError, place_of
from fila.backup.taking import BackupError, Taking, retire
from fila.core.rejection import INVALID_CONFIG_VALUE, STORAGE_ERROR, Rejection
from fila.storage.contract import StoreError
from fila.storage.image import ImageFile, remove_image
from fila.storage.rocks import RocksStore

log = logging.getLogger("fila.backup")

COPYING: Final = "copying"
DONE: Final = "done"
FAILED: Final = "failed"
LISTED_MAX: Final = 1_000  # backups that are listed, the newest
_TRIES: Final = 200  # to find a moment at which no table file comes or goes
_TRY_AGAIN_S: Final = 0.01
_LOOP_S: Final = 30.0  # how long the loop may take to come to it
_STOP_S: Final = 5.0
_FAILURES_MAX: Final = 10  # failed ones that are remembered

Got = TypeVar("Got")


class BackupSettings(NamedTuple):
    target: str = ""
    bytes_per_second: int = 0
    keep: int = 0


class Standing(NamedTuple):
    """How a backup stands."""

    name: str
    state: str
    at_ms: int
    files: int
    size: int
    new_bytes: int
    done_bytes: int
    error: str = ""


class Backups:
    def __init__(
        self,
        store: RocksStore | None,
        settings: BackupSettings,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
    ) -> None:
        """Without a store, or a target: there are none. PlaceError: the target is no place."""
        self._store = store
        self._settings = settings
        self._loop = loop
        self._wall_ms = wall_ms
        self._place: Place | None = None
        if store is not None:
            remove_image(Path(store.path))
            if settings.target:
                self._place = place_of(settings.target)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._name = ""
        self._begun_ms = 0
        self._taking: Taking | None = None
        self._failed: list[Standing] = []
        self._known: dict[str, Standing] = {}
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="backups")

    @property
    def target(self) -> str:
        return self._settings.target

    def create(self) -> str | Rejection:
        """Begin a backup of all that is acknowledged so far; its name."""
        if self._place is None:
            return self._none()
        if self._thread is not None:
            return Rejection(
                STORAGE_ERROR,
                f'backup "{self._name}" is still being copied; `fila backup list` shows how far '
                "it is",
            )
        self._begun_ms = max(self._wall_ms(), self._begun_ms + 1)
        self._name = name = manifest.name_at(self._begun_ms)
        self._taking = None
        self._thread = threading.Thread(
            target=self._run, args=(name, self._place), name="backup", daemon=True
        )
        self._thread.start()
        return name

    def standings(self, done: Callable[[list[Standing] | Rejection], object]) -> Rejection | None:
        """How all backups stand, the oldest first; `done` gets them on the loop. Without a place
        there are none."""
        if self._place is None:
            self._loop.call_soon(done, [])
            return None

        # What is under way now is told as that, even if it ends while the place is read.
        running = self._under_way() if self._thread is not None else None

        def told(future: asyncio.Future[list[Standing]]) -> None:
            if future.cancelled():
                return
            fault = future.exception()
            if fault is not None:
                done(Rejection(STORAGE_ERROR, f"cannot read {self.target}: {fault}"))
            else:
                done(self._with_others(future.result(), running))

        reading = self._loop.run_in_executor(self._reader, self._listed, self._place)
        reading.add_done_callback(told)
        return None

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join(_STOP_S)
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _none(self) -> Rejection:
        if self._store is None:
            return Rejection(STORAGE_ERROR, "this broker keeps nothing on disk to back up")
        return Rejection(
            INVALID_CONFIG_VALUE,
            "the broker knows no place for backups: set `target` under [backup] in its "
            "configuration to a directory or s3://BUCKET/PREFIX, and restart it",
        )

    def _with_others(self, found: list[Standing], running: Standing | None) -> list[Standing]:
        """What is there, and what is under way or failed since the start."""
        by_name = {one.name: one for one in [*self._failed, *found]}
        if running is not None:
            by_name[running.name] = running
        return sorted(by_name.values())

    def _under_way(self) -> Standing:
        taking = self._taking
        if taking is None:
            return Standing(self._name, COPYING, self._begun_ms, 0, 0, 0, 0)
        return Standing(
            self._name,
            COPYING,
            taking.at_ms,
            len(taking.files),
            taking.bytes_total,
            taking.new_bytes,
            taking.bytes_done,
        )

    # --- on threads of their own

    def _listed(self, place: Place) -> list[Standing]:
        names = manifest.names(place)[-LISTED_MAX:]
        for name in names:
            if name not in self._known:
                self._known[name] = _standing(place, name)
        self._known = {name: self._known[name] for name in names}
        return list(self._known.values())

    def _run(self, name: str, place: Place) -> None:
        assert self._store is not None
        began_s = time.monotonic()
        try:
            later = [one for one in manifest.names(place) if one >= name]
            if later:  # the order of names is that of time, and the oldest go first
                raise BackupError(
                    f"{later[-1]} lies there, which is later: was the clock set back?"
                )
            files = self._image(self._store)
            self._taking = Taking(
                place,
                name,
                self._wall_ms(),
                files,
                self._settings.bytes_per_second,
                lambda: not self._stopping.is_set(),
            )
            made = self._taking.run()
            gone = retire(place, self._settings.keep)
        except Exception as error:
            expected = isinstance(error, (BackupError, StoreError, PlaceError, OSError))
            log.error(f"backup {name} failed: {error}", exc_info=None if expected else error)
            failed = self._under_way()._replace(state=FAILED, error=str(error))
            self._failed = [*self._failed, failed][-_FAILURES_MAX:]
        else:
            log.info(
                f"backup {name} is in {place.address}",
                extra={
                    "bytes": made.size,
                    "new_bytes": made.new_bytes,
                    "ms": round((time.monotonic() - began_s) * 1_000),
                    "retired": len(gone),
                },
            )
        finally:
            remove_image(Path(self._store.path))
            self._thread = None

    def _image(self, store: RocksStore) -> list[ImageFile]:
        image = store.image()
        for _ in range(_TRIES):
            image.link_tables()
            files = self._on_loop(image.finish)
            if files is not None:
                return files
            if self._stopping.wait(_TRY_AGAIN_S):
                break
        raise BackupError("the store's table files came and went all the time; try again")

    def _on_loop(self, call: Callable[[], Got]) -> Got:
        """Between two turns: nothing is being written."""
        answer: Future[Got] = Future()
        self._loop.call_soon_threadsafe(partial(_answered, answer, call))
        end_s = time.monotonic() + _LOOP_S
        while not self._stopping.is_set() and time.monotonic() < end_s:
            try:
                return answer.result(0.1)
            except TimeoutError:
                if answer.done():
                    raise
        raise BackupError("the broker stopped")


def _answered(answer: Future[Any], call: Callable[[], Any]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)


def standings_in(place: Place) -> list[Standing]:
    """How the backups in a place stand, the oldest first."""
    return [_standing(place, name) for name in manifest.names(place)[-LISTED_MAX:]]


def _standing(place: Place, name: str) -> Standing:
    try:
        found = manifest.read(place, name)
    except PlaceError as error:
        return Standing(name, FAILED, 0, 0, 0, 0, 0, str(error))
    return Standing(
        name, DONE, found.at_ms, len(found.files), found.size, found.new_bytes, found.size
    )
