"""What the comparison of the SDKs makes of its measurements."""

import sys

import pytest
from bench import sdks
from bench.record import Findings

SAME = [(40_000.0, 1.0, 2.0)] * 2


def _findings(**rates: float) -> Findings:
    speeds = dict.fromkeys((sdks.RAW, *sdks.LANGUAGES), SAME)
    speeds |= {name: [(rate, 1.0, 2.0)] * 2 for name, rate in rates.items()}
    peaks = dict.fromkeys(sdks.LANGUAGES, (10.0, 20.0))
    return sdks._findings(speeds, peaks, 1000, 500)


def _missed(findings: Findings) -> set[str]:
    return {one.what.split()[-1] for one in findings.targets if not one.met}


@pytest.mark.parametrize(
    ("rates", "missed"),
    [
        ({}, set()),  # as fast as raw frames: the server is the bound
        ({"python": 30_000, "go": 35_000}, {"go"}),
        ({"python": 20_000, "go": 31_000}, set()),
        ({"js": 39_000}, {"js"}),  # server-bound is no excuse for being slower than Python
        ({"ruby": 41_000, "java": 1_000}, {"java"}),
    ],
)
def test_goals_are_met_against_python_or_against_the_server(
    rates: dict[str, float], missed: set[str]
) -> None:
    assert _missed(_findings(**rates)) == missed


def test_the_page_has_a_line_for_every_client_and_says_what_was_missed() -> None:
    page = sdks._page(_findings(js=1_000))
    for name in (sdks.RAW, *sdks.LANGUAGES):
        assert f"| {name} |" in page
    (goal,) = [line for line in page.splitlines() if "rate of js" in line]
    assert goal.endswith("| missed |")


def test_pythons_load_program_and_the_raw_one_do_the_same_work() -> None:
    from fila import FilaClient
    from fila.testing import broker

    with broker() as running, FilaClient(running.address) as client:
        for name in (sdks.RAW, "python"):
            rate, produced_us, consumed_us = sdks.lifecycle(
                client, running.address, name, f"load-{name}", 400
            )
            assert rate > 0 and produced_us >= 0 and consumed_us >= 0
            assert client.list_queues() == []
    assert sys.executable in sdks.program("python", "produce", "x:1", "q", 1)
