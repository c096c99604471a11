"""`fila hooks test`: try a policy on sample messages before a queue depends on it. No broker.

`fila hooks status` is in `hook_status.py`; deploying, and versions, in `hook_versions.py`.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from typing import TYPE_CHECKING

from fila.cli import hook_status, hook_versions
from fila.cli.durations import milliseconds
from fila.cli.failure import EXIT_FAILED, Failure, unreadable, usage
from fila.cli.options import Subparsers, command, verbs, whole_number
from fila.cli.output import count_of, say, say_json, table
from fila.cli.script import script
from fila.distribution import install

if TYPE_CHECKING:
    from fila.hooks.rehearsal import Sample, Tried


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "hooks",
        "try Lua hooks, deploy them, bring them back, see how they are doing",
        examples="  fila hooks test --on-enqueue @policy.lua --messages sample.jsonl\n"
        "  fila hooks deploy orders --on-enqueue @policy.lua\n"
        "  fila hooks rollback orders\n"
        "  fila hooks status orders",
    )
    inner = verbs(parser)
    hook_versions.add_parsers(inner)
    status = command(
        inner,
        "status",
        "show what a queue's hooks did, and whom they fail for",
        about="Show the hooks of a queue: the breaker, the fail mode, what was counted, and the\n"
        "keys in quarantine because the hook keeps failing for them. Needs admin permission\n"
        "on the queue.",
        examples="  fila hooks status orders\n"
        "  fila hooks status orders --json | jq '.hooks.on_enqueue.quarantined_keys'",
    )
    status.add_argument("queue", metavar="QUEUE", help="the queue to look at")
    test = command(
        inner,
        "test",
        "run scripts over sample messages, without a broker",
        about="Run scripts over sample messages, without a broker, and show what each decides,\n"
        "how long it took and how much memory the script had in use. A SCRIPT that begins\n"
        "with @ names a file. The exit code is 1 if a script does not load or fails on any\n"
        "message.\n\n"
        "Each line of --messages is a JSON object with any of these fields:\n"
        '  {"headers": {"tenant": "acme"}, "payload": "hello"}\n'
        "and for on_failure also:\n"
        '  {"attempts": 2, "error": "HTTP 503", "id": "<UUID>"}',
        examples="  fila hooks test --on-enqueue @policy.lua --messages sample.jsonl\n"
        "  fila hooks test --on-failure @retry.lua --messages - --config max_retries=3\n"
        "  fila hooks test --on-enqueue @policy.lua        # does it load and run at all?",
    )
    test.add_argument("--on-enqueue", metavar="SCRIPT", help="Lua, or @FILE")
    test.add_argument("--on-failure", metavar="SCRIPT", help="Lua, or @FILE")
    test.add_argument(
        "--messages",
        metavar="FILE",
        help="sample messages, one JSON object per line; - for stdin (without: one empty message)",
    )
    test.add_argument(
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a runtime config value for fila.get; may be repeated",
    )
    test.add_argument("--queue", metavar="NAME", default="test", help="what msg.queue says")
    test.add_argument(
        "--timeout-ms",
        metavar="TIME",
        type=milliseconds(1),
        help="time limit per message: 5ms, 1s (default: 10ms, as in the broker)",
    )
    test.add_argument(
        "--memory-limit-bytes",
        metavar="BYTES",
        type=whole_number(1, "a number of bytes"),
        help="memory limit (default: 1048576, as in the broker)",
    )


def run(args: argparse.Namespace) -> int:
    if args.verb == "status":
        return hook_status.run(args)
    if args.verb in hook_versions.VERBS:
        return hook_versions.run(args)
    if args.on_enqueue is None and args.on_failure is None:
        raise usage("give --on-enqueue, --on-failure or both")
    try:
        from fila.hooks import rehearsal
        from fila.hooks.contract import HookError
    except ModuleNotFoundError as missing:
        raise Failure(
            f"hooks cannot run here: {missing.name} is not installed",
            f"install Fila with its server extra: {install('server')}",
        ) from missing
    try:
        tried = rehearsal.rehearse(
            script(args.on_enqueue),
            script(args.on_failure),
            _samples(args.messages),
            queue=args.queue,
            config=dict(_pair(text) for text in args.config),
            clock=time.perf_counter_ns,
            seed=secrets.randbits(63),
            timeout_ms=args.timeout_ms,
            memory_limit_bytes=args.memory_limit_bytes,
        )
    except HookError as problem:
        raise Failure(str(problem)) from problem
    if args.json:
        say_json(
            {"messages": [rehearsal.document_of(one) for one in tried], "failed": _failed(tried)}
        )
    else:
        _say_tables(tried)
    return EXIT_FAILED if _failed(tried) else 0


def _samples(path: str | None) -> list[Sample]:
    from fila.hooks.rehearsal import Sample, read_samples

    if path is None:
        return [Sample({})]
    if path == "-":
        return read_samples(sys.stdin)
    try:
        with open(path, encoding="utf-8") as lines:
            return read_samples(lines)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is not UTF-8 text (byte {error.start})") from error


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise usage(f"--config needs KEY=VALUE, got {text!r}")
    return key, value


def _failed(tried: list[Tried]) -> int:
    return sum(1 for one in tried if one.problem)


def _say_tables(tried: list[Tried]) -> None:
    enqueue = [one for one in tried if one.assignment is not None]
    failure = [one for one in tried if one.failure is not None]
    if enqueue:
        headers = [
            "MESSAGE",
            "FAIRNESS_KEY",
            "WEIGHT",
            "THROTTLE_KEYS",
            "TIME_US",
            "MEMORY_BYTES",
            "PROBLEM",
        ]
        say(table(headers, [_enqueue_row(one) for one in enqueue]))
        _say_summary(enqueue)
    if enqueue and failure:
        say("")
    if failure:
        headers = ["MESSAGE", "ACTION", "DELAY_MS", "TIME_US", "MEMORY_BYTES", "PROBLEM"]
        say(table(headers, [_failure_row(one) for one in failure]))
        _say_summary(failure)


def _enqueue_row(one: Tried) -> list[str | int | float]:
    assert one.assignment is not None
    key, weight, throttle_keys = one.assignment
    keys = ", ".join(throttle_key.decode() for throttle_key in throttle_keys) or "-"
    return [one.number, key.decode(), weight, keys, _us(one), one.memory_bytes, one.problem]


def _failure_row(one: Tried) -> list[str | int | float]:
    assert one.failure is not None
    action = "dlq" if one.failure.dead_letter else "retry"
    return [one.number, action, one.failure.delay_ms, _us(one), one.memory_bytes, one.problem]


def _us(one: Tried) -> float:
    return round(one.time_ns / 1000, 1)


def _say_summary(tried: list[Tried]) -> None:
    times = sorted(_us(one) for one in tried)
    memory = max(one.memory_bytes for one in tried)
    say(
        f"{tried[0].hook}: {count_of(len(tried), 'message')}, {_failed(tried)} failed; "
        f"median {times[len(times) // 2]:g} us, slowest {times[-1]:g} us; "
        f"memory up to {memory / 1024:.0f} KiB"
    )
