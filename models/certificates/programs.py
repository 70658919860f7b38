"""Linear programs and single machines: multipliers of their rows, and what follows from these alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.sensitivity import ROUNDING
from schedgap.instances.views import gavel, hadar, oef, synergy, zhou
from schedgap.models.certificates.proof import Proof, Prover, listed, unit_of, whole
from schedgap.models.oef.printed import (
    build_cooperative,
    build_efficiency,
    build_noncooperative,
    build_sharing_incentive,
)
from schedgap.models.registry import Outcome
from schedgap.models.single_machine import best_bound, bound_of
from schedgap.models.solve import Session, Solution, SolveOptions, build, solve
from schedgap.models.synergy.configurations import capacity, units
from schedgap.models.synergy.ideal import round_form
from schedgap.models.synergy.jct import run_of
from schedgap.models.synergy.throughput import FLOORED, OPEN, WITH_ORACLE, Rule, choices
from schedgap.models.zhou.fluid import run_of as run_of_zhou

MOST_TENANTS = 150
"""Kinds of tenants up to which the whole program of a bound is solved again for its multipliers."""


def duals(solution: Solution, rows: str, count: int) -> Array:
    """Return the shadow prices ``(count,)`` of an indexed constraint whose index is a number."""
    return np.array([solution.duals.get(f"{rows}[{i}]", 0.0) for i in range(count)])


def shared(view: oef.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove a bound of OEF's programs: a device is worth what the tenant gains that gains most, multipliers included.

    Tenants with equal speedups count as one (:func:`schedgap.instances.views.oef.merged`).
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
        own = -duals(solution, "equal_efficiency" if problem == oef.EQUAL.id else "at_least_split", n)
        pairs = {(a, b): solution.duals.get(f"no_envy[{a},{b}]", 0.0) for a in range(n) for b in range(n)}
        envy = np.array([[max(-pairs[a, b], 0.0) * weight[a] * weight[b] for b in range(n)] for a in range(n)])
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
    oef.ALLOCATION.id: build_efficiency,
    oef.EQUAL.id: build_noncooperative,
    oef.SHARING.id: build_sharing_incentive,
    oef.ENVY_FREE.id: build_cooperative,
}


def rounds(view: synergy.View, outcome: Outcome, options: SolveOptions, *, rule: Rule) -> Proof | None:
    """Prove a bound on the progress of a round by prices of GPUs, CPUs and memory; jobs hold one configuration each."""
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
    told = {"unit": unit, "slot_s": view.slot_s, "prices": listed(rounded)}
    told["round"] = [view.workload.ids[j] for j in view.runnable]
    return Proof.of(paid + float(group.count @ best), paid + float(group.count @ np.abs(best)), 1, told)


def fluid_gangs(view: hadar.View, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Prove Gavel's makespan by prices of GPU seconds and of jobs that are long alone."""
    if outcome.solution.row_duals is None:
        return None
    prices = np.zeros((len(view.capacity), 3))
    prices[:, 0] = -duals(outcome.solution, "gpu_seconds", len(view.capacity))
    own = -duals(outcome.solution, "one_after_another", view.size)
    able = (view.workload.rates > 0) & (view.capacity > 0)
    alone = np.divide(view.workload.work[:, None], view.progress, out=np.full(able.shape, np.inf), where=able)
    total = np.column_stack((view.capacity.astype(float), np.zeros((len(view.capacity), 2))))
    u, v, content = normalised(prices, own, total)
    # No type without rate has a price that could make it cheap: its duration is infinite.
    each = (view.workload.gpus[:, None] * u[:, 0] + v[:, None]) * np.where(able, alone * view.slot_s, 1.0)
    spent = np.where(able, each, np.inf).min(axis=1)
    return ends(view.arrival.astype(float) * view.slot_s, v, spent, {"slot_s": view.slot_s, **content})


def fluid_rounds(view: synergy.View, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Prove Synergy's makespan by prices of GPUs, CPUs and memory, and of the job that is longest alone."""
    if outcome.solution.row_duals is None:
        return None
    run, jobs, total = run_of(view), view.possible, totals(view)
    prices = np.array(
        [[-outcome.solution.duals.get(f"resource_rounds[{i},{r}]", 0.0) for r in range(3)] for i in range(view.types)]
    )
    own = np.zeros(view.size)
    own[jobs[run.earliest.argmax()]] = max(1.0 - float((np.maximum(prices, 0) * total).sum()), 0.0)
    u, v, content = normalised(prices, own, total)
    spent = run.volume((u * total)[total > 0]) + v[jobs] * run.alone
    return ends(run.start, v[jobs], spent, {"slot_s": view.slot_s, **content})


def totals(view: synergy.View) -> Array:
    """Return ``(k, 3)`` all GPUs, CPUs and gigabytes by type."""
    return np.column_stack((view.pools.gpus.astype(float), view.pools.cpus, view.pools.memory_gb))


def normalised(prices: Array, own: Array, total: Array) -> tuple[Array, Array, dict[str, Any]]:
    """Return multipliers, rounded, so that those of the time at the end add up to 1, and as whole numbers."""
    size = float((np.maximum(prices, 0.0) * total).sum() + np.maximum(own, 0.0).sum())
    unit = unit_of(size / max(float(total.max()), 1.0))
    p, v = whole(np.maximum(prices, 0.0), unit), whole(np.maximum(own, 0.0), unit)
    size = float((p * total).sum() + v.sum())
    return p / size, v / size, {"prices": listed(p), "jobs": listed(v)}


def ends(start: Array, own: Array, spent: Array, content: dict[str, Any]) -> Proof | None:
    """Return the proof of a makespan: jobs have their own multipliers, and spend so much."""
    value = float(start.min() * (1 - own.sum()) + own @ start + spent.sum())
    return Proof.of(value, abs(value) + float(start.max()), -1, content)


def completion(view: synergy.View, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Prove Synergy's mean completion time by weights of resources, and parts of the jobs that mean busy times have."""
    run, total = run_of(view), totals(view)
    best, prices = best_bound(run), np.zeros((view.types, 3))
    prices[total > 0] = best.weights / total[total > 0]
    u, _, content = normalised(prices, np.zeros(view.size), total)
    volume = run.volume((u * total)[total > 0]) * (1 - ROUNDING)
    value = bound_of(run, volume, best.part)
    arrived, n = float(view.workload.arrival_s[view.possible].sum()), len(view.possible)
    told = {"prices": content["prices"], "slot_s": view.slot_s}
    told |= {} if best.part is None else {"parts": best.part.tolist()}
    return Proof.of((value - arrived) / n, (value + arrived) / n, -1, told)


def interrupted(view: zhou.View, outcome: Outcome, options: SolveOptions, *, problem: str) -> Proof | None:
    """Prove Zhou's bound for jobs that may be interrupted by weights of resources of classes, and parts of the jobs."""
    architecture = view.of(problem)
    if not (architecture.weight > 0).any():
        return None
    run, m = run_of_zhou(architecture), architecture.classes
    best, total = best_bound(run), m.capacity * m.count[:, None]
    share = best.weights.reshape(total.shape)
    prices = np.divide(share, total, out=np.zeros_like(total), where=total > 0)
    rounded = whole(prices, unit_of(float(prices.max())))
    value = bound_of(run, run.volume((rounded * total / (rounded * total).sum()).ravel()), best.part)
    told = {"prices": listed(rounded), "slot_s": view.slot_s}
    told |= {} if best.part is None else {"parts": best.part.tolist()}
    return Proof.of(value * (1 - 4 * ROUNDING), value, -1, told)


PROVERS: dict[str, Prover] = {
    **{problem: partial(shared, problem=problem) for problem in BUILDERS},
    synergy.IDEAL.id: partial(rounds, rule=FLOORED),
    synergy.FREE.id: partial(rounds, rule=OPEN),
    synergy.ORACLE.id: partial(rounds, rule=WITH_ORACLE),
    synergy.RUN.id: completion,
    **{f"zhou.{a}.preemptive": partial(interrupted, problem=f"zhou.{a}.preemptive") for a in zhou.ARCHITECTURES},
    synergy.MAKESPAN.id: fluid_rounds,
    gavel.MAKESPAN.id: fluid_gangs,
}
