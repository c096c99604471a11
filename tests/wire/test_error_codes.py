"""One catalogue of errors: every layer says the same number, and none has a list of its own."""

import ast
from pathlib import Path

import pytest

from fila import error_codes
from fila.client.errors import BY_CODE
from fila.core import rejection
from fila.edges.grpc import status
from fila.security import guard
from fila.wire import errors

SOURCE = Path(error_codes.__file__).parent
# Other catalogues that use the same words: gRPC's statuses, HTTP/2's errors, the doctor's marks.
OTHERS = ("edges/grpc/status.py", "edges/grpc/frames.py", "spark/doctor.py")
CODES = {
    name: value
    for name, value in vars(error_codes).items()
    if name.isupper() and isinstance(value, int)
}


def test_every_code_has_one_entry_under_its_own_name() -> None:
    entries = {entry.code: entry for entry in error_codes.CATALOGUE}
    assert len(entries) == len(error_codes.CATALOGUE) == len(set(CODES.values())) == len(CODES)
    for name, code in CODES.items():
        assert entries[code].name.lower() == name.replace("_", "").lower()
        assert entries[code].meaning.endswith(".")


@pytest.mark.parametrize("layer", [errors, rejection, guard], ids=lambda layer: layer.__name__)
def test_a_layer_that_names_a_code_means_the_catalogue_s_number(layer: object) -> None:
    named = {name: value for name, value in vars(layer).items() if name in CODES}
    assert len(named) >= 3
    assert named == {name: CODES[name] for name in named}


def test_no_other_module_gives_a_code_a_number() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        where = path.relative_to(SOURCE).as_posix()
        if where == "error_codes.py" or where in OTHERS or "/v1/" in where:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            target: ast.expr | None
            target = node.target if isinstance(node, ast.AnnAssign) else None
            target = node.targets[0] if isinstance(node, ast.Assign) else target
            if isinstance(target, ast.Name) and target.id in CODES:
                found.append(f"{where}:{target.lineno} {target.id}")
    assert found == []


def test_every_error_becomes_an_exception_and_a_grpc_status_of_its_own() -> None:
    for entry in error_codes.CATALOGUE:
        if entry.code == error_codes.OK:
            continue
        assert BY_CODE[entry.code].code == entry.code
        assert entry.code in status.STATUS_OF, entry.name


def test_what_may_be_tried_again_is_what_a_grpc_client_tries_again() -> None:
    for entry in error_codes.CATALOGUE:
        if entry.retryable:
            again = (status.UNAVAILABLE, status.RESOURCE_EXHAUSTED)
            assert status.STATUS_OF[entry.code] in again, entry.name
