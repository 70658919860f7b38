"""Provers of OEF's programs: the duals of tenants' rows and of envy rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances.views import oef
from schedgap.models.engine.solve import Solution, SolveOptions, build, solve
from schedgap.models.oef import printed
from schedgap.models.oef.envy import Envy
from schedgap.models.oef.lazy import envy_of, lazy_fair
from schedgap.models.oef.leximin import build_least_gain
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals, listed, unit_of, whole
from schedgap.models.registry import Outcome


def devices(view: oef.OefView, outcome: Outcome, options: SolveOptions) -> Content:
    """Return no multipliers: without rows of tenants, a device is worth most to the tenant with the largest speedup."""
    return {"unit": 1.0}


def tenants(view: oef.OefView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content | None:
    """Return the multipliers of the tenants' rows: those of equal efficiency (9), or those of an equal split.

    The rule merges tenants with equal speedups; the multiplier of merged tenants is the weighted mean of theirs.
    """
    statement, rows = ROWS[problem]
    solution = outcome.solution
    if not told(solution, rows):
        solution = solve(build(statement, view), replace(options, method="simplex", solver="highs", seeds=()))
    if solution.row_duals is None:
        return None
    merged, group = oef.merged(view)
    own = -np.bincount(group, weights=duals(solution, rows, (view.size,)) * view.weight) / merged.weight
    own = own if problem == oef.EQUAL.id else np.maximum(own, 0.0)
    unit = unit_of(max(1.0, np.abs(own).max()))
    return {"unit": unit, "tenants": listed(whole(own, unit))}


def told(solution: Solution, rows: str) -> bool:
    """Return whether a solution has duals of the rows with this name.

    Solvers other than HiGHS return no duals, and plug-ins may give rows other names.
    """
    return any(name.startswith(f"{rows}[") for name in solution.duals)


ROWS = {
    oef.EQUAL.id: (printed.build_noncooperative, "equal_efficiency"),
    oef.SHARING.id: (printed.build_sharing_incentive, "at_least_split"),
}


def envies(view: oef.OefView, outcome: Outcome, options: SolveOptions) -> Content:
    """Return the multipliers of the few envy rows (10c) that have one, with tenants of equal speedups merged.

    Without multipliers, the bound that follows is the one on total efficiency.
    """
    found: Envy | None = outcome.evidence
    if told(outcome.solution, "no_envy"):
        found = envy_of(view, -duals(outcome.solution, "no_envy", (view.size, view.size)))
    elif found is None and not outcome.solution.status.startswith("time limit"):
        found = lazy_fair(oef.merged(view)[0], replace(options, seeds=())).evidence
    if found is None:
        return {"unit": 1.0}
    unit = unit_of(max(1.0, found.multiplier.max(initial=0.0)))
    numbers = listed(whole(found.multiplier, unit))
    return {"unit": unit, "envy": [[*pair, n] for pair, n in zip(found.pairs.tolist(), numbers, strict=True) if n]}


def prices(view: oef.OefView, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return the price of a device of each type: the most that a tenant at its gain may pay for it."""
    if outcome.decision is None:
        return None
    seen, _ = oef.whole(view)
    own = np.bincount(view.owner, oef.efficiency(view.speedups, outcome.decision.devices))
    if own.min() <= 0:
        return None
    price = (seen.speedups * (seen.weight / seen.weight.sum() / own)[:, None]).max(axis=0)
    unit = unit_of(price.max())
    return {"unit": unit, "prices": listed(whole(price, unit))}


def gains(view: oef.OefView, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return the multipliers of the rows of the least gain, the mean of those of tenants with equal speedups."""
    solution = outcome.solution
    if not told(solution, "at_least"):
        solution = solve(build(build_least_gain, view), replace(options, method="simplex", solver="highs", seeds=()))
    if solution.row_duals is None:
        return None
    kind, weight = oef.kinds(view), oef.whole(view)[0].weight
    own = np.bincount(kind.group, -duals(solution, "at_least", weight.shape) * weight) / kind.view.weight
    own = np.maximum(own, 0.0)
    unit = unit_of(own.max())
    return {"unit": unit, "tenants": listed(whole(own, unit))}


PROVERS.register(ProverSpec(oef.LEAST.id, gains))
PROVERS.register(ProverSpec(oef.ALLOCATION.id, devices))
PROVERS.register(ProverSpec(oef.NASH.id, prices))
for problem in ROWS:
    PROVERS.register(ProverSpec(problem, partial(tenants, problem=problem)))
PROVERS.register(ProverSpec(oef.ENVY_FREE.id, envies))
