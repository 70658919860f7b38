"""Shared parts of Hadar's models: finish variables and utilities, and reasons to skip a model."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.gangs.progress import earliest_finish

LARGEST = 40_000_000
"""Largest product of jobs and slots for which column generation runs by default: all utilities are kept in memory."""


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
