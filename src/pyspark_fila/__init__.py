"""PySpark looks for packages named `pyspark_*`: this is how `format("fila")` registers itself."""

from fila.spark.source.data_source import FilaDataSource as DefaultSource

__all__ = ["DefaultSource"]
