"""The reference page says what the command line does."""

from pathlib import Path
from typing import Any

from fila import FilaClient
from fila.cli.main import parser
from fila.cli.options import walk
from fila.cli.reference import JSON_FIELDS, markdown

REFERENCE = Path(__file__).parents[2] / "docs" / "cli.md"
OTHER = 'function on_failure() return { action = "dlq" } end'
SCRIPT = 'function on_enqueue(msg) return { throttle_keys = { "listed" } } end'


def test_the_reference_page_is_what_the_parsers_say():
    assert REFERENCE.read_text() == markdown(), "run: python -m fila.cli.reference > docs/cli.md"


def test_the_reference_page_names_every_command_and_option():
    page = markdown()
    for path, each in walk(parser(), ()):
        if path:
            assert f"{'#' * (2 + len(path))} fila {' '.join(path)}\n" in page
        for name in each._option_string_actions:
            assert f"`{name}" in page or name in ("-h", "--help", "--version")


def fields_of(document: dict[str, Any]) -> list[str]:
    """Names as the page writes them: lists of objects with the fields of one of them."""
    fields = []
    for name, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            first, *others = value[0]
            fields += [f"{name}[].{first}", *(f".{other}" for other in others)]
        else:
            fields.append(name)
    return fields


def test_the_fields_on_the_page_are_the_fields_that_are_printed(fila, broker, backups, tmp_path):
    declared = tmp_path / "queues.toml"
    declared.write_text("[queues.listed]\nmax_attempts = 5\n")
    fila("config", "set", "throttle.listed", "1,5")
    made = fila("auth", "create", "described", "--json").document["key_id"]
    fila("queue", "create", "died")
    fila("queue", "create", "relisted", "--on-enqueue", SCRIPT)
    fila("enqueue", "relisted", "--payload", "x")
    changed = SCRIPT.replace("listed", "other")
    fila("queue", "update", "relisted", "--on-enqueue", changed)
    dead = fila("enqueue", "died.dlq", "--payload", "x", "--json").document["id"]
    commands = {
        "backup create": (),
        "backup list": (),
        "backup verify": ("--from", str(backups)),
        "backup restore": ("--from", str(backups), "--into", str(tmp_path / "restored")),
        "dlq list": ("died",),
        "dlq groups": ("died",),
        "dlq show": ("died", dead),
        "dlq export": ("died",),
        "dlq redrive": ("died",),
        "dlq delete": ("died", "--yes"),
        "auth create": ("other",),
        "auth list": (),
        "auth acl set": (made, "produce:listed"),
        "auth acl add": (made, "consume:listed", "admin:listed"),
        "auth acl remove": (made, "admin:listed"),
        "auth acl get": (made,),
        "auth revoke": (made,),
        "context set": ("described", "--addr", "localhost:1"),
        "context show": ("described",),
        "context use": ("described",),
        "context delete": ("described",),
        "ping": (),
        "version": (),
        "whoami": (),
        "context list": (),
        "queue create": ("listed", "--on-enqueue", SCRIPT),
        "enqueue": ("listed", "--payload", "x"),
        "queue list": (),
        "queue peek": ("listed",),
        "queue inspect": ("listed",),
        "queue update": ("listed", "--max-attempts", "5"),
        "queue settings": ("listed",),
        "queue reclassify": ("relisted",),
        "hooks status": ("listed",),
        "queue export": ("listed", "--config"),
        "apply": (str(declared),),
        "hooks deploy": ("listed", "--on-failure", OTHER),
        "hooks history": ("listed",),
        "hooks diff": ("listed",),
        "hooks show": ("listed",),
        "hooks rollback": ("listed",),
        "queue pause": ("listed",),
        "queue resume": ("listed",),
        "key pause": ("listed", "acme"),
        "key resume": ("listed", "acme"),
        "key set": ("listed", "acme", "--weight", "3"),
        "key list": ("listed",),
        "key clear": ("listed", "acme"),
        "queue purge": ("listed", "--key", "acme", "--yes"),
        "stats": (),
        "consume": ("listed", "--limit", "1"),
        "redrive": ("listed.dlq",),
        "queue delete": ("listed",),
        "config get": ("throttle.listed",),
        "config list": (),
        "config set": ("throttle.listed", ""),
    }
    assert set(commands) == set(JSON_FIELDS)
    for command, arguments in commands.items():
        if command == "queue inspect":
            with FilaClient(broker) as client:
                client.enqueue("listed", idempotency_key="for the batch")
                client.lease_batch("listed", "s/0", 1)
        document = fila(*command.split(), *arguments, "--json").document
        assert fields_of(document) == list(JSON_FIELDS[command]), command
