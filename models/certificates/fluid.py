"""Fluids and single machines: prices of resources, over intervals of time or not, and what follows from these alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances import rigid
from schedgap.instances.arrays import Array
from schedgap.instances.views import gavel, hadar, synergy, zhou
from schedgap.models.certificates.proof import MARGIN, Proof, Prover, duals, listed, unit_of, whole
from schedgap.models.hadar.fluid import gangs
from schedgap.models.intervals import Tightest
from schedgap.models.percentile import Tail, longest, ranks
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, arrived, goal_of, least, machines_of
from schedgap.models.rigid.starts import Starts
from schedgap.models.single_machine import Best, bound_of
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.configurations import totals
from schedgap.models.synergy.jct import run_of

WIDE = 4 * MARGIN
"""The same where the checker counts needs, or durations, with a rounding of their own."""

EXACT = 1e-12
"""The same of a bound in closed form: the model allows for its rounding itself."""

CLOSE = 1e-10
"""The same of bounds by intervals on gangs of fixed duration, of which the checker takes 1e-11 off. Times from a log's
beginning to its end are long beside those from release to completion."""


def over_intervals(found: Tightest, there: Array) -> tuple[float, float, dict[str, Any]]:
    """Return the bound at prices over intervals on what all ends are worth, for so much ``(d,)`` of each resource.

    Beside it stand the absolute sum of its terms, and the prices as a certificate has them.
    """
    pricing = found.pricing
    length = np.diff(pricing.edges)
    finite = np.isfinite(length)
    by_row = np.maximum(found.generated.prices, 0.0).reshape(len(there), -1)[:, finite]
    each = np.divide(by_row, there[:, None], out=np.zeros_like(by_row), where=there[:, None] > 0)
    unit = unit_of(float((each * there[:, None] * length[finite]).sum()))
    rounded = whole(each, unit)
    prices = np.zeros((len(there), len(length)))
    prices[:, finite] = rounded * unit * there[:, None]
    most = pricing(prices.ravel(), pricing.domain).most
    most = most if pricing.must else np.maximum(most, 0.0)
    paid = float((prices[:, finite] * length[finite]).sum())
    edges = pricing.edges[np.isfinite(pricing.edges)].tolist()
    told = {"unit": unit, "prices": listed(rounded), "edges": edges}
    return paid + float(most.sum()), paid + float(np.abs(most).sum()), told


def on_one_machine(found: Best | Tail, there: Array) -> tuple[Array, dict[str, Any]]:
    """Return the volumes ``(n,)`` of jobs at prices that do not change, and these as a certificate has them."""
    prices, some = np.zeros(len(there)), np.flatnonzero(there > 0)
    prices[some] = found.weights if len(some) == len(found.weights) else found.weights[some]
    prices[some] /= there[some]
    rounded = whole(prices, unit_of(float(prices.max())))
    weights = rounded * there / (rounded * there).sum()
    volume = found.run.volume(weights[some] if len(some) == len(found.weights) else weights)
    return volume, {"prices": listed(rounded)}


Counted = Callable[[Any], tuple[Array, float, Array]]
"""How a model counts: ``(d,)`` what there is of each resource, its unit of time in seconds, ``(n,)`` arrivals in s."""


def of_gangs(view: hadar.View) -> tuple[Array, float, Array]:
    """Return how models of gangs, or of copies, count."""
    return view.capacity.astype(float), view.slot_s, view.workload.arrival_s


def of_rounds(view: synergy.View) -> tuple[Array, float, Array]:
    """Return how Synergy's models count."""
    return totals(view).ravel(), 1.0, view.workload.arrival_s[view.possible]


def of_slots(view: zhou.View, problem: str) -> tuple[Array, float, Array]:
    """Return how Zhou's models count; one arrival at 0 makes a sum of the mean."""
    classes = view.of(problem).classes
    return (classes.usable * classes.count[:, None]).ravel(), 1.0, np.zeros(1)


def mean(view: Any, outcome: Outcome, options: SolveOptions, *, counted: Counted) -> Proof | None:
    """Prove a bound on the mean of completion times since arrivals."""
    if outcome.evidence is None:
        return None
    (there, unit_s, arrival_s), found = counted(view), outcome.evidence
    if isinstance(found, Best):
        volume, told = on_one_machine(found, there)
        value = size = bound_of(found.run, volume, found.part)
        told |= {} if found.part is None else {"parts": found.part.tolist()}
    else:
        value, size, told = over_intervals(found, there)
        value = -value
    since, n, told = float(arrival_s.sum()), len(arrival_s), told | {"slot_s": view.slot_s}
    return Proof.of((value * unit_s - since) / n, (size * unit_s + since) / n, -1, told, WIDE)


def percentile(view: Any, outcome: Outcome, options: SolveOptions, *, counted: Counted) -> Proof | None:
    """Prove a bound on the 99th percentile of times since arrivals.

    Times are rounded to the safe side one by one: all terms of a sum are no later than the end of the last job.
    """
    (there, unit_s, _), found, slot_s = counted(view), outcome.evidence, view.slot_s
    volume, told = on_one_machine(found, there)
    slack = WIDE * float(found.run.start.max() + found.run.alone.max() + volume.sum())
    parts = ranks(len(volume))
    times = [max(longest(found.run, found.since, k, volume) - slack, 0.0) * unit_s / slot_s for k in parts]
    value = sum(part * time for part, time in zip(parts.values(), times, strict=True)) * slot_s
    return Proof.of(value, value, -1, told | {"times": times, "slot_s": slot_s})


def last_gang(view: hadar.View, outcome: Outcome, options: SolveOptions, *, forks: bool) -> Proof | None:
    """Prove Gavel's makespan by prices of GPU seconds and of jobs, or their copies on a type, that are long alone."""
    if outcome.solution.row_duals is None:
        return None
    run, there = gangs(view, forks, grain=0.0), view.capacity.astype(float)
    prices = -duals(outcome.solution, "gpu_seconds", (len(there),)) / np.maximum(there if forks else 1.0, 1.0)
    rows, shape = ("side_by_side", run.time.shape) if forks else ("one_after_another", run.time.shape[:1])
    p, v, told = normalised(prices, -duals(outcome.solution, rows, shape), there)
    own = v if forks else v[:, None]
    # Work of a type that a job cannot run on has an infinite price.
    each = run.cost(p * there).reshape(run.time.shape) + own * np.where(np.isfinite(run.time), run.time, 0.0)
    own = own.sum(axis=1)
    return ends(run.start * view.slot_s, own, each.min(axis=1) * view.slot_s, told | {"slot_s": view.slot_s})


def last_round(view: synergy.View, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Prove Synergy's makespan by prices of GPUs, CPUs and memory, and of the job that is longest alone."""
    if outcome.solution.row_duals is None:
        return None
    run, there = run_of(view), totals(view)
    prices, own = -duals(outcome.solution, "resource_rounds", there.shape), np.zeros(len(view.possible))
    own[run.earliest.argmax()] = max(1.0 - float((np.maximum(prices, 0) * there).sum()), 0.0)
    p, v, told = normalised(prices.ravel(), own, there.ravel())
    spent = run.volume((p * there.ravel())[there.ravel() > 0]) + v * run.alone
    return ends(run.start, v, spent, told | {"slot_s": view.slot_s})


def normalised(prices: Array, own: Array, there: Array) -> tuple[Array, Array, dict[str, Any]]:
    """Return multipliers, rounded, so that those of the time at the end add up to 1, and as whole numbers."""
    size = float((np.maximum(prices, 0.0) * there).sum() + np.maximum(own, 0.0).sum())
    unit = unit_of(size / max(float(there.max()), 1.0))
    p, v = whole(np.maximum(prices, 0.0), unit), whole(np.maximum(own, 0.0), unit)
    size = float((p * there).sum() + v.sum())
    return p / size, v / size, {"prices": listed(p), "jobs": listed(v)}


def ends(start: Array, own: Array, spent: Array, content: dict[str, Any]) -> Proof | None:
    """Return the proof of a makespan: jobs have their own multipliers, and spend so much."""
    value = float(start.min() * (1 - own.sum()) + own @ start + spent.sum())
    return Proof.of(value, abs(value) + float(start.max()), -1, content, WIDE)


def of_pools(view: rigid.View, outcome: Outcome, options: SolveOptions, *, objective: str) -> Proof | None:
    """Prove the bound on gangs of fixed duration by intervals, of starts or of a fluid, or in closed form."""
    if isinstance(outcome.evidence, Tightest):
        machines = machines_of(view.relaxed)
        value, size, told = over_intervals(outcome.evidence, np.ones(len(machines)))
        starts = isinstance(outcome.evidence.pricing, Starts)
        before = 0.0 if starts else arrived(view, goal_of(view, objective).weight)
        told["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
        if starts:
            told |= {"starts": True, "edges": [round(edge * view.ticks_of_hour) for edge in told["edges"]]}
        return Proof.of(-value - before, size + before, -1, told, CLOSE)
    found = outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)
    return Proof.of(found.value, abs(found.value), -1, {"pools": found.pools}, EXACT)


PROVERS: dict[str, Prover] = {
    gavel.MAKESPAN.id: partial(last_gang, forks=False),
    gavel.COPIES.id: partial(last_gang, forks=True),
    synergy.MAKESPAN.id: last_round,
    synergy.RUN.id: partial(mean, counted=of_rounds),
    synergy.P99.id: partial(percentile, counted=of_rounds),
    **dict.fromkeys((gavel.MEAN.id, gavel.COPIES_MEAN.id), partial(mean, counted=of_gangs)),
    **dict.fromkeys((gavel.P99.id, gavel.COPIES_P99.id), partial(percentile, counted=of_gangs)),
    **{
        (problem := f"zhou.{a}.preemptive"): partial(mean, counted=partial(of_slots, problem=problem))
        for a in zhou.ARCHITECTURES
    },
    **{
        f"rigid.{name}{how}": partial(of_pools, objective=name)
        for name in rigid.OBJECTIVES
        for how in ("", ".preemptive")
    },
}
