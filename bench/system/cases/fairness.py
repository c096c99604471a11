"""How near the shares of five tenants come to their weights 1:2:3:4:5, over the wire.

10,000 messages, 2,000 of each tenant, one tenant after the other; then one consumer takes the first
5,000. And the noisy neighbour: 10,000 messages of one tenant, then 100 each of three others; how
many deliveries until the last of the quiet ones?
"""

from __future__ import annotations

from collections import Counter

from bench.system.broker import Broker
from bench.system.frames import Wire
from bench.system.lab import Lab
from bench.system.measure import lower
from fila.wire import message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from fila.wire.message import message_body

WEIGHTS = (1, 2, 3, 4, 5)
MESSAGES = 10_000
WINDOW = 5_000
NOISY, QUIET, QUIET_TENANTS = 10_000, 100, 3
BATCH = 100
HOOK = """function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"], weight = msg.headers["weight"] }
end"""


def run(lab: Lab) -> None:
    with lab.broker() as broker:
        loads = [(f"w{weight}", weight, MESSAGES // len(WEIGHTS)) for weight in WEIGHTS]
        order = _delivered(lab, broker, loads, WINDOW)
        shares = Counter(order)
        errors = []
        for tenant, weight, _ in loads:
            expected = WINDOW * weight / sum(WEIGHTS)
            errors.append(abs(shares[tenant] - expected) / expected * 100)
        lab.add(
            "fairness",
            {"messages": MESSAGES, "window": WINDOW, "weights": "1:2:3:4:5"},
            {"largest error": lower("%", [max(errors)])},
        )
        loads = [("noisy", 1, NOISY)] + [(f"calm{at}", 1, QUIET) for at in range(QUIET_TENANTS)]
        order = _delivered(lab, broker, loads, NOISY + QUIET * QUIET_TENANTS)
        last = max(at for at, tenant in enumerate(order, 1) if tenant != "noisy")
        lab.add(
            "noisy neighbour",
            {"noisy": NOISY, "quiet": QUIET, "quiet tenants": QUIET_TENANTS},
            {"deliveries until the last quiet message": lower("deliveries", [last], 0)},
        )


def _delivered(
    lab: Lab, broker: Broker, loads: list[tuple[str, int, int]], count: int
) -> list[str]:
    """Store the loads, one (tenant, weight, messages) after the other; the tenants of the first
    `count` deliveries in order."""
    queue = lab.queue(broker, HOOK)
    field = message_codec.queue_field(queue.encode())
    producer = Wire(broker.address)
    for tenant, weight, messages in loads:
        body = message_body({"tenant": tenant, "weight": str(weight)}, bytes(100))
        frame = encode_frames(op.ENQUEUE, 1, message_codec.encode_enqueue([(field, body)] * BATCH))
        for _ in range(messages // BATCH):
            producer.sock.sendall(frame)
            next(producer.frames())
    consumer = Wire(broker.address)
    consumer.consume(queue, BATCH)
    order: list[str] = []
    receive = False
    while len(order) < count:
        for opcode, start, end in consumer.frames(receive):
            if opcode == op.DELIVERY:
                items = message_codec.decode_delivery(bytes(consumer.data[start:end]))
                order += [item[3].decode() for item in items]
                acks = message_codec.encode_acks([(field, item[0]) for item in items])
                consumer.sock.sendall(encode_frames(op.ACK, 1, acks))
        receive = True
    consumer.close()
    producer.close()
    return order[:count]
