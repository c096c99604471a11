"""Producers and consumers that go on through trouble, driven through the adapter.

Owns the retries a careful user would write: a producer repeats what was not certainly stored, a
consumer takes what it is given again. What came of it is told, not judged.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Json = dict[str, Any]
Call = Callable[[str, Json], Awaitable[Json]]

# It may or may not have been stored, or certainly was not: send it again.
_AGAIN = frozenset(
    ("ConnectionLost", "ConnectFailed", "Timeout", "ChannelFull", "NodeNotReady", "NotLeader")
)
_PAUSE_S = 0.05
_NEXT_MS = 100
_BATCH = 20


async def produce(call: Call, step: Json) -> Json:
    """`producers` of them enqueue `count` messages in all, each with its number as payload, until
    every one is stored.

    `ids`: number to the message ids the broker confirmed; `failures`: how often each code came.
    """
    ids: dict[str, list[str]] = {}
    failures: dict[str, int] = {}
    numbers = iter(range(step["count"]))

    async def one() -> None:
        for number in numbers:
            text = str(number)
            while True:
                fields = {"client": step["client"], "queue": step["queue"], "text": text}
                answer = await call("enqueue", fields)
                if "ok" in answer:
                    ids.setdefault(text, []).append(answer["ok"]["message_id"])
                    break
                code = answer["error"]["code"]
                failures[code] = failures.get(code, 0) + 1
                if code not in _AGAIN:
                    return
                await asyncio.sleep(_PAUSE_S)

    await asyncio.gather(*(one() for _ in range(step.get("producers", 1))))
    return {"texts": sorted(ids, key=int), "ids": ids, "failures": failures}


async def collect(call: Call, step: Json, until: Any) -> Json:
    """Take and acknowledge until every text of `until` was seen, `count` messages came, or nothing
    came for `quiet_ms`. `batch` is how many are asked for at a time.

    `texts`: payloads in the order they came; `ids` likewise; `failures`: codes of failed acks.
    """
    missing = set(until or ())
    texts: list[str] = []
    ids: list[str] = []
    failures: dict[str, int] = {}
    quiet_ms = 0
    batch = step.get("batch", _BATCH)
    while missing or until is None:
        if until is None and len(texts) >= step.get("count", 1 << 60):
            break
        fields = {"consumer": step["consumer"], "max": batch, "timeout_ms": _NEXT_MS}
        if "count" in step:
            fields["max"] = min(batch, step["count"] - len(texts))
        answer = await call("next", fields)
        if "error" in answer:
            code = answer["error"]["code"]
            return {"texts": texts, "ids": ids, "failures": failures, "ended_by": code}
        messages = answer["ok"]["messages"]
        quiet_ms = 0 if messages else quiet_ms + _NEXT_MS
        if answer["ok"].get("end") or quiet_ms >= step.get("quiet_ms", 15_000):
            break
        if not messages:
            continue
        texts += [message["text"] for message in messages]
        ids += [message["id"] for message in messages]
        missing.difference_update(message["text"] for message in messages)
        taken = [message["id"] for message in messages]
        settle = {"client": step["client"], "queue": step["queue"], "ids": taken}
        answer = await call("ack", settle)
        results = answer["ok"]["results"] if "ok" in answer else [answer] * len(taken)
        for result in results:
            if "error" in result:
                code = result["error"]["code"]
                failures[code] = failures.get(code, 0) + 1
    return {"texts": texts, "ids": ids, "failures": failures, "missing": sorted(missing)}
