"""Why a message is dead, kept with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.core.command import CreateQueue, Enqueue
from fila.core.entry import BODY
from fila.core.obituary import ERROR_BYTES_MAX, explained, original
from fila.core.verdict import Assignment
from fila.wire import message
from fila.wire.fields import blob_field, string_map_field
from tests.core.turn import DEAD_LETTER, START, Turns, id_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
HEADERS = st.dictionaries(TEXT.filter(lambda name: not name.startswith("fila.dead.")), TEXT)


def body_of(headers: dict[str, str], payload: bytes) -> bytes:
    return string_map_field(headers, "headers") + blob_field(payload, "payload")


@given(HEADERS, st.binary(max_size=50), TEXT, st.integers(0, 2**63), st.integers(1, 9))
def test_a_dead_letter_tells_why_and_is_itself_again_without(
    headers: dict[str, str], payload: bytes, error: str, now_ns: int, attempts: int
) -> None:
    sent = body_of(headers, payload)
    dead = explained(sent, "", error, now_ns, attempts, "orders")
    assert message.decode_headers(dead) == {
        "fila.dead.reason": "hook",
        "fila.dead.error": error,
        "fila.dead.at_ms": str(now_ns // 1_000_000),
        "fila.dead.attempts": str(attempts),
        "fila.dead.queue": "orders",
        **headers,
    }
    assert message.payload_of(dead) == payload
    assert original(dead) == sent == original(sent)


@given(st.binary(max_size=60))
def test_a_body_of_any_bytes_comes_back(body: bytes) -> None:
    if body[4:14] != b"fila.dead.":
        assert original(explained(body, "max_attempts", "no", START, 1, "q")) == body


def test_a_long_error_is_cut_between_characters() -> None:
    dead = explained(body_of({}, b""), "", "é" * 5_000, START, 1, "q")
    error = message.decode_headers(dead)["fila.dead.error"]
    assert error == "é" * (ERROR_BYTES_MAX // 2)


def test_a_message_without_room_for_headers_stays_as_it_is() -> None:
    full = b"\xff\xfe" + b"x" * 10
    assert explained(full, "", "no", START, 1, "q") == full


def test_a_redrive_gives_the_queue_what_was_sent_and_the_hook_sees_it() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", max_attempts=1))
    sent = body_of({"tenant": "acme"}, b"x")
    turns.policy.on_failure_says = DEAD_LETTER
    seen: list[bytes] = []
    real = turns.policy.on_enqueue

    def on_enqueue(queue, bodies, now_ns):  # type: ignore[no-untyped-def]
        seen.extend(bodies)
        return real(queue, bodies, now_ns)

    turns.policy.on_enqueue = on_enqueue  # type: ignore[method-assign]
    ids = [id_of(1)]
    turns.turn(Enqueue("q", ids, [sent], [Assignment(b"k", 1, ())]))
    turns.consume("q", "c")
    turns.turn(turns.driven.nack("q", ids, ["it broke"], 1))
    dead = turns.consume("q.dlq", "d", connection=2).entries("d")
    assert message.decode_headers(dead[0][BODY])["fila.dead.error"] == "it broke"
    turns.leave("q.dlq", "d", release=True)
    turns.turn()
    turns.driven.begin(turns.now)
    turns.driven.redrive("q.dlq", 1, lambda moved: None)
    turns.driven.end()
    back = turns._effects.deliveries[0].entries
    assert seen == [sent]
    assert back[0][BODY] == sent
