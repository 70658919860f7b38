"""Reads a field of all jobs, whether an instance lists its jobs or has a list per field (a *column*).

In columns, a field of a job's history has the name ``history.field``, and ``null`` stands for a field that a job lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ..basics import Array, Data, require

INSIDE = "history"
CHUNK = 10_000


class RawColumns(Sequence[Data]):
    """The jobs of a file with columns, as objects that are made on demand."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        sizes = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
        require("id" in columns and len(sizes) == 1 and min(sizes) >= 0, "its jobs are not lists of equal length")
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns["id"])

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice) -> RawColumns: ...
    def __getitem__(self, index: int | slice) -> Data | RawColumns:
        if isinstance(index, slice):
            return RawColumns({name: column[index] for name, column in self.columns.items()})
        at = range(len(self))[index]
        return next(iter(self[at : at + 1]))

    def __iter__(self) -> Iterator[Data]:
        for values in zip(*self.columns.values(), strict=True):
            present = {name: value for name, value in zip(self.columns, values, strict=True) if value is not None}
            job = {name: value for name, value in present.items() if not name.startswith(f"{INSIDE}.")}
            own = {name.partition(".")[2]: value for name, value in present.items() if name not in job}
            yield job | ({INSIDE: own} if own else {})


def column(jobs: Sequence[Data], name: str) -> Sequence[Any] | Array:
    """Return a field of each job, ``None`` where a job lacks it."""
    columns = getattr(jobs, "columns", None)
    if columns is not None:
        return columns.get(name, [None] * len(jobs))  # type: ignore[no-any-return]
    outer, _, inner = name.partition(".")
    return [job.get(outer, {}).get(inner) for job in jobs] if inner else [job.get(outer) for job in jobs]


def numbers(jobs: Sequence[Data], name: str, default: float) -> Array:
    """Return a field ``(n,)`` of numbers, with a default where a job lacks it."""
    values = column(jobs, name)
    if not isinstance(values, np.ndarray):
        values = [default if value is None else value for value in values]
    return np.asarray(values, float)


def pairs(jobs: Sequence[Data], name: str) -> tuple[Array, Array]:
    """Return, for a field with lists of pairs of numbers, the job ``(k,)`` of each pair, and the pairs ``(k, 2)``."""
    values = column(jobs, name)
    if isinstance(values, np.ndarray):
        return np.repeat(np.arange(len(values)), values.shape[1]), values.reshape(-1, 2)
    which = np.repeat(np.arange(len(values)), [len(each or ()) for each in values])
    return which, np.array([pair for each in values for pair in each or ()], float).reshape(-1, 2)


def texts(content: Data) -> Iterator[str]:
    """Yield the parts of an instance's canonical JSON; jobs in columns are written one by one."""
    mark = "{"
    for name in sorted(content):
        value = content[name]
        if hasattr(value, "columns"):
            yield f"{mark}{written(name)}:["
            for first in range(0, len(value), CHUNK):
                yield "," * (first > 0) + written([*value[first : first + CHUNK]])[1:-1]
            yield "]"
        else:
            yield f"{mark}{written(name)}:{written(value)}"
        mark = ","
    yield "}" if content else "{}"


def written(content: object) -> str:
    """Return plain data as canonical JSON."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
