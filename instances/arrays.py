"""Array types, the tolerance of amounts, flat layout of ragged groups, and the base class of decisions.

The docstrings of functions that take or return arrays give the shapes.
"""

from __future__ import annotations

import html
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MBIT_PER_MB = 8.0
MBIT_PER_GBIT = 1000.0

ROUNDING = 1.01e-9
"""Relative amount of a job's work, of a time, or of the CPUs or memory of a level that may be missing.

This is a little more than checkers accept, so that no bound excludes an accepted schedule. Both tolerances are a little
more than a billionth, because numbers such as 1e9 and 1 are common.
"""

SLACK = 1.6e-8
"""Relative amount by which models and heuristics may exceed a capacity, so that six times 0.166666667 are a whole.

With less, HiGHS 1.15.1 called some models infeasible that have a schedule. Checkers accept 1.9e-8, which leaves room
for the tolerance of HiGHS. Bounds allow 2.1e-8, which is more than the checkers' tolerance and :data:`ROUNDING`
together.
"""


def nothing() -> Ints:
    """Return an empty integer array, the default of dataclass fields."""
    return np.zeros(0, np.int64)


MAX_SHOWN = 20
"""Number of entries of a decision that a notebook shows."""


def members(counts: Ints) -> tuple[Ints, Ints]:
    """Return, for each member of groups of sizes `counts`, its group and its position within the group, from 0."""
    group = np.repeat(np.arange(len(counts)), counts)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)


class Decision:
    """Base of the dataclasses of arrays that a paper's methods return; declare them with ``repr=False``."""

    def _arrays(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.size}

    def __repr__(self) -> str:
        shapes = (f"{name} {'×'.join(map(str, value.shape))}" for name, value in self._arrays().items())
        return f"{type(self).__module__.rpartition('.')[2]}.{type(self).__name__}({', '.join(shapes) or 'empty'})"

    def _repr_html_(self) -> str:
        """Return an HTML table of the arrays that are as long as the first one."""
        arrays = self._arrays()
        count = len(next(iter(arrays.values()), ()))
        columns = {name: value[:MAX_SHOWN].tolist() for name, value in arrays.items() if len(value) == count}
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        rows = (
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in zip(*columns.values(), strict=True)
        )
        more = f", the first {MAX_SHOWN} of {count:,}" if count > MAX_SHOWN else ""
        return f"<p>{html.escape(repr(self))}{more}</p><table><tr>{head}</tr>{''.join(rows)}</table>"
