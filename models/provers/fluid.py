"""Provers for fluids and single machines, from prices of resources that change by interval or are constant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances import rigid
from schedgap.instances.arrays import Array
from schedgap.instances.views import gavel, hadar, synergy, zhou
from schedgap.models.provers.proof import MARGIN, Proof, Prover, duals, listed, unit_of, whole
from schedgap.models.hadar.fluid import gangs
from schedgap.models.intervals import Tightest
from schedgap.models.percentile import Tail, longest, ranks
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, arrived, goal_of, least, machines_of
from schedgap.models.rigid.starts import Starts
from schedgap.models.single_machine import Best, bound_of
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.configurations import capacity
from schedgap.models.synergy.jct import run_of

WIDE = 4 * MARGIN
"""Margin where the checker rounds demands, or durations, in its own way."""

EXACT = 1e-12
"""Margin for closed-form bounds, where the model already allows for its own rounding."""

CLOSE = 1e-10
"""Margin for bounds by intervals on gangs of fixed duration, from which the checker subtracts 1e-11. Times since the
beginning of a log are large compared with those from release to completion."""


def over_intervals(evidence: Tightest, capacity: Array) -> tuple[float, float, dict[str, Any]]:
    """Return the bound at rounded prices over intervals, for capacities ``(d,)``, on the total value of all ends.

    Also return the sum of the absolute values of its terms, and the certificate's content.
    """
    pricing = evidence.pricing
    length = np.diff(pricing.edges)
    finite = np.isfinite(length)
    by_row = np.maximum(evidence.generated.prices, 0.0).reshape(len(capacity), -1)[:, finite]
    per_unit = np.divide(by_row, capacity[:, None], out=np.zeros_like(by_row), where=capacity[:, None] > 0)
    unit = unit_of(float((per_unit * capacity[:, None] * length[finite]).sum()))
    rounded = whole(per_unit, unit)
    prices = np.zeros((len(capacity), len(length)))
    prices[:, finite] = rounded * unit * capacity[:, None]
    most = pricing(prices.ravel(), pricing.domain).most
    most = most if pricing.must else np.maximum(most, 0.0)
    paid = float((prices[:, finite] * length[finite]).sum())
    edges = pricing.edges[np.isfinite(pricing.edges)].tolist()
    content = {"unit": unit, "prices": listed(rounded), "edges": edges}
    return paid + float(most.sum()), paid + float(np.abs(most).sum()), content


def on_one_machine(evidence: Best | Tail, capacity: Array) -> tuple[Array, dict[str, Any]]:
    """Return the volumes ``(n,)`` of jobs at rounded constant prices, and the certificate's content."""
    prices, present = np.zeros(len(capacity)), np.flatnonzero(capacity > 0)
    prices[present] = evidence.weights if len(present) == len(evidence.weights) else evidence.weights[present]
    prices[present] /= capacity[present]
    rounded = whole(prices, unit_of(float(prices.max())))
    weights = rounded * capacity / (rounded * capacity).sum()
    volume = evidence.run.volume(weights[present] if len(present) == len(evidence.weights) else weights)
    return volume, {"prices": listed(rounded)}


Counted = Callable[[Any], tuple[Array, float, Array]]
"""Returns a model's capacities ``(d,)`` of resources, its unit of time in seconds, and arrivals ``(n,)`` in seconds."""


def of_gangs(view: hadar.View) -> tuple[Array, float, Array]:
    """Return capacities, unit of time and arrivals in the models of gangs and copies."""
    return view.capacity.astype(float), view.slot_s, view.workload.arrival_s


def of_rounds(view: synergy.View) -> tuple[Array, float, Array]:
    """Return capacities, unit of time and arrivals in Synergy's models."""
    return capacity(view).ravel(), 1.0, view.workload.arrival_s[view.possible]


def of_slots(view: zhou.View, problem: str) -> tuple[Array, float, Array]:
    """Return capacities, unit of time and arrivals in Zhou's models; one arrival at 0 turns the mean into a sum."""
    return view.of(problem).classes.allowed.ravel(), 1.0, np.zeros(1)


def mean(view: Any, outcome: Outcome, options: SolveOptions, *, counted: Counted) -> Proof | None:
    """Prove a bound on the mean job completion time, counted from the arrivals."""
    if outcome.evidence is None:
        return None
    (capacity, unit_s, arrival_s), evidence = counted(view), outcome.evidence
    if isinstance(evidence, Best):
        volume, content = on_one_machine(evidence, capacity)
        value = size = bound_of(evidence.run, volume, evidence.part)
        content |= {} if evidence.part is None else {"parts": evidence.part.tolist()}
    else:
        value, size, content = over_intervals(evidence, capacity)
        value = -value
    since, n, content = float(arrival_s.sum()), len(arrival_s), content | {"slot_s": view.slot_s}
    return Proof.of((value * unit_s - since) / n, (size * unit_s + since) / n, -1, content, WIDE)


def percentile(view: Any, outcome: Outcome, options: SolveOptions, *, counted: Counted) -> Proof | None:
    """Prove a bound on the 99th percentile of completion times, counted from the arrivals.

    Each time is rounded down by a margin of its own; no term of a sum exceeds the end of the last job.
    """
    (capacity, unit_s, _), evidence, slot_s = counted(view), outcome.evidence, view.slot_s
    volume, content = on_one_machine(evidence, capacity)
    slack = WIDE * float(evidence.run.start.max() + evidence.run.alone.max() + volume.sum())
    parts = ranks(len(volume))
    times = [max(longest(evidence.run, evidence.since, k, volume) - slack, 0.0) * unit_s / slot_s for k in parts]
    value = sum(part * time for part, time in zip(parts.values(), times, strict=True)) * slot_s
    return Proof.of(value, value, -1, content | {"times": times, "slot_s": slot_s})


def last_gang(view: hadar.View, outcome: Outcome, options: SolveOptions, *, forks: bool) -> Proof | None:
    """Prove Gavel's makespan bound by prices of GPU seconds and of the durations of jobs or their copies."""
    if outcome.solution.row_duals is None:
        return None
    run, capacity = gangs(view, forks, grain=0.0), view.capacity.astype(float)
    prices = -duals(outcome.solution, "gpu_seconds", (len(capacity),)) / np.maximum(capacity if forks else 1.0, 1.0)
    rows, shape = ("side_by_side", run.time.shape) if forks else ("one_after_another", run.time.shape[:1])
    p, v, content = normalised(prices, -duals(outcome.solution, rows, shape), capacity)
    own = v if forks else v[:, None]
    # Work on a type that a job cannot run on has an infinite price.
    by_type = run.cost(p * capacity).reshape(run.time.shape) + own * np.where(np.isfinite(run.time), run.time, 0.0)
    own = own.sum(axis=1)
    return ends(run.start * view.slot_s, own, by_type.min(axis=1) * view.slot_s, content | {"slot_s": view.slot_s})


def last_round(view: synergy.View, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Prove Synergy's makespan bound by prices of GPUs, CPUs and memory, and of the longest job."""
    if outcome.solution.row_duals is None:
        return None
    run, there = run_of(view), capacity(view)
    prices, own = -duals(outcome.solution, "resource_rounds", there.shape), np.zeros(len(view.possible))
    own[run.earliest.argmax()] = max(1.0 - float((np.maximum(prices, 0) * there).sum()), 0.0)
    p, v, content = normalised(prices.ravel(), own, there.ravel())
    spent = run.volume((p * there.ravel())[there.ravel() > 0]) + v * run.alone
    return ends(run.start, v, spent, content | {"slot_s": view.slot_s})


def normalised(prices: Array, own: Array, capacity: Array) -> tuple[Array, Array, dict[str, Any]]:
    """Return rounded multipliers of resources and jobs, scaled to a total of 1 for the makespan, and the content."""
    size = float((np.maximum(prices, 0.0) * capacity).sum() + np.maximum(own, 0.0).sum())
    unit = unit_of(size / max(float(capacity.max()), 1.0))
    p, v = whole(np.maximum(prices, 0.0), unit), whole(np.maximum(own, 0.0), unit)
    size = float((p * capacity).sum() + v.sum())
    return p / size, v / size, {"prices": listed(p), "jobs": listed(v)}


def ends(start: Array, own: Array, spent: Array, content: dict[str, Any]) -> Proof | None:
    """Return the proof of a makespan bound, from the multipliers `own` of the jobs and what each has `spent`."""
    value = float(start.min() * (1 - own.sum()) + own @ start + spent.sum())
    return Proof.of(value, abs(value) + float(start.max()), -1, content, WIDE)


def of_pools(view: rigid.View, outcome: Outcome, options: SolveOptions, *, objective: str) -> Proof | None:
    """Prove the bound on gangs of fixed duration, by intervals (over starts or of a fluid) or in closed form."""
    if isinstance(outcome.evidence, Tightest):
        machines = machines_of(view.relaxed)
        value, size, content = over_intervals(outcome.evidence, np.ones(len(machines)))
        starts = isinstance(outcome.evidence.pricing, Starts)
        before = 0.0 if starts else arrived(view, goal_of(view, objective).weight)
        content["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
        if starts:
            content |= {"starts": True, "edges": [round(edge * view.ticks_of_hour) for edge in content["edges"]]}
        return Proof.of(-value - before, size + before, -1, content, CLOSE)
    evidence = outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)
    return Proof.of(evidence.value, abs(evidence.value), -1, {"pools": evidence.pools}, EXACT)


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
