"""Fluid relaxations: jobs do fractions of their work at any time and in several ways, at prices of resources.

With constant prices, a cluster becomes a single machine, on which the processing time of a job is the least cost of its
work: this bounds completion times and the makespan. With prices by interval of time, each job does its work in the
cheapest intervals before it ends, but no faster than it can. Times are in slots.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from .basics import HIGH, LOW, Array, Data, require, total

TINY = 2.0**-70
"""Unit of time of the single machine, in slots."""


class Fleet:
    """The jobs of a problem and its capacity, `there`, for bounds by fluids.

    Each job has an earliest `start`, a shortest duration (`alone`) and a `weight`; `arrived_s` has arrivals in seconds,
    where completion times count from them. `grain` is the least duration of a job, and its start and end are multiples
    of it (0: unrestricted). If `together` is true, a job may work in several ways at once; otherwise it works in one
    way at a time.
    """

    grain = 0.0
    together = False
    start: list[int]
    alone: list[float]
    weight: list[float]
    there: Array
    arrived_s: Sequence[float]

    def ways(self, j: int) -> tuple[Array, Array]:
        """Return ``(q,)`` how long all work of a job takes at least in each way, and ``(q, d)`` the resources used.

        Durations are infinite where a job cannot run.
        """
        raise NotImplementedError

    def times(self, j: int) -> Array:
        """Return ``(q,)`` how long all work of a job takes at least in each way."""
        return self.ways(j)[0]

    def costs(self, j: int, prices: Array) -> Array:
        """Return ``(m, q)`` what all work of a job costs at least in each way, at each of the prices ``(m, d)``."""
        times, use = self.ways(j)
        return np.where(np.isfinite(times), prices @ use.T, np.inf)

    def first_end(self, j: int) -> float:
        """Return the earliest end of a job."""
        return self.start[j] + (math.ceil(self.alone[j]) if self.grain else self.alone[j])


def normalised(fleet: Fleet, proof: Data) -> tuple[Array, list[Array], Fraction]:
    """Return the prices ``(1, d)`` of resources, the multipliers of jobs, and the sum of the latter, normalised.

    All are divided by the price of all capacity plus the multipliers of jobs.
    """
    prices = np.array(proof["prices"], float).reshape(1, -1)
    own = [np.atleast_1d(np.array(numbers, float)) for numbers in proof.get("jobs", [0] * len(fleet.start))]
    require(prices.shape[1] == len(fleet.there) and len(own) == len(fleet.start), "the number of multipliers is wrong")
    require(bool((prices >= 0).all() and all((numbers >= 0).all() for numbers in own)), "a multiplier is negative")
    own_sum = sum(map(total, own), Fraction(0))
    size = sum((Fraction(p) * Fraction(c) for p, c in zip(prices[0], fleet.there, strict=True)), own_sum)
    require(size > TINY**4, "all multipliers are 0")  # or so small that dividing by their sum would lose digits
    return prices / float(size), [numbers / float(size) for numbers in own], own_sum / size


def last_end(fleet: Fleet, proof: Data) -> Fraction:
    """Return a bound on the end of the last job."""
    prices, own, own_sum = normalised(fleet, proof)
    spent = []
    for j, numbers in enumerate(own):
        cost, times = fleet.costs(j, prices)[0], fleet.times(j)
        require(not fleet.together or len(numbers) == len(times), "copies that run at once need a multiplier each")
        each = np.where(np.isfinite(cost), cost + numbers * np.where(np.isfinite(times), times, 0.0), np.inf)
        spent.append(float(each.min()) + float(numbers.sum()) * fleet.start[j])
    return (min(fleet.start) * (1 - own_sum) + total(spent)) * Fraction(LOW)


def counted(times: Iterable[float]) -> list[int]:
    """Return times as integer multiples of :data:`TINY`, rounded down."""
    return [math.floor(time / TINY) for time in times]


def volumes(fleet: Fleet, proof: Data) -> list[int]:
    """Return each job's processing time on the single machine that the cluster becomes at the proof's prices."""
    prices, _, _ = normalised(fleet, proof)
    return counted(float(fleet.costs(j, prices).min()) * LOW for j in range(len(fleet.start)))


def one_machine(fleet: Fleet, proof: Data) -> Fraction:
    """Return a bound on the weighted sum of completion times, on a single machine.

    Without `parts`, the machine serves the job with the shortest remaining time first. With `parts`, this fraction of
    each job's weight applies to its mean busy time, and the rest to its earliest completion; the machine then serves
    the job with the largest weighted part per volume first, which minimises the sum.
    """
    start, alone, volume = counted(fleet.start), counted(fleet.alone), volumes(fleet, proof)
    weight = [Fraction(w) for w in fleet.weight]
    if "parts" not in proof:
        require(len(set(weight)) == 1, "weights differ")
        return weight[0] * shortest_first(start, volume) * Fraction(TINY)
    parts = [Fraction(p) for p in proof["parts"]]
    require(len(parts) == len(start) and all(0 <= p <= 1 for p in parts), "parts must be one number in [0, 1] per job")
    place = by_urgency(volume, [p * w for p, w in zip(parts, weight, strict=True)])
    mean = mean_busy_times(start, volume, place)
    ends = counted(map(fleet.first_end, range(len(start))))
    columns = zip(weight, parts, mean, alone, ends, strict=True)
    return Fraction(TINY) * sum(
        (w * (p * (Fraction(*m) + Fraction(a, 2)) + (1 - p) * e) for w, p, m, a, e in columns), Fraction(0)
    )


def percentile(fleet: Fleet, proof: Data) -> Fraction:
    """Return a bound on the 99th percentile of JCTs, in slots.

    The percentile interpolates between two order statistics. The `times` of the proof bound them if too few jobs can
    complete within these times.
    """
    start, volume, slot_s = counted(fleet.start), volumes(fleet, proof), Fraction(proof["slot_s"])
    first = counted(map(fleet.first_end, range(len(start))))
    below, hundredths = divmod((len(start) - 1) * 99, 100)
    parts = [Fraction(100 - hundredths, 100), Fraction(hundredths, 100)][: 1 + (hundredths > 0)]
    for rank, time in zip(range(below + 1, below + 1 + len(parts)), proof["times"], strict=True):
        due = [math.ceil((Fraction(at) / slot_s + Fraction(time)) / Fraction(TINY)) for at in fleet.arrived_s]
        able = (job for job, end in zip(zip(start, due, volume, strict=True), first, strict=True) if end <= job[1])
        require(most_in_time(sorted(able)) < rank, f"{rank} jobs may complete within {time:.9g} slots of their arrival")
    return sum((part * Fraction(time) for part, time in zip(parts, proof["times"], strict=True)), Fraction(0))


def most_in_time(jobs: Sequence[tuple[int, int, int]]) -> int:
    """Return how many jobs one machine can complete in time; a job is a start, a due time and a volume.

    Whenever a job is late, the job without which all jobs so far end soonest is dropped (Kise, Ibaraki and Mine, 1978).
    """
    require(all(one[1] <= other[1] for one, other in pairwise(jobs)), "a job that starts later is due earlier")
    accepted: list[tuple[int, int]] = []
    now = 0
    for start, due, volume in jobs:
        accepted.append((start, volume))
        now = max(now, start) + volume
        if now > due:
            now, worst = min(ends_without(accepted))
            del accepted[worst]
    return len(accepted)


def ends_without(jobs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield, for each job, when a machine has served all other jobs in order of their starts, and the job's index."""
    left = list(accumulate(volume for _, volume in reversed(jobs)))[::-1]
    ends = [start + rest for (start, _), rest in zip(jobs, left, strict=True)]
    later = [*list(accumulate(reversed(ends[1:]), max))[::-1], 0]
    earlier = [0, *accumulate(ends[:-1], max)]
    for k, (_, volume) in enumerate(jobs):
        yield max(earlier[k] - volume, later[k]), k


def shortest_first(start: Sequence[int], volume: Sequence[int]) -> int:
    """Return the least sum of completion times on one machine, by shortest remaining processing time."""
    ended, now, queue = 0, 0, list[int]()  # jobs with equal volumes left are interchangeable
    for at, size in sorted(zip(start, volume, strict=True)):
        while queue and now < at:
            if now + queue[0] <= at:
                now += heapq.heappop(queue)
                ended += now
            else:
                heapq.heapreplace(queue, queue[0] - (at - now))
                now = at
        if size:
            now = max(now, at)
            heapq.heappush(queue, size)
        else:
            ended += at
    return ended + sum(accumulate(sorted(queue), initial=now)) - now


def mean_busy_times(start: Sequence[int], volume: Sequence[int], place: Sequence[int]) -> list[tuple[int, int]]:
    """Return the mean busy times of jobs, as numerators and denominators, if the machine serves the first in place.

    The machine may interrupt a job.
    """
    left, moment, now, queue = list(volume), [0] * len(start), 0, list[int]()
    job = {at: j for j, at in enumerate(place)}
    for j in [*sorted(range(len(start)), key=start.__getitem__), None]:
        while queue and (j is None or now < start[j]):
            i = job[queue[0]]
            step = left[i]
            if j is not None and now + step > start[j]:
                step = start[j] - now
                left[i] -= step
            else:
                heapq.heappop(queue)
            moment[i] += step * (2 * now + step)
            now += step
        if j is not None and volume[j]:
            now = max(now, start[j])
            heapq.heappush(queue, place[j])
    return [(m, 2 * v) if v else (s, 1) for m, v, s in zip(moment, volume, start, strict=True)]


def by_urgency(volume: Sequence[int], part: Sequence[int | Fraction]) -> list[int]:
    """Return each job's place if jobs are sorted by their part per volume, largest first; ties by number.

    Floats sort them first, and exact fractions those that floats cannot tell apart.
    """
    about = np.array([-float(p) / v if v else 0.0 for p, v in zip(part, volume, strict=True)])
    order = np.argsort(about, kind="stable")
    near = np.diff(about[order]) <= 1e-12 * np.abs(about[order][1:])
    borders = np.flatnonzero(np.diff(near.astype(int), prepend=0, append=0))
    for first, last in borders.reshape(-1, 2).tolist():
        group = order[first : last + 1].tolist()
        ratios = {j: (part[j], volume[j]) if part[j] and volume[j] else (0, 1) for j in group}
        if len(kinds := set(ratios.values())) > 1:
            exact = {(p, v): -Fraction(p) / v for p, v in kinds}
            order[first : last + 1] = sorted(group, key=lambda j: (exact[ratios[j]], j))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place.tolist()


class EndWorth(NamedTuple):
    """What it is worth to a job to end in each interval.

    The first possible end in the interval is worth `value`, and leaves time for the fraction `free` of the work there.
    Each further fraction of the work costs `slope`.
    """

    value: Array
    slope: Array
    free: Array


def completions(fleet: Fleet, j: int, edges: Array) -> EndWorth:
    """Return the worth of a job's ends for weighted completion times: a completion time is negative worth."""
    begin = np.maximum(edges[:-1], fleet.start[j])
    first = np.maximum(begin + fleet.grain, fleet.first_end(j))
    value = np.where(first <= edges[1:], -fleet.weight[j] * first, -np.inf)
    return EndWorth(value, np.full(len(begin), fleet.weight[j] * fleet.alone[j]), (first - begin) / fleet.alone[j])


def steps(times: Array, costs: Array, together: bool) -> tuple[Array, Array]:
    """Return, for each interval, steps of rising cost: ``(K, s)`` cost per unit of work, and work added per slot.

    If a job may work in several ways `together`, each way is a step; otherwise, a step leads from one way to a faster
    one.
    """
    rate = np.broadcast_to(1 / times, costs.shape)
    with np.errstate(invalid="ignore"):  # a way that takes forever, at infinite cost, is never taken
        paying = costs / times
    if together:
        order = np.argsort(costs, axis=1)
        return np.take_along_axis(costs, order, 1), np.take_along_axis(rate, order, 1)
    speed, paid, row = np.zeros(len(costs)), np.zeros(len(costs)), np.arange(len(costs))
    units: list[Array] = []
    rates: list[Array] = []
    while True:
        more = rate - speed[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where((more > 0) & np.isfinite(costs), (paying - paid[:, None]) / more, np.inf)
        at = slope.argmin(axis=1)
        able = np.isfinite(slope[row, at])
        if not able.any():
            return np.stack(units, axis=1), np.stack(rates, axis=1)
        units.append(np.where(able, np.maximum(slope[row, at], 0.0), np.inf))
        rates.append(np.where(able, more[row, at], 0.0))
        speed, paid = (np.where(able, x, y) for x, y in ((rate[row, at], speed), (paying[row, at], paid)))


def cheapest(units: Array, most: Array) -> Array:
    """Return, for each row, the least cost of all work, done in steps with the given unit costs.

    A step does at most `most` of the work. The cost is infinite if all steps together do too little.
    """
    order = np.argsort(units, axis=1)
    there = np.take_along_axis(most, order, 1)
    done = np.clip(1 - 1e-12 - (np.cumsum(there, axis=1) - there), 0, there)
    cost, steps, units = np.empty(len(units)), (done > 0).sum(axis=1), np.take_along_axis(units, order, 1)
    for count in np.unique(steps).tolist():  # sums of rows have no zeros in between, which would change their rounding
        rows = np.flatnonzero(steps == count)
        paid = done[rows] > 0
        cost[rows] = (units[rows][paid] * done[rows][paid]).reshape(len(rows), count).sum(axis=1)
    return np.where(there.sum(axis=1) >= 1 - 1e-12, cost, np.inf)


AT_ONCE = 1_000_000
"""Numbers in the arrays of the jobs that are looked at together."""


def over_intervals(
    fleet: Any, proof: Data, edges: Array, goal: Callable[[Any, int, Array], EndWorth], must: bool
) -> Fraction:
    """Return a bound on the total worth of all jobs' ends, at prices by interval."""
    finite = np.diff(edges[np.isfinite(edges)])
    prices = np.array(proof["prices"], float).T * proof["unit"]
    require(prices.shape == (len(finite), len(fleet.there)) and bool((prices >= 0).all()), "prices are negative or few")
    require(bool((np.diff(edges) > 0).all()) and edges[0] <= min(fleet.start, default=0), "time does not go on")
    require(not fleet.grain or not (edges[np.isfinite(edges)] % 1).any(), "intervals do not end with slots")
    terms = (prices * fleet.there * finite[:, None] * HIGH).ravel().tolist()
    together, size = list[tuple[int, EndWorth, Array, Array]](), 0
    for j in range(len(fleet.start)):
        times, costs = fleet.times(j), fleet.costs(j, prices)
        if len(edges) > len(finite) + 1:  # after all intervals, work is free
            costs = np.vstack([costs, np.where(np.isfinite(costs[:1]), 0.0, np.inf)])
        found = j, goal(fleet, j, edges), *steps(times, costs, fleet.together)
        if together and (size > AT_ONCE or found[2].shape != together[0][2].shape):
            terms += most_worth(fleet, edges, together, must)
            together, size = [], 0
        together.append(found)
        size += found[2].size
    return total(terms + (most_worth(fleet, edges, together, must) if together else []))


def most_worth(fleet: Any, edges: Array, jobs: Sequence[tuple[int, EndWorth, Array, Array]], must: bool) -> list[float]:
    """Return what the best end is worth to each job: its number, the worth of its ends, and its steps of equal shape.

    Without `must`, a job need not end.
    """
    names, goals, unit_rows, rate_rows = zip(*jobs, strict=True)
    units, rate, start = np.stack(unit_rows), np.stack(rate_rows), np.array([fleet.start[j] for j in names])
    value, slope, free = (np.stack(column) for column in zip(*goals, strict=True))
    room = np.minimum(np.maximum(edges[1:] - np.maximum(edges[:-1], start[:, None]), 0.0), 1e200)
    most = np.minimum(room[:, :, None] * rate, 1.0)
    begin = np.cumsum(most, axis=2) - most
    soon = np.clip(free[:, :, None] - begin, 0.0, most)
    best = np.full(len(jobs), -np.inf if must else 0.0)
    least = cheapest(units.reshape(len(jobs), -1), most.reshape(len(jobs), -1)) * LOW
    able = np.isfinite(value)
    worth = np.where(able, value, 0.0) + np.where(able, np.abs(value), 0.0) * 1e-12
    for k in range(len(edges) - 1):
        rows = np.flatnonzero(able[:, k] & (worth[:, k] - least > best))
        if len(rows):
            own, dearer = units[rows, k], units[rows, k] + slope[rows, k, None]
            before, ahead = units[rows, :k].reshape(len(rows), -1), most[rows, :k].reshape(len(rows), -1)
            there = np.hstack([ahead, soon[rows, k], most[rows, k] - soon[rows, k]])
            paid = cheapest(np.hstack([before, own, dearer]), there) * LOW
            best[rows] = np.maximum(best[rows], worth[rows, k] - paid)
    for j in np.flatnonzero(~np.isfinite(best))[:1]:
        require(False, f"job {names[j]} never ends")
    return best.tolist()


def completion(fleet: Fleet, proof: Data) -> Fraction:
    """Return a bound on the weighted sum of completion times, in slots."""
    if "edges" not in proof:
        return one_machine(fleet, proof)
    return -over_intervals(fleet, proof, np.array([*proof["edges"], np.inf]), completions, must=True)


Kind = Callable[[Data, Data], Any]
"""A function that returns the fleet of an instance and a certificate."""


def seconds(kind: Kind, bound: Callable[[Any, Data], Fraction], data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on a time in seconds: the makespan, or the mean or the 99th percentile of JCTs."""
    fleet = kind(data, proof)
    time_s = bound(fleet, proof) * Fraction(proof["slot_s"])
    return -1, (time_s - total(fleet.arrived_s)) / len(fleet.start) if bound is completion else time_s


def slots(kind: Kind, data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the weighted sum of completion times, in slots."""
    return -1, completion(kind(data, proof), proof)


PRICED = ("slot_s", "prices", "jobs")
"""Fields of certificates with constant prices and, possibly, multipliers of jobs."""

READS = {last_end: PRICED, completion: (*PRICED, "parts", "edges"), percentile: (*PRICED, "times")}
