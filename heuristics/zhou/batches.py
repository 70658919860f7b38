"""Zhou et al.'s Algorithms 1 to 3, which plan jobs batch by batch, and the guarantee of Lemma 1 for a run.

- :func:`a_maxweight` (Algorithm 3) takes jobs by descending weight ("for each job j ∈ [φ]" names no order). Each gets
  its cheapest schedule at the prices (11) if that costs less than its weight. On an empty cluster prices are 0, so many
  schedules cost the same. Line 5, and line 30 of Algorithm 4, require a strictly lower cost, so the schedule tried
  first wins: those on one server come first, then the order is that of worker and PS types, durations (in a ring:
  numbers of workers), starts and servers.
- :func:`a_dual` (Algorithm 2) runs A_maxweight on the remaining jobs α times, in consecutive windows of τ_i slots.
- :func:`online` (Algorithm 1): at time ``τ_i = 2^(i−1)``, batch i contains the jobs that have arrived and are not
  scheduled. Those that A_dual schedules run from ``α·τ_i`` to ``α·τ_(i+1)``; the rest go to the next batch (line 10).

Every job is scheduled eventually: the first job of A_maxweight in a window pays nothing, so a window that is long
enough for a waiting job schedules one, and windows double.

The paper leaves α to the user. It calls 4 typical; Theorem 5 has a formula for all jobs in advance, and inequality (6)
one for each batch. In simulations, section 5.3 takes that of (6), but ends a batch as soon as all of its jobs are
scheduled (``"scheduled"``). Read literally, a batch with a job that is longer than its windows keeps the α of (6), far
above 4: its last windows are empty, and all of its jobs wait for them. So there is ``"realised"`` as well, which also
ends a batch when nothing more of it fits. If α differs between batches, the intervals ``[α_i·τ_i, 2·α_i·τ_i)`` may
overlap. A batch then starts at the end of the previous one, and still completes by ``α·τ_(i+1)`` for the largest α so
far.

Starts range up to ``τ − L`` with slots ``[t⁻, t⁻ + L)``, so slot τ of a window is never used, unless `inclusive`.
A job of weight 0 is scheduled where it costs nothing; its utility can never be positive.

**Lemma 1** requires two properties of A_dual in every round i. Its schedule is at most ``α·τ_i`` slots long, which
holds for its windows; and it contains at least the weight that an optimal schedule of the batch completes by ``τ_i``.
Theorem 5 proves the second property for an α by the formula and jobs that meet two assumptions, which jobs in the
paper's own ranges mostly do not. For any other α it can be checked after a run (:func:`shown`), with an upper bound on
the optimum: the jobs of the batch that fit into ``τ_i − 1`` slots at all and, of these, as much weight as the cluster's
total capacity of each resource allows (a fractional knapsack with the smallest consumption of each job).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedgap.heuristics.advice import Advice
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.moldable import FoundRun, Ledger, RunOptions, runs_of
from schedgap.instances.views.zhou import Architecture, ZhouSchedule

LEAST = float(np.nextafter(0.0, 1.0))
"""Smallest positive number, the cost limit of jobs of weight 0: only schedules that cost nothing are below it."""

HOPELESS = 4
"""The search for windows ends when one is empty that is this many times as long as the longest of all fastest runs."""

Plan = list[tuple[int, FoundRun]]


@dataclass(frozen=True)
class Way:
    """The settings of Zhou et al.'s algorithms; each decides something that the paper leaves open or prints otherwise.

    Parameters
    ----------
    alpha
        Number of windows per batch: a number, ``"formula"`` (Theorem 5), ``"round"`` (inequality (6) on the batch),
        ``"scheduled"`` (that of ``"round"``, or fewer if they schedule the whole batch), or ``"realised"``: as many as
        there are until nothing more of the batch fits.
    carry
        Whether jobs that do not fit in the α windows of their batch go to the next batch, as printed. If not, windows
        are repeated until nothing more of the batch fits, whatever α is; they start at τ_i or at the end of the
        previous batch.
    tight
        Whether a batch starts as soon as the runs of the previous batch are done, but not before τ_i.
    inclusive
        Whether jobs may use slot τ of a window, its last one, which (7b) forbids.
    printed
        Whether to run Algorithms 4 and 7 as printed instead of the exact placement, on the options of
        :attr:`~schedgap.instances.views.zhou.Architecture.printed_options`.
    ties
        Which of several schedules of equal cost is taken: the first one found, as printed, or the one that completes
        first and, among these, uses the smallest share of the cluster.
    f
        Factor by which F, and with it λ − 1, is misjudged.
    """

    alpha: int | str = 4
    carry: bool = True
    tight: bool = False
    inclusive: bool = False
    printed: bool = False
    ties: Literal["first", "completion"] = "first"
    f: float = 1.0

    @property
    def first(self) -> bool:
        """Whether the first of several schedules of equal cost is taken."""
        return self.ties == "first"

    def options(self, a: Architecture) -> RunOptions:
        """Return the options of the jobs, in the order in which they are tried."""
        if self.printed:
            return a.printed_looped_options if self.first else a.printed_options
        return a.looped_options if self.first else a.options

    def rounds(self, a: Architecture, batch: Ints) -> int | None:
        """Return the number of windows that A_dual may plan for a batch, ``None`` for no limit."""
        if not self.carry or self.alpha == "realised":
            return None
        if self.alpha == "formula":
            return a.alpha
        return a.alpha_of(batch) if self.alpha in ("round", "scheduled") else int(self.alpha)

    def ended(self, rounds: int | None, plans: Sequence[Plan], batch: Ints) -> int:
        """Return the α of a planned batch: `rounds` if there is such a limit, unless the batch ended before."""
        whole = sum(map(len, plans)) == batch.size
        return len(plans) if rounds is None or (whole and self.alpha == "scheduled") else rounds


def a_maxweight(
    a: Architecture, jobs: Iterable[int], tau: int, way: Way, posted: Callable[[Array, Ints], Array] | None = None
) -> Plan:
    """Plan waiting jobs by descending weight in an empty window of τ slots (Algorithm 3); return the chosen runs.

    The first slot of the window has number 0. ``posted(used, servers)`` returns the prices of servers by what is in
    use ``(servers, R, slots)``, by default (11); that of an empty server is 0.
    """
    columns, options = tau if way.inclusive else tau - 1, way.options(a)
    waiting = sorted(jobs, key=lambda j: (-a.weight[j], j))
    waiting = [j for j in waiting if options.shortest[j] <= columns]
    if not waiting:
        return []
    ledger = Ledger(a.machines, options, columns)
    plan = []
    for job in waiting:
        run = ledger.find(job, 0, limit=max(float(a.weight[job]), LEAST), printed=way.printed, first=way.first)
        if run:
            touched = ledger.book(run)
            used = a.machines.capacity[touched, :, None] - ledger.free[touched]
            ledger.post((posted or a.prices)(used, touched), touched)
            plan.append((job, run))
    return plan


def a_dual(a: Architecture, jobs: Ints, tau: int, way: Way, rounds: int | None = None) -> list[Plan]:
    """Plan jobs in consecutive windows of τ slots (Algorithm 2); return one plan per window.

    Planning stops after `rounds` windows, or when a window would schedule no job.
    """
    plans: list[Plan] = []
    left = set(jobs.tolist())
    while left and (rounds is None or len(plans) < rounds):
        plan = a_maxweight(a, left, tau, way)
        if not plan:
            break
        plans.append(plan)
        left -= {job for job, _ in plan}
    return plans


def online(a: Architecture, way: Way) -> ZhouSchedule:
    r"""Return the schedule of A_online (Algorithm 1), with the windows of its batches.

    Result rows state the :math:`4 \alpha` of Lemma 1 if the run is shown to meet its conditions (:func:`shown`). Raises
    `NotApplicableError` if no schedule is found for a waiting job even in an empty window many times as long as it
    needs, which happens with Algorithm 4 as printed.

    See Also
    --------
    schedgap.heuristics.zhou.batches : Algorithms 1 to 3, and the guarantee of Lemma 1 for a run.
    schedgap.instances.moldable.search : the exact placement, which replaces Algorithms 4 to 7.
    """
    a = a.believed(way.f)
    waiting = np.ones(a.size, bool)
    chosen: Plan = []
    windows: list[tuple[int, int, int, int]] = []
    tau, free_from = 1, 1
    while waiting.any():
        batch = np.flatnonzero(waiting & (a.arrival <= tau))
        rounds = way.rounds(a, batch)
        plans = a_dual(a, batch, tau, way, rounds)
        if plans:
            alpha = way.ended(rounds, plans, batch)
            start = max(tau if way.tight or not way.carry else alpha * tau, free_from)
            runs = [
                (job, replace(run, start=run.start + start - 1 + i * tau))
                for i, plan in enumerate(plans)
                for job, run in plan
            ]
            chosen += runs
            waiting[[job for job, _ in runs]] = False
            free_from = 1 + max(run.end for _, run in runs) if way.tight else start + alpha * tau
            windows.append((start, free_from - start, len(plans), tau))
        elif tau > max(HOPELESS * int(a.options.shortest.max()), int(a.arrival.max())):
            name = a.ids[int(np.flatnonzero(waiting)[0])]
            raise NotApplicableError(f"no schedule of {name} found in an empty window of {tau} slots")
        tau *= 2
    starts, lengths, realised, taus = np.array(windows, np.int64).reshape(-1, 4).T
    columns = vars(runs_of(chosen, 1))
    return ZhouSchedule(**columns, window_start=starts, window_slots=lengths, window_rounds=realised, window_tau=taus)


def maxweight(a: Architecture, way: Way) -> ZhouSchedule:
    """Return the schedule by τ of A_maxweight, as if all jobs were available from slot 1 on."""
    return ZhouSchedule(**vars(runs_of(a_maxweight(a.believed(way.f), range(a.size), a.deadline, way), 1)))


def follow_advice(a: Architecture, advice: Advice) -> ZhouSchedule:
    """Return the schedule by τ of A_maxweight at prices that follow predicted ones, ``(h, R, τ − 1)`` and 1 more."""

    def posted(used: Array, servers: Ints) -> Array:
        capacity = a.machines.capacity[servers, :, None]
        share = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0).clip(0.0, 1.0)
        there, one = replace(advice, predicted=advice.predicted[servers]), np.ones_like(share)
        return there.price(share, share, one, a.price_base * one) - 1.0

    return ZhouSchedule(**vars(runs_of(a_maxweight(a, range(a.size), a.deadline, Way(), posted), 1)))


def mincost(a: Architecture, way: Way) -> ZhouSchedule:
    """Return the cheapest schedule of the priced job at the view's loads (problem (12); Algorithms 4 to 7).

    As printed, Algorithm 4 may use no PS at all, and Algorithm 7 places only as many workers as slots; the exact
    placement loses none.

    Raises
    ------
    NotApplicableError
        If no schedule is found.

    See Also
    --------
    schedgap.instances.moldable.search : the exact placement.
    """
    ledger = Ledger(a.machines, way.options(a), a.deadline - 1)
    ledger.set_free(a.machines.capacity[:, :, None] - a.loads)
    ledger.post(a.prices(a.loads))
    run = ledger.find(a.priced_job, 0, printed=way.printed, first=way.first)
    if run is None:
        raise NotApplicableError(f"no schedule of {a.ids[a.priced_job]} fits with the loads by τ = {a.deadline}")
    return ZhouSchedule(**vars(runs_of([(a.priced_job, run)], 1)))


def most_weight(a: Architecture, jobs: Ints, tau: int) -> float:
    """Return an upper bound on the weight of those `jobs` that a schedule from slot 1 on can complete by τ."""
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


def lacking(a: Architecture, schedule: ZhouSchedule) -> int | None:
    """Return the τ_i of the first batch for which property (ii) of Lemma 1 is not shown; ``None`` if it is for all.

    Property (ii): the batch's schedule has at least the weight that an optimal schedule completes by τ_i.
    """
    waiting = np.ones(a.size, bool)
    tau_of_run = schedule.window_tau[np.searchsorted(schedule.window_start, schedule.start, "right") - 1]
    for tau in (1 << i for i in range(int(schedule.window_tau.max()).bit_length())):
        scheduled = schedule.job[tau_of_run == tau]
        batch = np.flatnonzero(waiting & (a.arrival <= tau))
        if a.weight[scheduled].sum() < (1 - ROUNDING) * most_weight(a, batch, tau):
            return tau
        waiting[scheduled] = False
    return None


def shown(a: Architecture, schedule: ZhouSchedule) -> Guarantee:
    """Return the guarantee ``4α`` that Lemma 1 gives for this run; it has no factor if property (ii) is not shown.

    Jobs of batch i complete by the end of its window, which is ``α·τ_(i+1)`` as printed. The largest ratio of that end
    to ``τ_(i+1)`` is the α that the lemma's proof needs, whatever the windows are.
    """
    tau = lacking(a, schedule)
    if tau is not None:
        return Guarantee(f"none shown: weight by τ = {tau}")
    end = schedule.window_start + schedule.window_slots
    factor = 4 * float((end / (2 * schedule.window_tau)).max())
    return Guarantee(f"4α = {factor:.4g}", factor)
