"""All schedules of tiny instances (the columns of P2), and the number of schedules of larger instances.

In a slot a gang holds any mix of types and advances at the rate of the slowest. Only *minimal* schedules are kept,
those that need each of their slots: dropping a slot uses fewer GPUs and ends no later, so P2 keeps its optimum. Two
mixes of one gang never dominate each other, since both hold ``W`` GPUs. In the relaxation, and only there, the extreme
mixes suffice: every other mix is an average of extreme ones that are no slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.errors import TooManyError
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.gangs.progress import usable

MOST_SCHEDULES = 60_000
"""Largest number of schedules to enumerate, over all jobs: Pyomo takes about 7 s to build a model of that many."""

MOST_STEPS = 20 * MOST_SCHEDULES
"""Largest number of partial schedules of a job to try before giving up."""

LONGEST = 300
"""Largest number of slots in a schedule of a job to enumerate."""

BUDGET = 20_000_000
"""Counting schedules gives up after this many combinations of slots per pace, over all jobs: about two seconds."""

MOST_MIXES = 200
"""Largest number of mixes of types that a gang may have in a slot."""

Mix = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Schedules:
    """``s`` schedules, each with `job` and `utility`, and ``e`` entries: the `gpus` of a schedule by slot and type."""

    job: Ints
    utility: Array
    schedule: Ints
    slot: Ints
    gpu_type: Ints
    gpus: Ints


@dataclass(frozen=True, eq=False)
class LeastPayoffs:
    """Prices by which schedules are left out of the enumeration: those that pay a job less than its `least` payoff.

    `gpu` ``(T, k)`` is the price of one GPU by slot and type, 0 or more; `least` is ``(n,)``. A payoff is utility less
    cost.
    """

    gpu: Array
    least: Array

    @staticmethod
    def none(view: HadarView) -> LeastPayoffs:
        """Return prices that exclude no schedule."""
        return LeastPayoffs(np.zeros((view.slots, len(view.capacity))), np.full(view.size, -math.inf))


def mixes(view: HadarView, job: int, extreme: bool = False) -> list[tuple[Mix, float]]:
    """Return the mixes of GPUs by type that the gang may hold in a slot, each with its progress in iterations.

    In an `extreme` mix, at most one type is partly held: it is a vertex of ``Σ_r n_r = W, 0 ≤ n_r ≤ C^r``.

    Raises
    ------
    TooManyError
        If there are more than :data:`MOST_MIXES`.
    """
    types = usable(view, job)
    room = view.capacity[types]
    listed: list[tuple[Mix, float]] = []
    for counts in _splits(int(view.workload.gpus[job]), room.tolist()):
        if len(listed) == MOST_MIXES:
            raise TooManyError(f"{view.workload.ids[job]} has more than {MOST_MIXES} mixes of GPU types in a slot")
        row = np.zeros(len(view.capacity), np.int64)
        row[types] = counts
        if not extreme or np.count_nonzero((row[types] > 0) & (row[types] < room)) <= 1:
            listed.append((tuple(row.tolist()), float(view.progress[job, row > 0].min())))
    return listed


def _splits(total: int, room: list[int]) -> Iterator[list[int]]:
    """Yield the ways to split `total` over bins of the given room."""
    if total > sum(room):
        return
    if not room:
        yield []
        return
    for first in range(min(total, room[0]), -1, -1):
        for rest in _splits(total - first, room[1:]):
            yield [first, *rest]


def job_schedules(
    view: HadarView, job: int, prices: LeastPayoffs | None = None, extreme: bool = False
) -> Iterator[list[tuple[int, Mix]]]:
    """Yield every minimal schedule of `job`: its slots in ascending order, each with the GPUs held by type.

    Schedules that pay less than ``prices.least`` are left out. If `extreme`, only extreme :func:`mixes` are used.

    Raises
    ------
    TooManyError
        After :data:`MOST_STEPS` partial schedules.
    """
    prices = prices or LeastPayoffs.none(view)
    options = mixes(view, job, extreme)
    progress = [p for _, p in options]
    best = max(progress, default=0.0)
    cost = prices.gpu @ np.array([mix for mix, _ in options], float).reshape(-1, len(view.capacity)).T
    utility, least = view.utility(job), float(prices.least[job])
    need = float(view.workload.work[job]) * (1 - ROUNDING)
    if min(need / min(progress, default=1.0), view.slots - view.arrival[job]) > LONGEST:
        raise TooManyError(f"{view.workload.ids[job]} has schedules of more than {LONGEST} slots")
    steps = 0

    def extend(
        slot: int, done: float, smallest: float, paid: float, chosen: list[tuple[int, Mix]]
    ) -> Iterator[list[tuple[int, Mix]]]:
        nonlocal steps
        for t in range(slot, view.slots):
            if done + best * (view.slots - t) < need or utility[t] - paid < least:
                return
            for (mix, more), price in zip(options, cost[t], strict=True):
                steps += 1
                if steps > MOST_STEPS:
                    raise TooManyError(f"{view.workload.ids[job]} has too many schedules to enumerate")
                total, low, now = done + more, min(smallest, more), paid + price
                if utility[t] - now < least:
                    continue
                if total < need:
                    yield from extend(t + 1, total, low, now, [*chosen, (t, mix)])
                elif total - low < need:
                    yield [*chosen, (t, mix)]

    yield from extend(int(view.arrival[job]), 0.0, math.inf, 0.0, [])


def schedules(view: HadarView, prices: LeastPayoffs | None = None, extreme: bool = False) -> Schedules:
    """Return the minimal schedules of all jobs that can complete; see :func:`job_schedules`.

    Raises
    ------
    TooManyError
        If there are more than :data:`MOST_SCHEDULES`.
    """
    error = TooManyError(f"more than {MOST_SCHEDULES:,} schedules; hadar.p2.columns makes them as needed")
    fewest = 0  # schedules that use each job's fastest mix only: choose the slots that it needs
    for job in view.possible.tolist() if prices is None else []:
        best = max(progress for _, progress in mixes(view, job))
        slots = math.ceil(float(view.workload.work[job]) * (1 - ROUNDING) / best)
        fewest += math.comb(view.slots - int(view.arrival[job]), slots)
    if fewest > MOST_SCHEDULES:
        raise error
    owner: list[int] = []
    worth: list[float] = []
    uses: list[tuple[int, int, int, int]] = []
    for job in view.possible.tolist():
        utility = view.utility(job)
        for steps in job_schedules(view, job, prices, extreme):
            if len(owner) == MOST_SCHEDULES:
                raise error
            uses += [(len(owner), t, r, n) for t, mix in steps for r, n in enumerate(mix) if n]
            owner.append(job)
            worth.append(float(utility[steps[-1][0]]))
    table = np.array(uses, np.int64).reshape(-1, 4)
    return Schedules(np.array(owner, np.int64), np.array(worth, float), *table.T)


def gang_schedules(view: HadarView) -> tuple[float, bool]:
    """Return log10 of the number of minimal schedules of all gangs, and whether this number is only a lower bound.

    Whether a schedule is minimal depends on the number of slots at each pace, not on which slots these are. The number
    of ways to pick them is a multinomial coefficient, times the mixes of GPU types of each pace.
    """
    from scipy.special import logsumexp  # imports in 0.05 s, and few runs need it

    jobs, logs, partly = view.possible.tolist(), [np.array([-np.inf])], False
    for job in jobs:
        try:
            options = mixes(view, job)
        except TooManyError:
            options, partly = mixes(view, job, extreme=True), True
        values, count = np.unique([pace for _, pace in options if pace > 0], return_counts=True)
        paces = list(zip(values.tolist(), count.tolist(), strict=True))  # ascending, with the mixes of each
        need = float(view.workload.work[job]) * (1 - ROUNDING)
        slots, budget = int(view.slots - view.arrival[job]), BUDGET // len(jobs)
        while len(paces) > 1 and math.prod(min(slots, math.ceil(need / p)) + 1 for p, _ in paces[1:]) > budget:
            paces, partly = paces[1:], True
        logs += [_frontier(need, slots, paces[lowest:]) for lowest in range(len(paces))]
    return float(logsumexp(np.concatenate(logs))) / math.log(10), partly


def _frontier(need: float, slots: int, paces: list[tuple[float, int]]) -> Array:
    """Return the logarithms of the numbers of minimal schedules that use the first pace, by slots at the other paces.

    The first pace is the slowest in use, so its number of slots follows from those of the others.
    """
    from scipy.special import gammaln

    rate = np.array([pace for pace, _ in paces])
    ways = np.log([number for _, number in paces])
    axes = [np.arange(min(slots, math.ceil(need / pace)) + 1) for pace in rate[1:]]
    others = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]) if axes else np.zeros((0, 1))
    left = need - rate[1:] @ others
    others, left = others[:, left > 0], left[left > 0]
    slowest = np.ceil(left / rate[0])
    number = np.concatenate([slowest[None], others])
    idle = slots - number.sum(axis=0)
    number, idle = number[:, idle >= 0], idle[idle >= 0]
    chosen = gammaln(slots + 1) - gammaln(number + 1).sum(axis=0) - gammaln(idle + 1)
    return np.asarray(chosen + ways @ number)
