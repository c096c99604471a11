"""A made-up record with its books, and the tables a stream makes of it: once for all tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fila.spark.tables.run import Asked, start
from fila.spark.tables.schemas import schemas
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.scenario import Scenario

_SLOW = "Python worker failed to connect back"


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return Scenario(1)


@pytest.fixture(scope="session")
def record(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("record") / "journal"
    scenario.write(root)
    return root


@pytest.fixture(scope="session")
def whole(spark: Any, record: Path, tmp_path_factory: pytest.TempPathFactory) -> ParquetStore:
    """The tables of the whole record, in one batch."""
    return fill(spark, record, tmp_path_factory.mktemp("whole") / "tables")


def fill(spark: Any, record: Path, tables: Path, **options: Any) -> ParquetStore:
    """Read all there is into the tables."""
    options.setdefault("available_now", True)
    for attempts_left in reversed(range(5)):
        query = start(spark, Asked((str(record),), str(tables), **options))
        try:
            query.awaitTermination()
            break
        except Exception as error:
            # Spark gives a Python process ten seconds to start, which a busy machine may exceed.
            if _SLOW not in str(error) or not attempts_left:
                raise
        finally:
            query.stop()
    return ParquetStore(spark, str(tables), schemas())
