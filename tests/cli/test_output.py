import io
import json
import re
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli import pipeline
from fila.cli.failure import Failure, lines
from fila.cli.output import say_json, shown, shown_bytes, shown_number, table
from fila.cli.progress import Progress
from fila.spark.report import Report, Table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", "orders"),
        ("söme wörds 世界", "söme wörds 世界"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b\x7f", "\\x9b\\x7f"),
        ("\u202e\u200b", "\\u202e\\u200b"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff", "\\xff"),
    ],
)
def test_only_visible_characters_are_shown_as_they_are(text, expected):
    assert shown(text) == expected


@given(st.binary())
def test_any_payload_is_shown_on_one_line_of_visible_characters(payload):
    assert shown_bytes(payload).isprintable()


@given(st.text())
def test_any_text_survives_json_and_no_character_of_it_reaches_the_terminal_raw(text):
    written = io.StringIO()
    with redirect_stdout(written):
        say_json({"text": text})
    line = written.getvalue()
    assert line.endswith("\n") and line[:-1].isprintable()
    assert json.loads(line) == {"text": text}


@given(st.lists(st.tuples(st.text(max_size=8), st.integers(0, 10**9)), max_size=5))
def test_a_table_has_a_line_per_row_whatever_is_in_it(rows):
    drawn = table(("NAME", "DEPTH"), rows).split("\n")
    assert len(drawn) == 1 + len(rows)
    assert all(line.isprintable() for line in drawn)


def test_wide_characters_keep_columns_aligned():
    # Each of the two signs takes two columns on a terminal.
    assert table(("NAME", "N"), [("世界", 1), ("abcd", 2)]).split("\n") == [
        "NAME  N",
        "世界  1",
        "abcd  2",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(150.0, "150"), (2.5, "2.5"), (1 / 3, "0.333"), (0.0, "0"), (1e9, "1000000000")],
)
def test_numbers_have_as_many_digits_as_matter(value, expected):
    assert shown_number(value) == expected


def test_a_brokers_text_cannot_fake_a_line_of_ours():
    assert lines(Failure("bad script:\nError: all is lost\x1b[2J")) == (
        "Error: bad script:\n  Error: all is lost\\x1b[2J"
    )


def test_progress_is_silent_unless_stderr_is_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("fila.cli.progress._SILENT_S", 0.0)
    with Progress("moved", 10) as progress:
        progress.add(5)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_drawn_and_wiped(capsys, monkeypatch):
    monkeypatch.setattr("fila.cli.progress._SILENT_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress("moved", 10) as progress:
        progress.add(5)
    drawn = capsys.readouterr().err
    assert re.fullmatch(r"\r\x1b\[Kmoved 5 of 10 \([\d,]+/s\)\r\x1b\[K", drawn)


def test_a_report_says_nothing_that_a_terminal_would_obey():
    hostile = "tenant \x9b2J\x1b[2J\u202e"
    found = Table("t", ["key"], [(hostile,)], f"worst: {hostile}")
    report = Report("delays", f"about {hostile}", [f"first {hostile}\nsecond"], [found])
    assert all(line.isprintable() for line in pipeline._text(report).split("\n"))
    assert "\nsecond\n" in pipeline._text(report)
