"""Times as counts in buckets: a sketch that is merged by adding, and always comes out the same.

Owns the buckets, and the form they are kept in: a map from numbers to counts. Values below 32 µs
have one each; above, every doubling is cut into 32 of equal width, so a bucket's middle is within
1.6 % of every value in it. Whole numbers throughout: the same events give the same buckets whatever
batches they came in, which sketches that keep a random sample do not. Percentiles of them are
Spark's own `percentile` with frequencies.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as fn

STEPS: Final = 32  # buckets to a doubling
STEPS_BITS: Final = 5
# In a histogram of several times a bucket's number is that of its time, and its own.
TIMES: Final = (
    "wait",
    "age",
    "ready",
    "retry",
    "throttled",
    "no_consumer",
    "own",
    "turn",
    "paused",
    "busy_own",
    "busy_others",
)
TYPE: Final = "map<int,bigint>"
EACH: Final = 4_096  # buckets of one time


def bucket_of(micros: Column) -> Column:
    """The bucket of a time of 0 µs or more."""
    # A half more: a power of two is then never on the edge of what a floating logarithm can tell.
    exponent = fn.floor(fn.log2(micros + fn.lit(0.5))).cast("int")
    shift = exponent - fn.lit(STEPS_BITS)
    above = (shift * fn.lit(STEPS)).cast("int") + fn.call_function(
        "shiftright", micros, shift
    ).cast("int")
    return fn.when(micros < STEPS, micros.cast("int")).otherwise(above)


def middle_of(bucket: Column) -> Column:
    """The time in the middle of a bucket, in microseconds."""
    shift = (fn.floor(bucket / fn.lit(STEPS)) - 1).cast("int")
    low = fn.pmod(bucket, fn.lit(STEPS)) + fn.lit(STEPS)
    width = fn.pow(fn.lit(2.0), shift)
    return fn.when(bucket < STEPS, bucket.cast("double")).otherwise((low + 0.5) * width)


def bucket_number(micros: int) -> int:
    """The same for one number, for those who have no column."""
    if micros < STEPS:
        return micros
    shift = micros.bit_length() - 1 - STEPS_BITS
    return shift * STEPS + (micros >> shift)


def upper_edge(bucket: int) -> int:
    """The first time that is beyond a bucket, in microseconds."""
    if bucket < STEPS:
        return bucket + 1
    shift = bucket // STEPS - 1
    return int((bucket % STEPS + STEPS + 1) << shift)


def code_of(time: Column, micros: Column) -> Column:
    """The number of a bucket among those of all times; `time` is the place of one in TIMES."""
    return (time * fn.lit(EACH) + bucket_of(micros)).cast("int")


def added(histograms: Column) -> Column:
    """The sum of an array of histograms with their buckets in order, which has them so, too: the
    same counts, the same bytes."""
    none = fn.map_from_arrays(fn.array().cast("array<int>"), fn.array().cast("array<bigint>"))
    both = fn.aggregate(
        histograms,
        none,
        lambda one, other: fn.map_zip_with(
            one, other, lambda _, a, b: fn.coalesce(a, fn.lit(0)) + fn.coalesce(b, fn.lit(0))
        ),
    )
    several = fn.map_from_entries(fn.array_sort(fn.map_entries(both)))
    count = fn.size(histograms)
    return fn.when(count == 1, histograms[0]).when(count > 1, several)


def of_time(histogram: Column, time: str) -> Column:
    """The buckets of one time, as entries (key, value)."""
    first = TIMES.index(time) * EACH
    return fn.transform(
        fn.filter(
            fn.map_entries(histogram), lambda one: one["key"].between(first, first + EACH - 1)
        ),
        lambda one: fn.struct((one["key"] - first).alias("bucket"), one["value"].alias("count")),
    )
