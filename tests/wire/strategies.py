"""Hypothesis strategies for every body, derived from the table of layouts."""

from typing import Any

from hypothesis import strategies as st

from fila.wire import layouts

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "u8": st.integers(0, 0xFF),
    "u16": st.integers(0, 0xFFFF),
    "u32": st.integers(0, 0xFFFFFFFF),
    "u64": st.integers(0, 2**64 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "f64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": st.binary(max_size=300),
    "map": st.dictionaries(TEXT, TEXT, max_size=4),
    "string[]": st.lists(TEXT, max_size=4).map(tuple),
    "string?": st.none() | TEXT,
}


def body_of(body_type: Any) -> st.SearchStrategy[Any]:
    return _record(body_type, layouts.LAYOUTS[body_type])


def any_body() -> st.SearchStrategy[Any]:
    return st.sampled_from(list(layouts.LAYOUTS)).flatmap(body_of)


def _record(record_type: Any, layout: layouts.Layout) -> st.SearchStrategy[Any]:
    found = st.builds(record_type, *[_field(kind) for kind in layout.values()])
    optional = [name for name, kind in layout.items() if str(kind).startswith("optional ")]
    return found.map(lambda record: _without_gaps(record, optional))


def _without_gaps(record: Any, optional: list[str]) -> Any:
    """An optional field may be left out only together with all that follow it."""
    given = [getattr(record, name) is not None for name in optional]
    left_out = optional[given.index(False) :] if False in given else []
    return record._replace(**dict.fromkeys(left_out)) if left_out else record


def _field(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, layouts.ListOf):
        item = _record(kind.item, layouts.ITEM_LAYOUTS[kind.item])
        return st.lists(item, max_size=5).map(tuple)
    if kind.startswith("optional "):
        return st.none() | KINDS[kind.removeprefix("optional ")]
    return KINDS[kind]
