"""The sentences of an explanation, and what would change it.

Owns words alone: every number comes from the document `explain.py` has made.
"""

from __future__ import annotations

from typing import Any, Final

from fila.core.due import REASON_CAPACITY, REASON_OTHERS, REASON_OVER_SHARE
from fila.core.forecast import Forecast, reweighted
from fila.core.lane import Lane
from fila.core.outlook import GROWING, SHRINKING
from fila.core.waiting import (
    CAUSE_BUSY,
    CAUSE_CAPPED,
    CAUSE_NO_CONSUMER,
    CAUSE_OWN,
    CAUSE_PAUSED,
    CAUSE_RETRY,
    CAUSE_THROTTLED,
    CAUSE_TURN,
)

Document = dict[str, Any]

_NS_PER_MS: Final = 1_000_000


def id_text(id: bytes) -> str:
    text = id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def duration(ms: float) -> str:
    """A duration in readable units: 0.4 ms, 250 ms, 3.2 s, 4 min 10 s, 2 h 5 min."""
    if ms < 10:
        return f"{ms:.2g} ms" if ms >= 0.01 else "0 ms"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s"
    minutes, seconds = divmod(int(ms // 1_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def of_message(document: Document) -> str:
    key = document["key"]["key"]
    message = document["message"]
    waited = duration(document["age_ns"] / _NS_PER_MS)
    which = "The next message" if message["ahead"] == 0 else f"Message {message['id']}"
    return f'{which} of "{key}" in "{document["queue"]}" has waited {waited}. ' + " ".join(
        [_cause(document), *_why(document), _eta(document), document["outlook"]["sentence"]]
    )


def idle_key(document: Document) -> str:
    key = document["key"]
    if key["paused"] is not None:
        return f'"{key["key"]}" in "{document["queue"]}" is paused and has no messages waiting.'
    waits = f'"{key["key"]}" has no messages waiting in "{document["queue"]}".'
    return f"{waits} {document['outlook']['sentence']}"


def leased(document: Document) -> str:
    message = document["message"]
    whom = f"consumer {message['consumer']}" if message["consumer"] else "a consumer that is gone"
    return (
        f"Message {message['id']} is not waiting: {whom} holds it, for another "
        f"{duration(message['expires_in_ms'])} at most."
    )


def of_queue(document: Document) -> str:
    name = document["queue"]
    if document["paused"] is not None:
        return f'"{name}" is paused{_by(document["paused"])}; {document["depth"]} messages wait.'
    if document["depth"] == 0:
        return f'Nothing waits in "{name}".'
    if document["consumers"] == 0:
        return f'Nobody consumes "{name}"; {document["depth"]} messages wait.'
    worst = document["keys"][0]
    return (
        f'{document["depth"]} messages of {document["active_keys"]} keys wait in "{name}"; '
        f'"{worst["key"]}" has waited longest, {duration(worst["oldest_ms"])}, '
        f"{_FOR[worst['waiting_for']]}."
    )


_FOR: Final = {
    CAUSE_PAUSED: "because it is paused",
    CAUSE_RETRY: "for the delay of a retry",
    CAUSE_NO_CONSUMER: "for a consumer",
    CAUSE_BUSY: "for busy consumers",
    CAUSE_THROTTLED: "for a token of its bucket",
    CAUSE_CAPPED: "for one of its messages in flight to end",
    CAUSE_OWN: "behind its own backlog",
    CAUSE_TURN: "for its turn",
}


def _cause(document: Document) -> str:
    cause = document["waiting_for"]
    served = document["served_meanwhile"]
    others = served["others"]
    if cause == CAUSE_PAUSED:
        pause = document["paused"] or document["key"]["paused"]
        what = "Its queue" if document["paused"] is not None else "Its key"
        return f"{what} is paused{_by(pause)}."
    if cause == CAUSE_RETRY:
        ready = document["message"]["ready_in_ms"]
        return f"It is delayed and becomes ready in {duration(ready)}."
    if cause == CAUSE_NO_CONSUMER:
        if document["consumers"] == 0:
            return "Nobody consumes the queue."
        return "Its consumers are held: their clients do not read."
    if cause == CAUSE_BUSY:
        consumers = document["consumers"]
        held = document["in_flight"]
        are = "message is" if held == 1 else "messages are"
        if consumers == 0:
            return f"{held} {are} in flight in open batches, and nobody asks for more."
        who = "Its one consumer has no" if consumers == 1 else f"None of {consumers} consumers has"
        return f"{who} credit: {held} {are} in flight and not yet acknowledged."
    if cause == CAUSE_THROTTLED:
        bucket = document["bucket"]
        if bucket["of_override"]:
            return f"{_of_override(document)} lets {bucket['rate']:g} messages a second go."
        text = (
            f'Its bucket "{bucket["key"]}" is empty: it lets {bucket["rate"]:g} messages a '
            "second go"
        )
        if others:
            most = others[0]
            text += f', and "{most["key"]}" took {most["messages"]} of them meanwhile'
        return text + "."
    if cause == CAUSE_CAPPED:
        cap = document["cap"]
        whose = f'throttle key "{cap["key"]}"' if cap["of"] == "throttle_key" else "its key"
        return f"{cap['in_flight']} messages of {whose} are in flight, and {cap['limit']} may be."
    if cause == CAUSE_OWN:
        ahead = document["message"]["ahead"]
        text = f"{ahead} older messages of its own key stand before it"
        if others:
            text += f"; of {served['messages']} messages delivered meanwhile {_most(served)}"
        return text + "."
    if others:
        return f"Of {served['messages']} messages delivered meanwhile {_most(served)}."
    return "It is next."


def _why(document: Document) -> list[str]:
    """Set against what its key is due."""
    due = document["due"]
    if due is None:
        return []
    share = f"{due['share']:.0%}"
    held = due["held"]
    meanwhile = "" if held is None else f" and its messages held {held:.0%} of the consumers' time"
    reason = due["reason"]
    if reason == REASON_OTHERS:
        return [
            f"Others got more than their share: {share} is due to this key{meanwhile}. That must "
            "not happen; please report it."
        ]
    if due["sends_per_second"] is None or due["all_send_per_second"] is None:
        sends = "it has more waiting" if reason == REASON_OVER_SHARE else "all have much waiting"
    else:
        sends = f"it sends {_few(due['sends_per_second'])} of {_few(due['all_send_per_second'])}/s"
    if reason == REASON_OVER_SHARE:
        return [f"It sends more than its share: {share} is due to it, {sends}{meanwhile}."]
    assert reason == REASON_CAPACITY
    return [f"It keeps to its share ({share} is due to it, {sends}): capacity is too little."]


def of_outlook(outlook: Document) -> str:
    """When will a message sent now be delivered?"""
    eta_ms = outlook["eta_ms"]
    if eta_ms is None:
        return f"A message sent now will not go as things are: {outlook['because']}."
    if eta_ms == 0:
        return f"A message sent now goes at once: {outlook['because']}."
    share = f"{_few(outlook['share_per_second'])}/s"
    if outlook["throttled"]:
        told = [f"its bucket lets {share} go"]
    else:
        told = [
            f"consumers take {_few(outlook['capacity_per_second'])}/s",
            f"its share is {share}",
        ]
    if outlook["sends_per_second"] is not None:
        told.append(f"it sends {_few(outlook['sends_per_second'])}/s")
    told.append(f"{outlook['pending']:,} wait")
    text = ", ".join(told)
    trend = f" and {outlook['trend']}" if outlook["trend"] in (GROWING, SHRINKING) else ""
    return (
        f"{text[0].upper()}{text[1:]}: a message sent now goes in about {duration(eta_ms)}{trend}."
    )


def _few(rate: float) -> str:
    return f"{rate:.3g}" if rate < 1000 else f"{rate:,.0f}"


def _of_override(document: Document) -> str:
    """Who limited the rate of the message's key."""
    one = document["key"]["override"]
    if one is None:
        return "Its key's own rate"
    by = f" by {one['by']}" if one["by"] else ""
    note = f" ({one['note']})" if one["note"] else ""
    return f"The override of its key{by}{note}"


def _most(served: Document) -> str:
    most = served["others"][0]
    return f'"{most["key"]}" had {most["messages"]} and its own key {served["own"]}'


def _eta(document: Document) -> str:
    eta_ms = document["eta_ms"]
    if eta_ms is None:
        return f"It will not go as things are: {document['eta_because']}."
    return f"Expect it in about {duration(eta_ms)}."


def _by(pause: Document) -> str:
    by = f" by {pause['by']}" if pause["by"] else ""
    return f"{by}: {pause['reason']}" if pause["reason"] else by


def changes(document: Document, lane: Lane, found: Forecast) -> list[Document]:
    """What would make it go sooner, the most direct first; with the new estimate where known."""
    queue = document["queue"]
    key = document["key"]["key"]
    cause = document["waiting_for"]
    eta_ms = document["eta_ms"]
    half = None if eta_ms is None else round(eta_ms / 2, 3)
    made: list[Document] = []
    if document["paused"] is not None:
        made.append(_change("resume_queue", "resume the queue", f"fila queue resume {queue}", None))
    if document["key"]["paused"] is not None:
        made.append(_change("resume_key", "resume the key", f"fila key resume {queue} {key}", None))
    if cause == CAUSE_RETRY:
        text = "a shorter delay from on_failure or from the producer"
        made.append(_change("shorter_delay", text, None, None))
    if cause == CAUSE_NO_CONSUMER:
        text = "a consumer" if document["consumers"] == 0 else "a consumer that reads"
        made.append(_change("add_consumer", text, f"fila consume {queue}", None))
    if cause == CAUSE_THROTTLED:
        bucket = document["bucket"]
        rate, burst = max(bucket["rate"] * 2, 1.0), max(bucket["burst"], 1.0)
        if bucket["of_override"]:
            text = "twice the rate of the key's override"
            do = f"fila key set {queue} {key} --rate {rate:g}"
        else:
            text = f'twice the rate of bucket "{bucket["key"]}"'
            do = f"fila config set throttle.{bucket['key']} {rate:g},{burst:g}"
        made.append(_change("raise_rate", text, do, half))
    if cause == CAUSE_CAPPED:
        cap = document["cap"]
        twice = 2 * cap["limit"]
        name = f"throttle:{cap['key']}:max_in_flight"
        how = f"fila config set {name} {twice}"
        if cap["of"] == "fairness_key":
            how = f"fila queue update {queue} --max-in-flight-per-key {twice}"
        made.append(_change("raise_cap", "twice as many in flight", how, half))
    if cause in (CAUSE_BUSY, CAUSE_OWN, CAUSE_TURN) and lane.queue.ring.keys > 1:
        rate = reweighted(lane, found, 2)
        ahead = document["message"]["ahead"]
        eta = round((ahead + 1) * 1_000 / rate, 3) if rate > 0 else None
        weight = lane.key.weight
        text = f"weight {2 * weight} instead of {weight} for the key"
        do = f"fila key set {queue} {key} --weight {2 * weight}"
        made.append(_change("raise_weight", text, do, eta))
    consumers = document["consumers"]
    if cause in (CAUSE_BUSY, CAUSE_OWN, CAUSE_TURN) and consumers:
        eta = None if eta_ms is None else round(eta_ms * consumers / (consumers + 1), 3)
        made.append(_change("add_consumer", "one more consumer like the others", None, eta))
    return made


def _change(do: str, text: str, command: str | None, eta_ms: float | None) -> Document:
    return {"do": do, "text": text, "command": command, "eta_ms": eta_ms}
