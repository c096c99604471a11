"""enqueue, consume and redrive: the way of a message through the command line."""

import base64
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND

DLQ_AT_ONCE = 'function on_failure(msg) return { action = "dlq" } end'


def payloads(result) -> list[str]:
    return [document["payload"] for document in result.documents]


def depth(fila, queue: str) -> int:
    return fila("stats", queue, "--json").document["depth"]


# enqueue


def test_one_message_is_answered_with_its_id(fila, queue):
    result = fila("enqueue", queue, "--header", "tenant=acme", "--payload", "hello")
    assert result.code == 0
    words = result.out.split()
    assert words[:2] == ["Enqueued", "message"] and words[3:] == ["to", f'"{queue}"']
    message = fila("consume", queue, "--limit", "1", "--json").document
    assert message["id"] == words[2]
    assert (message["headers"], message["payload"]) == ({"tenant": "acme"}, "hello")


def test_headers_repeat_and_keep_everything_after_the_first_equals_sign(fila, queue):
    fila(
        "enqueue", queue, "--header", "a=1", "--header", "b=x=y", "--header", "c=", "--payload", ""
    )
    assert fila("consume", queue, "--limit", "1", "--json").document["headers"] == {
        "a": "1",
        "b": "x=y",
        "c": "",
    }


@pytest.mark.parametrize("header", ["tenant", "=acme", ""])
def test_a_header_that_is_not_key_value_is_a_usage_error(fila, queue, header):
    result = fila("enqueue", queue, "--header", header, "--payload", "x")
    assert result.code == 2 and "is not KEY=VALUE" in result.err


def test_enqueue_as_json_is_one_line_per_message(fila, queue):
    result = fila("enqueue", queue, "--payload", "x", "--count", "3", "--json")
    assert [one["queue"] for one in result.documents] == [queue] * 3
    assert len({one["id"] for one in result.documents}) == 3


def test_count_repeats_a_message(fila, queue):
    result = fila("enqueue", queue, "--payload", "x", "--count", "2500")
    assert result.out == f'Enqueued 2500 messages to "{queue}"\n'
    assert depth(fila, queue) == 2500


def test_count_without_a_message_is_a_usage_error(fila, queue):
    result = fila("enqueue", queue, "--count", "3")
    assert result.code == 2 and "--payload or --file" in result.err


@pytest.mark.parametrize("arguments", [("--count", "0"), ("--rate", "0"), ("--rate", "inf")])
def test_counts_and_rates_are_positive(fila, queue, arguments):
    assert fila("enqueue", queue, "--payload", "x", *arguments).code == 2


def test_rate_spreads_messages_over_time(fila, queue):
    started_at = time.monotonic()
    assert fila("enqueue", queue, "--payload", "x", "--count", "30", "--rate", "60").code == 0
    assert time.monotonic() - started_at > 0.4
    assert depth(fila, queue) == 30


def test_a_file_is_one_message_byte_for_byte(fila, queue, tmp_path: Path):
    content = bytes(range(256)) + b"\n\n"
    (tmp_path / "blob").write_bytes(content)
    assert fila("enqueue", queue, "--file", str(tmp_path / "blob")).code == 0
    message = fila("consume", queue, "--limit", "1", "--json").document
    assert message["payload"] is None
    assert base64.b64decode(message["payload_base64"]) == content


def test_a_file_that_cannot_be_read_is_named(fila, queue, tmp_path: Path):
    result = fila("enqueue", queue, "--file", str(tmp_path / "nope"))
    assert (result.code, result.out) == (1, "")
    assert result.err == f"Error: cannot read {tmp_path}/nope: No such file or directory\n"


def test_payload_and_file_exclude_each_other(fila, queue):
    assert fila("enqueue", queue, "--payload", "x", "--file", "y").code == 2


def test_lines_of_standard_input_are_messages(fila, shell, queue):
    result = shell("enqueue", queue, stdin=b"one\n\nthree \xff\nlast")
    assert (result.code, result.out) == (0, f'Enqueued 4 messages to "{queue}"\n')
    seen = [
        base64.b64decode(one["payload_base64"])
        for one in fila("consume", queue, "--json").documents
    ]
    assert seen == [b"one", b"", b"three \xff", b"last"]


def test_many_lines_and_one_very_long_one_arrive_whole(fila, shell, queue):
    lines = [b"%d" % number for number in range(20_000)] + [b"x" * 1_000_000]
    assert shell("enqueue", queue, stdin=b"\n".join(lines) + b"\n").code == 0
    seen = [one["payload"].encode() for one in fila("consume", queue, "--json").documents]
    assert seen == lines


def test_no_input_is_no_message(shell, queue):
    result = shell("enqueue", queue)
    assert (result.code, result.out) == (0, f'Enqueued 0 messages to "{queue}"\n')


def test_lines_are_stored_as_they_come_not_when_input_ends(fila, broker, queue):
    with subprocess.Popen(
        [*COMMAND, "--addr", broker, "--json", "enqueue", queue],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        assert b'"id"' in process.stdout.readline()
        assert depth(fila, queue) == 1
        process.stdin.close()
        assert process.wait(10) == 0


def test_bytes_of_an_argument_that_are_not_utf8_arrive_as_they_were(fila, queue):
    fila("enqueue", queue, "--payload", os.fsdecode(b"caf\xe9"))
    message = fila("consume", queue, "--limit", "1", "--json").document
    assert base64.b64decode(message["payload_base64"]) == b"caf\xe9"


# consume


def test_consume_prints_a_line_per_message_and_takes_them(fila, queue):
    fila("enqueue", queue, "--header", "tenant=acme", "--payload", "hello")
    result = fila("consume", queue)
    assert result.code == 0
    (line,) = result.out.splitlines()
    assert line.startswith("id=")
    assert line.endswith(" key=default attempts=0 headers={tenant=acme} payload=hello")
    assert depth(fila, queue) == 0
    assert fila("consume", queue).out == ""


def test_a_message_as_json_has_every_field(fila, queue):
    fila("enqueue", queue, "--header", "tenant=acme", "--payload", "hello")
    message = fila("consume", queue, "--limit", "1", "--json").document
    assert message["leased_at_ms"] >= message["enqueued_at_ms"] > 1_600_000_000_000
    assert {name: value for name, value in message.items() if not name.endswith(("_ms", "id"))} == {
        "queue": queue,
        "headers": {"tenant": "acme"},
        "payload": "hello",
        "payload_base64": "aGVsbG8=",
        "fairness_key": "default",
        "weight": 1,
        "throttle_keys": [],
        "attempt_count": 0,
        "settled": "ack",
    }


def test_what_could_disturb_a_terminal_is_shown_escaped(fila, shell, queue):
    shell("enqueue", queue, "--header", "k\x07=v\x1b]0;x\x07", stdin=b"\x1b[2J\xff\r\xc2\x9b\n")
    result = fila("consume", queue)
    assert "headers={k\\x07=v\\x1b]0;x\\x07}" in result.out
    assert result.out.endswith("payload=\\x1b[2J\\xff\\r\\x9b\n")


def test_limit_takes_so_many_and_leaves_the_rest_ready(fila, queue):
    fila("enqueue", queue, "--payload", "x", "--count", "10")
    assert len(fila("consume", queue, "--limit", "3", "--ack").out.splitlines()) == 3
    stats = fila("stats", queue, "--json").document
    assert (stats["depth"], stats["in_flight"]) == (7, 0)


def test_peeking_leaves_everything_as_it_was(fila, shell, queue):
    shell("enqueue", queue, stdin=b"1\n2\n3\n")
    for _ in range(2):
        result = fila("consume", queue, "--peek-only", "--json")
        assert payloads(result) == ["1", "2", "3"]
        assert {(one["attempt_count"], one["settled"]) for one in result.documents} == {(0, None)}
    stats = fila("stats", queue, "--json").document
    assert (stats["depth"], stats["in_flight"]) == (3, 0)


def test_peeking_sees_further_than_one_prefetch(fila, queue):
    fila("enqueue", queue, "--payload", "x", "--count", "700")
    assert len(fila("consume", queue, "--peek-only").out.splitlines()) == 700


def test_peeking_and_following_exclude_each_other(fila, queue):
    result = fila("consume", queue, "--peek-only", "--follow")
    assert result.code == 2 and result.err.startswith("Error: --peek-only and --follow")


def test_ack_and_nack_exclude_each_other(fila, queue):
    assert fila("consume", queue, "--ack", "--nack").code == 2


def test_nack_gives_every_message_back_once(fila, shell, queue):
    shell("enqueue", queue, stdin=b"1\n2\n3\n")
    result = fila("consume", queue, "--nack", "--json")
    assert payloads(result) == ["1", "2", "3"]
    again = fila("consume", queue, "--json").documents
    assert [(one["payload"], one["attempt_count"]) for one in again] == [
        ("1", 1),
        ("2", 1),
        ("3", 1),
    ]


def test_following_waits_for_messages_and_ends_at_the_limit(fila, broker, queue):
    with subprocess.Popen(
        [*COMMAND, "consume", queue, "--follow", "--limit", "2", "--json", "--addr", broker],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        time.sleep(0.8)  # longer than a command without --follow would wait
        fila("enqueue", queue, "--payload", "a")
        assert b'"a"' in process.stdout.readline()
        fila("enqueue", queue, "--payload", "b")
        assert b'"b"' in process.stdout.readline()
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_an_interrupted_consumer_is_quiet_and_hands_its_messages_back(
    fila, broker, queue, number, code
):
    fila("enqueue", queue, "--payload", "x", "--count", "3")
    with subprocess.Popen(
        [
            *COMMAND,
            "--addr",
            broker,
            "consume",
            queue,
            "--follow",
            "--nack",
            "--limit",
            "100000000",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (code, b"")
    stats = fila("stats", queue, "--json").document
    assert (stats["depth"], stats["in_flight"]) == (3, 0)


def test_a_reader_that_goes_away_loses_nothing_and_is_not_complained_about(fila, broker, queue):
    fila("enqueue", queue, "--payload", "x" * 2000, "--count", "1000")
    with subprocess.Popen(
        [*COMMAND, "--addr", broker, "consume", queue],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr.read() == b""
    stats = fila("stats", queue, "--json").document
    # Whole batches that were written out may be gone; nothing is left hanging.
    assert stats["in_flight"] == 0 and 0 < stats["depth"] <= 1000


def test_a_full_disk_is_an_error_and_nothing_is_acknowledged(fila, broker, queue):
    fila("enqueue", queue, "--payload", "x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "--addr", broker, "consume", queue],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=10,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"Error: cannot write the output: No space left on device\n"
    assert depth(fila, queue) == 1


# redrive


def dead_letters(fila, queue: str, count: int) -> None:
    fila("queue", "create", queue, "--on-failure", DLQ_AT_ONCE)
    fila("enqueue", queue, "--payload", "x", "--count", str(count))
    fila("consume", queue, "--nack")
    assert depth(fila, f"{queue}.dlq") == count


def test_redriving_one_message_is_told_in_the_singular(fila):
    dead_letters(fila, "one", 1)
    result = fila("redrive", "one.dlq")
    assert (result.code, result.out) == (0, 'Redrive complete: 1 message moved from "one.dlq"\n')
    assert (depth(fila, "one"), depth(fila, "one.dlq")) == (1, 0)


def test_redriving_takes_count_messages_then_all(fila):
    dead_letters(fila, "some", 5)
    result = fila("redrive", "some.dlq", "--count", "2")
    assert result.out == 'Redrive complete: 2 messages moved from "some.dlq"\n'
    assert fila("redrive", "some.dlq", "--count", "0", "--json").document == {
        "queue": "some.dlq",
        "redriven": 3,
    }
    assert depth(fila, "some") == 5


def test_redriving_an_empty_dead_letter_queue_moves_nothing(fila, queue):
    result = fila("redrive", f"{queue}.dlq")
    assert result.out == f'Redrive complete: 0 messages moved from "{queue}.dlq"\n'


def test_redriving_what_is_no_dead_letter_queue_is_an_error(fila, queue):
    result = fila("redrive", queue)
    assert (result.code, result.out) == (1, "")
    assert result.err == f'Error: "{queue}" is not a dead-letter queue\n'


def test_a_negative_count_is_a_usage_error(fila, queue):
    assert fila("redrive", f"{queue}.dlq", "--count", "-1").code == 2
