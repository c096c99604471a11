"""The core is closed: what lies outside sees it through its view, and its parts form no thicket."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fila

SOURCE = Path(next(iter(fila.__path__)))
CORE = SOURCE / "core"
CYCLE_MODULES_MAX = 5

READS_STATE = re.compile(r"\b_?machine\.state\b")


def sources(*roots: Path) -> Iterator[Path]:
    for root in roots:
        yield from sorted(root.rglob("*.py"))


def outside() -> list[Path]:
    return [path for path in sources(SOURCE) if CORE not in path.parents]


def test_nothing_outside_of_the_core_touches_the_machines_state() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in outside()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if READS_STATE.search(line)
    ]
    assert not found, "ask machine.view instead"


def test_nothing_outside_of_the_core_imports_its_state() -> None:
    found = [path for path in outside() if "core.state" in imports_of(path)]
    assert not found, "ask machine.view instead"


def test_the_watchers_get_figures_and_never_the_objects_they_are_about() -> None:
    objects = {"core.queue.Queue", "core.fairness.FairnessKey", "core.bucket.Bucket"}
    watchers = [*sources(SOURCE / "telemetry", SOURCE / "edges" / "http")]
    found = {path.name: imports_of(path) & objects for path in watchers}
    assert not {name: names for name, names in found.items() if names}


def test_only_the_entrys_own_module_knows_where_things_stand_in_it() -> None:
    """No literal place in an entry, and no literal byte of a message key, anywhere else."""
    found = []
    for path in sources(SOURCE / "core", SOURCE / "broker", SOURCE / "edges", SOURCE / "journal"):
        if path.name in ("entry.py", "rows.py") or "v1" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Subscript)
                and _is_entry(node.value)
                and _is_literal(node.slice)
            ):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "index by the names of core/entry.py"


def test_the_modules_of_the_core_import_each_other_in_one_small_cycle_at_most() -> None:
    """Imports for types alone count as well: they tell what a reader has to know at once."""
    graph = {path.stem: _core_imports(path) for path in CORE.glob("*.py")}
    cycles = [sorted(some) for some in components(graph) if len(some) > 1]
    assert len(cycles) <= 1
    assert all(len(cycle) <= CYCLE_MODULES_MAX for cycle in cycles), cycles


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a", "c"}, "c": set()}, [{"a", "b"}]),
        (
            {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}},
            [{"a", "b", "c"}, {"d", "e"}],
        ),
    ],
)
def test_cycles_are_found(graph: dict[str, set[str]], expected: list[set[str]]) -> None:
    found = [set(some) for some in components(graph) if len(some) > 1]
    assert sorted(found, key=min) == expected


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components: who can reach whom, both ways."""
    reach = {name: _reachable(graph, name) for name in graph}
    left = sorted(graph)
    found = []
    while left:
        first = left[0]
        both_ways = [name for name in left if name in reach[first] and first in reach[name]]
        some = both_ways or [first]
        found.append(some)
        left = [name for name in left if name not in some]
    return found


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        for name in graph.get(ahead.pop(), ()):
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return seen


def imports_of(path: Path) -> set[str]:
    """Modules and names of this package that a file imports, without the leading `fila.`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fila":
            module = (node.module or "").removeprefix("fila").removeprefix(".")
            found.add(module)
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def _core_imports(path: Path) -> set[str]:
    modules = {one.stem for one in CORE.glob("*.py")}
    named = {name.split(".")[1] for name in imports_of(path) if name.startswith("core.")}
    return (named & modules) - {path.stem}


def _is_entry(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):  # entry[KEY][20:], window[0][1]
        return "window" in ast.unparse(node.value) or _is_entry(node.value)
    return isinstance(node, ast.Name) and node.id in ("entry", "message_key")


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Slice):
        return any(isinstance(one, ast.Constant) for one in (node.lower, node.upper))
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
