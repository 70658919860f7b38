"""Synergy: prices of GPUs, CPUs and memory bound the progress of a round of jobs whose rates depend on CPUs and memory.

Such prices also bound the number of jobs that have to be split over several servers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np

from .basics import DEAR, LESS, MORE, NEVER, STRETCH, Array, Data, require, total, up
from .fluid import READS, Fleet, completion, last_end, percentile, seconds
from .reading.synergy import rounds_of
from .rounds import over_rounds
from .rules import register

MOST_CELLS = 10_000_000
"""Most GPUs times steps of CPUs times steps of memory of a server."""

Parts = tuple[int, Array, Array]
"""GPUs of a gang; ``(q,)`` what one of its GPUs earns in each configuration; ``(q, 2)`` steps of CPUs and memory."""

Configuration = tuple[int, tuple[float, float, float], float]
"""GPU type; GPUs, CPUs and gigabytes; iterations per second."""


class RoundHoldings:
    """The amounts of CPUs and memory that jobs may hold in a round, up to those of as many servers as a gang needs.

    Jobs of one `kind` have the same configurations. `allowed` ``(k, 3)`` has the GPUs, CPUs and gigabytes of each type.
    """

    def __init__(self, data: Data, proof: Data) -> None:
        rounds = rounds_of(data)
        require(proof["slot_s"] == rounds.slot_s, "slots are not the instance's own")
        self.read, self.arrival, self.pooled = rounds.read, rounds.arrival, rounds.read.pooled
        self.kind = self.read.classes.of.tolist()
        self.runnable, self.queue = rounds.runnable.tolist(), rounds.queue.tolist()
        self.allowed = self.pooled.total * [1.0, STRETCH, STRETCH]

    def round(self, proof: Data) -> list[int]:
        """Return the jobs of the round in the order of the certificate; refuse it if its jobs are not those."""
        index = {name: j for j, name in enumerate(self.read.jobs.ids)}
        jobs = [index[name] for name in proof["round"]]
        require(sorted(jobs) == sorted(self.runnable), "it is about another round")
        return jobs

    @cache  # noqa: B019 -- there is one object
    def configurations(self, kind: int) -> list[Configuration]:
        """Return the configurations of a kind of jobs on all types."""
        j = int(self.read.classes.first[kind])
        gpus, found = int(self.read.jobs.gpus[j]), list[Configuration]()
        for i in np.flatnonzero((self.read.jobs.rates[j] > 0) & (gpus <= self.pooled.gpus)).tolist():
            cpus, memory, table = (axis.tolist() for axis in self.read.within(j, i))
            for c, row in zip(cpus, table, strict=True):
                found += [(i, (gpus, c, m), rate) for m, rate in zip(memory, row, strict=True)]
        return found


class SensitiveFleet(Fleet):
    """Synergy's jobs, whose rates depend on CPUs and memory. Resources are GPUs, CPUs and memory by type."""

    def __init__(self, data: Data, proof: Data) -> None:
        self.held = RoundHoldings(data, proof)
        jobs, slot_s = self.held.read.jobs, proof["slot_s"]
        self.there = self.held.allowed.ravel()
        self.which = np.flatnonzero(self.held.pooled.able.any(axis=1)).tolist()
        self.start = self.held.arrival[self.which].tolist()
        self.weight = [1.0] * len(self.which)
        self.work = (jobs.work[self.which] * LESS / slot_s).tolist()
        self.alone = [float(self.times(j).min()) for j in range(len(self.which))]
        self.arrived_s = jobs.arrival_s[self.which].tolist()

    @cache  # noqa: B019 -- there is one object
    def each(self, kind: int) -> tuple[Array, Array]:
        """Return ``(q,)`` the rates of a kind of jobs in its configurations, and ``(q, d)`` what these hold."""
        own = [configuration for configuration in self.held.configurations(kind) if configuration[2] > 0]
        use = np.zeros((len(own), len(self.there) // 3, 3))
        for q, (i, amounts, _) in enumerate(own):
            use[q, i] = amounts
        return np.array([rate for *_, rate in own]), use.reshape(len(own), -1)

    def ways(self, j: int) -> tuple[Array, Array]:
        rate, use = self.each(self.held.kind[self.which[j]])
        return self.work[j] / rate, self.work[j] * use / rate[:, None]


def progress(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the progress of a round: the price of all resources, plus the largest gain of each job.

    The gain of a job in a configuration is its progress less the price of the configuration. In ``synergy.free`` a job
    may hold nothing, and in ``synergy.queue``, whose jobs are all that can ever run, too. In the other problems a job
    reaches its fair progress on the type where it runs or, in ``synergy.oracle``, the progress that 1/n of every type
    gives it.
    """
    held, unit, problem = RoundHoldings(data, proof), Fraction(proof["unit"]), proof["problem"]
    whole = problem == "synergy.queue"
    jobs, idle = held.queue if whole else held.round(proof), whole or problem == "synergy.free"
    require(min(map(min, proof["prices"])) >= 0, "a price is negative")
    prices = [[unit * Fraction(p) for p in row] for row in proof["prices"]]
    rows = zip(prices, held.allowed.tolist(), strict=True)
    bound = sum((p * Fraction(c) for row, own in rows for p, c in zip(row, own, strict=True)), Fraction(0))
    for kind, number in Counter(held.kind[j] for j in jobs).items():
        j = held.read.classes.first[kind]
        fair = held.pooled.fair[j].tolist()
        floors = [0.0] * len(fair) if idle else [x or math.inf for x in fair]
        if problem == "synergy.oracle":
            parts = (held.pooled.gpus / (len(jobs) * held.read.jobs.gpus[j])).tolist()
            floors = [sum(p * f for p, f in zip(parts, fair, strict=True)) / max(1.0, sum(parts))] * len(fair)
        gains = [
            Fraction(rate) / Fraction(max(fair)) - sum(p * Fraction(u) for p, u in zip(prices[i], use, strict=True))
            for i, use, rate in held.configurations(kind)
            if rate > 0 and rate >= floors[i] * LESS
        ]
        bound += number * max([Fraction(0)] * idle + gains)
    return 1, bound


def on_servers(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the progress of a round on servers: what GPUs of jobs pay, plus the most that servers earn.

    Each GPU of a job pays the job's charge to the server that it is on, or stays away; in ``synergy.round``, where jobs
    may be left out, charges are not negative. A server holds single GPUs of gangs, each with its part of the CPUs and
    memory of a configuration, and earns their progress less what they pay (:func:`most_earned`). That a gang's GPUs are
    all in one configuration is not used.
    """
    held, unit, whole = RoundHoldings(data, proof), float(proof["unit"]), proof["problem"] == "synergy.round"
    jobs, charges = held.queue if whole else held.round(proof), proof["charges"]
    require(len(jobs) == len(charges), "the number of charges is wrong")
    require(not whole or min(charges, default=0) >= 0, "a charge is negative")
    groups = Counter(zip((held.kind[j] for j in jobs), charges, strict=True))
    servers = held.read.servers
    there = servers.gpus > 0
    table = np.column_stack((servers.gpu_type[there], servers.amounts[there]))
    rooms, number = np.unique(table, axis=0, return_counts=True)
    require(len(rooms) == len(proof["steps"]), "the number of steps is wrong")
    bound = 0
    for (kind, charge), count in groups.items():
        bound += count * int(held.read.jobs.gpus[held.read.classes.first[kind]]) * int(charge)
    for (gpu_type, gpus, *room), count, steps in zip(rooms.tolist(), number.tolist(), proof["steps"], strict=True):
        require(len(steps) == 2 and min(steps) >= 1, "steps are one number or more of CPUs, and of memory")
        require((gpus + 1) * (steps[0] + 1) * (steps[1] + 1) <= MOST_CELLS, "there are too many steps")
        parts = [
            (_parts(held, kind, int(gpu_type), whole, room, steps, charge, unit), copies)
            for (kind, charge), copies in groups.items()
        ]
        bound += count * most_earned(parts, int(gpus), steps)
    return 1, Fraction(unit) * bound


def _parts(
    held: RoundHoldings,
    kind: int,
    gpu_type: int,
    whole: bool,
    room: Sequence[float],
    steps: Sequence[int],
    charge: int,
    unit: float,
) -> Parts:
    """Return what GPUs of a kind of jobs earn in their configurations, and the steps of CPUs and memory they take."""
    j = int(held.read.classes.first[kind])
    gang, fair = int(held.read.jobs.gpus[j]), held.pooled.fair[j].tolist()
    floor = 0.0 if whole else fair[gpu_type] or math.inf
    own = [(use, rate) for i, use, rate in held.configurations(kind) if i == gpu_type and rate > 0]
    own = [(use, rate) for use, rate in own if rate >= floor * LESS]
    progress = np.array([rate for _, rate in own]) / max(fair) / gang
    require(abs(charge) < DEAR, "a charge is too large for the unit")
    earned = up(progress, unit) - int(charge)
    taken = []
    for r in range(2):
        amounts = np.array([use[1 + r] for use, _ in own]) / gang
        part = np.floor(amounts * (steps[r] / room[r]) * MORE) if room[r] > 0 else np.zeros_like(amounts)
        taken.append(np.where(amounts * LESS > room[r] * STRETCH, steps[r] + 1, part).astype(np.int64))
    return gang, earned, np.column_stack(taken)


def most_earned(parts: Sequence[tuple[Parts, int]], gpus: int, steps: Sequence[int]) -> int:
    """Return the most that GPUs of gangs on a server earn; each entry of `parts` is for so many equal jobs.

    It is a knapsack of GPUs and of steps of CPUs and memory. Amounts were rounded down to steps, so what fits on the
    server fits here.
    """
    best = np.full((gpus + 1, steps[0] + 1, steps[1] + 1), NEVER)
    best[0, 0, 0] = 0
    for (gang, earned, taken), copies in parts:
        require(bool((np.abs(earned) < DEAR // (gpus + 1)).all()), "a charge is too large for the unit")
        useful = _undominated(earned, taken, steps)
        layer = best.copy()
        for _ in range(min(gpus, gang * copies)):
            more = np.full_like(best, NEVER)
            for value, (c, m) in zip(earned[useful].tolist(), taken[useful].tolist(), strict=True):
                there = more[1:, c:, m:]
                np.maximum(there, layer[:-1, : steps[0] + 1 - c, : steps[1] + 1 - m] + value, out=there)
            layer = np.maximum(more, NEVER)
            np.maximum(best, layer, out=best)
    return int(best.max())


def _undominated(earned: Array, taken: Array, steps: Sequence[int]) -> Array:
    """Return which configurations fit, and earn more than all others that take no more CPUs and memory."""
    table = np.full((steps[0] + 2, steps[1] + 2), NEVER)
    fits = np.flatnonzero((taken <= steps).all(axis=1))
    np.maximum.at(table, tuple(1 + taken[fits].T), earned[fits])
    most = np.maximum.accumulate(np.maximum.accumulate(table, axis=0), axis=1)
    c, m = 1 + taken[fits].T
    better = earned[fits] > np.maximum(most[c - 1, m], most[c, m - 1])
    own = fits[better & (earned[fits] == table[c, m])]
    first: Array = np.unique(taken[own], axis=0, return_index=True)[1]
    return np.asarray(own[first])


def placement(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a lower bound on the number of split jobs of a round, given the configurations in the certificate.

    A whole job has its `worth`, and a split job is worth 1 less. So all jobs on a GPU type are worth their sum less the
    number of split jobs, and this is at most what the servers can hold (:func:`most_worth`).
    """
    held, unit = RoundHoldings(data, proof), float(proof["unit"])
    pools = [Counter[tuple[tuple[float, ...], float]]() for _ in held.allowed]
    for j, (i, *amounts), worth in zip(held.round(proof), proof["held"], proof["worth"], strict=True):
        fair = float(held.pooled.fair[j, i])
        there = [(use[1:], rate) for k, use, rate in held.configurations(held.kind[j]) if k == i]
        near = (rate for use, rate in there if np.allclose(use, amounts, 1e-9, 0.0))
        enough = max(near, default=0.0) >= fair * LESS > 0
        require(enough, f"{held.read.jobs.ids[j]} does not reach its fair progress with what it holds")
        require(worth >= 0, "a worth is negative")
        pools[i][(int(held.read.jobs.gpus[j]), *amounts), worth * unit] += 1
    split, amounts_of, type_of = 0, held.read.servers.amounts, held.read.servers.gpu_type
    for i, (own, prices) in enumerate(zip(pools, proof["prices"], strict=True)):
        need = LESS * np.array([amounts for amounts, _ in own], float).reshape(-1, 3)
        worth, jobs = np.array([worth for _, worth in own], float), np.array(list(own.values()), int)
        costs = np.array(prices, float).reshape(-1, 3)
        require(bool(((costs <= 0) | ((costs > 1e-100) & (costs < 1e100))).all()), "a price is too large or too small")
        value = float(jobs @ worth)
        hosts = amounts_of[(type_of == i) & (amounts_of[:, 0] > 0)]
        for room, number in zip(*np.unique(hosts, axis=0, return_counts=True), strict=True):
            value -= int(number) * most_worth(need, worth, jobs, STRETCH * room, costs) * MORE
        split += max(0, math.ceil(value)) if math.isfinite(value) else 0
    return -1, Fraction(split)


def most_worth(need: Array, worth: Array, jobs: Array, room: Array, prices: Array) -> float:
    """Return an upper bound on the worth of the jobs on a server: whole jobs that fit, and parts of split jobs.

    What the whole jobs leave counts at its price, which is raised until no split job costs less than it is worth.
    """
    dear = worth > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        short = ((worth[dear] - 1) / (np.maximum(prices, 0.0) @ need[dear].T)).max(axis=1, initial=0.0)
    costs = [p * s for p, s in zip(np.maximum(prices, 0.0), short, strict=True) if np.isfinite(s)]
    if not dear.any():
        costs = [np.zeros(3)]

    def most(d: int, left: Array) -> float:
        if d == len(jobs):
            return min((float(cost @ left) for cost in costs), default=math.inf)
        if not worth[d]:
            return most(d + 1, left)
        best, times = most(d + 1, left), 1
        while times <= jobs[d] and (left >= times * need[d]).all():
            best = max(best, times * float(worth[d]) + most(d + 1, left - times * need[d]))
            times += 1
        return best

    return most(0, room)


def held_for_rounds(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the mean completion time, from the arrival, of jobs that hold what they have for rounds."""
    fleet = SensitiveFleet(data, proof)
    time_s = over_rounds(fleet, proof) * Fraction(proof["slot_s"])
    return -1, (time_s - total(fleet.arrived_s)) / len(fleet.start)


register("synergy.queue", progress, reads=("slot_s", "prices"))
for name in ("free", "ideal", "oracle"):
    register(f"synergy.{name}", progress, reads=("slot_s", "prices", "round"))
register("synergy.fair", on_servers, reads=("slot_s", "charges", "steps", "round"))
register("synergy.round", on_servers, reads=("slot_s", "charges", "steps"))
register("synergy.placement", placement, reads=("slot_s", "prices", "round", "held", "worth"))
for name, bound in {"makespan": last_end, "run": completion, "p99": percentile}.items():
    register(f"synergy.{name}", partial(seconds, SensitiveFleet, bound), READS[bound], simulated=True)
register("synergy.run", held_for_rounds, ("slot_s", "prices"), given="rounds")
