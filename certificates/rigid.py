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
from typing import Any, NamedTuple

import numpy as np

from .basics import Array, Data, require, total
from .fluid import Fleet, completion, mean_busy_times, shortest_first
from .reading.rigid import SHORT_S, FixedGangs, fixed_gangs_of
from .rules import register

PARTS = 1024
"""Parts, the fractions of weights that apply to mean busy times, are multiples of 1/PARTS."""

FINE = 2**80
"""Weights are rounded down to multiples of 1/FINE."""

TINY = 1e-9
"""Least duration of a job in a fluid, in hours."""


class Gang(NamedTuple):
    """A gang: the tick at which it is released, its duration, GPUs, and pool."""

    release: int
    duration: int
    gpus: int
    pool: int


class Rigid:
    """An instance as gangs of fixed duration: the gangs, the GPUs of each pool (`there`), and the ticks in an `hour`.

    Jobs have a `weight` and an earliest completion (`due`); weighted sums are divided by `size`.
    """

    def __init__(self, data: Data, problem: str) -> None:
        read = fixed_gangs_of(data)
        self.gangs, self.there = merged(read)
        self.hour = read.hour
        what = problem.split(".")[1]
        lasts = [max(g.duration, SHORT_S * self.hour // 3600 if what == "slowdown" else 0) for g in self.gangs]
        self.due = [g.release + length for g, length in zip(self.gangs, lasts, strict=True)]
        self.weight = [Fraction(w if what == "weighted" else 1) for w in read.weight.tolist()]
        self.size = (sum(self.weight) or Fraction(1)) * self.hour
        if what == "slowdown":
            self.weight, self.size = [Fraction(1, length) for length in lasts], Fraction(len(lasts))


def merged(read: FixedGangs) -> tuple[list[Gang], list[int]]:
    """Return an easier instance without choices: pools that a job may choose from become one pool.

    Return the gangs, each with the shortest of its durations, and the GPUs of each pool.
    """
    able = read.lasts >= 0
    of = list(range(len(read.pools)))
    for row in np.unique(able, axis=0):
        among = {of[p] for p in np.flatnonzero(row)}
        of = [min(among) if p in among else p for p in of]
    names = sorted(set(of))
    rooms = [sum(room for p, room in zip(of, read.capacity.tolist(), strict=True) if p == name) for name in names]
    pool = np.array([names.index(p) for p in of])[read.pool]
    fastest = np.where(able, read.lasts, np.iinfo(np.int64).max).min(axis=1)
    columns = (column.tolist() for column in (read.release, fastest, read.gpus, pool))
    return [Gang(*row) for row in zip(*columns, strict=True)], rooms


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
    order = sorted(range(len(rigid.gangs)), key=lambda j: rigid.gangs[j].release)
    pools = sorted({gang.pool for gang in rigid.gangs})
    require(len(pools) == len(proof["pools"]), "the number of pools is wrong")
    for pool, entry in zip(pools, proof["pools"], strict=True):
        jobs = [j for j in order if rigid.gangs[j].pool == pool]
        values = [scaled(entry["share"], rigid.gangs[j].gpus, rigid.there[pool]) for j in jobs]
        yield jobs, values[0][1], [rigid.gangs[j].duration * v for j, (v, _) in zip(jobs, values, strict=True)], entry


def flow(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the weighted mean of the times from release to completion."""
    rigid = Rigid(data, proof["problem"])
    if "edges" in proof:
        bound = by_starts(rigid, proof) if proof.get("starts") else over_intervals(rigid, proof)
        return -1, max(bound, Fraction(0))  # no job completes before its release
    separate = sum(w * (e - g.release) for w, e, g in zip(rigid.weight, rigid.due, rigid.gangs, strict=True))
    bound = Fraction(0)
    for jobs, unit, volume, entry in machines(rigid, proof):
        weight = [math.floor(rigid.weight[j] * FINE) for j in jobs]
        release, alone = ([rigid.gangs[j][k] * unit for j in jobs] for k in (0, 1))
        due = [rigid.due[j] * unit for j in jobs]
        bound += Fraction(periods(release, alone, due, volume, weight, entry["parts"]), unit * FINE)
    return -1, max(bound, Fraction(separate)) / rigid.size


def periods(*columns: list[int]) -> int:
    """Return a bound on the weighted sum of times from release to completion: the sum of the best for each busy period.

    The columns are those of :func:`period`.
    """
    release, _, _, volume, _, parts = columns
    valid = all(isinstance(p, int) and 0 <= p <= PARTS for p in parts)
    require(valid and len(parts) == len(release), f"parts must be one integer from 0 to {PARTS} per job")
    bound, first, last = 0, 0, release[0] + volume[0]
    for i in range(1, len(release)):
        if release[i] >= last:
            bound += period(*(column[first:i] for column in columns))
            first = i
        last = max(last, release[i]) + volume[i]
    return bound + period(*(column[first:] for column in columns))


def period(
    release: list[int], alone: list[int], due: list[int], volume: list[int], weight: list[int], parts: list[int]
) -> int:
    """Return the best bound on a busy period: every job alone, mean busy times, or shortest remaining time first."""
    began = sum(w * r for w, r in zip(weight, release, strict=True))
    bounds = [sum(w * e for w, e in zip(weight, due, strict=True)) - began]
    mean = mean_busy_times(release, volume, [Fraction(w * p) for w, p in zip(weight, parts, strict=True)])
    mixed = 0
    for w, p, m, a, e in zip(weight, parts, mean, alone, due, strict=True):
        n, d = m.numerator, m.denominator
        mixed += w * (p * (2 * n + a * d) + 2 * (PARTS - p) * e * d) // (2 * PARTS * d)
    bounds.append(mixed - began)
    if len(set(weight)) == 1:
        bounds.append(weight[0] * shortest_first(release, volume) - began)
    return max(bounds)


def makespan(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the makespan: all jobs released at or after some time occupy the machine after this time."""
    rigid = Rigid(data, proof["problem"])
    last = Fraction(max(g.release + g.duration for g in rigid.gangs))
    for jobs, unit, volume, _ in machines(rigid, proof):
        after = np.cumsum(np.array(volume[::-1], object))[::-1]
        last = max(last, *(rigid.gangs[j].release + Fraction(v, unit) for j, v in zip(jobs, after, strict=True)))
    return -1, (last - min(g.release for g in rigid.gangs)) / rigid.hour


class MachineFleet(Fleet):
    """The gangs as a fluid, with times in hours; each pool becomes several machines, one per dual feasible function.

    A gang uses all machines of its pool at once.
    """

    def __init__(self, rigid: Rigid, proof: Data) -> None:
        gangs, hour = rigid.gangs, float(rigid.hour)
        self.start: Any = [g.release / hour for g in gangs]
        self.alone = [max(g.duration / hour, TINY) for g in gangs]
        self.due = [e / hour for e in rigid.due]
        self.weight = [float(w * rigid.hour / rigid.size) for w in rigid.weight]
        self.there = np.ones(len(proof["machines"]))
        self.uses = np.zeros((len(gangs), len(self.there)))
        for d, (pool, share) in enumerate(proof["machines"]):
            for j, gang in enumerate(gangs):
                if gang.pool == pool:
                    value, unit = scaled(share, gang.gpus, rigid.there[pool])
                    self.uses[j, d] = self.alone[j] * (value / unit)

    def ways(self, j: int) -> tuple[Array, Array]:
        return np.array([self.alone[j]]), self.uses[j : j + 1]

    def first_end(self, j: int) -> float:
        return self.due[j]


def over_intervals(rigid: Rigid, proof: Data) -> Fraction:
    """Return a bound on the mean flow time from prices of machines by interval.

    The fluid counts runs shorter than :data:`TINY` as that long; the bound is lowered by the delay that this can cause.
    """
    fleet, short = MachineFleet(rigid, proof), sum(gang.duration / rigid.hour < TINY for gang in rigid.gangs)
    before = np.array(fleet.weight) * (np.array(fleet.start) + TINY * short)
    return completion(fleet, proof) - total(before) * Fraction(1 + 1e-12)


def by_starts(rigid: Rigid, proof: Data) -> Fraction:
    """Return a bound on the mean flow time if no job is interrupted: the sum of the costs of the jobs' best starts.

    Prices are integers per tick of a machine, so everything is exact; a job pays for its pool's machines while it runs.
    Its cost is linear in its start between the starts at which it begins or ends with an interval, or ends when due.
    """
    require(not proof["problem"].endswith(".preemptive"), "jobs that may be interrupted have more than a start")
    require(all(t == int(t) for t in proof["edges"]), "intervals do not end with ticks")
    edges = np.array([int(t) for t in proof["edges"]], object)
    length = edges[1:] - edges[:-1]
    require(bool((length > 0).all()), "time does not go on")
    unit = Fraction(proof["unit"]) * FINE / rigid.hour
    prices = [[math.floor(whole * unit) for whole in machine] for machine in proof["prices"]]
    require(len(prices) == len(proof["machines"]), "the number of machines is wrong")
    require(all(len(p) == len(length) and min(p) >= 0 for p in prices), "prices are negative or few")
    paid = [np.array([0, *np.cumsum(np.array(machine, object) * length)], object) for machine in prices]
    bound = -Fraction(sum(int(machine[-1]) for machine in paid), FINE)
    curves: dict[tuple[int, int], tuple[Any, Any, int]] = {}
    for j, gang in enumerate(rigid.gangs):
        kind = gang.pool, gang.gpus
        if kind not in curves:
            there = rigid.there[gang.pool]
            values = [
                (Fraction(*scaled(share, gang.gpus, there)), curve)
                for (pool, share), curve in zip(proof["machines"], paid, strict=True)
                if pool == gang.pool
            ]
            parts = math.lcm(*(value.denominator for value, _ in values))
            curve = np.asarray(sum(int(value * parts) * curve for value, curve in values))
            curves[kind] = curve, (curve[1:] - curve[:-1]) // length, parts
        curve, slope, parts = curves[kind]
        weight = math.floor(rigid.weight[j] / rigid.size * FINE) * parts
        turns = np.array([*edges, *(edges - gang.duration), rigid.due[j] - gang.duration, gang.release], object)
        turns = np.unique(np.maximum(turns, gang.release).astype(np.int64)).astype(object)
        cost = weight * (np.maximum(turns + gang.duration, rigid.due[j]) - gang.release)
        cost += at(curve, slope, edges, turns + gang.duration) - at(curve, slope, edges, turns)
        bound += Fraction(int(cost.min()), FINE * parts)
    return bound


def at(curve: Array, slope: Array, edges: Array, times: Array) -> Array:
    """Evaluate a curve at integer times; it is linear between integer edges and constant outside them."""
    inside = np.clip(np.searchsorted(edges.astype(np.int64), times.astype(np.int64), "right") - 1, 0, len(edges) - 2)
    return np.asarray(curve[inside] + slope[inside] * (np.clip(times, edges[0], edges[-1]) - edges[inside]))


def nothing(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return 0 as the bound on idle GPU-hours, which cannot be negative."""
    return -1, Fraction(0)


READS = {flow: ("pools", "machines", "edges", "prices", "starts"), makespan: ("pools",), nothing: ()}
for name, rule in {"flow": flow, "slowdown": flow, "weighted": flow, "makespan": makespan, "idle": nothing}.items():
    register(f"rigid.{name}", rule, READS[rule])
    register(f"rigid.{name}.preemptive", rule, READS[rule])
