"""Airflow: the tables every ten minutes; each day a verdict, a bill, and a compacted journal.

Every task is a `fila pipeline` command, so it may be repeated: a run that failed half way goes on
where it was. Exit code 1 of `fairness` is FAIL, 3 is "too little to judge".
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

JOURNAL, TABLES = "/var/lib/fila/journal", "/var/lib/fila/tables"
AGAIN = {"retries": 3, "retry_delay": timedelta(minutes=1)}

with DAG(
    "fila_tables",
    schedule=timedelta(minutes=10),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one job at a time writes to the tables
    default_args=AGAIN,
):
    BashOperator(
        task_id="run",
        bash_command=f"fila pipeline run --journal {JOURNAL} --tables {TABLES} --available-now",
    )

with DAG(
    "fila_daily",
    schedule="15 0 * * *",  # UTC, as the journal's days are
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args=AGAIN,
):
    verdict = BashOperator(
        task_id="fairness",
        bash_command=(
            f"fila pipeline fairness --journal {JOURNAL} --tables {TABLES} "
            "--from {{ data_interval_start.strftime('%Y-%m-%dT00:00:00') }} "
            "--to {{ data_interval_end.strftime('%Y-%m-%dT00:00:00') }} --output json"
        ),
        skip_on_exit_code=3,
        retries=0,
    )
    charged = BashOperator(
        task_id="chargeback",
        bash_command=(
            f"fila pipeline show chargeback --tables {TABLES} --top 1000000 --json "
            "--from {{ data_interval_start.strftime('%Y-%m-%dT00:00:00') }} "
            "--to {{ data_interval_end.strftime('%Y-%m-%dT00:00:00') }} "
            "> /var/lib/fila/charged-{{ ds }}.json"
        ),
    )
    compacted = BashOperator(
        task_id="compact", bash_command=f"fila pipeline compact --journal {JOURNAL}"
    )
    [verdict, charged] >> compacted
