"""Provers of Hadar's problems, by prices of GPUs, and of Gavel's, about completion times of gangs and of copies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views import gavel, hadar
from schedgap.models.columns import Domain
from schedgap.models.hadar.fluid import gangs as fluid_of
from schedgap.models.hadar.forked import ForkedPricing
from schedgap.models.hadar.periods import ByPeriod
from schedgap.models.hadar.pricing import Pricing
from schedgap.models.provers.fluid import SLOTS, mean, normalised, over_intervals, percentile
from schedgap.models.provers.prices import by_prices, grown
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions


def gangs(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content | None:
    """Return prices of GPUs for one of Hadar's problems, from the outcome or from column generation."""
    evidence = outcome.evidence
    content: Content = {"slot_s": view.slot_s, "slots": view.slots}
    pricing: Any
    oracle: Any
    if isinstance(evidence, ByPeriod):  # some jobs may do their work in fractions of slots
        pricing, content["divisible"] = evidence.pricing, np.flatnonzero(evidence.pricing.by_parts).tolist()
        oracle = lambda prices, domain: pricing.nearly(prices.reshape(-1, view.slots), closely=False)  # noqa: E731
    elif evidence is not None:
        return over_intervals(evidence, view.capacity.astype(float)) | {"slot_s": view.slot_s}
    elif problem == hadar.FORKED.id:
        pricing = oracle = ForkedPricing(view)
    else:
        pricing = oracle = Pricing(view, problem == hadar.COMPLETE.id)
    domain = Domain.of(pricing.packing)
    tree = grown(outcome, domain, oracle, options)
    return by_prices(outcome, domain, oracle, tree, content)


def of_gangs(view: hadar.HadarView) -> Array:
    """Return the GPUs of each type."""
    return view.capacity.astype(float)


def last_gang(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, forks: bool) -> Content | None:
    """Return prices of GPU seconds, and of the durations of jobs or copies, that prove a bound on Gavel's makespan."""
    if outcome.solution.row_duals is None:
        return None
    run, capacity = fluid_of(view, forks, grain=0.0), view.capacity.astype(float)
    prices = -duals(outcome.solution, "gpu_seconds", (len(capacity),)) / np.maximum(capacity if forks else 1.0, 1.0)
    rows, shape = ("side_by_side", run.time.shape) if forks else ("one_after_another", run.time.shape[:1])
    return normalised(prices, -duals(outcome.solution, rows, shape), capacity) | {"slot_s": view.slot_s}


for problem in (hadar.UTILITY.id, hadar.COMPLETE.id, hadar.FORKED.id):
    PROVERS.register(ProverSpec(problem, partial(gangs, problem=problem)))
PROVERS.register(ProverSpec(gavel.MAKESPAN.id, partial(last_gang, forks=False)))
PROVERS.register(ProverSpec(gavel.COPIES.id, partial(last_gang, forks=True)))
for of_mean in (gavel.MEAN, gavel.COPIES_MEAN):
    PROVERS.register(ProverSpec(of_mean.id, partial(mean, there=of_gangs)))
for of_p99 in (gavel.P99, gavel.COPIES_P99):
    PROVERS.register(ProverSpec(of_p99.id, partial(percentile, there=of_gangs, unit_s=SLOTS)))
