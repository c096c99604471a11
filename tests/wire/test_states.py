import pytest

from fila.wire import opcodes as op
from fila.wire.errors import INVALID_FRAME
from fila.wire.states import CLIENT, SERVER, Refusal, State, Table, receive


def test_a_server_wants_a_handshake_first_and_anything_else_is_fatal() -> None:
    assert receive(SERVER, State.OPENING, op.HANDSHAKE) is State.OPEN
    for opcode in range(256):
        if opcode != op.HANDSHAKE:
            refusal = receive(SERVER, State.OPENING, opcode)
            assert isinstance(refusal, Refusal)
            assert refusal.code == INVALID_FRAME
            assert refusal.fatal
            assert refusal.message.startswith("expected Handshake first, got ")


def test_an_open_server_takes_every_request_and_refuses_the_rest_without_closing() -> None:
    for opcode in range(256):
        following = receive(SERVER, State.OPEN, opcode)
        if opcode == op.DISCONNECT:
            assert following is State.CLOSED
        elif opcode in op.FROM_CLIENT - {op.HANDSHAKE}:
            assert following is State.OPEN
        else:
            assert isinstance(following, Refusal)
            assert not following.fatal


def test_an_unknown_opcode_is_named_in_the_refusal() -> None:
    refusal = receive(SERVER, State.OPEN, 0x77)
    assert refusal == Refusal(INVALID_FRAME, "unknown opcode 0x77", False)


def test_a_client_opens_on_handshake_ok_and_closes_on_an_error_before_it() -> None:
    assert receive(CLIENT, State.OPENING, op.HANDSHAKE_OK) is State.OPEN
    assert receive(CLIENT, State.OPENING, op.ERROR) is State.CLOSED
    assert receive(CLIENT, State.OPEN, op.ERROR) is State.OPEN
    assert receive(CLIENT, State.OPEN, op.DELIVERY) is State.OPEN
    assert isinstance(receive(CLIENT, State.OPEN, op.ENQUEUE), Refusal)


@pytest.mark.parametrize("table", [SERVER, CLIENT])
def test_nothing_is_received_after_the_end(table: Table) -> None:
    for opcode in range(256):
        refusal = receive(table, State.CLOSED, opcode)
        assert isinstance(refusal, Refusal)
        assert refusal.fatal


def test_every_operation_is_sent_by_somebody() -> None:
    assert set(op.NAMES) == op.FROM_CLIENT | op.FROM_SERVER
    assert op.FROM_CLIENT & op.FROM_SERVER == op.BOTH_SIDES
