"""Leximin: the worst-off tenant is as well off as possible, then the next.

*Where all can have all devices*, there is no next: speedups are above 0, so that who has more than another one could
give it some. So all gains are equal (:func:`build_leximin`), as efficiencies are in OEF's (9).

*Ties.* Among the optima of another linear program, gains may differ. There leximin is found level by level
(:func:`breaking_ties`). Gains are unique, as the set of gains that can be reached is convex. Every program finds the
next level and, by its multipliers, tenants that have no more than this level in any of its optima; these keep it. As
each level uses up types for all who are above it, there are few levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.oef import Allocation, OefView, kinds, whole
from schedgap.models.engine.solve import SolveOptions, Times, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.oef.printed import decode, shares
from schedgap.models.provers.rounding import duals
from schedgap.models.registry import Outcome, solve_built, total

BINDS = 1e-3
"""A row binds if its multiplier is more than this part of the mean, as rounding errors are multipliers, too. What binds
but has less is found by the next program."""

ROUNDED = 1 - 1e-9
"""Levels and totals are kept up to this factor, so that rounding errors make no program infeasible."""

TIES = Parameter(
    "ties",
    "which of several optima: fast types to large speedups, or the one in which the worst-off tenant is as well off as "
    "possible, then the next; the paper does not say",
    choices=("assortative", "leximin"),
)


class Sharers(NamedTuple):
    """Who has a level: the sharer `of` each row ``(v,)``, and the efficiency ``(sharers,)`` that counts as 1."""

    of: Ints
    unit: Array


def of_tenants(view: OefView) -> Sharers:
    """Return tenants as a whole, who count in equal splits."""
    return Sharers(view.owner, whole(view)[0].split_efficiency)


def build_least_gain(view: OefView) -> pyo.ConcreteModel:
    r"""Build the program of the largest least gain of a tenant as a whole.

    - :math:`t`: tenants as a whole; :math:`l \in t`: the rows of t, one for each of its job types.
    - :math:`e_t = \sum_j \max_{l \in t} w_l^j m_j \pi_t / \sum_i \pi_i`: efficiency of t with the equal split, by
      weight, if every type runs the job type that is fastest on it.
    - ``z`` :math:`z \ge 0`: the least gain.

    .. math:: \max z
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j \ge e_t \cdot z \quad \forall t \label{at_least}

    With one job type per tenant, this is Gavel's program (``oef.gavel``).

    Duals: those of the rows, times :math:`e_t`, add up to 1. All are above 0, since all gains are equal at the optimum
    (``oef.leximin``).
    """
    return with_levels(shares(view), of_tenants(view))


def build_leximin(view: OefView) -> pyo.ConcreteModel:
    r"""Build the program of leximin: the largest gain that all tenants can have equally.

    - :math:`t`: tenants as a whole; :math:`l \in t`: the rows of t, one for each of its job types.
    - :math:`e_t = \sum_j \max_{l \in t} w_l^j m_j \pi_t / \sum_i \pi_i`: efficiency of t with the equal split, by
      weight, if every type runs the job type that is fastest on it.
    - ``z`` :math:`z \ge 0`: the gain of every tenant.

    .. math:: \max z
    .. math:: \sum_{l \in t} \sum_j w_l^j x_l^j = e_t \cdot z \quad \forall t \label{equal}

    No gain differs from the least one in the best allocation: a tenant with more could give a part of its devices to
    each of the others, all of whom gain by every device, until the least gain is larger. So leximin has one level, and
    its gains are those of ``oef.least_gain``.

    Duals: minus those of the rows, times :math:`e_t`, add up to 1; each is what the gain of all falls by at the margin,
    per equal split that tenant t is to have more.

    *Job types.* For the same reason, water filling between job types (Gavel, §4.3) has one level, and is ``oef.gavel``;
    and in Gavel's hierarchical policy, no job type leaves its weight to others of its tenant. They differ where a job
    can use a limited number of devices (``row_cap``).

    *Ties.* Gains are unique. Of the allocations with these gains, the one with the largest second objective is
    returned, as in all linear programs here.
    """
    m = shares(view)
    sharers = of_tenants(view)
    tenants = range(len(sharers.unit))
    m.SHARERS = pyo.Set(initialize=list(tenants))
    m.OWN = pyo.Set(m.SHARERS, initialize=grouped(zip(sharers.of.tolist(), range(view.size), strict=True)))
    m.e = pyo.Param(m.SHARERS, initialize=sharers.unit.tolist())
    m.z = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.SHARERS)
    def equal(m: Any, t: int) -> Any:
        return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) - m.e[t] * m.z == 0

    counted(m, ((m.equal[t], sharers.unit[t]) for t in tenants))
    m.least = pyo.Objective(rule=lambda m: m.z, sense=pyo.maximize)
    return m


def with_levels(m: pyo.ConcreteModel, sharers: Sharers, kept: Array | None = None) -> pyo.ConcreteModel:
    """Add z, the next level, to a model of shares, as its objective; `kept` ``(sharers,)`` are efficiencies or NaN."""
    size = len(sharers.unit)
    known = [] if kept is None else np.flatnonzero(~np.isnan(kept)).tolist()
    m.SHARERS = pyo.Set(initialize=sorted(set(range(size)) - set(known)))
    m.OWN = pyo.Set(
        pyo.RangeSet(0, size - 1), initialize=grouped(zip(sharers.of.tolist(), range(len(sharers.of)), strict=True))
    )
    m.e = pyo.Param(pyo.RangeSet(0, size - 1), initialize=sharers.unit.tolist())
    m.z = pyo.Var(domain=pyo.NonNegativeReals)
    if len(m.SHARERS):

        @m.Constraint(m.SHARERS)
        def at_least(m: Any, t: int) -> Any:
            return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) - m.e[t] * m.z >= 0

        counted(m, ((m.at_least[t], sharers.unit[t]) for t in m.SHARERS))
    if known and kept is not None:
        m.KNOWN = pyo.Set(initialize=known)
        m.level = pyo.Param(m.KNOWN, initialize={t: float(kept[t]) for t in known})

        @m.Constraint(m.KNOWN)
        def keeps(m: Any, t: int) -> Any:
            return sum(m.w[l, j] * m.x[l, j] for l in m.OWN[t] for j in m.TYPES) >= m.level[t]

        counted(m, ((m.keeps[t], sharers.unit[t]) for t in known))
    m.least = pyo.Objective(rule=lambda m: m.z, sense=pyo.maximize)
    return m


class FilledLevel(NamedTuple):
    """The levels ``(sharers,)`` in efficiency, NaN where a program had no optimum, and the outcomes of all programs."""

    level: Array
    outcomes: list[Outcome]

    @property
    def times(self) -> Times:
        """Times of all programs."""
        return total(*(outcome.solution.times for outcome in self.outcomes))


def filled(built: Callable[[OefView], pyo.ConcreteModel], view: OefView, options: SolveOptions) -> FilledLevel:
    """Fill the levels of leximin within the rows of a model of shares; the last program has an allocation with all."""
    began, outcomes, now = clock.now(), list[Outcome](), of_tenants(view)
    level = np.full(len(now.unit), np.nan)
    while (free := np.isnan(level)).any():
        build = partial(_with_levels, built, sharers=now, kept=level * ROUNDED)
        outcomes.append(solve_built(build, decode, view, options.since(began)))
        solution = outcomes[-1].solution
        if solution.status != "optimal" or solution.objective is None:
            break
        multiplier = np.where(free, -duals(solution, "at_least", level.shape) * now.unit, 0.0)
        binds = multiplier > BINDS * multiplier.sum() / free.sum()
        level = np.where(binds, solution.objective * now.unit, level)
    return FilledLevel(level, outcomes)


def _with_levels(
    built: Callable[[OefView], pyo.ConcreteModel], view: OefView, *, sharers: Sharers, kept: Array
) -> pyo.ConcreteModel:
    m = built(view)
    for objective in m.component_objects(pyo.Objective, active=True):
        objective.deactivate()
    return with_levels(m, sharers, kept)


def leximin(view: OefView, options: SolveOptions) -> Outcome:
    """Solve the program over merged tenants."""
    kind = kinds(view)
    found = solve_built(build_leximin, decode, kind.view, options)
    if found.decision is None:
        return found
    return replace(found, decision=Allocation(kind.divided(found.decision.devices)))


def breaking_ties(
    built: Callable[[OefView], pyo.ConcreteModel],
    procedure: Callable[[OefView, SolveOptions], Outcome],
    view: OefView,
    options: SolveOptions,
    *,
    ties: str = "assortative",
) -> Outcome:
    """Solve a linear program; of several optima, take the one of the second objective, or that of leximin.

    For leximin, the program is solved again with a row that keeps its optimal total, once per level of whole tenants'
    gains over an equal split. The bound and its multipliers are those of the first solve.
    """
    began, first = clock.now(), procedure(view, options)
    if ties == "assortative" or first.solution.status != "optimal" or first.solution.objective is None:
        return first
    least = first.solution.objective * ROUNDED

    def optimal(v: OefView) -> pyo.ConcreteModel:
        m = built(v)
        m.total = pyo.Constraint(expr=sum(m.w[l, j] * m.x[l, j] for l in m.TENANTS for j in m.TYPES) >= least)
        counted(m, [(m.total, least)])
        return m

    found = filled(optimal, view, options.since(began))
    last = found.outcomes[-1]
    if np.isnan(found.level).any() or last.decision is None:
        return first
    times = total(first.solution.times, found.times)
    return replace(first, solution=replace(first.solution, times=times), decision=last.decision)
