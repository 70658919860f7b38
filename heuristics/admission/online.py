"""The admission algorithm, job by job, with everything that it sees on the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.elastic import Found, Options, options_of
from schedgap.instances.elastic.options import ROUNDING
from schedgap.instances.views.admission import UTILITY, View

TIE = 1e-9
"""Part of the utility by which payoffs may differ and still count as equal."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A schedule of a job at the prices of its arrival, the utility of its completion, whether it is on one server."""

    run: Found
    utility: float
    colocated: bool

    @property
    def payoff(self) -> float:
        """Utility less cost."""
        return self.utility - self.run.cost


@dataclass(frozen=True, eq=False)
class Step:
    """What happened at the arrival of a job: prices, and the best schedule of either layout.

    `before` ``(R, T)`` are the prices of worker types, then the PS type, by slot, that it sees, `after` those that the
    next one sees.
    """

    job: int
    before: Array
    after: Array
    colocated: Candidate | None
    spread: Candidate | None

    @property
    def chosen(self) -> Candidate | None:
        """The admitted schedule, or ``None`` where the job is rejected."""
        return best(self.colocated, self.spread)


def best(colocated: Candidate | None, spread: Candidate | None) -> Candidate | None:
    """Return the candidate of the higher payoff, the co-located one of equal ones, if that is positive."""
    first = colocated or spread
    if colocated and spread and spread.payoff > colocated.payoff + TIE * spread.utility:
        first = spread
    return first if first and first.payoff > 0 else None


def price(base: Array, used: Array, divisor: Array) -> Array:
    """Return ``θ^(h/ΣΣC) − 1`` of one unit; 0 where there is no capacity."""
    part = np.divide(used, divisor, out=np.zeros(np.broadcast(used, divisor).shape), where=divisor > 0)
    return np.asarray(np.expm1(part * np.log(base)))


def _share(view: View) -> Array:
    """Return ``(W,)`` PSs that a worker elsewhere needs: ``b_w/b_p``."""
    return np.asarray(view.machines.worker_bandwidth / view.machines.ps_bandwidth[0])


class Desk:
    """Free capacities and prices while jobs arrive."""

    def __init__(self, view: View) -> None:
        self.view = view
        m = view.machines
        self.free = np.repeat(np.rint(m.capacity).astype(np.int64)[:, :, None], view.slots, axis=2)
        self._total, workers = m.total[:, None], len(m.worker_types)
        # Of exponents, (R, 1): workers of all types together (the text's Σ_s Σ_w c_sw), PSs.
        self.divisor = np.append(np.full(workers, m.total[:workers].sum()), m.total[workers:])[:, None]

    @cached_property
    def options(self) -> Options:
        """All options of the jobs, dominated ones too; θ is the largest utility among them."""
        view = self.view
        return options_of(view.machines, view.work, view.most, view.rates, prune=False)

    @cached_property
    def bases(self) -> Array:
        """``(R,)`` θ of every worker type, the same of all of them (the text's Σ_s Σ_w Σ_t y), and of the PS type.

        The PSs of a spread schedule are as few as can be, for one worker elsewhere.
        """
        view, choices, workers, servers = self.view, self.options, 0.0, 0.0
        end = view.first_start(UTILITY.id)[choices.job] + choices.slots
        in_time = end <= view.deadline[choices.job]
        fewest = np.ceil(_share(view)[choices.worker_type] * (1 - ROUNDING))
        ps = np.where(choices.together, 1.0, np.maximum(fewest, 1.0))
        for job in range(view.size):
            mine = np.arange(choices.first[job], choices.first[job + 1])
            mine = mine[in_time[mine]]
            worth = view.utility(job)[end[mine]] / choices.slots[mine]
            workers = max(workers, float((worth / choices.workers[mine]).max(initial=0.0)))
            servers = max(servers, float((worth / ps[mine]).max(initial=0.0)))
        return np.append(np.full(len(view.machines.worker_types), workers), servers) + 1.0

    @property
    def prices(self) -> Array:
        """``(R, T)`` what one worker or PS costs in each slot now."""
        return price(self.bases[:, None], self._total - self.free.sum(axis=0), self.divisor)

    def candidates(self, job: int, prices: Array) -> tuple[Candidate | None, Candidate | None]:
        """Return the schedules of highest payoff of a job at prices ``(R, T)``, co-located and spread."""
        from schedgap.heuristics.admission import _kernels as kernels

        view, o, mine = self.view, self.options, self.options.of(job)
        choices = kernels.Choices(o.slots[mine], o.worker_type[mine], o.workers[mine], o.together[mine])
        first, last = int(view.first_start(UTILITY.id)[job]), int(view.deadline[job])
        paid = np.zeros((prices.shape[0], view.slots + 1))
        np.cumsum(prices, axis=1, out=paid[:, 1:])
        found = kernels.nothing()
        worth = view.utility(job)
        kernels.search(choices, kernels.Goal(first, last, worth, _share(view)), self.free, paid, found)
        spread, colocated = (
            self._read(int(mine.start), [column[layout].item() for column in found[1:]], worth)
            for layout in (kernels.SPREAD, kernels.COLOCATED)
        )
        return colocated, spread

    def _read(self, first: int, found: list[Any], worth: Array) -> Candidate | None:
        """Return a schedule that the search found, with its workers placed."""
        cost, option, start, host, servers = found
        if option < 0:
            return None
        o, k = self.options, first + option
        end = start + int(o.slots[k])
        together, number = bool(o.together[k]), int(o.workers[k])
        room = self.free[:, o.worker_type[k], start:end].min(axis=1)
        workers, ps = np.zeros_like(room), np.zeros_like(room)
        ps[host] = servers
        workers[host] = number if together else min(number - 1, room[host])
        # Fullest servers first, so that whole ones stay free for co-located jobs.
        for other in np.argsort(room, kind="stable").tolist():
            if other != host:
                workers[other] = min(number - workers.sum(), number - 1, room[other])
        utility = float(worth[end])
        run = Found(
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

    def admit(self, run: Found) -> None:
        """Book a run."""
        self.free[:, run.worker_type, run.start : run.end] -= run.workers[:, None]
        self.free[:, -1, run.start : run.end] -= run.ps[:, None]


def steps(view: View) -> tuple[Step, ...]:
    """Return what happens at each job's arrival; those of one slot arrive in the order of the instance."""
    desk = Desk(view)
    prices = desk.prices
    seen = []
    for job in np.argsort(view.arrival, kind="stable").tolist():
        before = prices
        colocated, spread = desk.candidates(job, before)
        if chosen := best(colocated, spread):
            desk.admit(chosen.run)
            prices = desk.prices
        seen.append(Step(job, before, prices, colocated, spread))
    return tuple(seen)
