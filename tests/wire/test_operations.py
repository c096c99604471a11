"""The table of operations: what is made from it, and that its rows make sense."""

import subprocess
import sys
from pathlib import Path

import pytest

from fila.wire import layouts, operation, operations
from fila.wire.operation import ERROR_FRAME, IN_RESULT, PER_ITEM, Notice, Operation, kind_of, text

SPEC = Path(__file__).parents[2] / "spec"
OPERATIONS = list(operations.OPERATIONS.values())
COLD = [one for one in OPERATIONS if not one.by_hand]


def _name(one: Operation) -> str:
    return one.name


def test_what_is_made_from_the_table_is_up_to_date() -> None:
    make = [sys.executable, str(SPEC / "wire" / "make.py"), "--check"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_number_and_no_name_is_given_twice() -> None:
    numbers = []
    names = list(operations.RECORDS)
    for one in operations.TABLE:
        numbers.append(one.opcode)
        names.append(one.name)
        if isinstance(one, Operation):
            numbers.append(one.result_opcode)
            names.append(one.result_type())
    assert len(set(numbers)) == len(numbers)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("one", OPERATIONS, ids=_name)
def test_a_result_can_say_what_the_table_says_of_failures(one: Operation) -> None:
    if one.failures == IN_RESULT:
        assert next(iter(one.result)) == "code" and "message" in one.result
    elif one.failures == PER_ITEM:
        (item,) = [kind_of(spec).partition("[")[0] for spec in one.result.values()]
        assert "code" in operations.RECORDS[item]
    else:
        assert one.failures == ERROR_FRAME
        assert "message" not in one.result


@pytest.mark.parametrize("one", COLD, ids=_name)
def test_texts_and_permissions_name_fields_that_are_there(one: Operation) -> None:
    fields = {**one.request, **one.result}
    written = text(one.action, dict.fromkeys(fields, "?"))
    assert written and "{" not in written
    for template in (one.action, one.subject):
        named = [part.partition("}")[0] for part in template.split("{")[1:]]
        assert set(named) <= set(fields)
    assert one.on in (*one.request, operation.BROKER, "") or " " in one.on
    assert one.note.endswith(".")
    assert one.changes or one.repeatable or one.section == "bulk"


def test_a_part_in_brackets_is_left_out_where_its_field_is_empty() -> None:
    purge = operations.OPERATIONS["Purge"].action
    assert text(purge, {"queue": "q", "fairness_key": "k"}) == 'purge key "k" of queue "q"'
    assert text(purge, {"queue": "q", "fairness_key": None}) == 'purge queue "q"'
    create = operations.OPERATIONS["CreateApiKey"].action
    assert text(create, {"name": "n"}) == 'create API key "n"'
    assert text(create, {"name": "n", "key_id": "7"}) == 'create API key 7 "n"'


def test_optional_fields_stand_last() -> None:
    for one in operations.TABLE:
        bodies = [one.fields] if isinstance(one, Notice) else [one.request, one.result]
        for layout in bodies:
            optional = [kind_of(spec).startswith("optional ") for spec in layout.values()]
            assert optional == sorted(optional), one.name
    for record in operations.RECORDS.values():
        assert not any(kind_of(spec).startswith("optional ") for spec in record.values())


def test_every_request_finds_its_row_and_its_result() -> None:
    for request, row in layouts.OPERATIONS.items():
        assert row.name == request.__name__
        assert layouts.RESULTS[request].__name__ == row.result_type()
