"""The conformance programme: every SDK against every scenario, and the matrix of what passed.

    python sdks/conformance/run.py                              all languages, all scenarios
    python sdks/conformance/run.py --lang go --lang python      some languages
    python sdks/conformance/run.py --scenario order             one scenario, also several
    python sdks/conformance/run.py --lang go --command ./mine   another adapter in its place
    python sdks/conformance/run.py --json                       results as JSON
    python sdks/conformance/run.py --markdown                   write docs/sdks/conformance.md too
    python sdks/conformance/run.py --list                       the scenarios

Exit code 0 when everything passed. Needs the server's dependencies (`make setup`) and openssl.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "src")]

from harness import report  # noqa: E402
from harness.adapter import Adapter, AdapterError, Declaration, declared  # noqa: E402
from harness.certificates import Certificates  # noqa: E402
from harness.places import CATALOGUE, REPOSITORY, SOURCE  # noqa: E402
from harness.report import Result  # noqa: E402
from harness.scenario import Scenario, ScenarioError, load  # noqa: E402
from harness.stage import Stage, StepError  # noqa: E402

PAGE = REPOSITORY / "docs" / "sdks" / "conformance.md"


def main() -> int:
    arguments = _arguments()
    try:
        scenarios = load(arguments.scenario)
    except ScenarioError as mistake:
        print(mistake, file=sys.stderr)
        return 2
    if arguments.list:
        for scenario in scenarios:
            print(f"{scenario.name:20} {scenario.title}")
        return 0
    adapters = declared()
    unknown = set(arguments.lang or ()) - set(adapters)
    if unknown:
        print(f"no adapter {min(unknown)!r}; there are: {', '.join(adapters)}", file=sys.stderr)
        return 2
    chosen = [adapters[name] for name in arguments.lang or adapters]
    if arguments.command:
        if len(chosen) != 1:
            print("--command replaces one adapter: give one --lang", file=sys.stderr)
            return 2
        chosen = [chosen[0]._replace(build="", run=arguments.command)]
    results = run(chosen, scenarios, quiet=arguments.json)
    if arguments.json:
        print(report.as_json(results))
    else:
        print(report.as_text(scenarios, results))
    if arguments.markdown:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(report.as_markdown(scenarios, results), encoding="utf-8")
    return 0 if all(result.outcome == report.PASSED for result in results) else 1


def run(adapters: list[Declaration], scenarios: list[Scenario], quiet: bool) -> list[Result]:
    """Every scenario on every adapter, one after the other."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="fila-conformance-") as place:
        certificates = Certificates(Path(place))
        for adapter in adapters:
            trouble = adapter.prepare()
            for scenario in scenarios:
                if trouble:
                    result = Result(adapter.language, scenario.name, report.ABSENT, 0.0, trouble)
                else:
                    result = asyncio.run(_run_one(adapter, scenario, certificates))
                results.append(result)
                if not quiet:
                    _progress(result)
                    trouble = trouble and "see above"
    return results


async def _run_one(
    declaration: Declaration, scenario: Scenario, certificates: Certificates
) -> Result:
    started = time.monotonic()
    detail, logs = "", ""
    path = os.pathsep.join(filter(None, (str(SOURCE), os.environ.get("PYTHONPATH"))))
    try:
        adapter = await Adapter.start(declaration, {"PYTHONPATH": path})
    except OSError as error:
        text = f"{declaration.run}: {error}"
        return Result(declaration.language, scenario.name, report.ABSENT, 0.0, text)
    stage = Stage(scenario, adapter, certificates, retryable_by_name())
    try:
        await stage.play()
        await adapter.end()
    except (StepError, AdapterError) as why:
        detail = str(why)
        logs = _tail("its stderr", adapter.stderr) + _tail("the broker's log", stage.broker_log())
    except Exception as error:
        detail = f"the runner failed: {type(error).__name__}: {error}"
    finally:
        await adapter.kill()
    outcome = report.FAILED if detail else report.PASSED
    seconds = round(time.monotonic() - started, 2)
    return Result(declaration.language, scenario.name, outcome, seconds, detail + logs)


def retryable_by_name() -> dict[str, bool]:
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))["errors"]
    return {entry["name"]: entry["retryable"] for entry in catalogue}


def _progress(result: Result) -> None:
    line = f"{result.language} {result.scenario}: {result.outcome} ({result.seconds:.1f} s)"
    print(line, file=sys.stderr, flush=True)


def _tail(title: str, text: str) -> str:
    lines = text.strip().splitlines()[-12:]
    return "".join([f"\n  {title}:", *(f"\n    {line}" for line in lines)]) if lines else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the SDKs' conformance programme.")
    parser.add_argument("--lang", action="append", help="a language of adapters.toml; repeatable")
    parser.add_argument("--scenario", action="append", help="one scenario; repeatable")
    parser.add_argument("--command", help="run this adapter instead of the declared one")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--markdown", action="store_true", help="write docs/sdks/conformance.md")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
