"""Rows and traces of comparisons as Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from schedgap.harness.rows import FIELDS, Row

_TEXT = ("published", "metrics")
_LISTS = ("violations",)
_INTEGERS = ("seed", "nodes", "iterations", "rows", "columns", "nonzeros")
_BOOLEANS = ("ratio_is_upper", "verified")
_STRINGS = (
    *("instance", "fingerprint", "paper", "method", "problem", "kind", "sense", "bound_from"),
    *("guarantee", "status", "termination", "reason", "key", "limits"),
)


def rows_parquet(rows: Iterable[Row]) -> bytes:
    """Return rows as a Parquet file with one fixed schema (metrics and published numbers as JSON text)."""
    import pyarrow as pa

    records = [row.as_dict() for row in rows]
    for record in records:
        record.update({name: json.dumps(record[name]) for name in _TEXT})
        record.update({name: list(record[name]) for name in _LISTS})
    kinds = {name: pa.float64() for name in FIELDS}
    kinds |= dict.fromkeys(_INTEGERS, pa.int64()) | dict.fromkeys(_BOOLEANS, pa.bool_())
    kinds |= dict.fromkeys((*_STRINGS, *_TEXT), pa.string()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    return _parquet(records, pa.schema(list(kinds.items())))


def traces_parquet(traces: Iterable[Mapping[str, Any]]) -> bytes:
    """Return bounds and incumbents over time as a Parquet file."""
    import pyarrow as pa

    names = dict.fromkeys(("instance", "fingerprint", "method", "limits"), pa.string()) | {"seed": pa.int64()}
    numbers = dict.fromkeys(("time_s", "incumbent", "bound"), pa.float64())
    return _parquet([dict(t) for t in traces], pa.schema(list({**names, **numbers}.items())))


def _parquet(records: list[dict[str, Any]], schema: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())
