"""The tables of spec/fibp.md that are made from the table of operations and the error catalogue."""

from __future__ import annotations

import re

from fila.error_codes import CATALOGUE
from fila.wire.operation import BOTH, CLIENT, Layout, Notice, Operation, kind_of
from fila.wire.operations import RECORDS, TABLE

_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DIRECTIONS = {BOTH: "either", CLIENT: "C→S"}


def page(text: str) -> str:
    """The page with its marked parts made anew."""
    return _MARKED.sub(lambda found: found[1] + _PARTS[found[2]]() + found[3], text)


def _alone(section: str) -> str:
    """One row per frame, for operations whose two halves are explained apart."""
    rows = ["| opcode | name | direction | body |", "|---|---|---|---|"]
    for one in TABLE:
        if one.section != section:
            continue
        if isinstance(one, Notice):
            direction = _DIRECTIONS.get(one.sender, "S→C")
            silent = "; no reply" if one.sender != "server" else ""
            rows.append(_row(one.opcode, one.name, direction, _body(one.fields) + silent))
        else:
            ways = ("either", "either") if one.name == "Ping" else ("C→S", "S→C")
            rows.append(_row(one.opcode, one.name, ways[0], _body(one.request)))
            rows.append(_row(one.result_opcode, one.result_type(), ways[1], _body(one.result)))
    return "\n".join(rows) + "\n"


def _row(opcode: int, name: str, direction: str, body: str) -> str:
    return f"| `{opcode:02X}` | {name} | {direction} | {body} |"


def _pairs(section: str) -> str:
    """One row per operation: request and result, what it needs, where failures are told."""
    rows = [
        "| opcodes | name | request / result | permission | failures |",
        "|---|---|---|---|---|",
    ]
    for one in TABLE:
        if one.section == section and isinstance(one, Operation):
            rows.append(
                f"| `{one.opcode:02X}` / `{one.result_opcode:02X}` "
                f"| {one.name} / {one.result_type()} "
                f"| {_body(one.request)} / {_body(one.result)} "
                f"| {_permission(one)} | {one.failures} |"
            )
    return "\n".join(rows) + "\n"


def _permission(one: Operation) -> str:
    if not one.permission:
        return "none"
    on = "all queues" if one.on == "*" else f"`{one.on}`" if " " not in one.on else one.on
    return f"{one.permission} on {on}"


def _body(layout: Layout) -> str:
    if layout == {}:
        return "empty"
    return ", ".join(_field(name, kind_of(spec)) for name, spec in layout.items())


def _field(name: str, kind: str) -> str:
    if (name, kind) == ("message", "optional string"):
        return "explain"
    item, _, counter = kind.rstrip("]").partition("[")
    if item in RECORDS:
        return f"`{counter}` n × [{_body(RECORDS[item])}]"
    if kind.startswith("optional "):
        return f"*optional* `{kind.removeprefix('optional ')}` {name}"
    return f"`{kind.replace('string?', 'optional<string>')}` {name}"


def _errors() -> str:
    rows = ["| code | name | meaning | metadata |", "|---|---|---|---|"]
    for entry in CATALOGUE:
        metadata = ", ".join(f"`{key}`" for key in entry.metadata)
        row = f"| `{entry.code:02X}` | {entry.name} | {entry.meaning} | {metadata}"
        rows.append(row.rstrip() + " |")
    return "\n".join(rows) + "\n"


_PARTS = {
    "connection": lambda: _alone("connection"),
    "messages": lambda: _alone("messages"),
    "bulk": lambda: _pairs("bulk"),
    "administration": lambda: _pairs("admin"),
    "errors": _errors,
}
