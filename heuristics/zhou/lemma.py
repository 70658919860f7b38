"""What Lemma 1 promises for a run of A_online.

Lemma 1 asks for two properties of A_dual in every round i: its schedule is at most ``α·τ_i`` slots long, which its
windows are, and it holds at least the weight that an optimal schedule of the batch completes by ``τ_i``. The second one
is Theorem 5's for an α by the formula and jobs that meet two assumptions, which those of the paper's own ranges mostly
do not; for any other α it can be checked once a run is there. The optimum is bounded from above: the jobs of the batch
that fit into ``τ_i − 1`` slots at all, and of these as much weight as the cluster's whole capacity of each resource
allows (a fractional knapsack with what each job takes at its thriftiest).
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import Ints
from schedgap.instances.views.zhou import ROUNDING, Architecture, Schedule


def most_weight(a: Architecture, jobs: Ints, tau: int) -> float:
    """Return a bound on the weight that any schedule of some jobs completes by τ, none of them before slot 1."""
    fitting = jobs[a.options.shortest[jobs] < tau]
    weight = a.weight[fitting]
    bounds = [float(weight.sum())]
    for needed in a.least_slots[fitting].T:
        density = np.divide(weight, needed, out=np.full_like(weight, np.inf), where=needed > 0)
        order = np.argsort(-density)
        need = needed[order]
        left = (tau - 1) * (1 + ROUNDING) + need - np.cumsum(need)
        part = np.divide(left, need, out=np.ones_like(need), where=need > 0)
        bounds.append(float(weight[order] @ np.clip(part, 0.0, 1.0)))
    return min(bounds)


def lacking(a: Architecture, schedule: Schedule) -> int | None:
    """Return the first τ_i for which a run is not shown to have property (ii) of Lemma 1, or ``None``."""
    waiting = np.ones(a.size, bool)
    tau_of_run = schedule.window_tau[np.searchsorted(schedule.window_start, schedule.start, "right") - 1]
    for tau in (1 << i for i in range(int(schedule.window_tau.max()).bit_length())):
        scheduled = schedule.job[tau_of_run == tau]
        batch = np.flatnonzero(waiting & (a.arrival <= tau))
        if a.weight[scheduled].sum() < (1 - ROUNDING) * most_weight(a, batch, tau):
            return tau
        waiting[scheduled] = False
    return None


def shown(a: Architecture, schedule: Schedule) -> Guarantee:
    """Return the guarantee of Lemma 1 for a run, without a factor where property (ii) is not shown.

    Jobs of batch i complete by the end of its window, which is ``α·τ_(i+1)`` as printed. The largest ratio of that end
    to ``τ_(i+1)`` is the α that the lemma's proof needs, whatever windows are.
    """
    tau = lacking(a, schedule)
    if tau is not None:
        return Guarantee(f"none shown: weight by τ = {tau}")
    end = schedule.window_start + schedule.window_slots
    factor = 4 * float((end / (2 * schedule.window_tau)).max())
    return Guarantee(f"4α = {factor:.4g}", factor)
