"""Valid schedules of moldable jobs, in which jobs choose one after another, and changes that make them invalid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schedgap.instances.moldable import Ledger, Runs, runs_of
from schedgap.instances.views import admission, zhou

CHANGES: list[Callable[[Any], Any]] = [
    lambda a: a * 3 + 10_000,
    lambda a: -a - 1,
    lambda a: a * np.nan,
    lambda a: a[:-1],
    lambda a: a.astype(float),
    lambda a: a[None],
    lambda a: a[:0],
    lambda a: a.astype(object),
    lambda a: a > 0,
    lambda a: np.int64(3),
    lambda a: None,
    lambda a: np.full(len(a), np.iinfo(np.int64).max),
    lambda a: np.full(len(a), np.iinfo(np.int64).min),
    lambda a: np.full(len(a), 2**64 - 1, np.uint64),
]
"""Changes to an array of a decision, each of which a checker must refuse."""

Row = tuple[int, int, int, int, int, list[tuple[int, int, int]]]
"""A run: job, start, slots, worker type, PS type, and a list of (server, workers, PSs)."""


def arrays_of(rows: Sequence[Row]) -> list[Any]:
    """Return the arrays of a decision that has these runs, in the order of its fields."""
    runs = np.array([row[:5] for row in rows], np.int64).reshape(-1, 5).T
    entries = np.array([(i, *entry) for i, row in enumerate(rows) for entry in row[5]], np.int64).reshape(-1, 4).T
    return [*runs, *entries]


def rows_of(good: Runs) -> list[Row]:
    """Return the runs of a decision as tuples."""
    runs = np.column_stack((good.job, good.start, good.slots, good.worker_type, good.ps_type)).tolist()
    entries = np.column_stack((good.run, good.server, good.workers, good.ps)).tolist()
    return [(*run, [(h, w, s) for r, h, w, s in entries if r == i]) for i, run in enumerate(runs)]


def changed(i: int, rows: list[Row], **new: Any) -> list[Row]:
    """Return rows in which some fields of row `i` are replaced."""
    names = ("job", "start", "slots", "worker_type", "ps_type", "at")
    row = dict(zip(names, rows[i], strict=True)) | new
    return [*rows[:i], tuple(row[name] for name in names), *rows[i + 1 :]]  # type: ignore[list-item]


def zhou_schedule(
    view: zhou.ZhouView,
    name: str,
    order: Sequence[int] | None = None,
    *,
    at_once: bool = False,
    latest: int | None = None,
) -> zhou.ZhouSchedule:
    """Return a schedule of Zhou's jobs, in the order of the instance by default.

    Parameters
    ----------
    view, name
        The view, and ``"ps"`` or ``"ra"``.
    order
        Jobs in the order in which they choose; each completes as soon as it can.
    at_once
        Whether all jobs are there in slot 1.
    latest
        Time τ by which jobs complete; those that cannot are left out.
    """
    of = view.architectures[name]
    slots = int(view.arrival.max() + of.options.shortest.sum()) if latest is None else latest - 1
    ledger = Ledger(of.machines, of.options, slots)
    found = []
    for j in range(view.size) if order is None else order:
        one = ledger.find(j, 0 if at_once else int(view.arrival[j]) - 1)
        if one is not None:
            ledger.book(one)
            found.append((j, one))
    return zhou.ZhouSchedule(**vars(runs_of(found, 1)))


def admitted(view: admission.AdmissionView, order: Sequence[int] | None = None, first: int = 1) -> Runs:
    """Return runs of admitted jobs, which choose one after another the run that completes first.

    A job starts `first` slots after its arrival or later.
    """
    ledger = Ledger(view.machines, view.options, view.slots)
    found = []
    for j in range(view.size) if order is None else order:
        one = ledger.find(j, int(view.arrival[j]) + first, int(view.deadline[j]))
        if one is not None:
            ledger.book(one)
            found.append((j, one))
    return runs_of(found, 0)
