"""Queues that hold only so much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.core.command import Ack, Consume, Enqueue, EnqueueKeyed, Purge, UpdateQueue
from fila.core.rejection import INVALID_CONFIG_VALUE, QUEUE_FULL, Rejection
from fila.core.room import Crowded
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import SECOND, Turns, id_of


def limited(turns: Turns, **settings: str) -> None:
    turns.create("q")
    turns.wait(1)
    (reply,) = turns.turn(UpdateQueue("q", settings)).replies
    assert reply == 2
    turns.wait(1)


def send(turns: Turns, *numbers: int, key: bytes = b"k", size: int = 10) -> Crowded | None:
    ids = [id_of(number) for number in numbers]
    bodies = [b"\0\0" + b"." * (size - 2)] * len(ids)
    (reply,) = turns.turn(Enqueue("q", ids, bodies, [Assignment(key, 1, ())] * len(ids))).replies
    assert reply is None or isinstance(reply, Crowded)
    return reply


def told(crowded: Crowded | None) -> dict[str, str]:
    assert crowded is not None
    assert crowded.why is not None
    assert crowded.why.code == QUEUE_FULL
    return dict(crowded.why.metadata)


def test_what_does_not_fit_is_refused_and_told_why() -> None:
    turns = Turns()
    limited(turns, max_messages="3")
    assert send(turns, 1, 2) is None
    found = send(turns, 3, 4, 5)
    assert found is not None
    assert found.refused == [1, 2]
    assert told(found) == {"retry_after_ms": "3000", "depth": "3", "limit": "3"}
    assert found.why is not None
    assert 'queue "q" is full: 3 messages wait, max_messages is 3' in found.why.message
    assert turns.queue("q").pending == 3


def test_a_keys_limit_leaves_other_keys_alone() -> None:
    turns = Turns()
    limited(turns, key_max_messages="2")
    assert told(send(turns, 1, 2, 3, key=b"noisy"))["limit"] == "2"
    assert send(turns, 4, 5, key=b"quiet") is None
    assert b"huge" not in turns.queue("q").keys
    turns.turn(UpdateQueue("q", {"max_messages": "4"}))
    assert told(send(turns, 6, key=b"huge"))["depth"] == "4"
    assert b"huge" not in turns.queue("q").keys, "who is refused leaves nothing behind"


def test_bytes_count_and_a_restart_knows_them() -> None:
    turns = Turns()
    limited(turns, max_bytes="100", key_max_bytes="60")
    assert send(turns, 1, 2, 3, size=20) is None
    assert told(send(turns, 4, size=20)) == {
        "retry_after_ms": "3000",
        "depth": "60",
        "limit": "60",
    }
    again = turns.restart()
    assert again.queue("q").weighed == 60
    assert send(again, 5, 6, key=b"b", size=20) is None
    assert told(send(again, 7, key=b"c", size=20))["depth"] == "100"
    again.turn(Purge("q", [(b"k", ())], False, "ops"))
    assert again.queue("q").weighed == 40
    assert again.restart().queue("q").weighed == 40


def test_what_is_leased_takes_no_room_and_room_comes_with_time() -> None:
    turns = Turns()
    limited(turns, max_messages="2", max_bytes="1000")
    turns.turn(Consume("q", "c", 1, 2))
    assert send(turns, 1, 2) is None
    assert send(turns, 3, 4) is None
    assert turns.queue("q").weighed == 20
    turns.wait(SECOND)
    turns.turn(Ack("q", [id_of(1), id_of(2)]))
    found = send(turns, 5, 6, 7)
    assert int(told(found)["retry_after_ms"]) < 3_000, "somebody consumes"


def test_the_oldest_of_the_same_key_make_room() -> None:
    turns = Turns()
    limited(turns, max_messages="4", overflow="drop-oldest")
    send(turns, 1, 2, key=b"a")
    send(turns, 3, 4, key=b"b")
    found = send(turns, 5, key=b"b")
    assert found == Crowded([], [id_of(3)], None, [])
    assert turns.queue("q").counters.overflowed == 1
    refused = send(turns, 6, key=b"c")
    assert refused is not None
    assert refused.refused == [0], "nobody else's message goes for it"
    again = turns.restart()
    assert sorted(again.turn(Consume("q", "c", 1, 9)).ids()) == [id_of(n) for n in (1, 2, 4, 5)]


def test_so_many_are_dropped_by_one_enqueue_and_no_more() -> None:
    turns = Turns(Settings(overflow_messages=3))
    limited(turns, key_max_bytes="100", overflow="drop-oldest")
    send(turns, *range(1, 11))
    found = send(turns, 20, size=90)
    assert found is not None
    assert (len(found.dropped), found.refused) == (3, [0])
    found = send(turns, 21, size=101)
    assert found is not None
    assert (found.dropped, found.refused) == ([], [0]), "it would not fit alone"


def test_a_refused_message_may_come_again_under_its_key() -> None:
    turns = Turns()
    limited(turns, max_messages="1")
    kind = [Assignment(b"k", 1, ())]
    keyed = EnqueueKeyed("q", [id_of(1), id_of(2)], [b"\0\0"] * 2, kind * 2, [0, 0], [b"x", b"y"])
    (reply,) = turns.turn(keyed).replies
    assert isinstance(reply, Crowded)
    assert (reply.results, reply.refused) == ([(id_of(1), False)], [1])
    turns.turn(UpdateQueue("q", {"max_messages": "0"}))
    again = EnqueueKeyed("q", [id_of(3)], [b"\0\0"], kind, [0], [b"y"])
    assert turns.turn(again).replies == [[(id_of(3), False)]]


def test_a_limit_that_comes_later_does_not_count_what_waited_before() -> None:
    turns = Turns()
    turns.create("q")
    send(turns, 1, 2)
    turns.wait(SECOND)
    turns.turn(UpdateQueue("q", {"max_bytes": "30"}))
    turns.wait(1)
    assert send(turns, 3, 4, 5) is None
    assert told(send(turns, 6))["depth"] == "30"
    turns.turn(Consume("q", "c", 1, 3))
    assert turns.queue("q").weighed == 20
    assert turns.restart().queue("q").weighed == 20


def test_limits_out_of_bounds_are_refused() -> None:
    turns = Turns()
    turns.create("q")
    for queue, settings, why in (
        ("q", {"max_messages": "-1"}, "no whole number"),
        ("q", {"overflow": "burn"}, '"burn" is none'),
        ("q.dlq", {"max_messages": "5"}, "takes every dead letter"),
    ):
        (reply,) = turns.turn(UpdateQueue(queue, settings)).replies
        assert isinstance(reply, Rejection)
        assert reply.code == INVALID_CONFIG_VALUE
        assert why in reply.message


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(2, 40)), max_size=60),
    st.tuples(*[st.integers(0, 9)] * 2),
    st.tuples(*[st.integers(0, 120)] * 2),
    st.booleans(),
)
def test_no_limit_is_ever_exceeded(
    sent: list[tuple[bytes, int]],
    counts: tuple[int, int],
    sizes: tuple[int, int],
    drops: bool,
) -> None:
    turns = Turns(Settings(window_messages=2, page_messages=2))
    settings = {
        "max_messages": str(counts[0]),
        "key_max_messages": str(counts[1]),
        "max_bytes": str(sizes[0]),
        "key_max_bytes": str(sizes[1]),
        "overflow": "drop-oldest" if drops else "reject",
        "max_attempts": "5",
    }
    limited(turns, **settings)
    for number, (key, size) in enumerate(sent, 1):
        send(turns, number, key=key, size=size)
        queue = turns.queue("q")
        for key_now in queue.keys.values():
            assert not counts[1] or key_now.pending <= counts[1]
            assert not sizes[1] or key_now.weighed <= sizes[1]
        assert not counts[0] or queue.pending <= counts[0]
        assert not sizes[0] or queue.weighed <= sizes[0]
    assert turns.restart().queue("q").weighed == turns.queue("q").weighed
