"""Gangs of fixed duration: each pool of GPUs is a machine, by a function that is dual feasible.

Parts of a pool that are in use at once add up to at most 1, and so do values of such a function at them: ``area`` is
the part itself; ``from`` λ is 1 above 1 − λ, 0 below λ, and the part between; ``above`` k is ⌊(k + 1) part⌋/k, or the
part where (k + 1) part is a whole number. Times are ticks: whole seconds where the instance has no others, else
microseconds, as many as rounding makes of them. Each busy period of a machine counts by what is best there. Pools among
which a job may choose are one pool, and the job is as fast as in the fastest of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .basics import Array, Data, Gangs, require, total
from .fluid import Fleet, Rule, completion, mean_busy_times, shortest_first

PARTS = 1024
"""Parts of weights are multiples of one in so many."""

FINE = 2**80
"""Units of a weight."""

TINY = 1e-9
"""Hours that a run of no length counts as in a fluid."""


class Gang(NamedTuple):
    """A gang that may start at a tick: its duration, GPUs, and pool."""

    release: int
    duration: int
    gpus: int
    pool: int


class Rigid:
    """What an instance is to these problems: gangs, GPUs of the pools, ticks of an hour.

    Jobs have weights and earliest completions (`due`), and weighted sums are divided by a `size`.
    """

    def __init__(self, data: Data, problem: str) -> None:
        held, self.jobs = Gangs(data, 1.0), data["jobs"]
        self.there = held.gpus
        known = [job.get("history") for job in self.jobs]
        require(all(known) or not any(known), "some jobs have a history and others have none")
        found = logged(self.jobs, held.types) if all(known) else rated(held)
        self.tick_s, columns = found[0], [np.asarray(column).tolist() for column in found[1:]]
        self.gangs = [Gang(*one) for one in zip(*columns, strict=True)]
        require(all(g.gpus <= self.there[g.pool] for g in self.gangs), "a gang does not fit in its pool")
        if all(known):
            self.gangs, self.there = merged(self.gangs, self.jobs, held.types, self.there, self.tick_s)
        self.hour = 3600 if self.tick_s == 1 else 3_600_000_000
        what = problem.split(".")[1]
        lasts = [max(g.duration, 10 * self.hour // 3600 if what == "slowdown" else 0) for g in self.gangs]
        self.due = [g.release + length for g, length in zip(self.gangs, lasts, strict=True)]
        self.weight = [Fraction(job.get("weight", 1.0) if what == "weighted" else 1) for job in self.jobs]
        self.size = (sum(self.weight) or Fraction(1)) * self.hour
        if what == "slowdown":
            self.weight, self.size = [Fraction(1, length) for length in lasts], Fraction(len(lasts))


def logged(jobs: Sequence[Data], types: Sequence[str]) -> tuple[Any, ...]:
    """Return the length of a tick, and releases, durations, GPUs and pools, as a log has them."""
    runs = [(j, *run) for j, job in enumerate(jobs) for run in job["history"].get("runs", ())]
    ran = np.array(runs, float).reshape(-1, 3)
    lasted = np.array([job.get("duration_s") or 0.0 for job in jobs])
    release = np.array([job.get("submit_s", 0.0) for job in jobs])
    others = [s for job in jobs for s in job["history"].get("durations_s", {}).values()]
    times = np.concatenate([ran[:, 1:].ravel(), lasted, release, others])
    tick_s = 1.0 if (times == np.round(times)).all() else 1e-6
    which = ran[:, 0].astype(int)
    duration = np.rint(lasted / tick_s).astype(np.int64)
    if len(set(which.tolist())) == len(jobs):
        duration = np.zeros(len(jobs), np.int64)
        each = np.rint(ran[:, 2] / tick_s).astype(np.int64) - np.rint(ran[:, 1] / tick_s).astype(np.int64)
        np.add.at(duration, which, each)
    pools = [types.index(job["history"]["gpu_type"]) for job in jobs]
    return tick_s, np.rint(release / tick_s).astype(np.int64), duration, [job["gpus"] for job in jobs], pools


def merged(
    gangs: Sequence[Gang], jobs: Sequence[Data], types: Sequence[str], there: Sequence[int], tick_s: float
) -> tuple[list[Gang], list[int]]:
    """Return the gangs at their fastest, in pools that are one where a job may choose between them, and their GPUs."""
    of, found = list(range(len(there))), []
    for gang, job in zip(gangs, jobs, strict=True):
        shortest = gang.duration
        for kind, seconds in job["history"].get("durations_s", {}).items():
            other = types.index(kind)
            if other != gang.pool and gang.gpus <= there[other]:
                shortest = min(shortest, round(seconds / tick_s))
                first, last = sorted((of[gang.pool], of[other]))
                of = [first if p == last else p for p in of]
        found.append(gang._replace(duration=shortest))
    names = sorted(set(of))
    rooms = [sum(room for p, room in zip(of, there, strict=True) if p == name) for name in names]
    return [gang._replace(pool=names.index(of[gang.pool])) for gang in found], rooms


def rated(held: Gangs) -> tuple[Any, ...]:
    """Return the same of jobs that run on the fastest GPU type on which the gang fits."""
    gpus = np.array([job["gpus"] for job in held.jobs])
    rates = np.where(gpus[:, None] <= np.array(held.gpus), np.array(held.rates), 0.0)
    require(bool((rates.max(axis=1) > 0).all()), "a gang fits on no GPU type")
    lasts = np.array(held.work) / (gpus * rates.max(axis=1))
    release = np.rint(np.array(held.arrival_s) / 1e-6).astype(np.int64)
    return 1e-6, release, np.ceil(lasts / 1e-6).astype(np.int64), gpus, rates.argmax(axis=1)


def scaled(share: Sequence[Any], gpus: int, there: int) -> tuple[int, int]:
    """Return the value of a dual feasible function at the part of a pool that a gang is, and the unit of that."""
    kind, number = share[0], share[1] if len(share) > 1 else 1
    require(isinstance(number, int) and number >= 1 and kind in ("area", "from", "above"), f"no function {share}")
    if kind == "from":
        require(2 * number <= there, f"{number} GPUs are more than half of the pool")
        return there if gpus > there - number else 0 if gpus < number else gpus, there
    if kind == "above" and (number + 1) * gpus % there:
        return (number + 1) * gpus // there * there, there * number
    return gpus * number, there * number


def machines(rigid: Rigid, proof: Data) -> Iterator[tuple[list[int], int, list[int], Data]]:
    """Yield the jobs of each pool, the ticks that are a unit, their volumes in units, and what the proof has of it."""
    order = sorted(range(len(rigid.gangs)), key=lambda j: (rigid.gangs[j].release, j))
    each = [(p, [j for j in order if rigid.gangs[j].pool == p]) for p in range(len(rigid.there))]
    pools = [(p, jobs) for p, jobs in each if jobs]
    require(len(pools) == len(proof["pools"]), "there are other pools")
    for (pool, jobs), told in zip(pools, proof["pools"], strict=True):
        values = [scaled(told["share"], rigid.gangs[j].gpus, rigid.there[pool]) for j in jobs]
        yield jobs, values[0][1], [rigid.gangs[j].duration * v for j, (v, _) in zip(jobs, values, strict=True)], told


def flow(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the mean of weighted times from release to completion."""
    rigid = Rigid(data, proof["problem"])
    if "edges" in proof:
        return -1, by_starts(rigid, proof) if proof.get("starts") else over_intervals(rigid, proof)
    sure = sum(w * (e - g.release) for w, e, g in zip(rigid.weight, rigid.due, rigid.gangs, strict=True))
    found = Fraction(0)
    for jobs, unit, volume, told in machines(rigid, proof):
        weight = [math.floor(rigid.weight[j] * FINE) for j in jobs]
        release, alone = ([rigid.gangs[j][k] * unit for j in jobs] for k in (0, 1))
        due = [rigid.due[j] * unit for j in jobs]
        found += Fraction(periods(release, alone, due, volume, weight, told["parts"]), unit * FINE)
    return -1, max(found, Fraction(sure)) / rigid.size


def periods(
    release: list[int], alone: list[int], due: list[int], volume: list[int], weight: list[int], parts: list[int]
) -> int:
    """Return a bound on the weighted sum of times from release to completion, the best one of each busy period."""
    right = all(isinstance(p, int) and 0 <= p <= PARTS for p in parts)
    require(right and len(parts) == len(release), "parts are not between 0 and 1")
    found, first, last = 0, 0, release[0]
    for i in range(len(release) + 1):
        if i == len(release) or release[i] >= last:
            mine = slice(first, i)
            columns = (release[mine], alone[mine], due[mine], volume[mine], weight[mine], parts[mine])
            found += period(*columns) if i > first else 0
            first = i
        if i < len(release):
            last = max(last, release[i]) + volume[i]
    return found


def period(
    release: list[int], alone: list[int], due: list[int], volume: list[int], weight: list[int], parts: list[int]
) -> int:
    """Return the best bound on a busy period: every job alone, mean busy times, or the shortest remaining first."""
    began = sum(w * r for w, r in zip(weight, release, strict=True))
    found = [sum(w * e for w, e in zip(weight, due, strict=True)) - began]
    mean = mean_busy_times(release, volume, [Fraction(w * p) for w, p in zip(weight, parts, strict=True)])
    mixed = 0
    for w, p, m, a, e in zip(weight, parts, mean, alone, due, strict=True):
        n, d = m.numerator, m.denominator
        mixed += w * (p * (2 * n + a * d) + 2 * (PARTS - p) * e * d) // (2 * PARTS * d)
    found.append(mixed - began)
    if len(set(weight)) == 1:
        found.append(weight[0] * shortest_first(release, volume) - began)
    return max(found)


def makespan(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the last completion: what is released from some time on takes the machine until then."""
    rigid = Rigid(data, proof["problem"])
    last = Fraction(max(g.release + g.duration for g in rigid.gangs))
    for jobs, unit, volume, _ in machines(rigid, proof):
        after = np.cumsum(np.array(volume[::-1], object))[::-1]
        last = max(last, *(rigid.gangs[j].release + Fraction(v, unit) for j, v in zip(jobs, after, strict=True)))
    return -1, (last - min(g.release for g in rigid.gangs)) / rigid.hour


class Machines(Fleet):
    """The gangs as a fluid in hours, each on machines that its pool is at the same time."""

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
    """Return a bound on the same mean by prices of the machines over intervals; what runs for no time delays nobody."""
    fleet, empty = Machines(rigid, proof), sum(gang.duration == 0 for gang in rigid.gangs)
    before = np.array(fleet.weight) * (np.array(fleet.start) + TINY * empty)
    return completion(fleet, proof) - total(before) * Fraction(1 + 1e-12)


def by_starts(rigid: Rigid, proof: Data) -> Fraction:
    """Return a bound on the same mean where nobody is interrupted: what each job costs from its best start on.

    Prices are whole numbers for a tick of a machine, so that all is exact; a job pays for the machines that its pool is
    while it runs. Its cost is linear between the moments at which it starts or ends with an interval or ends when due.
    """
    require(not proof["problem"].endswith(".preemptive"), "jobs that may be interrupted have more than a start")
    require(all(t == int(t) for t in proof["edges"]), "intervals do not end with ticks")
    edges = np.array([int(t) for t in proof["edges"]], object)
    length = edges[1:] - edges[:-1]
    require(bool((length > 0).all()), "time does not go on")
    unit = Fraction(proof["unit"]) * FINE / rigid.hour
    prices = [[math.floor(whole * unit) for whole in machine] for machine in proof["prices"]]
    require(len(prices) == len(proof["machines"]), "there are other machines")
    require(all(len(p) == len(length) and min(p) >= 0 for p in prices), "prices are negative or few")
    paid = [np.array([0, *np.cumsum(np.array(machine, object) * length)], object) for machine in prices]
    found = -Fraction(sum(int(machine[-1]) for machine in paid), FINE)
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
        found += Fraction(int(cost.min()), FINE * parts)
    return found


def at(curve: Array, slope: Array, edges: Array, times: Array) -> Array:
    """Return a curve that is linear between whole numbers, and constant outside of them, at other whole numbers."""
    inside = np.clip(np.searchsorted(edges.astype(np.int64), times.astype(np.int64), "right") - 1, 0, len(edges) - 2)
    return np.asarray(curve[inside] + slope[inside] * (np.clip(times, edges[0], edges[-1]) - edges[inside]))


RULES: dict[str, Rule] = {"flow": flow, "slowdown": flow, "weighted": flow, "makespan": makespan}
RULES["idle"] = lambda data, proof: (-1, Fraction(0))  # GPU-hours are 0 or more
PROBLEMS = {f"rigid.{what}{how}": rule for what, rule in RULES.items() for how in ("", ".preemptive")}
