"""Provers for fluids and single machines, from prices of resources that change by interval or are constant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgap.instances import rigid
from schedgap.instances.arrays import Array
from schedgap.instances.views import gavel, hadar, synergy, zhou
from schedgap.models.hadar.fluid import gangs
from schedgap.models.intervals import Tightest
from schedgap.models.percentile import Tail, longest, ranks
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import MARGIN, duals, listed, unit_of, whole
from schedgap.models.registry import Outcome
from schedgap.models.rigid.bounds import Least, least, machines_of
from schedgap.models.rigid.starts import Starts
from schedgap.models.single_machine import Best
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.configurations import capacity
from schedgap.models.synergy.jct import run_of

WIDE = 4 * MARGIN
"""Margin of times, because the rule rounds volumes in its own way."""


def over_intervals(evidence: Tightest, capacity: Array) -> Content:
    """Return rounded prices over intervals, for capacities ``(d,)``, and the ends of the intervals."""
    pricing = evidence.pricing
    length = np.diff(pricing.edges)
    finite = np.isfinite(length)
    by_row = np.maximum(evidence.generated.prices, 0.0).reshape(len(capacity), -1)[:, finite]
    per_unit = np.divide(by_row, capacity[:, None], out=np.zeros_like(by_row), where=capacity[:, None] > 0)
    unit = unit_of(float((per_unit * capacity[:, None] * length[finite]).sum()))
    edges = pricing.edges[np.isfinite(pricing.edges)].tolist()
    return {"unit": unit, "prices": listed(whole(per_unit, unit)), "edges": edges}


def on_one_machine(evidence: Best | Tail, capacity: Array) -> tuple[Array, Content]:
    """Return the volumes ``(n,)`` of jobs at rounded constant prices, and these prices."""
    prices, present = np.zeros(len(capacity)), np.flatnonzero(capacity > 0)
    prices[present] = evidence.weights if len(present) == len(evidence.weights) else evidence.weights[present]
    prices[present] /= capacity[present]
    rounded = whole(prices, unit_of(float(prices.max())))
    weights = rounded * capacity / (rounded * capacity).sum()
    volume = evidence.run.volume(weights[present] if len(present) == len(evidence.weights) else weights)
    return volume, {"prices": listed(rounded)}


Capacity = Callable[[Any], Array]
"""Returns a view's capacities ``(d,)`` of resources."""


def of_gangs(view: hadar.HadarView) -> Array:
    """Return the GPUs of each type."""
    return view.capacity.astype(float)


def of_rounds(view: synergy.SynergyView) -> Array:
    """Return the GPUs, CPUs and memory of each type."""
    return capacity(view).ravel()


def of_slots(view: zhou.ZhouView, problem: str) -> Array:
    """Return what each class of servers has of each resource."""
    return view.of(problem).classes.allowed.ravel()


def mean(view: Any, outcome: Outcome, options: SolveOptions, *, there: Capacity) -> Content | None:
    """Return multipliers for the mean job completion time."""
    evidence = outcome.evidence
    if evidence is None:
        return None
    if isinstance(evidence, Best):
        _, content = on_one_machine(evidence, there(view))
        content |= {} if evidence.part is None else {"parts": evidence.part.tolist()}
    else:
        content = over_intervals(evidence, there(view))
    return content | {"slot_s": view.slot_s}


def percentile(
    view: Any, outcome: Outcome, options: SolveOptions, *, there: Capacity, unit_s: Callable[[Any], float]
) -> Content:
    """Return prices for the 99th percentile of completion times, and the times that they prove.

    `unit_s` returns the model's unit of time in seconds. Each time is rounded down by a margin of its own; no term of a
    sum exceeds the end of the last job.
    """
    evidence = outcome.evidence
    volume, content = on_one_machine(evidence, there(view))
    slack = WIDE * float(evidence.run.start.max() + evidence.run.alone.max() + volume.sum())
    slots = unit_s(view) / view.slot_s
    least = (longest(evidence.run, evidence.since, k, volume) - slack for k in ranks(len(volume)))
    return content | {"times": [max(time, 0.0) * slots for time in least], "slot_s": view.slot_s}


def last_gang(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, forks: bool) -> Content | None:
    """Return prices of GPU seconds, and of the durations of jobs or their copies, for Gavel's makespan."""
    if outcome.solution.row_duals is None:
        return None
    run, capacity = gangs(view, forks, grain=0.0), view.capacity.astype(float)
    prices = -duals(outcome.solution, "gpu_seconds", (len(capacity),)) / np.maximum(capacity if forks else 1.0, 1.0)
    rows, shape = ("side_by_side", run.time.shape) if forks else ("one_after_another", run.time.shape[:1])
    return normalised(prices, -duals(outcome.solution, rows, shape), capacity) | {"slot_s": view.slot_s}


def last_round(view: synergy.SynergyView, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return prices of GPUs, CPUs and memory, and of the longest job, for Synergy's makespan."""
    if outcome.solution.row_duals is None:
        return None
    run, there = run_of(view), capacity(view)
    prices, own = -duals(outcome.solution, "resource_rounds", there.shape), np.zeros(len(view.possible))
    own[run.earliest.argmax()] = max(1.0 - float((np.maximum(prices, 0) * there).sum()), 0.0)
    return normalised(prices.ravel(), own, there.ravel()) | {"slot_s": view.slot_s}


def normalised(prices: Array, own: Array, capacity: Array) -> Content:
    """Return rounded multipliers of resources and of jobs; the rule divides them by their total."""
    size = float((np.maximum(prices, 0.0) * capacity).sum() + np.maximum(own, 0.0).sum())
    unit = unit_of(size / max(float(capacity.max()), 1.0))
    return {name: listed(whole(np.maximum(x, 0.0), unit)) for name, x in (("prices", prices), ("jobs", own))}


def of_pools(view: rigid.RigidView, outcome: Outcome, options: SolveOptions, *, objective: str) -> Content:
    """Return multipliers for gangs of fixed duration: prices over starts or of a fluid, or parts of weights.

    That GPUs are idle for 0 hours or more needs none.
    """
    if objective == "idle":
        return {}
    if not isinstance(outcome.evidence, Tightest):
        return {"pools": (outcome.evidence if isinstance(outcome.evidence, Least) else least(view, objective)).pools}
    machines = machines_of(view.relaxed)
    content = over_intervals(outcome.evidence, np.ones(len(machines)))
    content["machines"] = [[pool, list(share)] for pool, share in (machine.code for machine in machines)]
    if isinstance(outcome.evidence.pricing, Starts):
        content |= {"starts": True, "edges": [round(edge * view.ticks_of_hour) for edge in content["edges"]]}
    return content


SECONDS: Callable[[Any], float] = lambda view: 1.0  # noqa: E731
SLOTS: Callable[[Any], float] = lambda view: float(view.slot_s)  # noqa: E731

PROVERS.register(ProverSpec(gavel.MAKESPAN.id, partial(last_gang, forks=False)))
PROVERS.register(ProverSpec(gavel.COPIES.id, partial(last_gang, forks=True)))
PROVERS.register(ProverSpec(synergy.MAKESPAN.id, last_round))
PROVERS.register(ProverSpec(synergy.RUN.id, partial(mean, there=of_rounds)))
PROVERS.register(ProverSpec(synergy.P99.id, partial(percentile, there=of_rounds, unit_s=SECONDS)))
for of_mean in (gavel.MEAN, gavel.COPIES_MEAN):
    PROVERS.register(ProverSpec(of_mean.id, partial(mean, there=of_gangs)))
for of_p99 in (gavel.P99, gavel.COPIES_P99):
    PROVERS.register(ProverSpec(of_p99.id, partial(percentile, there=of_gangs, unit_s=SLOTS)))
for architecture in zhou.ARCHITECTURES:
    many = f"zhou.{architecture}.preemptive"
    PROVERS.register(ProverSpec(many, partial(mean, there=partial(of_slots, problem=many))))
for name in rigid.OBJECTIVES:
    for how in ("", ".preemptive"):
        PROVERS.register(ProverSpec(f"rigid.{name}{how}", partial(of_pools, objective=name)))
