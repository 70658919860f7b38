"""Policies: the order in which jobs are served in a round (Synergy, sections 2 and 5.7).

The effect of the settings, as mean completion times of jobs 4000 to 5000 of the rebuilt trace of the paper's artefact
(128 GPUs, 9 jobs per hour): with the largest ρ first, proportional allocation takes 29.7 h and Tune 20.5 h (a factor of
1.45); with the smallest first, 83.8 h and 39.0 h (2.15; the paper prints 2.3). DRF by job takes 39.0 h with static and
24.8 h with tuned demands. For jobs 1000 to 2000 of ``gen/synergy-128`` at the split (50, 0, 50), DRF takes 35.7 h and
25.2 h by job (1.42) and 60.1 h and 29.1 h by tenant (2.07; the paper prints 7.2). If every job is its own tenant, DRF
by tenant is FIFO, because no tenant holds anything before its first job, and only mechanisms are compared.

Times alone and remaining times assume the proportional share on the job's best GPU type for all mechanisms, so the
policies are the same for all of them. The text does not say which speed SRTF assumes. The artefact takes the fastest
one, except for proportional allocation (``speed=fastest``). With it, Tune takes 3.20 h on the dynamic trace of Table 5
instead of 3.09 h, and Opt 3.08 h instead of 2.99 h; the paper prints 3.19 and 3.06 h. For jobs 1000 to 2000 of
``gen/synergy-128``, Tune takes 14.9 h instead of 15.0 h. Ties are broken by arrival, then index.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.heuristics.synergy.mechanisms import alignments, dominant, penalties
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.synergy import SynergyView


@dataclass(frozen=True, eq=False)
class Waiting:
    """Jobs at the start of a round, ascending, ``(a,)`` each.

    `elapsed_s` are seconds since arrival; `left_s` and `alone_s` the seconds that the remaining and the whole work take
    with the share; `attained_s` are GPU-seconds.
    """

    jobs: Ints
    elapsed_s: Array
    left_s: Array
    alone_s: Array
    attained_s: Array


Order = Callable[..., Array]
"""Returns ``(a,)`` keys from a view, the waiting jobs, and the policy's settings; the smallest key is served first."""


def fifo(view: SynergyView, waiting: Waiting) -> Array:
    """Return equal keys: jobs are served in order of arrival."""
    return np.zeros(waiting.jobs.size)


def srtf(view: SynergyView, waiting: Waiting, *, speed: str = "share") -> Array:
    """Return remaining times with the proportional share or at the ``fastest`` speed: the shortest is served first."""
    if speed == "share":
        return waiting.left_s
    best = np.where(view.needs.able, view.needs.best, 0.0).max(axis=1)[view.profiles.kind]
    return np.asarray(waiting.left_s * view.fair[waiting.jobs] / best[waiting.jobs])


def las(view: SynergyView, waiting: Waiting) -> Array:
    """Return attained service in GPU-seconds: the least is served first."""
    return waiting.attained_s


def ftf(view: SynergyView, waiting: Waiting, *, first: str = "largest") -> Array:
    """Return −ρ, so that the largest ρ is served first, as in Themis, which the paper cites; or ρ, ``smallest`` first.

    ρ is the total time of the job if it runs with its share from now on, divided by its time alone from its arrival on.
    The paper's artefact serves the smallest ρ first.
    """
    rho = (waiting.elapsed_s + waiting.left_s) / waiting.alone_s
    return -rho if first == "largest" else rho


def drf(view: SynergyView, waiting: Waiting, *, by: str = "job") -> Array:
    """Return dominant shares of the jobs' demands, as in the artefact, or ranks by tenant; the smallest goes first.

    By tenant, this is progressive filling (Ghodsi et al., NSDI 2011): a job counts with all earlier jobs of its tenant.
    """
    return filled(view, waiting) if by == "tenant" else dominant(view, waiting.jobs).max(axis=1)


def filled(view: SynergyView, waiting: Waiting) -> Array:
    """Return ranks by progressive filling: the next job belongs to the tenant with the smallest dominant share.

    Jobs that do not fit with those before them count nothing and come after all that do. If every tenant has one job,
    all shares are 0 until the job is served, and the order is that of arrival.
    """
    demand = dominant(view, waiting.jobs)
    arrival_s, tenant = view.workload.arrival_s[waiting.jobs].tolist(), view.workload.tenant[waiting.jobs].tolist()
    queues: dict[int, list[int]] = {}
    for i in np.lexsort((waiting.jobs, arrival_s))[::-1].tolist():
        queues.setdefault(tenant[i], []).append(i)
    held = {owner: np.zeros(3) for owner in queues}
    heap = [(0.0, arrival_s[queue[-1]], owner) for owner, queue in queues.items()]
    heapq.heapify(heap)
    used = np.zeros(3)
    rank = np.full(waiting.jobs.size, np.inf)
    served = 0
    while heap and used[0] < 1 - ROUNDING:
        share, _, owner = heapq.heappop(heap)
        i = queues[owner].pop()
        if (used + demand[i]).max() <= 1 + ROUNDING:
            used += demand[i]
            held[owner] += demand[i]
            rank[i] = served
            served += 1
            share = float(held[owner].max())
        if queues[owner]:
            heapq.heappush(heap, (share, arrival_s[queues[owner][-1]], owner))
    return rank


def tetris(view: SynergyView, waiting: Waiting) -> Array:
    """Return negative scores of Tetris (Grandl et al., SIGCOMM 2014): the largest score goes first.

    The score is the alignment with an empty server minus a penalty for the remaining work.
    """
    return penalties(view, waiting.jobs, waiting.left_s) - alignments(view, waiting.jobs)


ORDERS: Mapping[str, Order] = {"fifo": fifo, "srtf": srtf, "las": las, "ftf": ftf, "drf": drf, "tetris": tetris}
"""The policies by name."""
