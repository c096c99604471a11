"""A schema as Spark wants Arrow's batches to have it, whichever Spark this is."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """With times in UTC: Spark 4.1 always has them so, newer ones have to be told."""
    convert: Any = to_arrow_schema
    told = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    return convert(schema, **told)
