"""Building blocks of the checkers: well-formed arrays, groups of rows, and one line per broken rule.

A checker reads a decision into :class:`Rows` and lists its rules. A rule is a mask of the rows that break it, together
with a message template that names the job, server, slot and numbers of the first such row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from string import Formatter
from types import SimpleNamespace
from typing import Any, ParamSpec

import numpy as np

from schedgap.certificates.basics import RefusedError
from schedgap.harness.check.registry import Verdict
from schedgap.instances.arrays import Bools

LARGEST = 2**40
"""Slots and numbers of workers stay below this value, so that their sums are exact."""

SHORTFALL = 1.005e-9
"""Relative tolerance for missing work or fair progress; views and bounds allow a little more, 1.01e-9."""

EXCESS = 1.9e-8
"""Relative tolerance for exceeded capacity or bandwidth.

Models and heuristics exceed capacities by at most 1.6e-8, and HiGHS by 1e-9 more. The rules of bounds allow 2.1e-8,
which is more than this tolerance and :data:`SHORTFALL` together: a bound covers every decision that is accepted here.
"""

WHOLE = (-(2**63), 2**63)
"""Any integer; a later rule reports an integer that is out of range, and names its row."""

Range = int | tuple[int, int] | None
"""The values an array may hold: indices below n, integers from a up to but excluding b, or (``None``) amounts ≥ 0."""

P = ParamSpec("P")


def refuse(lines: Iterable[str]) -> None:
    """Raise `RefusedError` with these lines, if any: they report broken rules without which others make no sense."""
    if broken := tuple(lines):
        raise RefusedError(*broken)


def refusing(check: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """Decorate a check: a `RefusedError` becomes a verdict without an objective."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return check(*args, **kwargs)
        except RefusedError as refused:
            return Verdict(None, refused.args)

    return checked


def well_formed(decision: object, *tables: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Return a decision's arrays, table by table; refuse arrays of wrong type, length or range.

    Each table maps the names of equally long attributes of the decision to the values they may hold.
    """
    ranges = {name: allowed for table in tables for name, allowed in table.items()}
    arrays = {name: np.asarray(getattr(decision, name)) for name in ranges}
    for table in tables:
        first = next(iter(table))
        for name, allowed in table.items():
            array, what = arrays[name], "numbers" if allowed is None else "whole numbers"
            if array.ndim != 1 or array.dtype.kind not in ("iuf" if allowed is None else "iu"):
                refuse([f"{name}: a list of {what}, not {array.dtype} of shape {array.shape}"])
            if array.size != arrays[first].size:
                refuse([f"{name}: {array.size} entries, {first} has {arrays[first].size}"])
    for name, allowed in ranges.items():
        array = arrays[name]
        if allowed is None:
            refuse([] if np.all(np.isfinite(array) & (array >= 0)) else [f"{name}: numbers of 0 or more"])
        elif array.size:
            least, beyond = allowed if isinstance(allowed, tuple) else (0, allowed)
            lowest, highest = int(array.min()), int(array.max())
            right = f"they go from {least} to {beyond - 1}" if beyond > least + 1 else f"it is {least}"
            odd = [lowest] * (lowest < least) or [highest] * (highest >= beyond)
            refuse(f"{name} {value}: {right if beyond > least else 'there are none'}" for value in odd)
    kinds = {name: np.float64 if allowed is None else np.int64 for name, allowed in ranges.items()}
    return [{name: arrays[name].astype(kinds[name]) for name in table} for table in tables]


class Rows(SimpleNamespace):
    """A table whose columns are attributes: arrays of equal length.

    `names` maps columns to functions that format their values in messages: ``{"job": ids.__getitem__}``.
    """

    def __init__(self, names: Mapping[str, Callable[[Any], str]], **columns: Any) -> None:
        super().__init__(names=names, **columns)

    def broken(self, where: Bools, text: str, more: str = " (and {others} more)", **also: Any) -> list[str]:
        """Return one message about the first row of the mask `where`, or an empty list if no row breaks the rule.

        The fields of the template `text` are columns of this table or of `also`, formatted by `names`. If several rows
        break the rule, ``{more}`` is replaced by the template `more`, in which ``{count}`` is their number and
        ``{others}`` is one less.
        """
        rows = np.flatnonzero(where)
        if not rows.size:
            return []
        columns = vars(self) | also
        fields = [name for _, name, _, _ in Formatter().parse(text) if name and name != "more"]
        values = {name: columns[name][rows[0]] for name in fields}
        shown = {name: self.names[name](value) if name in self.names else value for name, value in values.items()}
        others = more.format(count=rows.size, others=rows.size - 1) if rows.size > 1 else ""
        return [text.format(more=others, **shown)]

    def by(self, *keys: str) -> Groups:
        """Group the rows that agree in these columns."""
        return Groups(self, keys)

    def sums(self, by: str, at: str, *changes: Any) -> tuple[Groups, list[Any]]:
        """Return the moments (pairs of the columns `by` and `at`) and, for each of `changes`, its running sum.

        Running sums are separate for each value of `by`; each includes the changes at the moment itself.
        """
        moments = self.by(by, at)
        whole = moments.by(by)
        running = []
        for change in map(moments.total, changes):
            sums = np.cumsum(change, axis=0)
            running.append(sums - np.repeat((sums - change)[whole.first], whole.count, axis=0))
        return moments, running


def overlaps(runs: Rows, text: str) -> list[str]:
    """Report a run that begins before the job's previous run has ended; `{before}` is that run's last moment."""
    order = np.lexsort((runs.end, runs.start, runs.job))
    job, start, before = runs.job[order], runs.start[order], runs.end[order] - 1
    later = Rows(runs.names, job=job[1:], start=start[1:], before=before[:-1])
    return later.broken((job[1:] == job[:-1]) & (later.start <= later.before), text)


class Groups(Rows):
    """Groups of rows that agree in the key columns: the keys in ascending order, and the `count` of rows per group."""

    def __init__(self, rows: Rows, keys: Sequence[str]) -> None:
        order = np.lexsort([getattr(rows, key) for key in reversed(keys)])
        columns = {key: getattr(rows, key)[order] for key in keys}
        new = np.zeros(order.size, bool)
        new[:1] = True
        for column in columns.values():
            new[1:] |= column[1:] != column[:-1]
        first = np.flatnonzero(new)
        super().__init__(rows.names, **{key: column[first] for key, column in columns.items()})
        self.order, self.first, self.count = order, first, np.diff(first, append=order.size)

    def head(self, values: Any) -> Any:
        """Return each group's value in its first row."""
        return values[self.order][self.first]

    def spread(self, values: Any) -> Any:
        """Return each row's group value: the inverse of an aggregation."""
        rows = np.empty((self.order.size, *values.shape[1:]), values.dtype)
        rows[self.order] = np.repeat(values, self.count, axis=0)
        return rows

    def total(self, values: Any) -> Any:
        """Return the sum of the values in each group."""
        return np.add.reduceat(values[self.order], self.first)

    def least(self, values: Any) -> Any:
        """Return the smallest value in each group."""
        return np.minimum.reduceat(values[self.order], self.first)

    def most(self, values: Any) -> Any:
        """Return the largest value in each group."""
        return np.maximum.reduceat(values[self.order], self.first)
