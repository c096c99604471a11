"""The gate tells the truth: what failed, what was left out, and nothing in CI is left out."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The gate with parts of its own, which all pass; its matrix tells what it was asked for."""
    spec = importlib.util.spec_from_file_location("gate", ROOT / "tools" / "gate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parts = {part: _says(f"{part}: 7 tests passed", 0) for part in module.PARTS}
    script = "import sys; print(len(sys.argv[1:]) // 2, 'languages passed:', *sys.argv[2::2])"
    parts["conformance"] = parts["five-minutes"] = [sys.executable, "-c", script]
    monkeypatch.setattr(module, "PARTS", parts)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "sdks").mkdir()
    (tmp_path / "sdks" / "setup").write_text("#!/bin/sh\n")
    (tmp_path / "sdks" / "setup").chmod(0o755)
    return module


def _says(text: str, code: int) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"]


def test_every_part_runs_and_is_in_the_summary(gate: ModuleType) -> None:
    outcomes = gate.run(gate.PARTS, in_ci=True)
    assert {one.part for one in outcomes} == set(gate.PARTS)
    told = gate.summary(outcomes)
    counted = [part for part in gate.PARTS if part not in ("conformance", "five-minutes")]
    assert all(f"{part}: 7 tests passed" in told for part in counted)
    assert "5 languages passed" in told and "6 languages passed" in told
    assert told.endswith(f"{len(gate.PARTS)} of {len(gate.PARTS)} parts passed")


@pytest.mark.parametrize("part", ["check", "tests", "rust", "conformance"])
def test_a_part_that_failed_fails_the_gate_and_the_others_still_run(
    gate: ModuleType, part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.PARTS[part] = _says("1 failed, 6 passed", 1)
    monkeypatch.setattr(sys, "argv", ["gate.py"])
    monkeypatch.setenv("CI", "")
    assert gate.main() == 1
    told = capsys.readouterr().out
    assert told.rstrip().endswith(
        f"{len(gate.PARTS) - 1} of {len(gate.PARTS)} parts passed, 1 failed"
    )
    (line,) = [line for line in told.splitlines() if line.startswith(f"  {part} ")]
    assert "FAILED" in line and "1 failed, 6 passed" in line


def _fails_first(counter: Path, said: str) -> list[str]:
    """A part that fails once, passes when it is repeated, and notes what it was asked."""
    script = (
        "import pathlib, sys; file = pathlib.Path(sys.argv[1]); first = not file.exists()\n"
        "file.open('a').write(' '.join(sys.argv[2:]) + '\\n')\n"
        f"print({said!r} if first else '1 passed'); raise SystemExit(first)"
    )
    return [sys.executable, "-c", script, str(counter)]


@pytest.mark.parametrize("part", ["tests", "rust"])
def test_what_passes_when_it_is_repeated_alone_is_unsteady_and_told(
    gate: ModuleType, part: str, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    gate.PARTS[part] = _fails_first(asked, "1 failed, 6 passed")
    (outcome,) = [one for one in gate.run(gate.PARTS, in_ci=True) if one.part == part]
    assert outcome.outcome == gate.UNSTEADY
    assert outcome.said == "1 failed, 6 passed; alone: 1 passed"
    assert gate.summary([outcome]).endswith("0 of 1 parts passed, 1 unsteady")
    assert asked.read_text().splitlines()[1:] == [
        " ".join(gate.ONLY_FAILED) if part == "tests" else ""
    ]


@pytest.mark.parametrize("said", ["3 failed, 1 error, 6 passed", "no closing line"])
def test_tests_that_fail_in_numbers_or_without_a_count_are_not_repeated(
    gate: ModuleType, tmp_path: Path, said: str
) -> None:
    asked = tmp_path / "asked"
    gate.PARTS["tests"] = _fails_first(asked, said)
    (outcome,) = gate.run(["tests"], in_ci=True)
    assert outcome.outcome == gate.FAILED and len(asked.read_text().splitlines()) == 1


def test_checks_are_not_repeated(gate: ModuleType, tmp_path: Path) -> None:
    gate.PARTS["check"] = _fails_first(tmp_path / "asked", "1 failed")
    (outcome,) = gate.run(["check"], in_ci=True)
    assert outcome.outcome == gate.FAILED


def test_the_tests_that_failed_are_those_that_are_repeated(
    gate: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "test_two.py").write_text(
        "import pathlib\n"
        "def test_good():\n    pass\n"
        "def test_unsteady():\n"
        "    file = pathlib.Path(__file__).with_name('been')\n"
        "    been = file.exists()\n"
        "    file.touch()\n"
        "    assert been\n"
    )
    gate.PARTS["tests"] = [
        sys.executable, "-m", "pytest", "-q", "-n", "2", "--rootdir", str(tmp_path), str(tmp_path)
    ]  # fmt: skip
    (outcome,) = gate.run(["tests"], in_ci=True)
    assert outcome.outcome == gate.UNSTEADY
    assert "1 failed, 1 passed" in outcome.said and "alone: 1 passed" in outcome.said


def test_a_language_that_is_not_installed_is_left_out_and_told(gate: ModuleType) -> None:
    gate.PARTS["ruby"] = _says("sdks/ruby: Ruby 3.1 or newer is missing", gate.MISSING)
    outcomes = {one.part: one for one in gate.run(gate.PARTS, in_ci=False)}
    assert outcomes["ruby"].outcome == gate.LEFT_OUT
    for part in ("conformance", "five-minutes"):
        assert "ruby" not in outcomes[part].said and "rust" in outcomes[part].said
    told = gate.summary(list(outcomes.values()))
    assert "Ruby 3.1 or newer is missing" in told and told.endswith("1 left out")


def test_in_ci_a_language_that_is_not_installed_fails_the_gate(gate: ModuleType) -> None:
    gate.PARTS["ruby"] = _says("sdks/ruby: Ruby 3.1 or newer is missing", gate.MISSING)
    outcomes = {one.part: one for one in gate.run(gate.PARTS, in_ci=True)}
    assert outcomes["ruby"].outcome == gate.FAILED
    assert "ruby" in outcomes["conformance"].said


def test_a_program_that_cannot_be_started_fails_the_gate(gate: ModuleType) -> None:
    gate.PARTS["go"] = ["no-such-program"]
    (outcome,) = gate.run(["go"], in_ci=True)
    assert outcome.outcome == gate.FAILED and "no-such-program" in outcome.said


def test_every_language_with_a_client_is_a_part() -> None:
    spec = importlib.util.spec_from_file_location("gate", ROOT / "tools" / "gate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    there = {check.parent.name for check in (ROOT / "sdks").glob("*/check")}
    assert there == set(module.LANGUAGES)
