"""What Hadar's models share: when jobs can finish, the utility of that, and whether any job can finish at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Ints
from schedgap.instances.views.hadar import ROUNDING, View


def usable(view: View, job: int) -> Ints:
    """Return the GPU types on which `job` has a rate and of which there are GPUs, ascending."""
    return np.flatnonzero((view.workload.rates[job] > 0) & (view.capacity > 0))


def best_progress(view: View, job: int) -> float:
    """Return the largest progress of a gang alone in a slot, in iterations; 0 where it fits nowhere."""
    types = usable(view, job)
    fits = [view.capacity[types[view.progress[job, types] >= p]].sum() for p in view.progress[job, types]]
    enough = np.array(fits, np.int64) >= view.workload.gpus[job]
    return float(view.progress[job, types][enough].max(initial=0.0))


def earliest_finish(view: View, job: int, progress: float) -> int:
    """Return the first slot in which `job` can finish if it makes this progress in every slot from its arrival on."""
    slots = max(1, math.ceil(float(view.workload.work[job]) / progress * (1 - ROUNDING)))
    return int(view.arrival[job]) + slots - 1


def add_finish(m: pyo.ConcreteModel, view: View, complete: bool, progress: dict[int, float] | None = None) -> None:
    """Add ``v[j, f]`` (job j's last slot is f), ``pending[j, t] = Σ_{f ≥ t} v[j, f]`` and `everybody`.

    `pending` is written as a recursion, so that its nonzeros grow with the slots and not with their square.

    Parameters
    ----------
    m, view
        Model to extend, and what it is of.
    complete
        Whether every job completes.
    progress
        Largest progress of each job in a slot, of a whole gang on its own by default.
    """
    jobs = [int(j) for j in view.possible]
    best = progress or {j: best_progress(view, j) for j in jobs}
    first = {j: earliest_finish(view, j, best[j]) for j in jobs}
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


def maximise_utility(m: pyo.ConcreteModel) -> pyo.ConcreteModel:
    """Add the objective (1): total utility of the jobs that complete."""
    m.total = pyo.Objective(rule=lambda m: sum(m.utility[j, f] * m.v[j, f] for j, f in m.FINISH), sense=pyo.maximize)
    return m


def nobody_completes(view: View) -> str | None:
    """Say that no job can complete, or ``None``."""
    return None if view.possible.size else f"no job can complete: {view.hopeless[0]}"


def somebody_rejected(view: View) -> str | None:
    """Say which job can never complete, or ``None``."""
    reasons = [reason for reason in view.hopeless if reason]
    return f"not every job can complete: {reasons[0]}" if reasons else None
