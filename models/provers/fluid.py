"""Provers for fluids and single machines, from prices of resources that change by interval or are constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.engine.fluid.intervals import Tightest
from schedgap.models.engine.fluid.percentile import Tail, longest, ranks
from schedgap.models.engine.fluid.single_machine import MachineBound
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.registry import Content
from schedgap.models.provers.rounding import MARGIN, listed, unit_of, whole
from schedgap.models.registry import Outcome

WIDE = 4 * MARGIN
"""Fraction by which times are rounded down, because the rule rounds volumes in its own way."""


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


def on_one_machine(evidence: MachineBound | Tail, capacity: Array) -> tuple[Array, Content]:
    """Return the volumes ``(n,)`` of jobs at rounded constant prices, and these prices."""
    prices, present = np.zeros(len(capacity)), np.flatnonzero(capacity > 0)
    prices[present] = evidence.weights if len(present) == len(evidence.weights) else evidence.weights[present]
    prices[present] /= capacity[present]
    rounded = whole(prices, unit_of(float(prices.max())))
    weights = rounded * capacity / (rounded * capacity).sum()
    volume = evidence.run.volume(weights[present] if len(present) == len(evidence.weights) else weights)
    return volume, {"prices": listed(rounded)}


Capacity = Callable[[Any], Array]
"""A function that returns the capacities ``(d,)`` of a view's resources."""


def mean(view: Any, outcome: Outcome, options: SolveOptions, *, there: Capacity) -> Content | None:
    """Return multipliers that prove a bound on the mean job completion time."""
    evidence = outcome.evidence
    if evidence is None:
        return None
    if isinstance(evidence, MachineBound):
        _, content = on_one_machine(evidence, there(view))
        content |= {} if evidence.part is None else {"parts": evidence.part.tolist()}
    else:
        content = over_intervals(evidence, there(view))
    return content | {"slot_s": view.slot_s}


def percentile(
    view: Any, outcome: Outcome, options: SolveOptions, *, there: Capacity, unit_s: Callable[[Any], float]
) -> Content:
    """Return prices that prove a bound on the 99th percentile of completion times, and the times that they prove.

    `unit_s` returns the model's unit of time in seconds. The times are rounded down by a margin in proportion to the
    end of the last job, the largest term of any sum.
    """
    evidence = outcome.evidence
    volume, content = on_one_machine(evidence, there(view))
    slack = WIDE * float(evidence.run.start.max() + evidence.run.alone.max() + volume.sum())
    slots = unit_s(view) / view.slot_s
    least = (longest(evidence.run, evidence.since, k, volume) - slack for k in ranks(len(volume)))
    return content | {"times": [max(time, 0.0) * slots for time in least], "slot_s": view.slot_s}


def normalised(prices: Array, own: Array, capacity: Array) -> Content:
    """Return rounded multipliers of resources and of jobs; the rule divides them by their total."""
    size = float((np.maximum(prices, 0.0) * capacity).sum() + np.maximum(own, 0.0).sum())
    unit = unit_of(size / max(float(capacity.max()), 1.0))
    return {name: listed(whole(np.maximum(x, 0.0), unit)) for name, x in (("prices", prices), ("jobs", own))}


SECONDS: Callable[[Any], float] = lambda view: 1.0  # noqa: E731
SLOTS: Callable[[Any], float] = lambda view: float(view.slot_s)  # noqa: E731
