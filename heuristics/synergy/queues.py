"""Policies, which order the jobs of a round in the queue (Synergy, sections 2 and 5.7).

``docs/experiments.md`` has the effect of the settings. If every job is its own tenant, DRF by tenant is FIFO, because
no tenant holds anything before its first job; then only mechanisms are compared.

A job's time alone and its remaining time assume its proportional share on its best GPU type, whatever the mechanism, so
a policy is the same for all mechanisms. The text does not say which speed SRTF and finish-time fairness assume for what
remains. The artefact takes the fastest one (``speed=fastest``), except for proportional allocation. Ties are broken by
arrival, then index.
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
    """What a policy knows about the jobs that may run in a round, ascending by number, ``(a,)`` each.

    `elapsed_s` are seconds since arrival; `left_s` and `alone_s` the seconds that the remaining and the whole work take
    with the proportional share; `attained_s` are the GPU-seconds received so far.
    """

    jobs: Ints
    elapsed_s: Array
    left_s: Array
    alone_s: Array
    attained_s: Array


Order = Callable[..., Array]
"""A policy: a function of a view, the waiting jobs and settings that returns ``(a,)`` keys; the smallest goes first."""


def fifo(view: SynergyView, waiting: Waiting) -> Array:
    """Return equal keys: jobs are served in order of arrival."""
    return np.zeros(waiting.jobs.size)


def srtf(view: SynergyView, waiting: Waiting, *, speed: str = "share") -> Array:
    """Return remaining times with the proportional share or at the ``fastest`` speed: the shortest is served first."""
    return remaining_s(view, waiting, speed)


def remaining_s(view: SynergyView, waiting: Waiting, speed: str) -> Array:
    """Return the ``(a,)`` seconds that remain with the proportional share, or with the demand (``fastest``)."""
    if speed == "share":
        return waiting.left_s
    best = np.where(view.needs.able, view.needs.best, 0.0).max(axis=1)[view.profiles.kind]
    return np.asarray(waiting.left_s * view.fair[waiting.jobs] / best[waiting.jobs])


def las(view: SynergyView, waiting: Waiting) -> Array:
    """Return attained service in GPU-seconds: the least is served first."""
    return waiting.attained_s


def ftf(view: SynergyView, waiting: Waiting, *, first: str = "largest", speed: str = "share") -> Array:
    """Return keys of finish-time fairness: the job with the largest ρ (or the ``smallest``) is served first.

    ρ is the total time of the job if it runs with its share (or at the ``fastest`` speed) from now on, divided by its
    time alone with its share from its arrival on. Themis, which the paper cites, serves the largest ρ first. The
    paper's artefact serves the smallest, and lets Tune count what remains at the fastest speed.
    """
    rho = (waiting.elapsed_s + remaining_s(view, waiting, speed)) / waiting.alone_s
    return -rho if first == "largest" else rho


def drf(view: SynergyView, waiting: Waiting, *, by: str = "job") -> Array:
    """Return keys of DRF: the job with the smallest dominant share is served first.

    `by` says whose share that is: the job's own, by its demand, as in the artefact; or its tenant's, by progressive
    filling (Ghodsi et al., NSDI 2011), where a job counts with all earlier jobs of its tenant.
    """
    return filled(view, waiting) if by == "tenant" else dominant(view, waiting.jobs).max(axis=1)


def filled(view: SynergyView, waiting: Waiting) -> Array:
    """Rank jobs by progressive filling: the next job is one of the tenant with the smallest dominant share.

    A job that does not fit with those before it comes after all that fit, and its tenant's share does not grow. If
    every tenant has one job, all shares are 0 until the job is served, and the order is that of arrival.
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
