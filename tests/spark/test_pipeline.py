"""`fila pipeline` from the command line: forms of output, exit codes, words for what is missing."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fila.cli.main import main
from fila.spark.java import JavaMissing, find_java
from tests.core.turn import MS, SECOND
from tests.spark.conftest import write
from tests.spark.test_fairness import BEGIN, Story, starving, traffic


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    write(folder, traffic(quantum=1))
    return folder


def pipeline(*words: str) -> int:
    return main(["pipeline", *words])


def test_the_verdict_is_told_in_words_per_key_and_by_the_exit_code(
    spark, root, tmp_path, capsys
) -> None:
    assert pipeline("fairness", "--journal", str(root), "--window", "1s", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["said"][0].startswith("PASS: all ")
    assert (document["failed"], document["undecided"]) == (False, False)
    assert document["queues"][0]["verdict"] == "PASS"
    assert {row["fairness_key"] for row in document["keys"]} == {"a", "b", "c"}
    story = starving(2)
    story.now = BEGIN + 4 * SECOND
    story.deliver(b"noisy")
    write(tmp_path, story.events)
    assert pipeline("fairness", "--journal", str(tmp_path), "--window", "1s") == 1
    out = capsys.readouterr().out
    assert "FAIL: 2 of 2 judged windows" in out
    assert "not judged: 2.0 s because too little" in " ".join(out.split())
    assert "The widest windows" in out
    assert re.search(r"^test +q +starved +20 .* 2 +2 .*3 +2 +1 ", out, re.MULTILINE), out


def test_nothing_to_judge_has_an_exit_code_of_its_own(spark, tmp_path, capsys) -> None:
    story = Story(only=50)
    story.now += MS
    story.deliver(b"only", 20)
    write(tmp_path, story.events)
    assert pipeline("fairness", "--journal", str(tmp_path)) == 3
    assert "Nothing to judge" in capsys.readouterr().out


def test_csv_has_every_row(spark, root, capsys) -> None:
    assert pipeline("latency", "--journal", str(root), "--output", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["fairness_key"] for row in rows} == {"a", "b", "c"}


def test_parquet_can_be_read_back(spark, root, tmp_path: Path) -> None:
    target = tmp_path / "funnel"
    assert pipeline("funnel", "--journal", str(root), "--output", f"parquet:{target}") == 0
    assert spark.read.parquet(str(target)).count() == 3


def test_the_page_is_whole_and_loads_nothing(spark, root, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    words = ["report", "--journal", str(root), "--window", "1s", "--output", f"html:{target}"]
    assert pipeline(*words) == 0
    page = target.read_text()
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        assert len(ElementTree.fromstring(picture)) > 5
    assert "polyline" in pictures[0] and "fair share" in page
    assert 'class="turn"' in pictures[1] or 'class="busy_' in pictures[1]
    assert 'class="p99"' in pictures[2]
    assert not re.search(r'(src|href)="', page)


def test_what_the_broker_named_cannot_become_markup(spark, tmp_path: Path) -> None:
    from fila.core.effect import EVENT_DELIVERED, Event
    from fila.core.waits import Waits
    from tests.core.turn import MS, START, id_of

    key = b"<script>alert(1)</script>"
    wait = Waits(0, 0, 0, 0, 5 * MS)
    event = Event(
        START,
        EVENT_DELIVERED,
        "q",
        id_of(1),
        0,
        key,
        1,
        waits=wait,
        since_ns=START - 5 * MS,
        ready_ns=START - 5 * MS,
        enqueued_ns=START - 5 * MS,
    )
    write(tmp_path, [event])
    target = tmp_path / "page.html"
    words = ["report", "--journal", str(tmp_path), "--output", f"html:{target}"]
    assert pipeline(*words) == 0
    assert "<script>" not in target.read_text()


def test_whatif_says_its_calibration_first(spark, root, capsys) -> None:
    words = ["whatif", "--journal", str(root), "--weight", "a=5"]
    assert pipeline(*words) == 0
    out = capsys.readouterr().out
    assert out.index("Calibration") < out.index("with the changes")
    assert pipeline(*words, "--recorded-quantum", "700") == 1
    out = capsys.readouterr().out
    assert "Not compared" in out
    assert "with the changes" not in out


def test_the_doctor_finds_everything_here(spark, root, capsys) -> None:
    assert pipeline("doctor", "--journal", str(root)) == 0
    out = capsys.readouterr().out
    assert "All is well." in out
    assert re.search(r"^workers +ok +Python", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fairness", "--output", "pdf"), "is no output"),
        (("fairness", "--output", "parquet"), "parquet:PATH"),
        (("fairness", "--window", "soon"), "not a time"),
        (("fairness", "--from", "yesterday"), "neither a time"),
        (("whatif", "--weight", "a"), "not a weight"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(words, said, capsys) -> None:
    assert pipeline(*words) == 2
    assert said in capsys.readouterr().err


def test_a_journal_that_is_not_there_is_told(spark, tmp_path: Path, capsys) -> None:
    assert pipeline("latency", "--journal", str(tmp_path)) == 1
    assert "no journal in" in capsys.readouterr().err


def test_a_machine_without_java_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="apt-get install openjdk-17"):
        find_java({"PATH": str(tmp_path)}, (tmp_path,))


def test_an_old_java_is_named_and_passed_over(tmp_path: Path) -> None:
    for name, version in (("old", "1.8.0_392"), ("new", "21.0.2")):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o755)
    old = {"JAVA_HOME": str(tmp_path / "old"), "PATH": "/nowhere"}
    with pytest.raises(JavaMissing, match="Java 8 in"):
        find_java(old, ())
    assert find_java(old, (tmp_path,)).version == 21


def test_importing_fila_imports_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, fila, fila.cli.main, fila.spark; fila.cli.main.parser(); "
        "print([one for one in ('pyspark', 'pyarrow', 'pandas', 'numpy') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
