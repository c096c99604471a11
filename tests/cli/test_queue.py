from pathlib import Path

import pytest

from fila import FilaClient, QueueAlreadyExistsError

SCRIPT = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


def test_creating_a_queue_says_so(fila):
    result = fila("queue", "create", "made")
    assert (result.code, result.out, result.err) == (0, 'Created queue "made"\n', "")


def test_creating_a_queue_twice_is_an_error(fila, queue):
    result = fila("queue", "create", queue)
    assert (result.code, result.out) == (1, "")
    error, hint = result.err.splitlines()
    assert error == f'Error: queue "{queue}" already exists' and "--if-missing" in hint


def test_deleting_a_queue_says_so_and_removes_its_dead_letter_queue(fila, queue):
    result = fila("queue", "delete", queue)
    assert (result.code, result.out) == (0, f'Deleted queue "{queue}"\n')
    assert queue not in fila("queue", "list").out


@pytest.mark.parametrize(
    "command",
    [
        ("queue", "delete", "foo"),
        ("queue", "inspect", "foo"),
        ("stats", "foo"),
        ("consume", "foo"),
        ("enqueue", "foo", "--payload", "x"),
        ("redrive", "foo"),
    ],
)
def test_an_unknown_queue_is_named_on_stderr(fila, command):
    result = fila(*command)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith('Error: queue "foo" does not exist\nHint: `fila queue list`')


def test_a_broker_without_queues_says_that_there_are_none(run, fresh_broker):
    result = run("--addr", fresh_broker, "queue", "list")
    assert (result.code, result.out) == (0, "No queues found.\n")
    assert run("--addr", fresh_broker, "queue", "list", "--json").document == {"queues": []}


def test_the_list_is_an_aligned_table_with_dead_letter_queues(fila, queue):
    fila("enqueue", queue, "--payload", "x", "--count", "12")
    header, *rows = fila("queue", "list").out.splitlines()
    assert header.split() == ["NAME", "DEPTH", "IN_FLIGHT", "CONSUMERS"]
    cells = {row.split()[0]: row.split()[1:] for row in rows}
    assert cells[queue] == ["12", "0", "0"]
    assert cells[f"{queue}.dlq"] == ["0", "0", "0"]
    ends = {row.index("0", row.index("  ")) for row in rows if row.startswith(f"{queue}.dlq")}
    assert ends == {header.index("DEPTH") + len("DEPTH") - 1}


def test_the_list_as_json(fila, queue):
    found = {one["name"]: one for one in fila("queue", "list", "--json").document["queues"]}
    counts = {"depth": 0, "in_flight": 0, "active_consumers": 0}
    assert found[queue] == {"name": queue, **counts, "paused": None, "quarantined": None}


def test_create_and_delete_as_json(fila):
    assert fila("--json", "queue", "create", "j").document == {"queue": "j", "created": True}
    assert fila("--json", "queue", "delete", "j").document == {"queue": "j", "deleted": True}


def test_inspecting_a_queue_shows_counts_and_both_tables(fila):
    script = SCRIPT.replace(" }", ', weight = 2, throttle_keys = { "stripe" } }')
    assert fila("queue", "create", "seen", "--on-enqueue", script).code == 0
    fila("config", "set", "throttle.stripe", "2.5,150")
    for tenant, count in (("acme", "3"), ("globex", "1")):
        fila("enqueue", "seen", "--header", f"tenant={tenant}", "--payload", "x", "--count", count)
    result = fila("queue", "inspect", "seen")
    fila("config", "set", "throttle.stripe", "")
    assert result.code == 0
    assert result.out.splitlines()[:14] == [
        "Queue: seen",
        "Depth: 4",
        "In-flight: 0",
        "Active fairness keys: 2",
        "Active consumers: 0",
        "Quantum: 1",
        "Settings: version 1",
        "",
        "KEY     PENDING  DEFICIT  WEIGHT",
        "acme          3        0       2",
        "globex        1        0       2",
        "",
        "KEY     TOKENS  RATE/S  BURST",
        "stripe     150     2.5    150",
    ]


def test_a_queue_whose_messages_cost_their_bytes_says_so(fila):
    assert fila("queue", "create", "sized", "--cost", "bytes").code == 0
    assert "Quantum: 16384 bytes" in fila("queue", "inspect", "sized").out.splitlines()
    assert fila("queue", "inspect", "sized", "--json").document["cost"] == "bytes"
    assert fila("queue", "create", "odd", "--cost", "stones").code == 2


def test_inspecting_an_empty_queue_keeps_its_form(fila, queue):
    lines = fila("queue", "inspect", queue).out.splitlines()
    assert lines[:2] == [f"Queue: {queue}", "Depth: 0"]
    assert lines[7:11] == ["", "KEY  PENDING  DEFICIT  WEIGHT", "", "KEY  TOKENS  RATE/S  BURST"]


def test_inspect_as_json(fila):
    fila("queue", "create", "doc", "--on-enqueue", SCRIPT)
    fila("enqueue", "doc", "--header", "tenant=acme", "--payload", "x")
    document = fila("queue", "inspect", "doc", "--json").document
    assert document.pop("created_ms") > 0
    assert document.pop("settings")["on_enqueue"] == SCRIPT
    assert document == {
        "queue": "doc",
        "depth": 1,
        "in_flight": 0,
        "active_fairness_keys": 1,
        "active_consumers": 0,
        "quantum": 1,
        "cost": "messages",
        "fairness_keys": [{"key": "acme", "pending": 1, "deficit": 0, "weight": 1}],
        "throttle_keys": [],
        "paused": None,
        "paused_keys": {},
        "overrides": {},
        "batches": [],
        "version": 1,
    }


def test_stats_of_a_queue_are_what_inspect_shows(fila, queue):
    assert fila("stats", queue).out == fila("queue", "inspect", queue).out


def test_stats_show_how_near_each_limit_is(fila):
    found = {one["name"]: one for one in fila("stats", "--json").document["limits"]}
    assert found["server.max_connections"]["used"] >= 1
    assert found["connection.max_unread_bytes"]["max"] == 128 * 1024 * 1024
    assert "connection.max_unauthenticated" in fila("stats").out


def test_stats_without_a_name_sum_all_queues_up(run, fresh_broker):
    def fila(*argv):
        return run("--addr", fresh_broker, *argv)

    for name in ("a", "b"):
        fila("queue", "create", name)
        fila("enqueue", name, "--payload", "x", "--count", "2")
    lines = fila("stats").out.splitlines()
    assert lines[:4] == ["Queues: 4", "Depth: 4", "In-flight: 0", "Active consumers: 0"]
    assert lines[5].split() == ["NAME", "DEPTH", "IN_FLIGHT", "CONSUMERS"]
    document = fila("stats", "--json").document
    assert (document["depth"], document["in_flight"], document["active_consumers"]) == (4, 0, 0)
    assert [one["name"] for one in document["queues"]] == ["a", "a.dlq", "b", "b.dlq"]


def test_a_script_comes_from_a_file_named_with_at(fila, tmp_path: Path):
    (tmp_path / "policy.lua").write_text(SCRIPT)
    assert fila("queue", "create", "filed", "--on-enqueue", f"@{tmp_path}/policy.lua").code == 0
    fila("enqueue", "filed", "--header", "tenant=acme", "--payload", "x")
    assert fila("consume", "filed", "--limit", "1", "--json").document["fairness_key"] == "acme"


def test_a_script_file_that_cannot_be_read_is_named(fila, tmp_path: Path):
    missing = fila("queue", "create", "q", "--on-enqueue", f"@{tmp_path}/nope.lua")
    assert missing.code == 1
    assert missing.err == f"Error: cannot read {tmp_path}/nope.lua: No such file or directory\n"
    (tmp_path / "bad.lua").write_bytes(b"-- \xff")
    garbled = fila("queue", "create", "q", "--on-enqueue", f"@{tmp_path}/bad.lua")
    assert (garbled.code, garbled.err) == (
        1,
        f"Error: {tmp_path}/bad.lua is not UTF-8 text (byte 3)\n",
    )


def test_a_script_that_does_not_compile_is_refused_with_the_compilers_words(fila):
    result = fila("queue", "create", "broken", "--on-enqueue", "function (")
    assert result.code == 1
    assert result.err.startswith("Error: ") and "near '('" in result.err
    assert "broken" not in fila("queue", "list").out


def test_the_visibility_timeout_is_the_brokers_to_judge(fila):
    assert fila("queue", "create", "slow", "--visibility-timeout", "60000").code == 0
    refused = fila("queue", "create", "fast", "--visibility-timeout", "5")
    assert refused.code == 1 and refused.err.startswith("Error: visibility timeout: 5 ms")
    assert fila("queue", "create", "odd", "--visibility-timeout", "soon").code == 2
    named = fila("queue", "create", "odd", "--on-enqueue", "policy.lua")
    assert named.code == 2 and "write @policy.lua" in named.err


def test_a_hostile_name_is_shown_escaped_and_exact_in_json(fila):
    name = "evil\u202e\u2028name 世界"
    created = fila("queue", "create", name)
    assert created.out == 'Created queue "evil\\u202e\\u2028name 世界"\n'
    assert "\u202e" not in fila("queue", "list").out
    assert "evil\\u202e\\u2028name 世界" in fila("queue", "list").out
    names = [one["name"] for one in fila("queue", "list", "--json").document["queues"]]
    assert name in names
    assert fila("queue", "delete", name).code == 0


def test_a_name_with_control_characters_is_refused_and_not_echoed_raw(fila):
    result = fila("queue", "create", "a\x1b[31mb")
    assert result.code == 1
    assert result.err.startswith("Error: ") and "\x1b" not in result.err


def test_peeking_shows_messages_in_their_state_and_takes_none(fila, queue):
    fila("enqueue", queue, "--payload", "now", "--header", "tenant=acme")
    fila("enqueue", queue, "--payload", "later", "--delay", "60000")
    text = fila("queue", "peek", queue)
    assert text.code == 0
    assert "state=ready key=default attempts=0 headers={tenant=acme} payload=now\n" in text.out
    assert "state=delayed" in text.out
    (late,) = fila("queue", "peek", queue, "--state", "delayed", "--json").documents
    assert (late["payload"], late["state"]) == ("later", "delayed")
    assert late["ready_at_ms"] - late["enqueued_at_ms"] == 60_000
    assert len(fila("queue", "peek", queue, "--limit", "1").out.splitlines()) == 1
    assert fila("queue", "peek", queue, "--key", "nobody").out == ""
    assert fila("stats", queue, "--json").document["in_flight"] == 0
    missing = fila("queue", "peek", "foo")
    assert missing.code == 1 and missing.err.startswith('Error: queue "foo" does not exist\n')


def test_an_idempotency_key_is_stored_once(fila, queue):
    once = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--json").document
    again = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--json").document
    assert again["id"] == once["id"]
    fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--count", "3")
    assert fila("stats", queue, "--json").document["depth"] == 3


def test_stats_show_open_batches_by_stream(fila, broker, queue):
    from fila import FilaClient

    fila("enqueue", queue, "--payload", "x", "--count", "5")
    assert fila("stats", queue, "--json").document["batches"] == []
    assert "BATCHES" not in fila("stats", queue).out
    with FilaClient(broker) as client:
        client.lease_batch(queue, "job/0", 2)
        client.lease_batch(queue, "job/1/a", 2)
    (stream,) = fila("stats", queue, "--json").document["batches"]
    assert (stream["stream"], stream["open"], stream["messages"]) == ("job", 2, 4)
    assert 0 <= stream["age_s"] < 30
    assert 0 < stream["ends_in_s"] <= 30
    assert "BATCHES OF  OPEN  MESSAGES" in fila("queue", "inspect", queue).out


def test_a_queue_that_is_there_is_no_failure_if_only_a_missing_one_is_wanted(fila, queue, broker):
    assert fila("queue", "create", queue).code == 1
    told = fila("queue", "create", queue, "--if-missing")
    assert (told.code, told.out) == (0, f'Queue "{queue}" is there already\n')
    assert fila("queue", "create", queue, "--if-missing", "--json").document["created"] is False
    assert fila("queue", "create", f"{queue}-new", "--if-missing", "--json").document["created"]
    with FilaClient(broker) as client:
        with pytest.raises(QueueAlreadyExistsError):
            client.create_queue(queue)
        assert client.create_queue(queue, exist_ok=True) == queue
