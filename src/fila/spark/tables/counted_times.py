"""Counts the times of deliveries into histograms, batch by batch, on the workers.

Numpy does for 50,000 deliveries at once what Spark's own aggregation does row by row: a delivery
has up to eight times, and grouping each of them by its bucket cost five times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fila.spark.tables.histogram import EACH, STEPS, STEPS_BITS, TIMES

_MAP: Final = pa.map_(pa.int32(), pa.int64())


def count_times(batches: Iterator[Any]) -> Iterator[Any]:
    """Cell columns and one column for each time in; cell columns and a histogram out, a row for
    each cell of the batch."""
    for batch in batches:
        if batch.num_rows:
            yield _counted(batch)


def _counted(batch: Any) -> Any:
    names = batch.schema.names
    cells = [batch.column(name) for name in names if name not in TIMES]
    first, of_row = _grouped(cells)
    codes = []
    for number, name in enumerate(TIMES):
        column = batch.column(name)
        micros = column.fill_null(0).to_numpy(zero_copy_only=False)
        there = micros > 0
        bucket = buckets(micros[there])
        codes.append(of_row[there] * (EACH * len(TIMES)) + number * EACH + bucket)
    code, count = np.unique(np.concatenate(codes), return_counts=True)
    of_cell = code // (EACH * len(TIMES))
    offsets = np.searchsorted(of_cell, np.arange(len(first) + 1)).astype(np.int32)
    histograms = pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array((code % (EACH * len(TIMES))).astype(np.int32)),
        pa.array(count.astype(np.int64)),
    )
    rows = pa.array(first)
    return pa.RecordBatch.from_arrays(
        [*[one.take(rows) for one in cells], histograms],
        names=[*[name for name in names if name not in TIMES], "histogram"],
    )


def buckets(micros: Any) -> Any:
    """`histogram.bucket_of` for an array of whole numbers."""
    _, exponent = np.frexp(micros.astype(np.float64) + 0.5)
    shift = np.maximum(exponent.astype(np.int64) - 1 - STEPS_BITS, 0)
    return shift * STEPS + (micros >> shift)


def _grouped(columns: list[Any]) -> tuple[Any, Any]:
    """The first row of each different combination of values, and each row's combination."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        size = len(encoded.dictionary)
        if size > 1:
            number = number * size + encoded.indices.to_numpy(zero_copy_only=False)
            # Small again, or the product of many columns would not fit.
            _, number = np.unique(number, return_inverse=True)
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    return first, inverse
