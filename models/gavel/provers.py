"""Provers for the completion times of gangs and of copies: prices of GPU types, constant or over intervals."""

from __future__ import annotations

from functools import partial

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views import gavel, hadar
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.hadar.fluid import gangs
from schedgap.models.provers.fluid import SLOTS, mean, normalised, percentile
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals
from schedgap.models.registry import Outcome


def of_gangs(view: hadar.HadarView) -> Array:
    """Return the GPUs of each type."""
    return view.capacity.astype(float)


def last_gang(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, forks: bool) -> Content | None:
    """Return prices of GPU seconds, and of the durations of jobs or copies, that prove a bound on Gavel's makespan."""
    if outcome.solution.row_duals is None:
        return None
    run, capacity = gangs(view, forks, grain=0.0), view.capacity.astype(float)
    prices = -duals(outcome.solution, "gpu_seconds", (len(capacity),)) / np.maximum(capacity if forks else 1.0, 1.0)
    rows, shape = ("side_by_side", run.time.shape) if forks else ("one_after_another", run.time.shape[:1])
    return normalised(prices, -duals(outcome.solution, rows, shape), capacity) | {"slot_s": view.slot_s}


PROVERS.register(ProverSpec(gavel.MAKESPAN.id, partial(last_gang, forks=False)))
PROVERS.register(ProverSpec(gavel.COPIES.id, partial(last_gang, forks=True)))
for of_mean in (gavel.MEAN, gavel.COPIES_MEAN):
    PROVERS.register(ProverSpec(of_mean.id, partial(mean, there=of_gangs)))
for of_p99 in (gavel.P99, gavel.COPIES_P99):
    PROVERS.register(ProverSpec(of_p99.id, partial(percentile, there=of_gangs, unit_s=SLOTS)))
