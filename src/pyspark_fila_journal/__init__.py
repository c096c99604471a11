"""PySpark looks for packages named `pyspark_*`: so `format("fila-journal")` registers itself."""

from fila.spark.journal_source.data_source import JournalDataSource as DefaultSource

__all__ = ["DefaultSource"]
