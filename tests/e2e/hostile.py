"""Hostile FIBP frames, made from a seed alone: nearly right, lying, cut off, endless, or noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from struct import pack

from fila.wire import bodies, layouts
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, encode_frames, frame_header

MiB = 1 << 20
QUEUES = 40  # names attackers use; the healthy ones use another
DERAILING = ("cut short", "lying length", "oversized", "noise")
SCRIPTS = (
    None,
    "",
    "function on_enqueue(msg) return { fairness_key = msg.headers['k'] or 'x' } end",
    "function on_enqueue(msg) while true do end end",
    "function on_enqueue(msg) return {{{",
    "\x00\x1bLua",
)
TEXTS = ("", "k", "ключ", "\U0001f600" * 20, "x" * 300, "v" * 65_535, "throttle.a", "1,1", "\x00")


class Generator:
    """Makes hostile frames. `next` gives the bytes of one and the name of its kind."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.request = 0
        self._kinds: list[tuple[str, Callable[[], bytes], int]] = [
            ("valid", self.valid, 20),
            ("mutated", self.mutated, 20),
            ("cut short", self.cut_short, 4),
            ("lying length", self.lying_length, 4),
            ("oversized", self.oversized, 2),
            ("wrong UTF-8", self.wrong_utf8, 8),
            ("long strings", self.long_strings, 2),
            ("huge counts", self.huge_counts, 8),
            ("continuation", self.continuation, 10),
            ("continuation flood", self.continuation_flood, 2),
            ("unknown opcode", self.unknown_opcode, 6),
            ("reserved flags", self.reserved_flags, 4),
            ("empty body", self.empty_body, 6),
            ("trailing bytes", self.trailing_bytes, 4),
            ("noise in a frame", self.noise_in_a_frame, 10),
            ("noise", self.noise, 3),
        ]
        self._weights = [weight for _, _, weight in self._kinds]

    def next(self) -> tuple[bytes, str]:
        [(name, make, _)] = self.chance.choices(self._kinds, self._weights)
        return make(), name

    # --- what a friend might send

    def valid(self) -> bytes:
        record = self.record()
        return self.frame(layouts.opcode_of(record), layouts.encode(record))

    def record(self) -> tuple[object, ...]:
        chance = self.chance
        queue, text, id = self.queue(), chance.choice(TEXTS), self.message_id()
        message = bodies.EnqueueItem(queue, {text: text[:100]}, chance.randbytes(20))
        acks = tuple(bodies.AckItem(queue, id) for _ in range(chance.randrange(4)))
        nacks = tuple(bodies.NackItem(queue, id, text) for _ in range(chance.randrange(4)))
        return chance.choice(
            (
                bodies.Ping(),
                bodies.Pong(),
                bodies.Handshake(chance.choice((0, 1, 2, 65_535)), chance.choice((None, text))),
                bodies.Enqueue((message,) * chance.randrange(5)),
                bodies.Consume(queue, chance.choice((None, 0, 1, 65_535, 0xFFFFFFFF))),
                bodies.CancelConsume(),
                bodies.Ack(acks),
                bodies.Nack(nacks),
                bodies.CreateQueue(
                    queue,
                    chance.choice(SCRIPTS),
                    chance.choice(SCRIPTS),
                    chance.choice((0, 1, 1_000, 2**64 - 1)),
                ),
                bodies.CreateQueue(text),
                bodies.DeleteQueue(queue if chance.random() < 0.1 else text),
                bodies.GetStats(queue),
                bodies.ListQueues(),
                bodies.SetConfig(text, chance.choice(TEXTS)),
                bodies.GetConfig(text),
                bodies.ListConfig(text),
                bodies.Redrive(queue + ".dlq", chance.choice((0, 1, 2**64 - 1))),
                bodies.CreateApiKey(text, chance.choice((0, 1, 2**64 - 1)), chance.random() < 0.5),
                bodies.RevokeApiKey(text),
                bodies.ListApiKeys(),
                bodies.SetAcl(text, (bodies.Permission(text, text),) * chance.randrange(3)),
                bodies.GetAcl(text),
            )
        )

    # --- what no friend would

    def mutated(self) -> bytes:
        frame = bytearray(self.valid())
        first = 0 if self.chance.random() < 0.1 else 4  # the length is for other kinds to spoil
        for _ in range(self.chance.choice((1, 1, 2, 8))):
            frame[self.chance.randrange(first, len(frame))] = self.chance.randrange(256)
        return bytes(frame)

    def cut_short(self) -> bytes:
        frame = self.valid()
        return frame[: self.chance.randrange(1, len(frame) + 1)]

    def lying_length(self) -> bytes:
        frame = self.valid()
        lie = max(0, len(frame) - 4 + self.chance.choice((-8, -1, 1, 7, 4_096, 70_000)))
        return pack(">I", lie) + frame[4:]

    def oversized(self) -> bytes:
        length = self.chance.choice((0, 5, 16 * MiB + 1, 0x50524920, 0x7FFFFFFF, 0xFFFFFFFF))
        return pack(">IBBI", length, self.opcode(), 0, self.request) + self.chance.randbytes(30)

    def wrong_utf8(self) -> bytes:
        bad = self.chance.choice(
            (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\x80")
        )
        text = pack(">H", len(bad)) + bad
        return self.frame(self.opcode(), self.chance.choice((b"", b"\0\0\0\1", b"\1")) + text * 6)

    def long_strings(self) -> bytes:
        text = pack(">H", 65_535) + self.chance.choice((b"q", b"\xf0")) * 65_535
        return self.frame(self.opcode(), self.chance.choice((b"", b"\0\0\0\1")) + text * 3)

    def huge_counts(self) -> bytes:
        count = self.chance.choice((0xFFFFFFFF, 0x7FFFFFFF, 0x10000, 0x10001, 3_000_000))
        opcode = self.chance.choice((op.ENQUEUE, op.ACK, op.NACK, op.SET_ACL, op.HANDSHAKE))
        return self.frame(opcode, pack(">I", count) + bytes(self.chance.choice((0, 64, 4_000))))

    def continuation(self) -> bytes:
        """A valid request in pieces, some of them empty, maybe without an end."""
        record = self.record()
        body, opcode = layouts.encode(record), layouts.opcode_of(record)
        self.request += 1
        pieces: list[bytes] = []
        position = 0
        while position < len(body) and len(pieces) < 20:
            size = self.chance.choice((0, 1, 2, 50, 10_000))
            pieces.append(body[position : position + size])
            position += size
        ends = self.chance.random() < 0.8
        return b"".join(
            frame_header(
                opcode,
                0 if ends and place == len(pieces) - 1 else CONTINUATION,
                self.request,
                len(piece),
            )
            + piece
            for place, piece in enumerate(pieces)
        )

    def continuation_flood(self) -> bytes:
        """More half messages than anybody may have."""
        piece = bytes(self.chance.choice((0, 1, 1_000, 20_000)))
        frames = []
        for _ in range(self.chance.choice((5, 20, 60))):
            self.request += 1
            frames.append(frame_header(op.ENQUEUE, CONTINUATION, self.request, len(piece)) + piece)
        return b"".join(frames)

    def unknown_opcode(self) -> bytes:
        opcode = self.chance.choice((0x00, 0x06, 0x2E, 0x40, 0x7F, 0xE3, 0xFF, *op.FROM_SERVER))
        return self.frame(opcode, self.chance.randbytes(self.chance.randrange(40)))

    def reserved_flags(self) -> bytes:
        frame = bytearray(self.valid())
        frame[5] = self.chance.randrange(2, 256)
        return bytes(frame)

    def empty_body(self) -> bytes:
        return self.frame(self.opcode(), b"")

    def trailing_bytes(self) -> bytes:
        record = self.record()
        body = layouts.encode(record) + self.chance.randbytes(self.chance.choice((1, 100, 5_000)))
        return self.frame(layouts.opcode_of(record), body)

    def noise_in_a_frame(self) -> bytes:
        return self.frame(self.opcode(), self.chance.randbytes(self.chance.choice((1, 7, 60, 900))))

    def noise(self) -> bytes:
        return self.chance.randbytes(self.chance.choice((1, 10, 100, 3_000)))

    # --- parts

    def frame(self, opcode: int, body: bytes) -> bytes:
        self.request += 1
        return encode_frames(opcode, self.request & 0xFFFFFFFF, body)

    def opcode(self) -> int:
        # Not Disconnect: it would end most connections before they have done any harm.
        return self.chance.choice(sorted(op.FROM_CLIENT - {op.DISCONNECT}))

    def queue(self) -> str:
        return f"f{self.chance.randrange(QUEUES)}" + self.chance.choice(("", "", "", ".dlq"))

    def message_id(self) -> str:
        hex = self.chance.randbytes(16).hex()
        text = f"{hex[:8]}-{hex[8:12]}-{hex[12:16]}-{hex[16:20]}-{hex[20:]}"
        return self.chance.choice((text, text, text[:-1], "", "not-an-id", text.upper()))
