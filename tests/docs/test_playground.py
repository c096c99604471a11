"""The playground's simulation, outside the browser: it is the core that decides."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "tools" / "playground" / "simulation.py"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulation", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tenant(name: str, rate: float, weight: int = 1, limit: float = 0) -> dict[str, Any]:
    return {"name": name, "rate": rate, "weight": weight, "limit": limit}


def delivered(told: dict[str, Any], kind: str = "fair") -> list[int]:
    return [one["delivered"] for one in told[kind]]


def test_quiet_tenants_do_not_wait_for_a_noisy_one(simulation: ModuleType) -> None:
    page = simulation.Playground([tenant("noisy", 200), tenant("quiet", 5)], 4, 100)
    told = page.advance(20_000)
    assert told["now_ms"] == 20_000
    assert told["fair"][1]["wait_ms"] < 100
    assert told["fifo"][1]["wait_ms"] > 2_000
    assert told["fair"][0]["pending"] > 1_000
    assert abs(sum(delivered(told)) - 2_000) <= 40  # the workers were never idle


def test_shares_follow_the_weights_and_limits_are_kept(simulation: ModuleType) -> None:
    three = [tenant("gold", 200, 6), tenant("silver", 200, 3), tenant("bronze", 200)]
    page = simulation.Playground(three, 4, 100)
    page.advance(2_000)
    gold, silver, bronze = delivered(page.advance(20_000))
    assert abs(gold / bronze - 6) < 0.2 and abs(silver / bronze - 3) < 0.2
    three[0]["limit"] = 10
    page.change(three, 100)
    page.advance(1_000)
    assert abs(delivered(page.advance(20_000))[0] - 200) <= 5
    three[0]["limit"] = 0
    page.change(three, 100)
    assert delivered(page.advance(20_000))[0] > 1_000


def test_without_keys_it_is_first_in_first_out(simulation: ModuleType) -> None:
    page = simulation.Playground([tenant("first", 0), tenant("second", 0)], 1, 100)
    page.burst(0, 500)
    page.burst(1, 100)
    told = page.advance(4_990)
    assert delivered(told, "fifo")[1] == 0 and delivered(told, "fair")[1] == 100


def test_the_same_requests_give_the_same_answers(simulation: ModuleType) -> None:
    def run() -> list[str]:
        asked = {"what": "start", "tenants": [tenant("a", 50), tenant("b", 80)], "workers": 2}
        simulation.call(json.dumps({**asked, "per_second": 60}))
        simulation.call(json.dumps({"what": "burst", "number": 0, "count": 50}))
        return [simulation.call(json.dumps({"what": "advance", "ms": 250})) for _ in range(20)]

    assert run() == run()
