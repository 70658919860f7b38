"""What a gang can do alone on the cluster: its types, its largest progress in a slot, and its first possible end."""

from __future__ import annotations

import math

import numpy as np

from schedgap.instances.arrays import ROUNDING, Ints
from schedgap.instances.views.hadar import HadarView


def usable(view: HadarView, job: int) -> Ints:
    """Return the GPU types that exist in the cluster and on which `job` has a positive rate, ascending."""
    return np.flatnonzero((view.workload.rates[job] > 0) & (view.capacity > 0))


def best_progress(view: HadarView, job: int) -> float:
    """Return the most iterations that a gang can do in a slot if it has the cluster to itself; 0 if it cannot run."""
    progress, capacity = (x[usable(view, job)] for x in (view.progress[job], view.capacity))
    return max((p for p in progress.tolist() if capacity[progress >= p].sum() >= view.workload.gpus[job]), default=0.0)


def earliest_finish(view: HadarView, job: int) -> int:
    """Return the first slot in which a gang can finish: alone, at its best rate in every slot from its arrival on."""
    slots = max(1, math.ceil(float(view.workload.work[job]) / best_progress(view, job) * (1 - ROUNDING)))
    return int(view.arrival[job]) + slots - 1
