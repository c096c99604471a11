"""`python -m tests.e2e.fuzz --frames 200000 --seed 1 --listener tls`: a broker under hostile bytes.

Attackers send frames that are nearly right, lying, cut off, too large, endless or noise. Next to
them healthy connections go on working. Held to: the broker never dies and never leaks, answers
with a frame that parses or closes, calls nothing an internal error, and the healthy ones never
notice. The frames follow from the seed alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, FrameDecoder, encode_frames, frame_header
from tests.e2e.listeners import LISTENERS
from tests.e2e.peer import Closed, Peer, Quiet
from tests.e2e.process import Broker

MiB = 1 << 20
QUEUES = 40  # names attackers use; the healthy ones use another
# One each: of a shared queue, who stops first may leave with a message the other waits for.
HEALTHY_QUEUES = ("healthy-0", "healthy-1")
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
        pieces = []
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


class Healthy(threading.Thread):
    """An ordinary client: enqueue, receive, ack, again and again on one connection."""

    def __init__(self, broker: Broker, queue: str) -> None:
        super().__init__(daemon=True)
        self.peer = broker.peer()
        self.queue = queue
        self.rounds = 0
        self.slowest_s = 0.0
        self.fault = ""
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            stream = self.peer.consume(self.queue, prefetch=10)
            while not self.stopping.is_set():
                began = time.monotonic()
                payload = b"round %d" % self.rounds
                self.peer.enqueue(self.queue, payload)
                message = self.peer.take_one(stream, timeout_s=30)
                if self.peer.ack(self.queue, message.id) != [errors.OK]:
                    self.fault = f"round {self.rounds}: the ack was refused"
                    return
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.rounds += 1
                self.stopping.wait(0.002)
        except Exception as error:
            self.fault = f"round {self.rounds}: {error!r}"


@dataclass
class Report:
    frames: int = 0
    connections: int = 0
    seconds: float = 0.0
    closed_by_server: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    rss_start: int = 0
    rss_max: int = 0
    rss_end: int = 0
    healthy_rounds: int = 0
    slowest_s: float = 0.0
    broken: list[str] = field(default_factory=list)

    def text(self) -> str:
        answers = ", ".join(f"{name} {count}" for name, count in self.answers.most_common(6))
        return (
            f"{self.frames} frames on {self.connections} connections in {self.seconds:.0f} s, "
            f"{self.closed_by_server} closed by the server; answers: {answers}; "
            f"RSS {self.rss_start // MiB} MiB at the start, {self.rss_max // MiB} at most, "
            f"{self.rss_end // MiB} at the end; healthy clients: {self.healthy_rounds} rounds, "
            f"the slowest {self.slowest_s * 1000:.0f} ms; {len(self.broken)} promises broken"
        )


class Fuzz:
    def __init__(
        self,
        broker: Broker,
        seed: int,
        attacker: Callable[..., Peer] = Peer,
        rss_growth_max: int = 160 * MiB,
    ) -> None:
        self.broker = broker
        self.attacker = attacker
        self.generator = Generator(seed)
        self.chance = random.Random(seed + 1)
        self.report = Report()
        self.rss_growth_max = rss_growth_max

    def run(self, frames: int) -> Report:
        report = self.report
        began = time.monotonic()
        with self.broker.peer() as peer:
            for name in HEALTHY_QUEUES:
                peer.create_queue(name)
            for number in range(QUEUES // 2):  # half of their queues are there, for deeper harm
                peer.create_queue(f"f{number}", SCRIPTS[2] if number % 2 else None)
        report.rss_start = self.broker.rss_bytes()
        healthy = [Healthy(self.broker, name) for name in HEALTHY_QUEUES]
        for one in healthy:
            one.start()
        while report.frames < frames and not report.broken:
            self.attack(min(frames - report.frames, self.chance.choice((1, 5, 30, 200))))
            if not self.broker.alive():
                report.broken.append("the broker died:\n" + self.broker.log()[-3_000:])
                break
            self.check(healthy)
        for one in healthy:
            one.stopping.set()
        for one in healthy:
            one.join(30)
            report.healthy_rounds += one.rounds
            report.slowest_s = max(report.slowest_s, one.slowest_s)
            one.peer.close()
        if self.broker.alive():
            self.check(healthy)
            self.last_words()
        report.seconds = time.monotonic() - began
        return report

    def attack(self, frames: int) -> None:
        """One connection: so many frames, or until the server has had enough."""
        report = self.report
        report.connections += 1
        peer = self.attacker(self.broker.address, handshake=False)
        decoder = FrameDecoder(assembly_bytes_max=256 * MiB)
        try:
            if self.chance.random() < 0.9:
                peer.post(bodies.Handshake(1, None))
            for number in range(frames):
                data, kind = self.generator.next()
                report.frames += 1
                report.kinds[kind] += 1
                peer.send_bytes(data)
                if number % 20 == 19:
                    self.listen(peer, decoder, 0.0)
                if kind in DERAILING and self.chance.random() < 0.8:
                    break  # what follows would only be swallowed as the rest of it
            if self.chance.random() < 0.3:
                peer.reset()
                return
            self.listen(peer, decoder, self.chance.choice((0.0, 0.0, 0.01)))
        except (Closed, ConnectionError):
            report.closed_by_server += 1
        except TimeoutError:
            report.broken.append("the server neither read nor closed for 10 s")
        finally:
            peer.close()

    def listen(self, peer: Peer, decoder: FrameDecoder, wait_s: float) -> None:
        """Whatever the server says must be frames, and no internal error."""
        peer.socket.settimeout(max(wait_s, 0.0001))
        try:
            while True:
                data = peer.socket.recv(1 << 18)
                if not data:
                    raise Closed("closed")
                for opcode, _, body in decoder.feed(data):
                    self.judge(opcode, body)
                if decoder.take_errors():
                    self.report.broken.append("the server sent something that is no frame")
        except (TimeoutError, BlockingIOError):
            pass
        finally:
            peer.socket.settimeout(10)

    def judge(self, opcode: int, body: bytes) -> None:
        if opcode == op.ERROR:
            error = layouts.decode(bodies.Error, body)
            self.report.answers[errors.name_of(error.code)] += 1
            if error.code in (errors.INTERNAL_ERROR, errors.STORAGE_ERROR) or not error.message:
                self.report.broken.append(f"Error {error.code:#x}: {error.message!r}")
        elif opcode in op.FROM_SERVER:
            self.report.answers["results"] += 1
        else:
            self.report.broken.append(f"the server sent {op.name_of(opcode)}")

    def check(self, healthy: list[Healthy]) -> None:
        report = self.report
        report.rss_end = self.broker.rss_bytes()
        report.rss_max = max(report.rss_max, report.rss_end)
        if report.rss_max - report.rss_start > self.rss_growth_max:
            report.broken.append(f"memory grew from {report.rss_start} to {report.rss_max}")
        for one in healthy:
            if one.fault:
                report.broken.append("a healthy client: " + one.fault)

    def last_words(self) -> None:
        """After it all: a new client is served, nothing hangs on, the log has no traceback."""
        try:
            with self.broker.peer() as peer:
                for name in HEALTHY_QUEUES:
                    found = peer.stats(name)
                    if found.depth + found.in_flight > 0:
                        self.report.broken.append(f"{name} is not empty: {found}")
                for name, one in peer.queues().items():
                    if one.active_consumers:
                        self.report.broken.append(f"{name} has {one.active_consumers} consumers")
        except (Closed, Quiet, OSError) as error:
            self.report.broken.append(f"a new client: {error!r}")
        if "Traceback" in self.broker.log():
            self.report.broken.append("a traceback in the log:\n" + self.broker.log()[-3_000:])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fuzz")
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--listener", choices=[*LISTENERS, "all"], default="plain")
    args = parser.parse_args()
    names = list(LISTENERS) if args.listener == "all" else [args.listener]
    # A list, so that one that fails does not keep the others from running.
    return max([_run(name, args.seed, args.frames) for name in names])


def _run(name: str, seed: int, frames: int) -> int:
    listener = LISTENERS[name]
    with (
        tempfile.TemporaryDirectory(prefix="fila-fuzz-") as directory,
        listener.broker(Path(directory) / "data") as broker,
    ):
        report = Fuzz(broker, seed, listener.attacker()).run(frames)
        code = broker.stop()
    print(f"{name}, seed {seed}: {report.text()}; exit code {code}")
    print("  sent:", ", ".join(f"{kind} {count}" for kind, count in report.kinds.most_common()))
    for promise in report.broken[:20]:
        print("  broken:", promise)
    return 1 if report.broken or code else 0


if __name__ == "__main__":
    sys.exit(main())
