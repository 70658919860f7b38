"""The admission algorithm, job by job, which also reports the prices and the candidate schedules of every job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from schedgap.heuristics.advice import Advice
from schedgap.instances.arrays import SLACK, Array
from schedgap.instances.moldable import FoundRun, RunOptions, options_of
from schedgap.instances.views.admission import UTILITY, AdmissionView

TIE = 1e-9
"""Payoffs that differ by at most this fraction of the utility count as equal."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A schedule that an arriving job could get: its run, its utility, and whether it uses one server only.

    The run's cost is at the prices that hold when the job arrives.
    """

    run: FoundRun
    utility: float
    colocated: bool

    @property
    def payoff(self) -> float:
        """Utility minus cost."""
        return self.utility - self.run.cost


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the algorithm: a job arrives, and gets its best schedule on one server, on several, or none.

    `before` and `after` ``(R, T)`` are the prices that this job and the next job see, by resource (the worker types,
    then the PS type) and slot.
    """

    job: int
    before: Array
    after: Array
    colocated: Candidate | None
    spread: Candidate | None

    @property
    def chosen(self) -> Candidate | None:
        """The admitted schedule; ``None`` if the job is rejected."""
        return best(self.colocated, self.spread)


def best(colocated: Candidate | None, spread: Candidate | None) -> Candidate | None:
    """Return the candidate of higher payoff, or ``None`` if no payoff is positive; ties go to the co-located one."""
    first = colocated or spread
    if colocated and spread and spread.payoff > colocated.payoff + TIE * spread.utility:
        first = spread
    return first if first and first.payoff > 0 else None


def price(base: Array, used: Array, divisor: Array) -> Array:
    """Return the price ``θ^(used / divisor) − 1`` of one unit of a resource; 0 where the divisor is 0 (no capacity)."""
    fraction = np.divide(used, divisor, out=np.zeros(np.broadcast(used, divisor).shape), where=divisor > 0)
    return np.asarray(np.expm1(fraction * np.log(base)))


def _share(view: AdmissionView) -> Array:
    """Return the ``(W,)`` number ``b_w/b_p`` of PSs that one worker on another server needs, by worker type."""
    return np.asarray(view.machines.worker_bandwidth / view.machines.ps_bandwidth[0])


class Desk:
    """The admission desk: it keeps the free capacities and prices, proposes schedules and books admitted runs."""

    def __init__(self, view: AdmissionView, *, theta: float = 1.0, advice: Advice | None = None) -> None:
        self.view, self._theta, self._advice = view, theta, advice
        m = view.machines
        self.free = np.repeat(np.rint(m.capacity).astype(np.int64)[:, :, None], view.slots, axis=2)
        self._total, workers = m.total[:, None], len(m.worker_types)
        # Divisors of exponents, (R, 1): workers of all types together (the text's Σ_s Σ_w c_sw), PSs.
        self.divisor = np.append(np.full(workers, m.total[:workers].sum()), m.total[workers:])[:, None]

    @cached_property
    def options(self) -> RunOptions:
        """All options of the jobs, including dominated ones, because θ is the largest utility over all of them.

        Spread options have at least two workers: COST_D puts at most ``D_w − 1`` of them on one server.
        """
        view = self.view
        return options_of(view.machines, view.work, view.most, view.rates, prune=False, lone=False)

    @cached_property
    def bases(self) -> Array:
        """``(R,)`` base θ of each resource's price: one value for all worker types, then that of the PS type.

        All worker types share a value because the text sums over them (Σ_s Σ_w Σ_t y). A spread schedule counts with
        the fewest possible PSs: those that a single worker on another server needs.
        """
        view, choices, workers, servers = self.view, self.options, 0.0, 0.0
        end = view.first_start(UTILITY.id)[choices.job] + choices.slots
        in_time = end <= view.deadline[choices.job]
        fewest = np.ceil(_share(view)[choices.worker_type] * (1 - SLACK))
        ps = np.where(choices.together, 1.0, np.maximum(fewest, 1.0))
        for job in range(view.size):
            mine = np.arange(choices.first[job], choices.first[job + 1])
            mine = mine[in_time[mine]]
            worth = view.utility(job)[end[mine]] / choices.slots[mine]
            workers = max(workers, float((worth / choices.workers[mine]).max(initial=0.0)))
            servers = max(servers, float((worth / ps[mine]).max(initial=0.0)))
        return self._theta * np.append(np.full(len(view.machines.worker_types), workers), servers) + 1.0

    @property
    def prices(self) -> Array:
        """``(R, T)`` current price of one worker or PS, by resource and slot."""
        used = self._total - self.free.sum(axis=0)
        if self._advice is None:
            return price(self.bases[:, None], used, self.divisor)
        share = np.divide(used, self.divisor, out=np.zeros(used.shape), where=self.divisor > 0)
        return self._advice.price(share, share, np.ones_like(share), self.bases[:, None]) - 1.0

    def candidates(self, job: int, prices: Array) -> tuple[Candidate | None, Candidate | None]:
        """Return a job's best schedule on one server and its best one on several, at prices ``(R, T)``.

        *Best* means of highest payoff; a schedule is ``None`` if the job has none in that layout.
        """
        from schedgap.heuristics.admission import _kernels as kernels

        view, o, mine = self.view, self.options, self.options.of(job)
        choices = kernels.AdmissionOptions(o.slots[mine], o.worker_type[mine], o.workers[mine], o.together[mine])
        first, last = int(view.first_start(UTILITY.id)[job]), int(view.deadline[job])
        paid = np.zeros((prices.shape[0], view.slots + 1))
        np.cumsum(prices, axis=1, out=paid[:, 1:])
        schedules = kernels.nothing()
        worth = view.utility(job)
        kernels.search(choices, kernels.AdmissionGoal(first, last, worth, _share(view)), self.free, paid, schedules)
        spread, colocated = (
            self._candidate(int(mine.start), [column[layout].item() for column in schedules[1:]], worth)
            for layout in (kernels.SPREAD, kernels.COLOCATED)
        )
        return colocated, spread

    def _candidate(self, first: int, schedule: list[Any], worth: Array) -> Candidate | None:
        """Place the workers of a schedule that the search found, and return it; ``None`` if the search found none."""
        cost, option, start, host, servers = schedule
        if option < 0:
            return None
        o, k = self.options, first + option
        end = start + int(o.slots[k])
        together, number = bool(o.together[k]), int(o.workers[k])
        room = self.free[:, o.worker_type[k], start:end].min(axis=1)
        workers, ps = np.zeros_like(room), np.zeros_like(room)
        ps[host] = servers
        workers[host] = number if together else min(number - 1, room[host])
        # Fullest servers first, so that empty ones stay free for co-located jobs.
        for other in np.argsort(room, kind="stable").tolist():
            if other != host:
                workers[other] = min(number - workers.sum(), number - 1, room[other])
        utility = float(worth[end])
        run = FoundRun(
            total=cost - utility,
            cost=cost,
            option=k,
            start=start,
            slots=end - start,
            worker_type=int(o.worker_type[k]),
            ps_type=int(o.ps_type[k]),
            workers=workers,
            ps=ps,
        )
        return Candidate(run, utility, together)

    def admit(self, run: FoundRun) -> None:
        """Subtract what a run uses from the free capacities."""
        self.free[:, run.worker_type, run.start : run.end] -= run.workers[:, None]
        self.free[:, -1, run.start : run.end] -= run.ps[:, None]


def steps(view: AdmissionView, *, theta: float = 1.0, advice: Advice | None = None) -> tuple[Step, ...]:
    """Run the algorithm; return one step per job, by arrival. Jobs of the same slot keep the instance's order.

    `theta` is the factor by which the largest utility per slot and worker, θ − 1, is misjudged. With `advice`, prices
    follow predicted ones.
    """
    desk = Desk(view, theta=theta, advice=advice)
    prices = desk.prices
    log = []
    for job in np.argsort(view.arrival, kind="stable").tolist():
        before = prices
        colocated, spread = desk.candidates(job, before)
        if chosen := best(colocated, spread):
            desk.admit(chosen.run)
            prices = desk.prices
        log.append(Step(job, before, prices, colocated, spread))
    return tuple(log)
