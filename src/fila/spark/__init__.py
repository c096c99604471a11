"""Fila on Spark: queues as DataFrames, and reports on the lifecycle journal.

    session   a Spark session, embedded or on a cluster      java     where its JVM comes from
    source    format("fila"): queues as DataFrames           jobs     archive, replay, import, …
    journal_source  format("fila-journal"): the journal as a stream
    tables    the journal as tables, kept by a stream        products  answers made of facts
    events    the journal as one DataFrame                   keys     what a key held, by window
    fairness, delays, latency, funnel, errors                the reports
    compact, whatif (trace, replay), doctor                  jobs that do more than read
    page, charts                                             reports as a page with pictures

Never imports the broker; `replay` runs the broker's own core. Importing this package imports
neither PySpark nor pyarrow: its modules do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("fila")` and `format("fila-journal")` known to a session that did not find
    them by itself."""
    from fila.spark.journal_source.data_source import JournalDataSource
    from fila.spark.source.data_source import FilaDataSource

    spark.dataSource.register(FilaDataSource)
    spark.dataSource.register(JournalDataSource)
