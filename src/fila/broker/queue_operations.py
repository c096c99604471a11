"""Handlers of the table: queues, runtime config, statistics, explanations, pauses and purges.

The caller's permission has been asked. A handler gives back its result's record or a rejection;
those in LATER start a job of many turns and give the result to `done` when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from fila.broker import explaining
from fila.broker.stepping import ITEMS_OF_A_MESSAGE, STEP_ITEMS, Steps, counted
from fila.core import override
from fila.core.command import SetOverride, UpdateQueue
from fila.core.explain import Document
from fila.core.override import Terms
from fila.core.rejection import OK, Rejection
from fila.core.stats import Reading
from fila.core.versions import changed
from fila.core.work import Work
from fila.wire import bodies as b
from fila.wire.fields import LIST_ITEMS_MAX

if TYPE_CHECKING:
    from fila.broker.session import Session

_MS: Final = 1_000_000

Done = Callable[[Any], Steps | None]


def create_queue(session: Session, request: b.CreateQueue) -> b.CreateQueueResult | Rejection:
    fault = session.broker.create_queue(*request)
    return fault or b.CreateQueueResult(OK, request.name)


def update_queue(session: Session, request: b.UpdateQueue) -> b.UpdateQueueResult | Rejection:
    wanted = UpdateQueue(
        request.queue,
        request.settings,
        request.expected_version,
        request.from_version,
        request.note,
        session.identity.label,
    )
    reply = session.broker.update_queue(wanted, rehearse=not request.unrehearsed)
    return reply if isinstance(reply, Rejection) else b.UpdateQueueResult(OK, reply)


def get_queue(session: Session, request: b.GetQueue) -> b.GetQueueResult | Rejection:
    found = session.broker.machine.view.version(request.queue, request.version)
    if isinstance(found, Rejection):
        return found
    settings = tuple([b.ConfigEntry(name, text) for name, text in found.settings.items()])
    told = (settings, found.number, found.at_ns // _MS, found.who, found.note)
    return b.GetQueueResult(OK, *told)


def list_versions(session: Session, request: b.ListVersions) -> b.ListVersionsResult | Rejection:
    found = session.broker.machine.view.versions(request.queue)
    if isinstance(found, Rejection):
        return found
    told = []
    for at, one in enumerate(found):
        before = found[at + 1].settings if at + 1 < len(found) else None
        names = changed(before, one.settings) if before is not None else []
        told.append(b.QueueVersion(one.number, one.at_ns // _MS, one.who, one.note, tuple(names)))
    return b.ListVersionsResult(OK, tuple(told))


def delete_queue(session: Session, request: b.DeleteQueue) -> b.DeleteQueueResult | Rejection:
    return session.broker.delete_queue(request.queue) or b.DeleteQueueResult(OK)


def get_stats(session: Session, request: b.GetStats) -> Any:
    reading = session.broker.machine.view.stats_in_steps(request.queue, LIST_ITEMS_MAX)
    return reading if isinstance(reading, Rejection) else _stats(session.broker.work, reading)


def _stats(work: Work, reading: Reading) -> Generator[None, None, b.GetStatsResult]:
    found = yield from counted(work, reading)
    keys: list[b.FairnessKeyStats] = []
    for start in range(0, len(found.keys), STEP_ITEMS):
        keys += [
            b.FairnessKeyStats(one.key.decode(), one.pending, one.deficit, one.weight)
            for one in found.keys[start : start + STEP_ITEMS]
        ]
        if start:
            work.done += STEP_ITEMS // ITEMS_OF_A_MESSAGE
            yield
    buckets = [
        b.ThrottleKeyStats(one.key.decode(), one.tokens, one.rate, one.burst)
        for one in found.buckets
    ]
    return b.GetStatsResult(
        OK,
        found.depth,
        found.in_flight,
        found.active_keys,
        found.consumers,
        found.quantum,
        fairness_keys=tuple(keys),
        throttle_keys=tuple(buckets),
        cost=found.cost,
    )


def list_queues(
    session: Session, request: b.ListQueues
) -> Generator[None, None, b.ListQueuesResult]:
    queues: list[b.QueueSummary] = []
    found = session.broker.machine.view.summaries()
    for start in range(0, len(found), STEP_ITEMS):
        queues += [
            b.QueueSummary(one.name, one.depth, one.in_flight, one.consumers, 0)
            for one in found[start : start + STEP_ITEMS]
            if session.guard.sees(session.identity, one.name)
        ]
        if start:
            session.broker.work.done += STEP_ITEMS // ITEMS_OF_A_MESSAGE
            yield
    return b.ListQueuesResult(OK, 0, tuple(queues))


def set_config(session: Session, request: b.SetConfig) -> b.SetConfigResult | Rejection:
    return session.broker.set_config(request.key, request.value) or b.SetConfigResult(OK)


def get_config(session: Session, request: b.GetConfig) -> b.GetConfigResult:
    return b.GetConfigResult(OK, session.broker.machine.view.config.get(request.key, ""))


def list_config(session: Session, request: b.ListConfig) -> b.ListConfigResult:
    config = session.broker.machine.view.config
    entries = [
        b.ConfigEntry(key, value)
        for key, value in sorted(config.items())
        if key.startswith(request.prefix)
    ]
    return b.ListConfigResult(OK, tuple(entries))


def explain(
    session: Session, request: b.Explain
) -> Generator[None, None, b.ExplainResult | Rejection] | Rejection:
    """Why it waits, as JSON. Without a queue: all that the caller administers, in short."""
    if not request.queue:
        return _explain_all(session)
    steps = explaining.explanation(session.broker, *request)
    return steps if isinstance(steps, Rejection) else _explain(steps)


def _explain(
    steps: Generator[None, None, Document | Rejection],
) -> Generator[None, None, b.ExplainResult | Rejection]:
    document = yield from steps
    if isinstance(document, Rejection):
        return document
    return b.ExplainResult(OK, explaining.as_json(document))


def _explain_all(session: Session) -> Generator[None, None, b.ExplainResult]:
    guard, identity = session.guard, session.identity
    names = [one.name for one in session.broker.machine.view.summaries()]
    found = yield from explaining.queues_in_short(
        session.broker, names, lambda name: guard.permit_admin(identity, name) is None
    )
    return b.ExplainResult(OK, found)


def pause_queue(session: Session, request: b.PauseQueue) -> b.PauseQueueResult | Rejection:
    who = session.identity.label
    fault = session.broker.pause_queue(request.queue, request.reason, who)
    return fault or b.PauseQueueResult(OK)


def resume_queue(session: Session, request: b.ResumeQueue) -> b.ResumeQueueResult | Rejection:
    fault = session.broker.resume_queue(request.queue, session.identity.label)
    return fault or b.ResumeQueueResult(OK)


def pause_key(session: Session, request: b.PauseKey) -> b.PauseKeyResult | Rejection:
    key = request.fairness_key.encode()
    who = session.identity.label
    fault = session.broker.pause_key(request.queue, key, request.reason, who)
    return fault or b.PauseKeyResult(OK)


def resume_key(session: Session, request: b.ResumeKey) -> b.ResumeKeyResult | Rejection:
    key = request.fairness_key.encode()
    fault = session.broker.resume_key(request.queue, key, session.identity.label)
    return fault or b.ResumeKeyResult(OK)


def set_override(session: Session, request: b.SetOverride) -> b.SetOverrideResult | Rejection:
    command = SetOverride(
        request.queue,
        request.fairness_key.encode(),
        request.settings,
        request.clear,
        request.note,
        session.identity.label,
    )
    return session.broker.set_override(command) or b.SetOverrideResult(OK)


def list_overrides(session: Session, request: b.ListOverrides) -> Any:
    found = session.broker.machine.view.overrides(request.queue)
    return found if isinstance(found, Rejection) else _overrides(session.broker.work, found)


def _overrides(
    work: Work, found: list[tuple[bytes, Terms]]
) -> Generator[None, None, b.ListOverridesResult]:
    told: list[bytes] = []
    for start in range(0, len(found), STEP_ITEMS):
        if start:
            work.done += STEP_ITEMS // ITEMS_OF_A_MESSAGE
            yield
        for key, terms in found[start : start + STEP_ITEMS]:
            told.append(explaining.as_json({"key": key.decode(), **override.document(terms)}))
    return b.ListOverridesResult(OK, b"[" + b",".join(told) + b"]")


def reclassify(session: Session, request: b.Reclassify) -> b.ReclassifyResult | Rejection:
    who = session.identity.label
    if request.cancel:
        found = session.broker.cancel_reclassify(request.queue, who)
    else:
        found = session.broker.reclassify(request.queue, request.rate, who, request.dry_run)
    if isinstance(found, Rejection):
        return found
    return b.ReclassifyResult(OK, explaining.as_json(found))


def get_reclassify(session: Session, request: b.GetReclassify) -> b.GetReclassifyResult | Rejection:
    found = session.broker.reclassification(request.queue)
    if isinstance(found, Rejection):
        return found
    return b.GetReclassifyResult(OK, explaining.as_json(found))


def redrive(session: Session, request: b.Redrive, done: Done) -> Rejection | None:
    def moved(count: int | Rejection) -> None:
        done(count if isinstance(count, Rejection) else b.RedriveResult(OK, count))

    return session.broker.redrive(request.dlq_queue, request.limit, moved)


def purge(session: Session, request: b.Purge, done: Done) -> Rejection | None:
    def dropped(count: int | Rejection) -> None:
        done(count if isinstance(count, Rejection) else b.PurgeResult(OK, count))

    key = None if request.fairness_key is None else request.fairness_key.encode()
    return session.broker.purge(request.queue, key, session.identity.label, dropped)


def get_limits(session: Session, request: b.GetLimits) -> b.GetLimitsResult:
    found = session.sessions.limits()
    return b.GetLimitsResult(OK, tuple([b.LimitUse(*one) for one in found]))


AT_ONCE: Final[dict[Any, Callable[[Session, Any], Any]]] = {
    b.CreateQueue: create_queue,
    b.UpdateQueue: update_queue,
    b.GetQueue: get_queue,
    b.ListVersions: list_versions,
    b.DeleteQueue: delete_queue,
    b.GetStats: get_stats,
    b.ListQueues: list_queues,
    b.SetConfig: set_config,
    b.GetConfig: get_config,
    b.ListConfig: list_config,
    b.Explain: explain,
    b.PauseQueue: pause_queue,
    b.ResumeQueue: resume_queue,
    b.PauseKey: pause_key,
    b.ResumeKey: resume_key,
    b.SetOverride: set_override,
    b.ListOverrides: list_overrides,
    b.Reclassify: reclassify,
    b.GetReclassify: get_reclassify,
    b.GetLimits: get_limits,
}
LATER: Final[dict[Any, Callable[[Session, Any, Done], Rejection | None]]] = {
    b.Redrive: redrive,
    b.Purge: purge,
}
