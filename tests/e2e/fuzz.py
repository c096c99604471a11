"""`python -m tests.e2e.fuzz --frames 200000 --seed 1 --listener tls`: a broker under hostile bytes.

Attackers send frames that are nearly right, lying, cut off, too large, endless or noise: FIBP, and
on a plain listener gRPC and HTTP/1.1. Next to them healthy connections go on working. Held to: the
broker never dies and never leaks, answers with a frame that parses or closes, calls nothing an
internal error, and the healthy ones never notice. The frames follow from the seed alone.

`--protocol http` or `grpc` sends only requests of HTTP/1.1, or frames of HTTP/2, as many; `sqs`
sends them to the SQS endpoint (`--listener keys`: their signatures are checked).

With `--planted` decoders fail at random over attackers' bytes (`planted`). Then an internal error
may be said, each failure ends one connection and is counted and logged once; all else holds.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from fila.edges.grpc import frames as http2
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import FrameDecoder
from tests.e2e import planted
from tests.e2e.attackers import GrpcAttacker, HttpAttacker
from tests.e2e.hostile import DERAILING, QUEUES, SCRIPTS, Generator, MiB
from tests.e2e.listeners import LISTENERS
from tests.e2e.peer import Closed, Peer, Quiet
from tests.e2e.process import Broker, wait_until
from tests.grpc.raw import RawPeer

# One each: of a shared queue, who stops first may leave with a message the other waits for.
HEALTHY_QUEUES = ("healthy-0", "healthy-1")
TOLD = "the broker failed over a connection and closed it"


class Healthy(threading.Thread):
    """An ordinary client: enqueue, receive, ack, again and again on one connection."""

    def __init__(self, broker: Broker, queue: str, source: str) -> None:
        super().__init__(daemon=True)
        self.peer = broker.peer(source=source)
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


class HealthyGrpc(threading.Thread):
    """An ordinary producer: one unary call after the other on one connection."""

    def __init__(self, broker: Broker, queue: str, source: str) -> None:
        super().__init__(daemon=True)
        self.peer = RawPeer(broker.address, source=source)
        message = pb.EnqueueMessage(queue=queue, payload=b"steady")
        self.request = pb.EnqueueRequest(messages=[message]).SerializeToString()
        self.rounds = 0
        self.slowest_s = 0.0
        self.fault = ""
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                began = time.monotonic()
                stream = self.peer.open("/fila.v1.FilaService/Enqueue")
                self.peer.send(stream, self.request)
                status = self.peer.status(stream, 30)
                if status != (0, ""):
                    self.fault = f"round {self.rounds}: {status}"
                    return
                # What it has taken, or the broker's window would be used up one day.
                taken = len(self.peer.data(stream))
                self.peer.http2.increment_flow_control_window(taken)
                self.peer.flush()
                self.peer.events.clear()
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self.rounds += 1
                self.stopping.wait(0.02)
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
    failed: int = 0  # connections the broker failed over, by its log
    failed_by: dict[str, int] = field(default_factory=dict)  # the same by its metric, per protocol
    broken: list[str] = field(default_factory=list)

    def text(self) -> str:
        answers = ", ".join(f"{name} {count}" for name, count in self.answers.most_common(6))
        return (
            f"{self.frames} frames on {self.connections} connections in {self.seconds:.0f} s, "
            f"{self.closed_by_server} closed by the server, {self.failed} of them because a "
            f"decoder failed {self.failed_by or ''}; answers: {answers}; "
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
        grpc: bool = False,
        plants: bool = False,
        protocol: str = "",
    ) -> None:
        """`plants`: the broker was told to fail at random (`planted_command`). `protocol`: only
        attackers of this one, `grpc`, `http` or `sqs`."""
        self.broker = broker
        self.attacker = attacker
        self.generator = Generator(seed)
        self.chance = random.Random(seed + 1)
        self.report = Report()
        self.rss_growth_max = rss_growth_max
        self.plants = plants
        self.source = planted.HEALTHY if plants else ""
        self.grpc = GrpcAttacker(broker.address, self.chance, QUEUES) if grpc else None
        self.protocol = protocol
        sqs = protocol == "sqs"
        http = (plants and grpc) or protocol == "http" or sqs
        self.http = HttpAttacker(self._http_address(), self.chance, sqs) if http else None

    def run(self, frames: int) -> Report:
        report = self.report
        began = time.monotonic()
        with self.broker.peer(source=self.source) as peer:
            for name in (*HEALTHY_QUEUES, "steady"):
                peer.create_queue(name)
            for number in range(QUEUES // 2):  # half of their queues are there, for deeper harm
                peer.create_queue(f"f{number}", SCRIPTS[2] if number % 2 else None)
        report.rss_start = self.broker.rss_bytes()
        healthy: list[Healthy | HealthyGrpc]
        healthy = [Healthy(self.broker, name, self.source) for name in HEALTHY_QUEUES]
        if self.grpc is not None:
            healthy.append(HealthyGrpc(self.broker, "steady", self.source))
        for one in healthy:
            one.start()
        while report.frames < frames and not report.broken:
            self.attack_with(min(frames - report.frames, self.chance.choice((1, 5, 30, 200))))
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

    def attack_with(self, frames: int) -> None:
        """One connection of some protocol."""
        dice = self.chance.random()
        if self.protocol:
            dice = {"grpc": 0.0, "http": 0.35, "sqs": 0.35}[self.protocol]
        try:
            if self.grpc is not None and dice < 0.3:
                self.report.connections += 1
                closed, codes = self.grpc.attack(frames // 2 + 1, self._sent)
                self.report.closed_by_server += closed
                if http2.INTERNAL_ERROR in codes and not self.plants:
                    self.report.broken.append("GOAWAY with INTERNAL_ERROR")
            elif self.http is not None and dice < 0.36:
                self.report.connections += 1
                pieces = frames if self.protocol else min(frames, 5)
                self.report.closed_by_server += self.http.attack(pieces, self._sent)
            else:
                self.attack(frames)
        except (TimeoutError, ValueError) as error:
            self.report.broken.append(f"an attacker: {error!r}")

    def _sent(self, kind: str, frames: int) -> None:
        self.report.kinds[kind] += frames
        self.report.frames += frames

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
            failed = error.code == errors.INTERNAL_ERROR and not self.plants
            if failed or error.code == errors.STORAGE_ERROR or not error.message:
                self.report.broken.append(f"Error {error.code:#x}: {error.message!r}")
        elif opcode in op.FROM_SERVER:
            self.report.answers["results"] += 1
        else:
            self.report.broken.append(f"the server sent {op.name_of(opcode)}")

    def check(self, healthy: list[Healthy | HealthyGrpc]) -> None:
        report = self.report
        report.rss_end = self.broker.rss_bytes()
        report.rss_max = max(report.rss_max, report.rss_end)
        if report.rss_max - report.rss_start > self.rss_growth_max:
            report.broken.append(f"memory grew from {report.rss_start} to {report.rss_max}")
        for one in healthy:
            if one.fault:
                report.broken.append("a healthy client: " + one.fault)

    def last_words(self) -> None:
        """After it all: a new client is served, nothing hangs on, the log says what it should."""
        try:
            with self.broker.peer(source=self.source) as peer:
                for name in HEALTHY_QUEUES:
                    found = peer.stats(name)
                    if found.depth + found.in_flight > 0:
                        self.report.broken.append(f"{name} is not empty: {found}")
                for name in _with_consumers(peer):
                    self.report.broken.append(f"{name} still has consumers")
        except (Closed, Quiet, OSError) as error:
            self.report.broken.append(f"a new client: {error!r}")
        log = self.broker.log()
        self.report.failed = log.count(TOLD)
        if self.plants:
            self._check_failures()
        elif "Traceback" in log or self.report.failed:
            self.report.broken.append("a failure in the log:\n" + log[-3_000:])

    def _check_failures(self) -> None:
        """Each was told once and counted once, and every one had been planted."""
        if "could not be ended in order" in self.broker.log():
            self.report.broken.append("a connection could not be ended in order")
        if self.http is None:
            return  # with TLS, or keys: the metric is the same
        try:
            # Read once a second, written by a thread: the last ones may not be in them yet.
            wait_until(self._counts_agree, 30, "the counter")
        except AssertionError:
            text = f"the metric says {self.report.failed_by}, the log {self.report.failed} failures"
            self.report.broken.append(text)

    def check_planted(self) -> None:
        """After the broker has stopped: it says itself how often it was made to fail."""
        log = self.broker.log()
        self.report.failed = log.count(TOLD)  # with those over bytes that were still on their way
        _, _, said = log.rpartition(planted.SAID)
        if not said or int(said.split()[0]) != self.report.failed:
            text = f"planted {said[:2_000]!r}, told in the log {self.report.failed}"
            self.report.broken.append(text)

    def _counts_agree(self) -> bool:
        host, port = self._http_address()
        connection = HTTPConnection(host, port, timeout=30, source_address=(self.source, 0))
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        self.report.failed = self.broker.log().count(TOLD)
        found = re.findall(r'fila_connections_failed_total\{protocol="(\w+)"\} (\d+)', text)
        self.report.failed_by = {protocol: int(count) for protocol, count in found}
        return sum(self.report.failed_by.values()) == self.report.failed

    def _http_address(self) -> tuple[str, int]:
        told = Path(f"{self.broker.port_file}.http").read_text()
        host, _, port = told.rpartition(":")
        return host, int(port)


def _with_consumers(peer: Peer) -> list[str]:
    """Queues that have consumers, once connections that are ending had time to end."""
    end = time.monotonic() + 10
    while True:
        found = [name for name, one in peer.queues().items() if one.active_consumers]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def planted_command(seed: int) -> list[str]:
    """The server whose decoders fail over attackers' bytes."""
    return [sys.executable, "-P", planted.__file__, str(seed)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fuzz")
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--listener", choices=[*LISTENERS, "all"], default="plain")
    parser.add_argument("--planted", action="store_true", help="let decoders fail at random")
    parser.add_argument(
        "--protocol", choices=["grpc", "http", "sqs"], default="", help="only this one"
    )
    args = parser.parse_args()
    names = list(LISTENERS) if args.listener == "all" else [args.listener]
    # A list, so that one that fails does not keep the others from running.
    return max([_run(name, args.seed, args.frames, args.planted, args.protocol) for name in names])


def _run(name: str, seed: int, frames: int, plants: bool, protocol: str) -> int:
    listener = LISTENERS[name]
    with tempfile.TemporaryDirectory(prefix="fila-fuzz-") as directory:
        made = listener.broker(Path(directory) / "data")
        if protocol == "http":
            made.settings["gui.listen_addr"] = "127.0.0.1:0"
            made.settings["gui_port_file"] = f"{made.port_file}.http"
        if protocol == "sqs":
            made.settings["sqs.listen_addr"] = "127.0.0.1:0"
            made.settings["sqs_port_file"] = f"{made.port_file}.http"
        if plants:
            made.server = planted_command(seed)
        with made as broker:
            plain = name == "plain"
            grpc = plain and protocol not in ("http", "sqs")
            fuzz = Fuzz(
                broker, seed, listener.attacker(), grpc=grpc, plants=plants, protocol=protocol
            )
            report = fuzz.run(frames)
            code = broker.stop()
            if plants:
                fuzz.check_planted()
    print(f"{name}, seed {seed}: {report.text()}; exit code {code}")
    print("  sent:", ", ".join(f"{kind} {count}" for kind, count in report.kinds.most_common()))
    for promise in report.broken[:20]:
        print("  broken:", promise)
    return 1 if report.broken or code else 0


if __name__ == "__main__":
    sys.exit(main())
