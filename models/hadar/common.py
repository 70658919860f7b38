"""Shared parts of Hadar's models: finish variables and utilities, skip reasons, and classes of servers for copies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.hadar import HadarView

LARGEST = 40_000_000
"""Largest product of jobs and slots for which column generation runs by default: all utilities are kept in memory."""


def usable(view: HadarView, job: int) -> Ints:
    """Return the GPU types that exist in the cluster and on which `job` has a positive rate, ascending."""
    return np.flatnonzero((view.workload.rates[job] > 0) & (view.capacity > 0))


def best_progress(view: HadarView, job: int) -> float:
    """Return the most iterations that a gang can do in a slot if it has the cluster to itself; 0 if it cannot run."""
    progress, capacity = (x[usable(view, job)] for x in (view.progress[job], view.capacity))
    return max((p for p in progress.tolist() if capacity[progress >= p].sum() >= view.workload.gpus[job]), default=0.0)


def earliest_finish(view: HadarView, job: int) -> int:
    """Return the first slot in which a gang can finish: alone, at its best rate in every slot from its arrival on."""
    slots = max(1, math.ceil(float(view.workload.work[job]) / best_progress(view, job) * (1 - ROUNDING)))
    return int(view.arrival[job]) + slots - 1


def add_finish(m: pyo.ConcreteModel, view: HadarView, complete: bool) -> None:
    """Add ``v[j, f]`` (job j's last slot is f), ``pending[j, t] = Σ_{f ≥ t} v[j, f]`` and `everybody` if `complete`.

    `pending` is written as a recursion: its nonzeros then grow linearly with the slots, not quadratically.
    """
    jobs = [int(j) for j in view.possible]
    first = {j: earliest_finish(view, j) for j in jobs}
    m.JOBS = pyo.Set(initialize=jobs)
    m.first = pyo.Param(m.JOBS, initialize=first, within=pyo.Integers)
    m.FINISH = pyo.Set(dimen=2, initialize=[(j, f) for j in jobs for f in range(first[j], view.slots)])
    worth = {j: view.utility(j) for j in jobs}
    m.utility = pyo.Param(m.FINISH, initialize={(j, f): float(worth[j][f]) for j, f in m.FINISH})
    m.v = pyo.Var(m.FINISH, domain=pyo.Binary)
    ends = [(j, f) for j in jobs for f in range(first[j], view.slots + 1)]
    m.pending = pyo.Var(ends, bounds=lambda m, j, t: (0, int(t < view.slots)))

    @m.Constraint(m.FINISH)
    def pending_from(m: Any, j: int, t: int) -> Any:
        return m.pending[j, t] == m.pending[j, t + 1] + m.v[j, t]

    if complete:

        @m.Constraint(m.JOBS)
        def everybody(m: Any, j: int) -> Any:
            return m.pending[j, m.first[j]] == 1


def nobody_completes(view: HadarView) -> str | None:
    """Return the reason to skip a model when no job can complete, or ``None``."""
    return None if view.possible.size else f"no job can complete: {view.hopeless[0]}"


def somebody_rejected(view: HadarView) -> str | None:
    """Return the reason to skip a model that completes every job when some job never can, or ``None``."""
    reasons = [reason for reason in view.hopeless if reason]
    return f"not every job can complete: {reasons[0]}" if reasons else None


def too_large(view: HadarView) -> str | None:
    """Return the reason why column generation runs only on request, or ``None``."""
    size = view.size * view.slots
    return f"{view.size:,} jobs in {view.slots:,} slots, more than {LARGEST:,} together" if size > LARGEST else None


class Classes(NamedTuple):
    """``c`` classes of servers with the same GPU type and size.

    Each class has a `gpu_type` and `gpus` in total, ``(c,)``; `kind` ``(h,)`` is the class of each server. All copies
    of a job together hold at most `limit` ``(n, c)`` GPUs of a class, and each GPU does `progress` ``(n, c)`` per slot.
    """

    gpu_type: Ints
    gpus: Ints
    kind: Ints
    limit: Ints
    progress: Array


def classes(view: HadarView) -> Classes:
    """Return the classes of servers, with the most GPUs that the copies of a job can hold and their progress."""
    hosts, work = view.servers, view.workload
    kinds = np.column_stack((hosts.gpu_type, hosts.gpus))
    sizes, kind, count = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    limit = np.minimum(work.gpus[:, None], sizes[:, 1]) * count
    progress = np.ascontiguousarray(work.rates[:, sizes[:, 0]] * view.slot_s)
    return Classes(sizes[:, 0], sizes[:, 1] * count, kind.ravel(), limit, progress)


def able(view: HadarView, of: Classes) -> Ints:
    """Return the jobs that can complete when they run as copies."""
    alone = (of.limit * of.progress).sum(axis=1) * (view.slots - view.arrival)
    return np.flatnonzero(alone >= view.workload.work * (1 - ROUNDING))
