"""Zhou et al.'s Algorithms 1 to 3, and what plans whole batches like them.

- :func:`a_maxweight` (Algorithm 3): jobs by descending weight (the paper names no order); each takes its cheapest
  schedule at the prices (11), if that costs less than its weight. Prices of an empty cluster are 0: of schedules that
  cost the same, the one that completes first counts, then the one that takes least.
- :func:`a_dual` (Algorithm 2): A_maxweight on what is left, window after window, until nothing more is scheduled. The
  number of windows is the realised α.
- :func:`online` (Algorithm 1): at time ``τ_i = 2^(i−1)`` the jobs that have arrived and wait become batch i, and A_dual
  plans it for windows of ``τ_i`` slots, from ``τ_i`` or the end of the batch before.

Starts range to ``τ − L`` with slots ``[t⁻, t⁻ + L)``, so that slot τ of a window is never used, unless `inclusive`.
A job of weight 0 is scheduled where it costs nothing; its utility can never be positive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from instances.elastic import Found, Ledger, runs_of
from instances.elastic.machines import Ints
from instances.errors import NotApplicableError
from instances.views.zhou import Architecture, Schedule

LEAST = float(np.nextafter(0.0, 1.0))
"""Limit below which only a cost of 0 is."""

HOPELESS = 4
"""Windows so many times as long as the fastest run of any job hold one, or none is ever found."""

Plan = list[tuple[int, Found]]


@dataclass(frozen=True)
class Way:
    """Variants of the algorithms.

    Parameters
    ----------
    printed
        Algorithm 4 as printed instead of the exact placement.
    inclusive
        Whether slot τ of a window may be used.
    tight
        Whether a batch starts when the one before is done, instead of at the end of its window.
    """

    printed: bool = False
    inclusive: bool = False
    tight: bool = False

    def columns(self, tau: int) -> int:
        """Return how many slots of a window of length τ may be used."""
        return tau if self.inclusive else tau - 1


def a_maxweight(a: Architecture, jobs: Iterable[int], tau: int, way: Way) -> Plan:
    """Return which jobs run how in a window of τ slots, column 0 being its first (Algorithm 3).

    Parameters
    ----------
    a
        Jobs and servers.
    jobs
        Indices of the waiting jobs.
    tau, way
        Length of the window; variant.
    """
    columns = way.columns(tau)
    waiting = sorted(jobs, key=lambda j: (-a.weight[j], j))
    waiting = [j for j in waiting if a.options.shortest[j] <= columns]
    if not waiting:
        return []
    ledger = Ledger(a.machines, a.options, columns)
    plan = []
    for job in waiting:
        found = ledger.find(job, 0, limit=max(float(a.weight[job]), LEAST), printed=way.printed)
        if found:
            touched = ledger.book(found)
            used = a.machines.capacity[touched, :, None] - ledger.free[touched]
            ledger.post(a.prices_of(used, touched), touched)
            plan.append((job, found))
    return plan


def a_dual(a: Architecture, jobs: Ints, tau: int, way: Way) -> list[Plan]:
    """Return the plans of one window after another (Algorithm 2), as many as schedule something."""
    plans: list[Plan] = []
    left = set(jobs.tolist())
    while left:
        plan = a_maxweight(a, left, tau, way)
        if not plan:
            break
        plans.append(plan)
        left -= {job for job, _ in plan}
    return plans


def online(a: Architecture, way: Way) -> Schedule:
    """Return the schedule of A_online (Algorithm 1), and its windows.

    Raises
    ------
    NotApplicableError
        If nothing is found for a waiting job even in an empty window many times as long as it needs, which happens to
        Algorithm 4 as printed.
    """
    waiting = np.ones(a.size, bool)
    chosen: Plan = []
    windows: list[tuple[int, int, int]] = []
    tau, free_from = 1, 1
    while waiting.any():
        plans = a_dual(a, np.flatnonzero(waiting & (a.arrival <= tau)), tau, way)
        if plans:
            start = max(tau, free_from)
            batch = [(job, _shifted(found, start - 1 + i * tau)) for i, plan in enumerate(plans) for job, found in plan]
            chosen += batch
            waiting[[job for job, _ in batch]] = False
            windows.append((start, len(plans) * tau, len(plans)))
            free_from = start + len(plans) * tau
            if way.tight:
                free_from = 1 + max(found.end for _, found in batch)
                windows[-1] = (start, free_from - start, len(plans))
        elif tau > max(HOPELESS * int(a.options.shortest.max()), int(a.arrival.max())):
            name = a.ids[int(np.flatnonzero(waiting)[0])]
            raise NotApplicableError(f"no schedule of {name} found in an empty window of {tau} slots")
        tau *= 2
    found = runs_of(chosen, 1)
    starts, lengths, rounds = np.array(windows, np.int64).reshape(-1, 3).T
    return Schedule(**vars(found), window_start=starts, window_slots=lengths, window_rounds=rounds)


def _shifted(found: Found, columns: int) -> Found:
    """Return a run so many columns later."""
    return Found(**{**vars(found), "start": found.start + columns})


def maxweight(a: Architecture, way: Way) -> Schedule:
    """Return what A_maxweight completes by τ of all jobs, there from slot 1."""
    return Schedule(**vars(runs_of(a_maxweight(a, range(a.size), a.deadline, way), 1)))


def mincost(a: Architecture, way: Way) -> Schedule:
    """Return the cheapest schedule of the priced job at the view's loads (problem (12); Algorithms 4 to 7).

    Raises
    ------
    NotApplicableError
        If it finds none.
    """
    ledger = Ledger(a.machines, a.options, a.deadline - 1)
    ledger.set_free(a.machines.capacity[:, :, None] - a.loads)
    ledger.post(a.prices(a.loads))
    found = ledger.find(a.priced_job, 0, printed=way.printed)
    if found is None:
        raise NotApplicableError(f"no schedule of {a.ids[a.priced_job]} found beside the loads until τ = {a.deadline}")
    return Schedule(**vars(runs_of([(a.priced_job, found)], 1)))


def jain(a: Architecture, way: Way) -> Schedule:
    """Return what a greedy by weight density completes by τ: by weight per consumption, each as early as it can."""
    ledger = Ledger(a.machines, a.options, way.columns(a.deadline))
    plan = []
    for job in np.argsort(-a.weight / a.relative_consumption, kind="stable").tolist():
        found = ledger.find(job, 0)
        if found:
            ledger.book(found)
            plan.append((job, found))
    return Schedule(**vars(runs_of(plan, 1)))
