"""Who delayed whom, and by how much: each tenant's waits, dealt out among those served meanwhile.

Owns how a wait is dealt out. Two parts of it are other messages' doing:

    turn_us       its key was next, and other keys had their turns: dealt out evenly among the
                  messages of other keys that were delivered since it headed its key
    consumer_us   consumers had no credit left: the part that messages of its own key held is its
                  own, the others' part is dealt out evenly among the messages of other keys that
                  were delivered since it was ready; time without any consumer is nobody's

So the rows of a tenant and minute add up to its `wait_turn_us`, and to its `wait_busy_own_us`,
`wait_busy_others_us` and `wait_no_consumer_us`, of that minute. A journal before version 3 does not
tell who held the consumers: there the time without credit is dealt out evenly among all messages
delivered since it was ready, those of its own key included. What was served longer than
`LOOK_BACK_S` before the minute is not looked at: a wait that began earlier is dealt out among those
served since. Kept are the tenants that waited most, and of those to blame the first; `rest` stands
for the others, so that sums stay whole. With nobody served meanwhile (the broker was busy with
other queues) a part is nobody's, an empty name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOOK_BACK_S: Final = 60
WAITING_MAX: Final = 20  # tenants of a queue and minute, those that waited most
BLAMED_MAX: Final = 10
REST: Final = "*"
NOBODY: Final = ""
_MINUTE_US: Final = 60_000_000
SCHEMA: Final = (
    "broker string, epoch bigint, queue string, minute_number bigint, fairness_key string, "
    "blamed_key string, turn_us double, consumer_us double"
)
_COLUMNS: Final = (
    "broker", "epoch", "queue", "seq", "fairness_key", "unix_micros(ts) as us",
    "unix_micros(ready_at) as ready_us", "coalesce(wait_turn_us, 0) as turn_us",
    "if(wait_busy_own_us is null, 0, wait_no_consumer_us) as alone_us",
    "if(wait_busy_own_us is null, coalesce(wait_no_consumer_us, 0), 0) as untold_us",
    "coalesce(wait_busy_own_us, 0) as own_us", "coalesce(wait_busy_others_us, 0) as others_us",
)  # fmt: skip


def blame(deliveries: DataFrame, judged: str = "true") -> DataFrame:
    """One row per queue, minute, tenant that waited and tenant to blame. `deliveries` are events,
    with those of the minute before what is `judged` (SQL over broker, epoch and minute)."""
    found = (
        deliveries.where("event = 'delivered'")
        .selectExpr(*_COLUMNS)
        .selectExpr("*", f"us div {_MINUTE_US} as minute")
        .selectExpr("*", f"{judged} as judged")
    )
    dealt = found.groupBy("broker", "epoch", "queue").applyInArrow(dealt_out, SCHEMA)
    return dealt.selectExpr(
        "broker", "epoch", "queue", f"timestamp_micros(minute_number * {_MINUTE_US}) as minute",
        "fairness_key", "blamed_key", "round(turn_us, 3) as turn_us",
        "round(consumer_us, 3) as consumer_us",
    )  # fmt: skip


def dealt_out(table: Any) -> Any:
    """The rows of one queue, from its deliveries in any order."""
    table = table.sort_by("seq")
    names = table["fairness_key"].combine_chunks().dictionary_encode()
    # Numbered in order: the same rows whatever came before them.
    order = pc.sort_indices(names.dictionary)
    dictionary = names.dictionary.take(order).to_pylist()
    keys = np.argsort(order.to_numpy())[names.indices.to_numpy(zero_copy_only=False)]
    us, ready, turn, minute = (
        table[name].to_numpy() for name in ("us", "ready_us", "turn_us", "minute")
    )
    alone, untold, held, others = (
        table[name].to_numpy() for name in ("alone_us", "untold_us", "own_us", "others_us")
    )
    consumer = alone + untold + held + others
    judged = table["judged"].to_numpy()
    place = np.arange(len(us))
    # The first delivery since each message was ready, as far as is looked back.
    began = np.searchsorted(us, np.maximum(ready, minute * _MINUTE_US - LOOK_BACK_S * 1_000_000))
    headed = np.maximum(began, _previous(keys) + 1)
    rows: list[tuple[Any, ...]] = []
    own = tuple(table[name][0].as_py() for name in ("broker", "epoch", "queue")) if len(us) else ()
    for number in np.unique(minute[judged]):
        of_minute = judged & (minute == number)
        waited = np.bincount(keys[of_minute], (turn + consumer)[of_minute], len(dictionary))
        for key in _largest(waited, WAITING_MAX):
            mine = place[of_minute & (keys == key)]
            turns = _dealt(headed[mine], mine, turn[mine], keys, len(dictionary), keys != key)
            every = np.ones(len(keys), bool)
            consumers = _dealt(began[mine], mine, untold[mine], keys, len(dictionary), every)
            consumers += _dealt(began[mine], mine, others[mine], keys, len(dictionary), keys != key)
            consumers[key] += held[mine].sum()
            consumers[-1] += alone[mine].sum()
            blamed = [*dictionary, NOBODY]
            rows += [
                (*own, int(number), dictionary[key], *one)
                for one in _ranked(blamed, turns, consumers)
            ]
    columns: list[Any] = list(zip(*rows, strict=True)) or [[]] * len(_ARROW)
    return pa.table(columns, schema=_ARROW)


_ARROW: Final = pa.schema(
    [
        ("broker", pa.string()), ("epoch", pa.int64()), ("queue", pa.string()),
        ("minute_number", pa.int64()), ("fairness_key", pa.string()), ("blamed_key", pa.string()),
        ("turn_us", pa.float64()), ("consumer_us", pa.float64()),
    ]
)  # fmt: skip


def _previous(keys: Any) -> Any:
    """For each delivery the place of the one before it of the same key; -1 for the first."""
    order = np.argsort(keys, kind="stable")
    found = np.full(len(keys), -1)
    same = keys[order][1:] == keys[order][:-1]
    found[order[1:][same]] = order[:-1][same]
    return found


def _largest(amounts: Any, count: int) -> list[int]:
    order = np.argsort(-amounts, kind="stable")[:count]
    return [int(one) for one in order if amounts[one] > 0]


def _dealt(starts: Any, ends: Any, amounts: Any, keys: Any, count: int, among: Any) -> Any:
    """By key, what it has of amounts that are dealt out evenly among places start to end, as far as
    they are `among` those asked for; the last is nobody's."""
    before = np.append(0, np.cumsum(among))
    served = before[ends] - before[starts]
    some = (served > 0) & (amounts > 0)
    change = np.zeros(len(keys) + 1)
    each = amounts[some] / served[some]
    np.add.at(change, starts[some], each)
    np.add.at(change, ends[some], -each)
    shares = np.where(among, np.maximum(np.cumsum(change)[:-1], 0), 0)
    found = np.bincount(keys, shares, count)
    return np.append(found, amounts[(served <= 0)].sum())


def _ranked(blamed: list[str], turns: Any, consumers: Any) -> list[tuple[str, float, float]]:
    """The most to blame first, what is left as `rest`."""
    both = turns + consumers
    first = _largest(np.where(both > 0.5, both, 0), BLAMED_MAX)
    found = [(blamed[one], float(turns[one]), float(consumers[one])) for one in first]
    rest = [
        float(all_.sum() - sum(float(all_[one]) for one in first)) for all_ in (turns, consumers)
    ]
    if max(rest) > 0.5:
        found.append((REST, rest[0], rest[1]))
    return found
