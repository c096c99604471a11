"""The notebook of docs/pipeline is run, and the commands of its examples for schedulers are read.

Airflow and Dagster are not installed for this: their files are compiled, and the command line reads
each command they give.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fila.cli.main import parser

DOCS = Path(__file__).resolve().parents[3] / "docs" / "pipeline"
EXAMPLES = DOCS / "examples"


def test_the_notebook_runs_from_its_first_cell_to_its_last(
    spark: Any, record: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """In this process, on the session there is."""
    notebook = json.loads((DOCS / "notebook.ipynb").read_text())
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    monkeypatch.setenv("FILA_JOURNAL", str(record))
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    told = capsys.readouterr().out
    for column in ("fair_share", "budget_left", "blamed_key", "processing_us", "clears_s"):
        assert column in told
    names["facts"].unpersist()


def commands(path: Path) -> list[list[str]]:
    """Every command of an example, with the days Airflow would fill in."""
    tree = ast.parse(path.read_text())
    compile(tree, str(path), "exec")
    names: dict[str, Any] = {}
    found = []
    for node in tree.body:  # constants, and lists of words made of them
        if isinstance(node, ast.Assign) and not any(
            isinstance(inner, ast.Call) for inner in ast.walk(node)
        ):
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
    found += [words for words in names.values() if isinstance(words, list) and words[0] == "fila"]
    for one in ast.walk(tree):
        if isinstance(one, ast.keyword) and one.arg == "bash_command":
            text = eval(compile(ast.Expression(one.value), str(path), "eval"), names)
            text = re.sub(r"\{\{ data_interval_start.*?\}\}", "2023-11-14T00:00:00", text)
            text = re.sub(r"\{\{ data_interval_end.*?\}\}", "2023-11-16T00:00:00", text)
            found.append(shlex.split(text.partition(" > ")[0]))
    return found


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_jobs.py"])
def test_the_command_line_knows_the_commands_of_a_scheduler(name: str) -> None:
    found = commands(EXAMPLES / name)
    assert {words[2] for words in found} >= {"run", "fairness"}
    for words in found:
        assert words[:2] == ["fila", "pipeline"]
        assert parser().parse_args(words[1:]).verb == words[2]
