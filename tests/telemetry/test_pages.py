"""Pages and files that are made from the instrument table, or stand on it, agree with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fila.telemetry.instruments import HISTOGRAM, INSTRUMENTS, prometheus_name
from fila.telemetry.reference import metrics_reference

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "deploy" / "grafana"


def known_names() -> set[str]:
    names = set()
    for one in INSTRUMENTS:
        name = prometheus_name(one)
        if one.kind == HISTOGRAM:
            names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            names.add(name)
    return names


def test_the_metrics_page_is_the_one_make_docs_writes() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_reference()


def test_there_is_one_instrument_per_name_and_one_name_per_idea() -> None:
    names = [one.name for one in INSTRUMENTS]
    assert len(set(names)) == len(names)
    assert len({one.words for one in INSTRUMENTS}) == len(names)
    for one in INSTRUMENTS:
        assert re.fullmatch(r"fila(\.[a-z_]+)+", one.name)
        assert bool(one.bounds) == (one.kind == HISTOGRAM)
        assert list(one.bounds) == sorted(one.bounds)


@pytest.mark.parametrize("name", ["fila.json", "alerts.yml"])
def test_every_metric_that_grafana_and_the_alerts_name_exists(name: str) -> None:
    found = set(re.findall(r"\bfila_[a-z_]+", (GRAFANA / name).read_text()))
    assert found
    assert found <= known_names(), found - known_names()


def test_the_grafana_dashboard_shows_every_metric() -> None:
    dashboard = json.loads((GRAFANA / "fila.json").read_text())
    shown = set()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            shown |= set(re.findall(r"\bfila_[a-z_]+", target["expr"]))
    left_out = {
        # Totals that the panels of rates and of depth already tell.
        *("fila_messages_requeued_total", "fila_messages_released_total"),
        *("fila_messages_redriven_total", "fila_messages_purged_total"),
        *("fila_messages_aged_out_total", "fila_messages_overflowed_total"),
        *("fila_lua_circuit_breaker_activations_total", "fila_journal_written_total"),
    }
    for one in INSTRUMENTS:
        name = prometheus_name(one)
        assert name in left_out or any(each.startswith(name) for each in shown), name
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_every_path_of_the_contract_is_served() -> None:
    contract = (ROOT / "spec" / "http.md").read_text()
    paths = set(re.findall(r"(?:GET |POST |\| `)`?/api/v1/([a-z-]+)", contract))
    source = "".join(
        path.read_text() for path in (ROOT / "src" / "fila" / "edges" / "http").glob("*.py")
    )
    for path in paths:
        assert f'"{path}"' in source, path
