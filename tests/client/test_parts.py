"""The small parts of the SDK: addresses, options, pauses, messages, tickets, and the package."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fila
from fila.client import errors
from fila.client.address import Address, parse_address
from fila.client.batching import ENOUGH, Collector, Item
from fila.client.options import Options, check_prefetch
from fila.client.outgoing import CHUNK_MESSAGES, chunks
from fila.client.reconnect import Backoff
from fila.client.sender import _shortened
from fila.client.ticket import Tally, Ticket
from fila.wire import errors as codes
from fila.wire import opcodes as op


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:5555", Address("localhost", 5555, False)),
        ("localhost", Address("localhost", 5555, False)),
        ("broker.example:7000", Address("broker.example", 7000, False)),
        ("http://localhost:5555", Address("localhost", 5555, False)),
        ("https://broker:5555/", Address("broker", 5555, True)),
        ("HTTPS://broker", Address("broker", 5555, True)),
        ("[::1]:5555", Address("::1", 5555, False)),
        ("[fe80::1]", Address("fe80::1", 5555, False)),
        (" 127.0.0.1:1 ", Address("127.0.0.1", 1, False)),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address._replace(tls=False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no host"),
        (":5555", "has no host"),
        ("localhost:", None),
        ("localhost:port", "'port' is not a port"),
        ("localhost:0", "'0' is not a port"),
        ("localhost:70000", "'70000' is not a port"),
        ("::1", r"write an IPv6 address as \[::1\]:5555"),
        ("[::1", "is not"),
        ("[::1]x", "is not"),
    ],
)
def test_an_address_that_cannot_be_meant_is_explained(text: str, complaint: str | None) -> None:
    if complaint is None:
        assert parse_address(text).port == 5555
        return
    with pytest.raises(ValueError, match=complaint):
        parse_address(text)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"batch": "sometimes"}, 'batch must be "auto", "linger" or "off"'),
        ({"timeout": 0}, "timeout must be positive or None"),
        ({"linger_ms": -1}, "linger_ms must be positive"),
        ({"in_flight_bytes_max": 0}, "in_flight_bytes_max must be positive"),
        ({"tls_cert": "a.pem"}, "tls_cert and tls_key belong together"),
    ],
)
def test_options_out_of_range_are_refused(options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Options(options)


def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'apikey'; known are api_key, batch"):
        Options({"apikey": "x"})  # type: ignore[typeddict-unknown-key]


def test_a_tls_file_switches_tls_on() -> None:
    assert not Options({}).tls
    assert Options({"tls_ca": "ca.pem"}).tls


@pytest.mark.parametrize("prefetch", [0, -1, 65_536])
def test_a_prefetch_out_of_range_is_refused(prefetch: int) -> None:
    with pytest.raises(ValueError, match="prefetch must be from 1 to 65535"):
        check_prefetch(prefetch)


@given(st.floats(0, 1), st.integers(1, 60))
def test_pauses_stay_between_half_the_step_and_the_step(jitter: float, failures: int) -> None:
    backoff = Backoff(0.05, 5.0, lambda: jitter)
    for failure in range(failures):
        step = min(5.0, 0.05 * 2**failure)
        assert step / 2 <= backoff.next_pause_s() <= step
    backoff.reset()
    assert backoff.next_pause_s() <= 0.05


@given(
    st.lists(st.integers(1, 400), max_size=60),
    st.integers(1, 10),
    st.integers(1, 1000),
)
def test_collectors_lose_nothing_keep_order_and_respect_their_limits(
    sizes: list[int], items_max: int, bytes_max: int
) -> None:
    collector = Collector(op.ENQUEUE, "off", items_max, bytes_max, 0.0)
    ticket = Ticket()
    items: list[Item] = [((b"",), size, ticket, n, "q", "") for n, size in enumerate(sizes)]
    collector.add(items, 0.0)
    taken: list[Item] = []
    while (frame := collector.take_due(0.0)) is not None:
        assert 1 <= len(frame) <= items_max
        assert len(frame) == 1 or sum(item[1] for item in frame) <= bytes_max
        taken += frame
    assert taken == items


def test_a_batch_of_its_own_does_not_wait_for_the_answer_to_another() -> None:
    collector = Collector(op.ENQUEUE, "auto", 1000, 1 << 20, 0.0)
    ticket = Ticket()
    items: list[Item] = [((b"",), 1, ticket, n, "q", "") for n in range(ENOUGH)]
    collector.frames_in_flight = 1
    collector.add(items[:-1], 0.0)
    assert collector.take_due(0.0) is None
    collector.add(items[-1:], 0.0)
    assert collector.take_due(0.0) == items


def test_a_long_list_is_encoded_piece_by_piece() -> None:
    pieces = list(chunks(("q", None, b"") for _ in range(CHUNK_MESSAGES + 5)))
    assert [len(piece) for piece in pieces] == [CHUNK_MESSAGES, 5]
    with pytest.raises(TypeError, match=r"each message is \(queue, headers, payload\), not 'x'"):
        list(chunks(["x"]))


def test_a_tally_wakes_when_the_last_ticket_is_done() -> None:
    tally = Tally()
    woken: list[int] = []
    tickets = [tally.open(), tally.open()]
    for ticket in tickets:
        ticket.expect(1)
        ticket.seal()
    tally.watch(lambda: woken.append(1))
    tickets[0].settle(0, "id")
    assert not woken
    tickets[1].settle(0, errors.StorageError("disk full"))
    assert woken == [1]
    assert isinstance(tally.take_error(), errors.StorageError)
    assert tally.take_error() is None


def test_one_who_sleeps_may_leave_while_the_others_are_woken() -> None:
    ticket = Ticket()
    woken: list[str] = []

    def first() -> None:
        woken.append("first")
        ticket.unwatch(first)

    ticket.watch(first)
    ticket.watch(lambda: woken.append("second"))
    ticket.expect(1)
    ticket.seal()
    ticket.settle(0, "id")
    assert woken == ["first", "second"]


def test_a_result_is_settled_once() -> None:
    ticket = Ticket()
    ticket.expect(2)
    ticket.seal()
    ticket.settle(0, "first")
    ticket.settle(0, "second")
    assert not ticket.done
    ticket.fail(errors.InternalError("late"))
    assert ticket.results[0] == "first"
    assert ticket.done


def test_every_wire_code_has_its_exception_and_a_text() -> None:
    assert set(errors.BY_CODE) == {entry.code for entry in codes.CATALOGUE} - {codes.OK}
    for code, cause in errors.BY_CODE.items():
        error = errors.from_code(code, None, 'queue "q"')
        assert type(error) is cause
        assert 'queue "q"' in str(error)
        assert error.again().message == error.message


def test_the_catalogue_says_which_refusals_may_be_tried_again() -> None:
    for entry in codes.CATALOGUE:
        if entry.code != codes.OK:
            assert errors.from_code(entry.code, None).retryable is entry.retryable
    assert errors.OverloadedError("full").again().retryable
    assert errors.ConnectFailedError("refused").retryable
    assert errors.RequestTimeoutError("late").retryable
    assert not errors.ClientClosedError("closed").retryable


def test_a_batch_may_be_tried_again_when_all_that_was_refused_may() -> None:
    full, unknown = errors.OverloadedError("full"), errors.QueueNotFoundError("no such queue")
    assert errors.BatchError(["id", full, full]).retryable
    assert not errors.BatchError(["id", full, unknown]).retryable


def test_every_public_name_is_there_and_documented_by_its_home() -> None:
    for name in fila.__all__:
        assert getattr(fila, name) is not None
    assert set(fila._HOME_OF) | {"__version__", "errors"} == set(fila.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = fila.Nonsense


def test_importing_the_client_loads_nothing_it_does_not_need() -> None:
    script = (
        "import sys, fila\n"
        "assert 'fila.client.sync' not in sys.modules\n"
        "from fila import FilaClient, errors\n"
        "heavy = {'asyncio', 'ssl', 'logging', 'inspect', 'dataclasses', 'uuid'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print(sorted(m for m in sys.modules if 'site-packages' in\n"
        "      (getattr(sys.modules[m], '__file__', None) or '')\n"
        "      and m.partition('.')[0] != 'fila' and not m.endswith('__mypyc')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == "[]\n[]\n", done.stdout + done.stderr


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("short", b"short"),
        ("x" * 4096, b"x" * 4096),
        ("x" * 4097, b"x" * 4096),
        ("€" * 70_000, "€".encode() * 1365),  # no half characters
        ("\ud800", b"?"),
    ],
)
def test_what_a_nack_says_is_cut_to_what_can_be_sent(said: str, sent: bytes) -> None:
    assert _shortened(said) == sent
