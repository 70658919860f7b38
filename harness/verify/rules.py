"""The form of every checker: well-formed arrays, groups of rows, and a line for each rule that is broken.

A checker reads a decision into :class:`Rows` and lists its rules. A rule is a mask of the rows that break it, and a
template that names job, server, slot and numbers of the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from string import Formatter
from types import SimpleNamespace
from typing import Any, ParamSpec

import numpy as np

from schedgap.harness.verify import Verdict
from schedgap.harness.verify.proofs.basics import RefusedError
from schedgap.instances.arrays import Bools

LARGEST = 2**40
"""Slots and numbers of workers are below that, so that sums of them stay exact."""

SHORTFALL = 1e-8
"""Relative work that may be missing, capacity or bandwidth that may be exceeded: ten times what views round, and more
than rows of models leave beside a solver's tolerance (:data:`schedgap.instances.elastic.machines.ROOM`)."""

WHOLE = (-(2**63), 2**63)
"""Any whole number: one that is out of place is then named with its row."""

Range = int | tuple[int, int] | None
"""What an array may hold: indices below a number, whole numbers from one to below another, amounts of 0 or more."""

P = ParamSpec("P")


def refuse(lines: Iterable[str]) -> None:
    """End a check by a `RefusedError` with lines on rules without which the others mean nothing, if there are any."""
    if told := tuple(lines):
        raise RefusedError(*told)


def refusing(check: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """Return a check that makes a verdict of what it refuses."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return check(*args, **kwargs)
        except RefusedError as refused:
            return Verdict(None, refused.args)

    return checked


def well_formed(decision: object, *tables: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Return the arrays of a decision, its attributes, by name; refuse one that is no list of numbers it may hold.

    The tables say what arrays may hold, by name; those of a table are equally long.
    """
    arrays = {name: np.asarray(getattr(decision, name)) for table in tables for name in table}
    for table in tables:
        first = next(iter(table))
        for name, allowed in table.items():
            array, what = arrays[name], "numbers" if allowed is None else "whole numbers"
            if array.ndim != 1 or array.dtype.kind not in ("iuf" if allowed is None else "iu"):
                refuse([f"{name}: a list of {what}, not {array.dtype} of shape {array.shape}"])
            if array.size != arrays[first].size:
                refuse([f"{name}: {array.size} entries, {first} has {arrays[first].size}"])
    for table in tables:
        for name, allowed in table.items():
            array = arrays[name]
            if allowed is None:
                refuse([] if np.all(np.isfinite(array) & (array >= 0)) else [f"{name}: numbers of 0 or more"])
            elif array.size:
                least, beyond = allowed if isinstance(allowed, tuple) else (0, allowed)
                lowest, highest = int(array.min()), int(array.max())
                right = f"they go from {least} to {beyond - 1}" if beyond > least + 1 else f"it is {least}"
                odd = [lowest] * (lowest < least) or [highest] * (highest >= beyond)
                refuse(f"{name} {one}: {right if beyond > least else 'there are none'}" for one in odd)
    kinds = {name: np.float64 if allowed is None else np.int64 for table in tables for name, allowed in table.items()}
    return [{name: arrays[name].astype(kinds[name]) for name in table} for table in tables]


class Rows(SimpleNamespace):
    """Arrays of equal length as attributes, the columns of a table.

    `names` says how numbers in a column are shown, by column: ``{"job": ids.__getitem__}``.
    """

    def __init__(self, names: Mapping[str, Callable[[Any], str]], **columns: Any) -> None:
        super().__init__(names=names, **columns)

    def broken(self, where: Bools, text: str, more: str = " (and {others} more)", **also: Any) -> list[str]:
        """Return a line about the first row `where` a rule is broken, or none.

        Fields of its template `text` are columns, these or those in `also`, shown as `names` says. ``{more}`` is where
        the template `more` mentions the others: ``{count}`` rows break the rule, ``{others}`` besides the first.
        """
        rows = np.flatnonzero(where)
        if not rows.size:
            return []
        columns = vars(self) | also
        fields = [name for _, name, _, _ in Formatter().parse(text) if name and name != "more"]
        values = {name: columns[name][rows[0]] for name in fields}
        shown = {name: self.names[name](value) if name in self.names else value for name, value in values.items()}
        told = more.format(count=rows.size, others=rows.size - 1) if rows.size > 1 else ""
        return [text.format(more=told, **shown)]

    def by(self, *keys: str) -> Groups:
        """Return the groups of rows that agree in these columns."""
        return Groups(self, keys)

    def sums(self, by: str, at: str, *changes: Any) -> tuple[Groups, list[Any]]:
        """Return the moments `at` which sums change, `by` what they are of, and the sums from then on."""
        moments = self.by(by, at)
        whole = moments.by(by)
        found = []
        for change in map(moments.total, changes):
            sums = np.cumsum(change, axis=0)
            found.append(sums - np.repeat((sums - change)[whole.first], whole.count, axis=0))
        return moments, found


def overlaps(runs: Rows, text: str) -> list[str]:
    """Return a line where a run of a job begins up to the last moment `before` its run before ends."""
    order = np.lexsort((runs.end, runs.start, runs.job))
    job, start, before = runs.job[order], runs.start[order], runs.end[order] - 1
    later = Rows(runs.names, job=job[1:], start=start[1:], before=before[:-1])
    return later.broken((job[1:] == job[:-1]) & (later.start <= later.before), text)


class Groups(Rows):
    """Groups of rows that agree in some columns: these columns, in ascending order, and the `count` of rows of each."""

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
        """Return the values of the first row of each group."""
        return values[self.order][self.first]

    def spread(self, values: Any) -> Any:
        """Return for each row the value of its group."""
        found = np.empty((self.order.size, *values.shape[1:]), values.dtype)
        found[self.order] = np.repeat(values, self.count, axis=0)
        return found

    def total(self, values: Any) -> Any:
        """Return the sums of the rows' values over each group."""
        return np.add.reduceat(values[self.order], self.first)

    def least(self, values: Any) -> Any:
        """Return the smallest of the rows' values in each group."""
        return np.minimum.reduceat(values[self.order], self.first)

    def most(self, values: Any) -> Any:
        """Return the largest of the rows' values in each group."""
        return np.maximum.reduceat(values[self.order], self.first)
