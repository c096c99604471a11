"""Dagster: the tables as assets, brought up to date every ten minutes, with fairness as a check.

dagster dev -f dagster_jobs.py
"""

from __future__ import annotations

import json
import subprocess

import dagster as dg

JOURNAL, TABLES = "/var/lib/fila/journal", "/var/lib/fila/tables"
PLACES = ["--journal", JOURNAL, "--tables", TABLES]
RUN = ["fila", "pipeline", "run", *PLACES, "--available-now"]
STATUS = ["fila", "pipeline", "status", *PLACES, "--json"]
FAIRNESS = ["fila", "pipeline", "fairness", *PLACES, "--from", "1h", "--json"]
NOTHING_TO_JUDGE = 3


@dg.asset(retry_policy=dg.RetryPolicy(max_retries=3, delay=60))
def fila_tables() -> dg.MaterializeResult:
    """Events, facts and products; a run that failed half way goes on where it was."""
    subprocess.run(RUN, check=True)
    said = subprocess.run(STATUS, check=True, capture_output=True, text=True).stdout
    status = json.loads(said)
    behind = sum(broker["behind"] for broker in status["brokers"])
    return dg.MaterializeResult(metadata={"events": status["events"], "behind": behind})


@dg.asset_check(asset=fila_tables)
def fair() -> dg.AssetCheckResult:
    """Did every tenant get what it was promised in the last hour?"""
    done = subprocess.run(FAIRNESS, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1, NOTHING_TO_JUDGE):
        raise RuntimeError(done.stderr)
    said = " ".join(json.loads(done.stdout)["said"])
    return dg.AssetCheckResult(passed=done.returncode != 1, metadata={"said": said})


every_ten_minutes = dg.ScheduleDefinition(
    job=dg.define_asset_job("fila_tables_job", [fila_tables]), cron_schedule="*/10 * * * *"
)
defs = dg.Definitions(assets=[fila_tables], asset_checks=[fair], schedules=[every_ten_minutes])
