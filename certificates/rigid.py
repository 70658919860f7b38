"""Gangs of fixed duration: a dual feasible function turns each pool of GPUs into a single machine.

Fractions of a pool that are in use at once add up to at most 1, and so do the values of a dual feasible function at
these fractions. ``area`` is the fraction itself; ``from`` λ is 1 above 1 − λ, 0 below λ, and the fraction in between;
``above`` k is ⌊(k + 1) fraction⌋/k, or the fraction itself where (k + 1) fraction is an integer. Times are integer
ticks: seconds if all times of the instance are whole seconds, else rounded microseconds. For each busy period of a
machine, the best of several bounds counts. If a job may choose among pools, these become one pool, in which the job
takes the shortest of its durations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np

from .basics import Array, Data, require, total
from .fluid import Fleet, by_urgency, completion, mean_busy_times, shortest_first
from .reading.rigid import SHORT_S, FixedGangs, fixed_gangs_of
from .rules import register

PARTS = 1024
"""Parts, the fractions of weights that apply to mean busy times, are multiples of 1/PARTS."""

FINE = 2**80
"""Weights are rounded down to multiples of 1/FINE."""

TINY = 1e-9
"""Least duration of a job in a fluid, in hours."""


class Rigid:
    """An instance as gangs of fixed duration, and the GPUs of each pool (`there`), and the ticks in an `hour`.

    Gangs have a `release`, a `duration` and an earliest completion (`due`) in ticks, `gpus`, a `pool` and a `weight`,
    in lists; weighted sums are divided by `size`. A weight is a fraction of `weights`, whose number is in `kind`.
    """

    def __init__(self, data: Data, problem: str) -> None:
        read = fixed_gangs_of(data)
        duration, pool, self.there = merged(read)
        self.hour, what = read.hour, problem.split(".")[1]
        lasts = np.maximum(duration, SHORT_S * self.hour // 3600 if what == "slowdown" else 0)
        self.release, self.duration, self.gpus = read.release.tolist(), duration.tolist(), read.gpus.tolist()
        self.pool, self.due = pool.tolist(), (read.release + lasts).tolist()
        kinds, self.kind = np.unique(
            {"slowdown": lasts, "weighted": read.weight}.get(what, np.ones(len(lasts), np.int64)), return_inverse=True
        )
        counts = np.bincount(self.kind).tolist()
        if what == "slowdown":
            self.weights, self.size = [Fraction(1, length) for length in kinds.tolist()], Fraction(len(lasts))
        else:
            self.weights = [Fraction(weight) for weight in kinds.tolist()]
            all_weights = sum((w * n for w, n in zip(self.weights, counts, strict=True)), Fraction(0))
            self.size = (all_weights or Fraction(1)) * self.hour

    def each(self, weights: Sequence[Any]) -> list[Any]:
        """Return a value for each gang, given one for each of the `weights`."""
        return [weights[kind] for kind in self.kind.tolist()]


def merged(read: FixedGangs) -> tuple[Array, Array, list[int]]:
    """Return an easier instance without choices: pools that a job may choose from become one pool.

    Return the shortest duration of each gang, its pool, and the GPUs of each pool.
    """
    able = read.lasts >= 0
    of = list(range(len(read.pools)))
    for row in np.unique(able, axis=0):
        among = {of[p] for p in np.flatnonzero(row)}
        of = [min(among) if p in among else p for p in of]
    names = sorted(set(of))
    rooms = [sum(room for p, room in zip(of, read.capacity.tolist(), strict=True) if p == name) for name in names]
    pool = np.array([names.index(p) for p in of])[read.pool]
    return np.where(able, read.lasts, np.iinfo(np.int64).max).min(axis=1), pool, rooms


def scaled(share: Sequence[Any], gpus: int, there: int) -> tuple[int, int]:
    """Return the value of a dual feasible function for a gang in its pool, as numerator and denominator."""
    kind, number = share[0], share[1] if len(share) > 1 else 1
    require(isinstance(number, int) and number >= 1 and kind in ("area", "from", "above"), f"no function {share}")
    if kind == "from":
        require(2 * number <= there, f"{number} GPUs are more than half of the pool")
        return there if gpus > there - number else 0 if gpus < number else gpus, there
    if kind == "above" and (number + 1) * gpus % there:
        return (number + 1) * gpus // there * there, there * number
    return gpus * number, there * number


def machines(rigid: Rigid, proof: Data) -> Iterator[tuple[list[int], int, list[int], Data]]:
    """Yield, for each pool, its jobs, the units in a tick, the volumes of the jobs in units, and the proof's entry."""
    order = sorted(range(len(rigid.release)), key=rigid.release.__getitem__)
    pools = sorted(set(rigid.pool))
    require(len(pools) == len(proof["pools"]), "the number of pools is wrong")
    for pool, entry in zip(pools, proof["pools"], strict=True):
        jobs = [j for j in order if rigid.pool[j] == pool]
        values = {gpus: scaled(entry["share"], gpus, rigid.there[pool]) for gpus in {rigid.gpus[j] for j in jobs}}
        unit = values[rigid.gpus[jobs[0]]][1]
        yield jobs, unit, [rigid.duration[j] * values[rigid.gpus[j]][0] for j in jobs], entry


def flow(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the weighted mean of the times from release to completion."""
    rigid = Rigid(data, proof["problem"])
    if "edges" in proof:
        bound = by_starts(rigid, proof) if proof.get("starts") else over_intervals(rigid, proof)
        return -1, max(bound, Fraction(0))  # no job completes before its release
    least = [0] * len(rigid.weights)
    for kind, begin, end in zip(rigid.kind.tolist(), rigid.release, rigid.due, strict=True):
        least[kind] += end - begin
    separate = sum((w * time for w, time in zip(rigid.weights, least, strict=True)), Fraction(0))
    weights, bound = rigid.each([math.floor(weight * FINE) for weight in rigid.weights]), Fraction(0)
    for jobs, unit, volume, entry in machines(rigid, proof):
        weight = [weights[j] for j in jobs]
        release, alone, due = ([times[j] * unit for j in jobs] for times in (rigid.release, rigid.duration, rigid.due))
        bound += Fraction(periods(release, alone, due, volume, weight, entry["parts"]), unit * FINE)
    return -1, max(bound, separate) / rigid.size


def periods(*columns: list[int]) -> int:
    """Return a bound on the weighted sum of times from release to completion: the sum of the best for each busy period.

    The columns are those of :func:`period`, without the last.
    """
    release, _, _, volume, weight, parts = columns
    valid = all(isinstance(p, int) and 0 <= p <= PARTS for p in parts)
    require(valid and len(parts) == len(release), f"parts must be one integer from 0 to {PARTS} per job")
    columns += (by_urgency(volume, [w * p for w, p in zip(weight, parts, strict=True)]),)
    bound, first, last = 0, 0, release[0] + volume[0]
    for i in range(1, len(release)):
        if release[i] >= last:
            bound += period(*(column[first:i] for column in columns))
            first = i
        last = max(last, release[i]) + volume[i]
    return bound + period(*(column[first:] for column in columns))


def period(
    release: list[int],
    alone: list[int],
    due: list[int],
    volume: list[int],
    weight: list[int],
    parts: list[int],
    place: list[int],
) -> int:
    """Return the best bound on a busy period: every job alone, mean busy times, or shortest remaining time first.

    For mean busy times, the machine serves jobs by their `place`.
    """
    began = sum(w * r for w, r in zip(weight, release, strict=True))
    bounds = [sum(w * e for w, e in zip(weight, due, strict=True)) - began]
    mean = mean_busy_times(release, volume, place)
    mixed = 0
    for w, p, (n, d), a, e in zip(weight, parts, mean, alone, due, strict=True):
        mixed += w * (p * (2 * n + a * d) + 2 * (PARTS - p) * e * d) // (2 * PARTS * d)
    bounds.append(mixed - began)
    if len(set(weight)) == 1:
        bounds.append(weight[0] * shortest_first(release, volume) - began)
    return max(bounds)


def makespan(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the makespan: all jobs released at or after some time occupy the machine after this time."""
    rigid = Rigid(data, proof["problem"])
    last = Fraction(max(map(add, rigid.release, rigid.duration)))
    for jobs, unit, volume, _ in machines(rigid, proof):
        after = [*accumulate(reversed(volume))][::-1]
        last = max(last, Fraction(max(rigid.release[j] * unit + v for j, v in zip(jobs, after, strict=True)), unit))
    return -1, (last - min(rigid.release)) / rigid.hour


class MachineFleet(Fleet):
    """The gangs as a fluid, with times in hours; each pool becomes several machines, one per dual feasible function.

    A gang uses all machines of its pool at once.
    """

    def __init__(self, rigid: Rigid, proof: Data) -> None:
        hour = float(rigid.hour)
        self.start: Any = [release / hour for release in rigid.release]
        self.alone = [max(duration / hour, TINY) for duration in rigid.duration]
        self.due: list[float] = [due / hour for due in rigid.due]
        self.weight = rigid.each([float(weight * rigid.hour / rigid.size) for weight in rigid.weights])
        self.there = np.ones(len(proof["machines"]))
        self.uses = np.zeros((len(self.start), len(self.there)))
        gpus, alone = np.array(rigid.gpus), np.array(self.alone)
        for d, (pool, share) in enumerate(proof["machines"]):
            mine = np.array(rigid.pool) == pool
            for size in np.unique(gpus[mine]).tolist():
                value, unit = scaled(share, size, rigid.there[pool])
                these = mine & (gpus == size)
                self.uses[these, d] = alone[these] * (value / unit)

    def ways(self, j: int) -> tuple[Array, Array]:
        return np.array([self.alone[j]]), self.uses[j : j + 1]

    def first_end(self, j: int) -> float:
        return self.due[j]


def over_intervals(rigid: Rigid, proof: Data) -> Fraction:
    """Return a bound on the mean flow time from prices of machines by interval.

    The fluid counts runs shorter than :data:`TINY` as that long; the bound is lowered by the delay that this can cause.
    """
    fleet, short = MachineFleet(rigid, proof), sum(duration / rigid.hour < TINY for duration in rigid.duration)
    before = np.array(fleet.weight) * (np.array(fleet.start) + TINY * short)
    return completion(fleet, proof) - total(before) * Fraction(1 + 1e-12)


def by_starts(rigid: Rigid, proof: Data) -> Fraction:
    """Return a bound on the mean flow time if no job is interrupted: the sum of the costs of the jobs' best starts.

    Prices are integers per tick of a machine, and their sums are exact; a job pays for its pool's machines while it
    runs. Its cost is linear in its start between the starts at which it begins or ends with an interval, or ends when
    due. Costs of starts are floating-point numbers: the bound is lowered by more than their errors.
    """
    require(not proof["problem"].endswith(".preemptive"), "jobs that may be interrupted have more than a start")
    require(all(t == int(t) for t in proof["edges"]), "intervals do not end with ticks")
    edges = np.array([int(t) for t in proof["edges"]], object)
    length = edges[1:] - edges[:-1]
    require(bool((length > 0).all()) and abs(edges[0]) + abs(edges[-1]) < LATEST, "time does not go on")
    unit = Fraction(proof["unit"]) * FINE / rigid.hour
    prices = [[math.floor(whole * unit) for whole in machine] for machine in proof["prices"]]
    require(len(prices) == len(proof["machines"]), "the number of machines is wrong")
    require(all(len(p) == len(length) and min(p) >= 0 for p in prices), "prices are negative or few")
    paid = [np.array([0, *np.cumsum(np.array(machine, object) * length)], object) for machine in prices]
    bound = -Fraction(sum(int(machine[-1]) for machine in paid), FINE)
    weights = np.array(rigid.each([float(weight / rigid.size) for weight in rigid.weights]))
    release, duration, due = (np.array(column, np.int64) for column in (rigid.release, rigid.duration, rigid.due))
    kinds: dict[tuple[int, int], list[int]] = {}
    for j, kind in enumerate(zip(rigid.pool, rigid.gpus, strict=True)):
        kinds.setdefault(kind, []).append(j)
    for (pool, gpus), jobs in kinds.items():
        there = rigid.there[pool]
        values = [
            (Fraction(*scaled(share, gpus, there)), curve)
            for (where, share), curve in zip(proof["machines"], paid, strict=True)
            if where == pool
        ]
        parts = math.lcm(*(value.denominator for value, _ in values))
        curve = np.asarray(sum(int(value * parts) * curve for value, curve in values) + 0 * edges)
        of = release[jobs], duration[jobs], due[jobs], weights[jobs]
        bound += total(best_starts(*of, Curve.of(edges, curve, FINE * parts)))
    return bound


LATEST = 2**61
"""Times are smaller than this number of ticks."""

ENTRIES = 2**20
"""About how many starts are looked at together."""

SAMPLES = 8
"""Number of starts of a job that are tried first, since later ones that wait for as much need not be looked at."""

ERROR = 2.0**-48
"""Sixteen times the relative error of a floating-point operation."""


class Curve(NamedTuple):
    """The price of a gang's machines up to a time: its `values` at `edges`, and `slopes` of the intervals between.

    It is constant before the first edge and after the last one.
    """

    edges: Array
    values: Array
    slopes: Array

    @classmethod
    def of(cls, edges: Array, values: Array, unit: int) -> Curve:
        """Return the curve of integer values at integer edges; values are divided by `unit`. Edges without bends go."""
        rise, run = values[1:] - values[:-1], edges[1:] - edges[:-1]
        bends = np.ones(len(edges), bool)
        bends[1:-1] = (rise[1:] * run[:-1] != rise[:-1] * run[1:]).astype(bool)
        edges, values = edges[bends], values[bends]
        rises = zip(values[1:] - values[:-1], edges[1:] - edges[:-1], strict=True)
        slopes = [int(rise) / (unit * int(run)) for rise, run in rises]
        return cls(edges.astype(np.int64), np.array([int(v) / unit for v in values]), np.array([*slopes, 0.0]))

    def at(self, times: Array) -> Array:
        """Evaluate the curve at integer times; the error is below :data:`ERROR` of its last value."""
        times = np.clip(times, self.edges[0], self.edges[-1])
        inside = np.searchsorted(self.edges, times, "right") - 1
        return np.asarray(self.values[inside] + self.slopes[inside] * (times - self.edges[inside]))


def best_starts(release: Array, duration: Array, due: Array, weight: Array, curve: Curve) -> Array:
    """Return ``(n,)`` lower bounds on the costs of the best starts of jobs of one kind, hardly below these costs.

    A start at which the waiting alone costs as much as a start that was tried is no better; so few starts of each job
    matter.
    """

    def cost(job: Array, start: Array) -> Array:
        delay = weight[job] * (np.maximum(start + duration[job], due[job]) - release[job])
        return np.asarray(delay + (curve.at(start + duration[job]) - curve.at(start)))

    every, last = np.arange(len(release)), int(curve.edges[-1])
    first = cost(every, release)
    best = np.minimum(first, cost(every, np.maximum(release, due - duration)))
    waits = weight > 0

    def latest() -> Array:
        longest = np.divide(best, weight, out=np.full(len(best), float(LATEST)), where=waits).clip(0.0, float(LATEST))
        reach = release - duration + np.ceil(longest * (1 + ERROR)).astype(np.int64)
        return np.asarray(np.maximum(np.minimum(reach, last), release))

    for k in range(1, SAMPLES):
        best = np.minimum(best, cost(every, release + (latest() - release) // SAMPLES * k))
    until = latest()
    for shift in (np.zeros_like(duration), duration):  # jobs that begin, and that end, with an interval
        low, high = (np.searchsorted(curve.edges, times + shift, "right") for times in (release, until))
        count = np.where(waits, high - low, 0)
        blocks = np.flatnonzero(np.diff(np.cumsum(count) // ENTRIES, prepend=-1))
        for begin, end in zip(blocks, np.append(blocks[1:], len(count)), strict=True):
            busy = begin + np.flatnonzero(count[begin:end])
            if busy.size:
                ends = np.cumsum(count[busy])
                job = np.repeat(busy, count[busy])
                edge = np.arange(ends[-1]) + np.repeat(low[busy] - ends + count[busy], count[busy])
                tried = np.minimum.reduceat(cost(job, curve.edges[edge] - shift[job]), ends - count[busy])
                best[busy] = np.minimum(best[busy], tried)
    best -= ERROR * (first + 4 * curve.values[-1])
    return np.where(waits, best, 0.0)  # a job without weight waits until machines are free


def nothing(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return 0 as the bound on idle GPU-hours, which cannot be negative."""
    return -1, Fraction(0)


READS = {flow: ("pools", "machines", "edges", "prices", "starts"), makespan: ("pools",), nothing: ()}
for name, rule in {"flow": flow, "slowdown": flow, "weighted": flow, "makespan": makespan, "idle": nothing}.items():
    register(f"rigid.{name}", rule, READS[rule])
    register(f"rigid.{name}.preemptive", rule, READS[rule])
