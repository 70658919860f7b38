"""Zhou et al.'s Algorithms 1 to 3, what plans whole batches like them, and what Lemma 1 promises for a run.

- :func:`a_maxweight` (Algorithm 3): jobs by descending weight ("for each job j ∈ [φ]" names no order); each takes its
  cheapest schedule at the prices (11), if that costs less than its weight. Prices of an empty cluster are 0, so that
  many schedules cost the same; line 5, and line 30 of Algorithm 4, ask for less, so that the first one counts: on one
  server, then by worker and PS type, then by duration (by the number of workers in a ring), start and server.
- :func:`a_dual` (Algorithm 2): A_maxweight on what is left, α times, in windows of τ_i slots one behind another.
- :func:`online` (Algorithm 1): at time ``τ_i = 2^(i−1)`` the jobs that have arrived and are not scheduled become batch
  i. What A_dual schedules of it runs from ``α·τ_i`` to ``α·τ_(i+1)``; the rest belongs to the next batch (line 10).

Every job is scheduled sooner or later: the first job that A_maxweight asks in a window pays nothing, so that a window
that is long enough for a waiting job schedules one, and windows double.

The paper leaves α to the user: it calls 4 typical, Theorem 5 has a formula for all jobs in advance, and inequality (6)
one for each batch. With an α that differs from batch to batch the intervals ``[α_i·τ_i, 2·α_i·τ_i)`` may overlap; a
batch then begins at the end of the one before, and completes by ``α·τ_(i+1)`` for the largest α so far all the same.

Starts range to ``τ − L`` with slots ``[t⁻, t⁻ + L)``, so that slot τ of a window is never used, unless `inclusive`.
A job of weight 0 is scheduled where it costs nothing; its utility can never be positive.

**Lemma 1** asks for two properties of A_dual in every round i: its schedule is at most ``α·τ_i`` slots long, which its
windows are, and it holds at least the weight that an optimal schedule of the batch completes by ``τ_i``. The second one
is Theorem 5's for an α by the formula and jobs that meet two assumptions, which those of the paper's own ranges mostly
do not; for any other α it can be checked once a run is there (:func:`shown`). The optimum is bounded from above: the
jobs of the batch that fit into ``τ_i − 1`` slots at all, and of these as much weight as the cluster's whole capacity of
each resource allows (a fractional knapsack with what each job takes at its thriftiest).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import Ints
from schedgap.instances.elastic import Found, Ledger, Options, runs_of
from schedgap.instances.elastic.options import ROUNDING
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.views.zhou import Architecture, Schedule

LEAST = float(np.nextafter(0.0, 1.0))
"""Limit below which only a cost of 0 is."""

HOPELESS = 4
"""Windows so many times as long as the fastest run of any job hold one, or none is ever found."""

Plan = list[tuple[int, Found]]


@dataclass(frozen=True)
class Way:
    """Settings of the algorithms.

    Parameters
    ----------
    alpha
        Windows of a batch: a number, ``"formula"`` (Theorem 5), ``"round"`` (inequality (6) on the batch), or
        ``"realised"``: until nothing more fits.
    carry
        Whether what does not fit in the α windows belongs to the next batch, as printed. If not, windows are repeated
        until nothing more of the batch fits, whatever α is, and begin at τ_i or at the end of the batch before.
    tight
        Whether a batch begins when the runs of the one before are done, but not before τ_i.
    inclusive
        Whether slot τ of a window may be used.
    printed
        Algorithms 4 and 7 as printed instead of the exact placement.
    ties
        Which of schedules that cost the same counts: the first one, as printed, or the one that completes first and of
        these takes the least share of the cluster.
    """

    alpha: int | str = 4
    carry: bool = True
    tight: bool = False
    inclusive: bool = False
    printed: bool = False
    ties: Literal["first", "completion"] = "first"

    @property
    def first(self) -> bool:
        """Whether the first of equal schedules counts."""
        return self.ties == "first"

    def options(self, a: Architecture) -> Options:
        """Return the choices of the jobs."""
        if self.printed:
            return a.printed_looped_options if self.first else a.printed_options
        return a.looped_options if self.first else a.options

    def rounds(self, a: Architecture, batch: Ints) -> int | None:
        """Return how many windows A_dual may plan for a batch, ``None`` for as many as it fills."""
        if not self.carry or self.alpha == "realised":
            return None
        if self.alpha == "formula":
            return a.alpha
        return a.alpha_of(batch) if self.alpha == "round" else int(self.alpha)


def a_maxweight(a: Architecture, jobs: Iterable[int], tau: int, way: Way) -> Plan:
    """Return which of the waiting jobs run how in a window of τ slots, column 0 being its first (Algorithm 3)."""
    columns, options = tau if way.inclusive else tau - 1, way.options(a)
    waiting = sorted(jobs, key=lambda j: (-a.weight[j], j))
    waiting = [j for j in waiting if options.shortest[j] <= columns]
    if not waiting:
        return []
    ledger = Ledger(a.machines, options, columns)
    plan = []
    for job in waiting:
        found = ledger.find(job, 0, limit=max(float(a.weight[job]), LEAST), printed=way.printed, first=way.first)
        if found:
            touched = ledger.book(found)
            used = a.machines.capacity[touched, :, None] - ledger.free[touched]
            ledger.post(a.prices(used, touched), touched)
            plan.append((job, found))
    return plan


def a_dual(a: Architecture, jobs: Ints, tau: int, way: Way, rounds: int | None = None) -> list[Plan]:
    """Return the plans of one window after another (Algorithm 2), up to `rounds` of them, while they schedule jobs."""
    plans: list[Plan] = []
    left = set(jobs.tolist())
    while left and (rounds is None or len(plans) < rounds):
        plan = a_maxweight(a, left, tau, way)
        if not plan:
            break
        plans.append(plan)
        left -= {job for job, _ in plan}
    return plans


def online(a: Architecture, way: Way) -> Schedule:
    r"""Return the schedule of A_online (Algorithm 1), and its windows.

    Rows state Lemma 1's :math:`4 \alpha` where a run is shown to meet it (:func:`shown`). It raises
    `NotApplicableError` if nothing is found for a waiting job even in an empty window many times as long as it needs,
    which happens to Algorithm 4 as printed.

    See Also
    --------
    schedgap.heuristics.zhou.batches : Algorithms 1 to 3, and what Lemma 1 promises for a run.
    schedgap.instances.elastic.search : the exact placement, in the place of Algorithms 4 to 7.
    """
    waiting = np.ones(a.size, bool)
    chosen: Plan = []
    windows: list[tuple[int, int, int, int]] = []
    tau, free_from = 1, 1
    while waiting.any():
        batch = np.flatnonzero(waiting & (a.arrival <= tau))
        rounds = way.rounds(a, batch)
        plans = a_dual(a, batch, tau, way, rounds)
        if plans:
            alpha = rounds or len(plans)
            start = max(tau if way.tight or not way.carry else alpha * tau, free_from)
            later = ((job, found, start - 1 + i * tau) for i, plan in enumerate(plans) for job, found in plan)
            runs = [(job, replace(found, start=found.start + columns)) for job, found, columns in later]
            chosen += runs
            waiting[[job for job, _ in runs]] = False
            free_from = 1 + max(found.end for _, found in runs) if way.tight else start + alpha * tau
            windows.append((start, free_from - start, len(plans), tau))
        elif tau > max(HOPELESS * int(a.options.shortest.max()), int(a.arrival.max())):
            name = a.ids[int(np.flatnonzero(waiting)[0])]
            raise NotApplicableError(f"no schedule of {name} found in an empty window of {tau} slots")
        tau *= 2
    starts, lengths, realised, taus = np.array(windows, np.int64).reshape(-1, 4).T
    found = vars(runs_of(chosen, 1))
    return Schedule(**found, window_start=starts, window_slots=lengths, window_rounds=realised, window_tau=taus)


def maxweight(a: Architecture, way: Way) -> Schedule:
    """Return what A_maxweight completes by τ of all jobs, there from slot 1."""
    return Schedule(**vars(runs_of(a_maxweight(a, range(a.size), a.deadline, way), 1)))


def mincost(a: Architecture, way: Way) -> Schedule:
    """Return the cheapest schedule of the priced job at the view's loads (problem (12); Algorithms 4 to 7).

    As printed, Algorithm 4 may ask for no PS at all, and Algorithm 7 places as many workers as slots; the exact
    placement loses none.

    Raises
    ------
    NotApplicableError
        If it finds none.

    See Also
    --------
    schedgap.instances.elastic.search : the exact placement.
    """
    ledger = Ledger(a.machines, way.options(a), a.deadline - 1)
    ledger.set_free(a.machines.capacity[:, :, None] - a.loads)
    ledger.post(a.prices(a.loads))
    found = ledger.find(a.priced_job, 0, printed=way.printed, first=way.first)
    if found is None:
        raise NotApplicableError(f"no schedule of {a.ids[a.priced_job]} found beside the loads until τ = {a.deadline}")
    return Schedule(**vars(runs_of([(a.priced_job, found)], 1)))


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
