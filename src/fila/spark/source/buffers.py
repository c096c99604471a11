"""Arrow columns as Python values, read from their buffers: one object per value, none in between.

Owns the layout of binary columns as far as a writer reads it. `to_pylist` would make a scalar of
every value first, which costs more than sending it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa


def slices(column: Any) -> list[memoryview]:
    """The values of a text or binary column, where they stand; null is empty."""
    binary = column.cast(pa.binary())
    _, ends, data = binary.buffers()
    if not len(binary):
        return []
    places = memoryview(ends).cast("i")[binary.offset : binary.offset + len(binary) + 1].tolist()
    view = memoryview(data if data is not None else b"")
    if not column.null_count:
        return [view[start:end] for start, end in pairwise(places)]
    valid = column.is_valid().to_pylist()
    return [
        view[start:end] if there else view[:0]
        for (start, end), there in zip(pairwise(places), valid, strict=True)
    ]


def words(column: Any) -> list[str]:
    """The values of a text column that says few things often; null is empty."""
    coded = column.fill_null("").dictionary_encode()
    known = coded.dictionary.to_pylist()
    indices = coded.indices
    _, numbers = indices.buffers()
    if not len(indices):
        return []
    at = memoryview(numbers).cast("i")[indices.offset : indices.offset + len(indices)]
    return [known[one] for one in at.tolist()]
