"""Provers for linear programs: multipliers of the rows, and the Lagrangian bound that follows from them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances.views import oef, synergy
from schedgap.models.oef import printed
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals, listed, unit_of, whole
from schedgap.models.registry import Outcome
from schedgap.models.solve import Session, SolveOptions, build, solve
from schedgap.models.synergy.configurations import units
from schedgap.models.synergy.ideal import round_form
from schedgap.models.synergy.throughput import FLOORED, OPEN, WITH_ORACLE, Rule, choices

MOST_TENANTS = 150
"""Largest number of kinds of tenants for which the full program is solved again to obtain its multipliers."""


def shared(view: oef.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content | None:
    """Return multipliers of the tenants' rows in one of OEF's programs, of which the rule makes a bound.

    A device is worth the largest gain of any tenant, multipliers included.

    Tenants with equal speedups are merged (:func:`schedgap.instances.views.oef.merged`).
    """
    small, _ = oef.merged(view)
    n, weight = small.size, small.weight
    own, envy = np.zeros(n), np.zeros((n, n))
    if problem != oef.ALLOCATION.id:
        if n > MOST_TENANTS:
            return None
        solution = solve(build(BUILDERS[problem], small), replace(options, method="simplex", seeds=()))
        if solution.row_duals is None:
            return None
        own = -duals(solution, "equal_efficiency" if problem == oef.EQUAL.id else "at_least_split", (n,))
        envy = np.maximum(-duals(solution, "no_envy", (n, n)), 0.0) * weight[:, None] * weight
    own = own if problem == oef.EQUAL.id else np.maximum(own, 0.0)
    unit = unit_of(max(1.0, np.abs(own).max(), envy.max()))
    envy = whole(envy, unit)
    listed_envy = [[int(a), int(b), int(envy[a, b])] for a, b in np.argwhere(envy)]
    return {"unit": unit, "tenants": listed(whole(own, unit)), "envy": listed_envy}


BUILDERS = {
    oef.ALLOCATION.id: printed.build_efficiency,
    oef.EQUAL.id: printed.build_noncooperative,
    oef.SHARING.id: printed.build_sharing_incentive,
    oef.ENVY_FREE.id: printed.build_cooperative,
}


def rounds(view: synergy.View, outcome: Outcome, options: SolveOptions, *, rule: Rule) -> Content | None:
    """Return prices of GPUs, CPUs and memory for the progress of a round; a job has one configuration."""
    chosen = choices(view, rule)
    group, held, at = chosen.classes, chosen.held, chosen.at
    if len(np.unique(chosen.owner)) < (len(group.count) if rule.everybody else 1):
        return None
    form = round_form(view, chosen)
    lower = form.row_lower if rule.everybody else np.full_like(form.row_lower, -np.inf)
    relaxed = replace(form, integer=np.zeros(len(at), bool), row_lower=lower)
    solution = Session(relaxed, replace(options, method="simplex", seeds=())).run()
    if solution.row_duals is None:
        return None
    types = np.unique(held.gpu_type[at])
    prices = np.zeros((view.types, 3))
    prices[types] = solution.row_duals[: 3 * len(types)].reshape(3, -1).T / units(view)[types]
    gain = group.weight[chosen.owner] * held.rate[at]
    unit = unit_of(float(group.count.sum() * gain.max(initial=0.0)))
    jobs = [view.workload.ids[j] for j in view.runnable]
    return {"unit": unit, "slot_s": view.slot_s, "prices": listed(whole(np.maximum(prices, 0.0), unit)), "round": jobs}


for problem in BUILDERS:
    PROVERS.register(ProverSpec(problem, partial(shared, problem=problem)))
for problem, rule in {synergy.IDEAL.id: FLOORED, synergy.FREE.id: OPEN, synergy.ORACLE.id: WITH_ORACLE}.items():
    PROVERS.register(ProverSpec(problem, partial(rounds, rule=rule)))
