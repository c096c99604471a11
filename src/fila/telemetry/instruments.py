"""The instrument table: every metric's name, kind, unit, labels and words, in one place.

OTLP, Prometheus and `docs/metrics.md` are made from it; what a metric's value is, is in
`readings.py`. Owns no numbers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.meter import HOOK_BOUNDS_US, LATENCY_BOUNDS_NS

COUNTER: Final = "counter"  # only grows; begins again when the broker does
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

MESSAGES: Final = "{message}"
SECONDS: Final = "s"
BYTES: Final = "By"

OTHER: Final = "other"  # the label of all keys that have no series of their own
CAUSES: Final = (
    *("retry", "throttled", "no_consumer", "own", "turn", "paused"),
    *("busy_own", "busy_others", "capped"),
)

LATENCY_BOUNDS_S: Final = tuple(bound / 1e9 for bound in LATENCY_BOUNDS_NS)
COMMIT_BOUNDS_S: Final = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
BATCH_BOUNDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)


class Instrument(NamedTuple):
    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    words: str
    bounds: tuple[float, ...] = ()


class Distribution(NamedTuple):
    """A histogram's value: a count per bound and one for what lies above, and the sum."""

    counts: list[int]
    sum: float


_Q: Final = ("queue",)
_K: Final = ("queue", "fairness_key")
_H: Final = ("queue", "hook")


def _messages(what: str, words: str) -> Instrument:
    return Instrument(f"fila.messages.{what}", COUNTER, MESSAGES, _Q, words)


INSTRUMENTS: Final = (
    _messages("enqueued", "Messages enqueued."),
    _messages("delivered", "Messages delivered to consumers, each delivery counted."),
    _messages("acked", "Messages acknowledged."),
    _messages("nacked", "Messages rejected by a consumer."),
    _messages("expired", "Messages whose visibility timeout ran out."),
    _messages("requeued", "Messages put back for another attempt after a failure."),
    _messages("released", "Messages handed back by a consumer that left, without an attempt."),
    _messages("dead_lettered", "Messages moved to the dead-letter queue."),
    _messages("redriven", "Messages moved back from the dead-letter queue."),
    _messages("purged", "Pending messages that somebody had thrown away."),
    _messages("aged_out", "Pending messages whose time to live ran out."),
    _messages("overflowed", "Pending messages that were dropped to make room for newer ones."),
    Instrument("fila.queue.depth", GAUGE, MESSAGES, _Q, "Pending messages, delayed ones included."),
    Instrument("fila.queue.in_flight", GAUGE, MESSAGES, _Q, "Leased messages."),
    Instrument("fila.queue.consumers", GAUGE, "{consumer}", _Q, "Open consumers."),
    Instrument(
        "fila.queue.fairness_keys", GAUGE, "{key}", _Q, "Fairness keys with pending messages."
    ),
    Instrument(
        "fila.queue.idempotency_keys",
        GAUGE,
        "{key}",
        _Q,
        "Idempotency keys the queue remembers, at most idempotency.max_keys; 0 until the first one "
        "since the start.",
    ),
    Instrument(
        "fila.queue.throttled", GAUGE, MESSAGES, _Q, "Pending messages behind an empty bucket."
    ),
    Instrument(
        "fila.queue.quarantined",
        GAUGE,
        "{queue}",
        _Q,
        "1 while the queue is not served because its rows cannot be read, else 0.",
    ),
    Instrument(
        "fila.delivery.latency",
        HISTOGRAM,
        SECONDS,
        _Q,
        "Time from enqueue to delivery, failed attempts and delays included.",
        LATENCY_BOUNDS_S,
    ),
    Instrument(
        "fila.fairness.throughput",
        COUNTER,
        MESSAGES,
        _K,
        "Messages delivered of a fairness key.",
    ),
    Instrument(
        "fila.fairness.fair_share_ratio",
        GAUGE,
        "1",
        _K,
        "What the key was delivered by what it was entitled to by weight while it had messages "
        "ready, over the last 5 to 10 s. Below 1 it got less. Absent while that was less than a "
        "message.",
    ),
    Instrument("fila.fairness.pending", GAUGE, MESSAGES, _K, "Pending messages of a fairness key."),
    Instrument(
        "fila.fairness.wait",
        COUNTER,
        SECONDS,
        (*_K, "cause"),
        "Time that delivered messages of the key had waited, by cause: `retry` (delay), "
        "`throttled` (a bucket was empty), `no_consumer` (none was connected, or all were held), "
        "`own` (older messages of the same key), `turn` (other keys had their turns), `paused`, "
        "`busy_own` and `busy_others` (consumers had no credit left: the parts held by messages in "
        "flight of its own key and of others), `capped` (as many of the key as may be were in "
        "flight).",
    ),
    Instrument(
        "fila.scheduler.drr.rounds",
        COUNTER,
        "{round}",
        _Q,
        "Rounds of the ring: all active keys had one turn each.",
    ),
    Instrument(
        "fila.scheduler.drr.active_keys", GAUGE, "{key}", _Q, "Fairness keys that may go now."
    ),
    Instrument(
        "fila.scheduler.drr.keys_processed", COUNTER, "{visit}", _Q, "Turns that keys were given."
    ),
    Instrument(
        "fila.throttle.decisions",
        COUNTER,
        "{decision}",
        ("throttle_key", "result"),
        "What a bucket decided: `pass` (a message took a token), `hit` (there was none and the "
        "message's lane had to wait).",
    ),
    Instrument(
        "fila.throttle.tokens_remaining",
        GAUGE,
        "{token}",
        ("throttle_key",),
        "Tokens in a bucket now.",
    ),
    Instrument(
        "fila.throttle.limited",
        COUNTER,
        MESSAGES,
        _Q,
        "Delivered messages that a bucket had made wait.",
    ),
    Instrument(
        "fila.lua.executions",
        COUNTER,
        MESSAGES,
        (*_H, "outcome"),
        "Messages a hook was asked about: `ok`, `failed`; or not: `bypassed` (its breaker was "
        "open), `quarantined` (their key was), `late` (their call's time was used up).",
    ),
    Instrument(
        "fila.lua.errors",
        COUNTER,
        MESSAGES,
        (*_H, "kind"),
        "Messages for which a hook failed, by `error`, `timeout` or `memory`.",
    ),
    Instrument(
        "fila.lua.execution_duration_us",
        HISTOGRAM,
        "us",
        _H,
        "Time a hook took per message (the mean of each batch).",
        tuple(HOOK_BOUNDS_US),
    ),
    Instrument(
        "fila.lua.circuit_breaker.activations",
        COUNTER,
        "{activation}",
        _H,
        "Times the breaker opened.",
    ),
    Instrument(
        "fila.lua.circuit_breaker.open",
        GAUGE,
        "1",
        _H,
        "1 while the breaker is open or half-open, else 0.",
    ),
    Instrument(
        "fila.lua.quarantine.activations",
        COUNTER,
        "{activation}",
        _H,
        "Times a key was put into quarantine because the hook kept failing for it.",
    ),
    Instrument(
        "fila.lua.quarantine.keys",
        GAUGE,
        "{key}",
        _H,
        "Keys in quarantine now.",
    ),
    Instrument(
        "fila.commit.latency",
        HISTOGRAM,
        SECONDS,
        (),
        "Time from a turn's end until its writes count as committed.",
        COMMIT_BOUNDS_S,
    ),
    Instrument(
        "fila.commit.batch_size",
        HISTOGRAM,
        "{row}",
        (),
        "Rows written by one commit.",
        BATCH_BOUNDS,
    ),
    Instrument(
        "fila.backpressure.held_consumers",
        GAUGE,
        "{consumer}",
        _Q,
        "Consumers that get nothing because their client does not read.",
    ),
    Instrument(
        "fila.backpressure.inbound_bytes",
        GAUGE,
        BYTES,
        (),
        "Bytes of requests that have not arrived whole, all connections together.",
    ),
    Instrument("fila.connections.open", GAUGE, "{connection}", (), "Open client connections."),
    Instrument(
        "fila.connections.failed",
        COUNTER,
        "{connection}",
        ("protocol",),
        "Connections that were closed because the broker itself failed over what they sent: "
        "`fibp`, `grpc`, `http`, or `unknown` (before it was known which). Each is a bug; the log "
        "has a line for it.",
    ),
    Instrument(
        "fila.limit.used",
        GAUGE,
        "1",
        ("limit",),
        "What is used of a limit that all share, by the name of its setting (docs/limits.md).",
    ),
    Instrument("fila.limit.max", GAUGE, "1", ("limit",), "That limit."),
    Instrument(
        "fila.limit.reached",
        COUNTER,
        "{refusal}",
        ("limit",),
        "Times somebody was refused or closed because a limit was reached.",
    ),
    Instrument(
        "fila.auth.keys_refused",
        COUNTER,
        "{key}",
        (),
        "Wrong API keys that were shown, over all protocols.",
    ),
    Instrument(
        "fila.tls.handshakes.refused",
        COUNTER,
        "{connection}",
        ("kind",),
        "TLS handshakes that failed: over a `certificate`, because what came is no TLS that is "
        "spoken here (`protocol`), for a `timeout`, because many had begun and it was the oldest "
        "(`crowded`), or the client `closed`. The log has address and reason.",
    ),
    Instrument(
        "fila.tls.certificate.expires_in",
        GAUGE,
        SECONDS,
        (),
        "Time until the server's certificate expires; negative when it has. Absent without TLS.",
    ),
    Instrument(
        "fila.journal.lag", GAUGE, "{event}", (), "Journal events that are not written yet."
    ),
    Instrument("fila.journal.written", COUNTER, "{event}", (), "Journal events written."),
    Instrument(
        "fila.journal.dropped", COUNTER, "{event}", (), "Journal events dropped: the disk lags."
    ),
)

BY_NAME: Final = {one.name: one for one in INSTRUMENTS}


def label_of(key: bytes) -> str:
    """A key as a label: keys that differ have labels that differ, and none is `other`."""
    text = key.decode("utf-8", "backslashreplace")
    return "other (a key)" if text == OTHER else text


def prometheus_name(instrument: Instrument) -> str:
    """`fila.messages.enqueued` → `fila_messages_enqueued_total`, units spelled out."""
    name = instrument.name.replace(".", "_")
    if instrument.unit == SECONDS:
        name += "_seconds"
    elif instrument.unit == BYTES and not name.endswith("_bytes"):
        name += "_bytes"
    return name + "_total" if instrument.kind == COUNTER else name
