"""Leximin: the worst-off tenant is as well off as possible, then the next, by linear programs, level by level.

The gains of leximin are unique: the set of gains that can be reached is convex. Every program finds the next level and,
by its multipliers, tenants that have no more than this level in any of its optima; these keep it. As each level uses up
types for all who are above it, there are few levels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, OefView, kinds, whole
from schedgap.models.engine.solve import SolveOptions, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.oef.printed import decode, maximise_efficiency, shares
from schedgap.models.provers.rounding import duals
from schedgap.models.registry import Outcome, solve_built, total

BINDS = 1e-9
"""A row binds if its multiplier, times the tenant's efficiency with an equal split, is more; they add up to 1."""

ROUNDED = 1 - 1e-9
"""Levels are kept up to this factor, so that rounding errors make no program infeasible."""


def build_least_gain(view: OefView) -> pyo.ConcreteModel:
    r"""Build the program of the largest least gain of a tenant as a whole.

    - :math:`t`: tenants as a whole; :math:`l \in t`: the rows of t, one for each of its job types.
    - :math:`e_t = \sum_j \max_{l \in t} w_l^j m_j \pi_t / \sum_i \pi_i`: efficiency of t with the equal split, by
      weight, if every type runs the job type that is fastest on it.
    - ``z`` :math:`z \ge 0`: the least gain.

    .. math:: \max z
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j \ge e_t \cdot z \quad \forall t \label{at_least}

    With one job type per tenant, this is Gavel's program (``oef.gavel``).

    Duals: those of the rows, times :math:`e_t`, add up to 1; tenants without one may have more.
    """
    m = shares(view)
    seen, _ = whole(view)
    m.WHOLE = pyo.RangeSet(0, seen.size - 1)
    m.OWN = pyo.Set(m.WHOLE, initialize=grouped(zip(view.owner.tolist(), range(view.size), strict=True)))
    m.e = pyo.Param(m.WHOLE, initialize=seen.split_efficiency.tolist())
    m.z = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.WHOLE)
    def at_least(m: Any, t: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) - m.e[t] * m.z >= 0

    counted(m, ((m.at_least[t], seen.split_efficiency[t]) for t in range(seen.size)))
    m.least = pyo.Objective(rule=lambda m: m.z, sense=pyo.maximize)
    return m


def build_leximin(view: OefView, kept: Array | None = None) -> pyo.ConcreteModel:
    r"""Build the program of the next level of leximin, if some tenants keep theirs.

    - :math:`t`: tenants as a whole; :math:`l \in t`: the rows of t, one for each of its job types.
    - :math:`F`: tenants whose level :math:`z_t` is known, none in the first program; :math:`e_t`: efficiency of t with
      the equal split, by weight, if every type runs the job type that is fastest on it.
    - ``z`` :math:`z \ge 0`: the next level, the least gain of all others.

    .. math:: \max z
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j \ge e_t \cdot z \quad \forall t \notin F \label{at_least}
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j \ge e_t \cdot z_t \quad \forall t \in F \label{keeps}

    Duals: a tenant whose row of z has a multiplier has this level in every optimum, and joins F. The programs end when
    all tenants have a level.

    *Ties.* Gains are unique. Of the allocations with these gains, the one with the largest second objective is
    returned, as in all linear programs here.
    """
    m = build_least_gain(view)
    if kept is not None and (known := np.flatnonzero(np.isfinite(kept)).tolist()):
        m.KNOWN = pyo.Set(initialize=known)
        m.level = pyo.Param(m.KNOWN, initialize={t: float(kept[t]) for t in known})
        for t in known:
            m.at_least[t].deactivate()

        @m.Constraint(m.KNOWN)
        def keeps(m: Any, t: int) -> Any:
            return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) >= m.e[t] * m.level[t]

        counted(m, ((m.keeps[t], whole(view)[0].split_efficiency[t]) for t in known))
    return m


def leximin(view: OefView, options: SolveOptions) -> Outcome:
    """Solve the programs of all levels, over merged tenants; the last one maximises total efficiency at these gains."""
    began, kind = clock.now(), kinds(view)
    split = kind.view.split_efficiency
    level = np.full(kind.view.size, np.inf)
    solutions = []
    while np.isinf(level).any():
        build = partial(build_leximin, kept=level * ROUNDED)
        outcome = solve_built(build, decode, kind.view, options.since(began))
        solutions.append(outcome.solution)
        if outcome.solution.status != "optimal" or outcome.solution.objective is None:
            return Outcome(replace(outcome.solution, objective=None), None)
        free = np.isinf(level)
        binds = -duals(outcome.solution, "at_least", level.shape) * split > BINDS
        binds = free & (binds if (binds & free).any() else True)
        level = np.where(binds, outcome.solution.objective, level)

    def at_levels(v: OefView) -> pyo.ConcreteModel:
        m = build_leximin(v, level * ROUNDED)
        m.least.deactivate()
        m.z.fix(0.0)
        return maximise_efficiency(m)

    last = solve_built(at_levels, decode, kind.view, options.since(began))
    if last.decision is None:
        return Outcome(last.solution, None)
    times = total(*(s.times for s in (*solutions, last.solution)))
    devices = kind.divided(last.decision.devices)
    return Outcome(
        replace(last.solution, objective=float(level.min()), times=times, column_values=None), Allocation(devices)
    )
