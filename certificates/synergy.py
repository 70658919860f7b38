"""Synergy: rates depend on CPUs and memory; prices of GPUs, CPUs and memory bound the progress of a round.

They also bound the number of its jobs that must be split over several servers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .basics import LESS, MORE, STRETCH, Array, Data, Gangs, require
from .rules import register

Configuration = tuple[int, tuple[float, float, float], float]
"""GPU type; GPUs, CPUs and gigabytes; iterations per second."""


def grid(curve: Data, gang: int, rate: float, largest: Sequence[float]) -> tuple[Array, Array, Array]:
    """Return a gang's levels of CPUs and of memory, ascending, and ``(c, m)`` iterations per second with them.

    `curve` is the job's sensitivity and `rate` that of one GPU; `largest` has the most GPUs, CPUs and GB of any server.
    """
    if curve["kind"] == "matrix":
        cpus, memory = (gang * np.array(curve[x], float) for x in ("cpus_per_gpu", "memory_gb_per_gpu"))
        return cpus, memory, gang * rate * np.array(curve["progress"], float)
    span, levels = math.ceil(gang / largest[0]), []
    for top, least, most in zip(largest[1:], (1.0, 50.0), (48, 32), strict=True):
        unit = least * max(1, math.ceil(top / least / most))
        levels.append(span * unit * np.arange(1, int(top / unit * STRETCH) + 1))
    cpus, memory = levels
    cached = np.clip((memory - curve.get("process_memory_gb", 0)) / curve["dataset_gb"], 0, 1)
    missed = curve["item_mb_per_iteration"] * (1 - cached)
    fetched = np.divide(curve["storage_mb_per_s"], missed, out=np.full(len(memory), np.inf), where=missed > 0)
    rates = np.minimum(np.minimum(gang * rate, cpus[:, None] * curve["prep_rate_per_cpu"]), fetched)
    return cpus, memory, np.where(memory * MORE >= curve["process_memory_gb"], rates, 0.0)


class Sensitive(Gangs):
    """Jobs with rates by CPUs and memory; a gang may use all CPUs and memory of the fewest servers with enough GPUs.

    Jobs of one `kind` have the same configurations.
    """

    def __init__(self, data: Data, proof: Data) -> None:
        super().__init__(data, proof["slot_s"])
        require(self.slot_s == data.get("horizon", proof)["slot_s"], "slots are not the instance's own")
        self.of_type = [[g for g in self.groups if g["gpu_type"] == r and g["gpus"]] for r in self.types]
        self.there = [
            [sum(g["count"] * g.get(x, 0) for g in own) for x in ("gpus", "cpus", "memory_gb")] for own in self.of_type
        ]
        self.allowed = [[gpus, cpus * STRETCH, memory * STRETCH] for gpus, cpus, memory in self.there]
        self.kind: list[Any] = []
        self.held: dict[Any, list[Configuration]] = {}
        for job, rates in zip(self.jobs, self.rates, strict=True):
            self.kind.append((repr(job.get("sensitivity")), job["gpus"], tuple(rates)))
            if self.kind[-1] not in self.held:
                self.held[self.kind[-1]] = list(self.configurations(job, rates))

    def configurations(self, job: Data, rates: Array) -> Iterator[Configuration]:
        """Yield the configurations of a job on all types."""
        hosts = [g for own in self.of_type for g in own]
        largest = [max(g.get(x, 0.0) for g in hosts) for x in ("gpus", "cpus", "memory_gb")]
        for i, rate in enumerate(rates):
            if rate > 0 and job["gpus"] <= self.there[i][0]:
                cpus, memory, table = grid(job["sensitivity"], job["gpus"], rate, largest)
                span = math.ceil(job["gpus"] / max(g["gpus"] for g in self.of_type[i]))
                most = [span * max(g.get(x, 0.0) for g in self.of_type[i]) * STRETCH for x in ("cpus", "memory_gb")]
                for c, row in zip(cpus, table, strict=True):
                    for m, progress in zip(memory, row, strict=True):
                        if c <= most[0] and m <= most[1]:
                            yield i, (job["gpus"], float(c), float(m)), float(progress)

    def fair(self, j: int) -> list[float]:
        """Return the rate of a job at its proportional share of CPUs and memory, by type."""
        rates, gpus = [0.0] * len(self.types), self.jobs[j]["gpus"]
        for i, (_, cpus, memory), rate in self.held[self.kind[j]]:
            each = [
                min(g.get(x, 0.0) / g["gpus"] for g in self.of_type[i]) * gpus * MORE for x in ("cpus", "memory_gb")
            ]
            if cpus <= each[0] and memory <= each[1]:
                rates[i] = rate  # the last rate, at the highest levels, counts; it can be lower than at lower levels
        return rates


def progress(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the progress of a round: the price of all resources, plus the largest gain of each job.

    A job's gain is the progress of a configuration less its price. In ``synergy.free`` a job may hold nothing. In the
    other problems it reaches its fair progress on the type where it runs, or in ``synergy.oracle`` the progress that
    1/n of every type gives it.
    """
    held, unit, problem = Sensitive(data, proof), Fraction(proof["unit"]), proof["problem"]
    index = {job["id"]: j for j, job in enumerate(held.jobs)}
    require(len(set(proof["round"])) == len(proof["round"]), "the round has a job twice")
    require(min(map(min, proof["prices"])) >= 0, "a price is negative")
    prices = [[unit * Fraction(p) for p in row] for row in proof["prices"]]
    cells = [(p, c) for row, own in zip(prices, held.allowed, strict=True) for p, c in zip(row, own, strict=True)]
    bound = sum((p * Fraction(c) for p, c in cells), Fraction(0))
    for j in (index[name] for name in proof["round"]):
        fair = held.fair(j)
        floors = [0.0] * len(fair) if problem == "synergy.free" else [x or math.inf for x in fair]
        if problem == "synergy.oracle":
            parts = [own[0] / (len(proof["round"]) * held.jobs[j]["gpus"]) for own in held.there]
            floors = [sum(p * f for p, f in zip(parts, fair, strict=True)) / max(1.0, sum(parts))] * len(fair)
        gains = [
            Fraction(rate) / Fraction(max(fair)) - sum(p * Fraction(u) for p, u in zip(prices[i], use, strict=True))
            for i, use, rate in held.held[held.kind[j]]
            if rate > 0 and rate >= floors[i] * LESS
        ]
        bound += max([Fraction(0)] * (problem == "synergy.free") + gains)
    return 1, bound


def placement(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a lower bound on the number of split jobs of a round, with the configurations that the certificate lists.

    A whole job has its `worth`, a split one 1 less. The jobs on a GPU type are together worth the sum less the number
    of split ones, and no more than the servers can hold (:func:`most_worth`).
    """
    held, unit = Sensitive(data, proof), float(proof["unit"])
    index = {job["id"]: j for j, job in enumerate(held.jobs)}
    pools = [Counter[tuple[tuple[float, ...], float]]() for _ in held.types]
    require(len(set(proof["round"])) == len(proof["round"]), "the round has a job twice")
    for name, (i, *amounts), worth in zip(proof["round"], proof["held"], proof["worth"], strict=True):
        j, fair = index[name], held.fair(index[name])[i]
        near = (rate for k, use, rate in held.held[held.kind[j]] if k == i and np.allclose(use[1:], amounts, 1e-9, 0.0))
        enough = max(near, default=0.0) >= fair * LESS > 0
        require(enough, f"{name} does not reach its fair progress with what it holds")
        require(worth >= 0, "a worth is negative")
        pools[i][(held.jobs[j]["gpus"], *amounts), worth * unit] += 1
    split = 0
    for own, servers, prices in zip(pools, held.of_type, proof["prices"], strict=True):
        need = LESS * np.array([amounts for amounts, _ in own], float).reshape(-1, 3)
        worth, jobs = np.array([worth for _, worth in own], float), np.array(list(own.values()), int)
        costs = np.array(prices, float).reshape(-1, 3)
        require(bool(((costs <= 0) | ((costs > 1e-100) & (costs < 1e100))).all()), "a price is too large or too small")
        value = float(jobs @ worth)
        for g in servers:
            room = STRETCH * np.array([g["gpus"], g.get("cpus", 0.0), g.get("memory_gb", 0.0)], float)
            value -= g["count"] * most_worth(need, worth, jobs, room, costs) * MORE
        split += max(0, math.ceil(value)) if math.isfinite(value) else 0
    return -1, Fraction(split)


def most_worth(need: Array, worth: Array, jobs: Array, room: Array, prices: Array) -> float:
    """Return an upper bound on the worth of the jobs on a server: whole ones that fit, and split ones in the rest.

    The rest counts at its price, which is raised until no split job costs less than it is worth.
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


for name in ("free", "ideal", "oracle"):
    register(f"synergy.{name}", progress)
register("synergy.placement", placement)
