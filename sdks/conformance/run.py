"""The conformance programme: every SDK against every scenario, and the matrix of what passed.

    python sdks/conformance/run.py                              all languages, all scenarios
    python sdks/conformance/run.py --lang go --lang python      some languages
    python sdks/conformance/run.py --scenario order             one scenario, also several
    python sdks/conformance/run.py --lang go --command ./mine   another adapter in its place
    python sdks/conformance/run.py --jobs 1                     one scenario at a time
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
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "src")]

from harness import report  # noqa: E402
from harness.adapter import Adapter, AdapterError, Declaration, declared  # noqa: E402
from harness.broker import Broker  # noqa: E402
from harness.brokers import Brokers  # noqa: E402
from harness.certificates import Certificates  # noqa: E402
from harness.places import CATALOGUE, REPOSITORY, SOURCE  # noqa: E402
from harness.report import Result  # noqa: E402
from harness.scenario import Scenario, ScenarioError, load  # noqa: E402
from harness.stage import Stage, StepError  # noqa: E402

PAGE = REPOSITORY / "docs" / "sdks" / "conformance.md"
JOBS = 2 * (os.cpu_count() or 1)  # scenarios wait more than they compute
BUILDS = 2
T = TypeVar("T")


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
    if arguments.markdown and (arguments.scenario or arguments.lang or arguments.command):
        print(
            "--markdown writes the whole matrix: give no --lang and no --scenario", file=sys.stderr
        )
        return 2
    results = asyncio.run(run(chosen, scenarios, arguments.jobs, quiet=arguments.json))
    if arguments.json:
        print(report.as_json(results))
    else:
        print(report.as_text(scenarios, results))
    if arguments.markdown:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(report.as_markdown(scenarios, results), encoding="utf-8")
    return 0 if all(result.outcome == report.PASSED for result in results) else 1


async def run(
    adapters: list[Declaration], scenarios: list[Scenario], jobs: int, quiet: bool
) -> list[Result]:
    """Every scenario on every adapter, `jobs` at a time; results by adapter, then by scenario."""
    with tempfile.TemporaryDirectory(prefix="fila-conformance-") as place:
        certificates = Certificates(Path(place))
        brokers = Brokers(certificates)
        building = [asyncio.to_thread(adapter.prepare) for adapter in adapters]
        troubles = await _in_lanes(building, BUILDS)

        async def one(adapter: Declaration, trouble: str, scenario: Scenario) -> Result:
            if trouble:
                told = trouble if scenario is scenarios[0] else "see above"
                result = Result(adapter.language, scenario.name, report.ABSENT, 0.0, told)
            else:
                result = await _run_one(adapter, scenario, brokers, certificates)
            if not quiet:
                _progress(result)
            return result

        try:
            return await _in_lanes(
                [
                    one(adapter, trouble, scenario)
                    for adapter, trouble in zip(adapters, troubles, strict=True)
                    for scenario in scenarios
                ],
                jobs,
            )
        finally:
            await brokers.close()


async def _in_lanes(work: list[Coroutine[None, None, T]], lanes: int) -> list[T]:
    """All of it, at most `lanes` at a time."""
    free = asyncio.Semaphore(lanes)

    async def one(part: Coroutine[None, None, T]) -> T:
        async with free:
            return await part

    return await asyncio.gather(*map(one, work))


async def _run_one(
    declaration: Declaration, scenario: Scenario, brokers: Brokers, certificates: Certificates
) -> Result:
    started = time.monotonic()
    detail, logs = "", ""
    path = os.pathsep.join(filter(None, (str(SOURCE), os.environ.get("PYTHONPATH"))))
    try:
        adapter = await Adapter.start(declaration, {"PYTHONPATH": path})
    except OSError as error:
        text = f"{declaration.run}: {error}"
        return Result(declaration.language, scenario.name, report.ABSENT, 0.0, text)
    broker: Broker | None = None
    try:
        broker = await brokers.take(scenario)
        stage = Stage(scenario, adapter, broker, certificates, retryable_by_name())
        await stage.play()
        await adapter.end()
    except (StepError, AdapterError) as why:
        detail = str(why)
        logs = _tail("its stderr", adapter.stderr)
        logs += _tail("the broker's log", broker.log() if broker else "")
    except Exception as error:
        detail = f"the runner failed: {type(error).__name__}: {error}"
    finally:
        await adapter.kill()
        if broker is not None:
            await brokers.give_back(broker, scenario, passed=not detail)
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
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"at a time (default {JOBS})")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--markdown", action="store_true", help="write docs/sdks/conformance.md")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
