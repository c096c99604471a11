"""A test that asserts nothing passes whatever the code does: every test has to check something.

It does so itself (assert, pytest.raises), or it calls a function of the tests that does: one that
asserts, raises, or waits for a condition. Helpers are told apart by name alone, so one name counts
only if every function of that name checks.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent
Function = ast.FunctionDef | ast.AsyncFunctionDef
CHECKS = {"raises", "warns", "fail"}
EXPECTATIONS = {"expect"}  # Playwright's: it waits, then raises


def test_every_test_checks_something() -> None:
    functions: dict[str, list[tuple[Path, Function]]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                functions.setdefault(node.name, []).append((path, node))
    checking = CHECKS | EXPECTATIONS | _checking(functions)
    idle = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for name, found in sorted(functions.items())
        if name.startswith("test_")
        for path, node in found
        if path.name.startswith("test_") and not _checks(node, checking)
    ]
    assert idle == []


def test_a_test_that_checks_nothing_is_found() -> None:
    tree = ast.parse("def test_it():\n    work()\n\ndef test_that():\n    assert work()\n")
    found = [_checks(node, CHECKS) for node in tree.body if isinstance(node, Function)]
    assert found == [False, True]


def _checking(functions: dict[str, list[tuple[Path, Function]]]) -> set[str]:
    """Names of helpers that check, by themselves or by calling one that does."""
    checking = set(CHECKS)
    while True:
        more = {
            name
            for name, found in functions.items()
            if name not in checking
            and not name.startswith("test_")
            and all(_checks(node, checking) for _, node in found)
        }
        if not more:
            return checking
        checking |= more


def _checks(function: Function, checking: set[str]) -> bool:
    return any(
        isinstance(node, ast.Assert | ast.Raise)
        or (isinstance(node, ast.Call) and _name(node) in checking)
        for node in ast.walk(function)
    )


def _name(call: ast.Call) -> str:
    called = call.func
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""
