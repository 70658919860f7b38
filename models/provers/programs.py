"""Provers for linear programs: multipliers of the rows, and the Lagrangian bound that follows from them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances.views import oef, synergy
from schedgap.models.provers.proof import Proof, Prover, duals, listed, unit_of, whole
from schedgap.models.oef import printed
from schedgap.models.registry import Outcome
from schedgap.models.solve import Session, SolveOptions, build, solve
from schedgap.models.synergy.configurations import capacity, units
from schedgap.models.synergy.ideal import round_form
from schedgap.models.synergy.throughput import FLOORED, OPEN, WITH_ORACLE, Rule, choices

MOST_TENANTS = 150
"""Largest number of kinds of tenants for which the full program is solved again to obtain its multipliers."""


def shared(view: oef.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound on one of OEF's programs: a device is worth the largest gain of any tenant, multipliers included.

    Tenants with equal speedups are merged (:func:`schedgap.instances.views.oef.merged`).
    """
    small, _ = oef.merged(view)
    n, speedups, weight = small.size, small.speedups, small.weight
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
    content = {"unit": unit, "tenants": listed(whole(own, unit))}
    envy = whole(envy, unit)
    content["envy"] = [[int(a), int(b), int(envy[a, b])] for a, b in np.argwhere(envy)]
    own, envy = whole(own, unit) * unit, envy * unit
    split = small.split_efficiency if problem == oef.SHARING.id else np.zeros(n)
    if problem == oef.EQUAL.id:
        own -= own @ weight / weight.sum()
    plus = speedups * (1 + own + envy.sum(axis=1) / weight)[:, None]
    minus = envy.T @ speedups / weight[:, None]
    value = small.capacity @ np.maximum((plus - minus).max(axis=0), 0.0) - own @ split
    size = small.capacity @ (np.abs(plus) + minus).max(axis=0) + own @ split
    return Proof.of(float(value), float(size), 1, content)


BUILDERS = {
    oef.ALLOCATION.id: printed.build_efficiency,
    oef.EQUAL.id: printed.build_noncooperative,
    oef.SHARING.id: printed.build_sharing_incentive,
    oef.ENVY_FREE.id: printed.build_cooperative,
}


def rounds(view: synergy.View, outcome: Outcome, options: SolveOptions, *, rule: Rule) -> Proof | None:
    """Prove a bound on the progress of a round by prices of GPUs, CPUs and memory; a job has one configuration."""
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
    rounded = whole(np.maximum(prices, 0.0), unit)
    profit = gain - (held.amount(view) * (rounded * unit)[held.gpu_type]).sum(axis=1)[at]
    best = np.full(len(group.count), -np.inf if rule.everybody else 0.0)
    np.maximum.at(best, chosen.owner, profit)
    paid = float((rounded * unit * capacity(view)).sum())
    content = {"unit": unit, "slot_s": view.slot_s, "prices": listed(rounded)}
    content["round"] = [view.workload.ids[j] for j in view.runnable]
    return Proof.of(paid + float(group.count @ best), paid + float(group.count @ np.abs(best)), 1, content)


PROVERS: dict[str, Prover] = {
    **{problem: partial(shared, problem=problem) for problem in BUILDERS},
    synergy.IDEAL.id: partial(rounds, rule=FLOORED),
    synergy.FREE.id: partial(rounds, rule=OPEN),
    synergy.ORACLE.id: partial(rounds, rule=WITH_ORACLE),
}
