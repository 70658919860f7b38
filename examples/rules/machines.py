"""Completion times: prices make a cluster a single machine, on which the work of each job takes so long at least."""

import heapq
import math
from fractions import Fraction

import numpy as np

from rules.elastic import Elastic
from rules.packing import LESS, MORE, require
from rules.programs import Sensitive

TINY = 2.0**-70
"""Seconds in which times of a single machine count."""


class Machine(Sensitive):
    """Mean completion time: prices make the cluster a single machine, on which each job's work takes so long at least.

    Either that machine serves the shortest remaining job first, or `parts` of the jobs' weights are on their mean busy
    times, which the largest part per volume first minimises, and the others on their earliest completions.
    """

    def value(self, proof):
        prices, _ = self.paid(proof)
        active = [j for j in range(len(self.jobs)) if self.able(j)]
        start = [math.floor(self.start[j] / Fraction(TINY)) for j in active]
        volume = [math.floor(self.least(j, prices) * Fraction(LESS) / Fraction(TINY)) for j in active]
        alone = [
            math.floor(self.work[j] / Fraction(max(rate for *_, rate in self.held[j])) / Fraction(TINY)) for j in active
        ]
        if "parts" not in proof:
            total = shortest_first(start, volume)
        else:
            parts = [Fraction(p) for p in proof["parts"]]
            require(len(parts) == len(active) and all(0 <= p <= 1 for p in parts), "parts are not between 0 and 1")
            mean = mean_busy_times(start, volume, parts)
            total = sum(
                p * (m + Fraction(a, 2)) + (1 - p) * (s + a)
                for p, m, a, s in zip(parts, mean, alone, start, strict=True)
            )
        return (total * Fraction(TINY) - sum(Fraction(self.arrival[j]) for j in active)) / len(active)


def shortest_first(start, volume):
    """Return the least sum of completion times on a machine that may interrupt jobs."""
    now, total, queue = 0, 0, []
    for begin, size in [*sorted(zip(start, volume, strict=True)), (math.inf, 0)]:
        while queue and now < begin:
            step = min(queue[0], begin - now)
            now += step
            if step == queue[0]:
                heapq.heappop(queue)
                total += now
            else:
                heapq.heapreplace(queue, queue[0] - step)
        now = max(now, begin)
        heapq.heappush(queue, size)
    return total


def mean_busy_times(start, volume, part):
    """Return mean busy times where the machine serves the largest part per volume first."""
    moment, left, queue, now = [0] * len(start), list(volume), [], 0
    order = sorted(range(len(start)), key=lambda j: start[j])
    for j in [*order, None]:
        begin = math.inf if j is None else start[j]
        while queue and now < begin:
            i = queue[0][1]
            step = min(left[i], begin - now)
            moment[i] += step * (2 * now + step)
            now += step
            left[i] -= step
            if not left[i]:
                heapq.heappop(queue)
        if j is not None and volume[j]:
            now = max(now, begin)
            heapq.heappush(queue, (-part[j] / volume[j], j))
    return [Fraction(m, 2 * v) if v else Fraction(s) for m, v, s in zip(moment, volume, start, strict=True)]


class Interrupted(Elastic):
    """Zhou's jobs, which may be interrupted and change what they run on: in each slot they pay for workers and PSs.

    All servers of a class have one price; a slot in which a job does a part of its work pays at least that part of what
    all of it costs at the cheapest choice of types and numbers.
    """

    sense = -1

    def take(self, proof):
        """Prices have no slots here."""

    def ends(self, horizon):
        self.weights = [job.get("weight", 1.0) for job in self.jobs]

    def prices_of(self, proof):
        """Return the weights of the resources of a class, so that the whole cluster costs 1 per slot."""
        prices = np.array(proof["prices"], float).reshape(self.has.shape)
        total = (prices * self.has * self.count[:, None]).sum()
        require((prices >= 0).all() and total > 0, "prices are negative, or all 0")
        return prices / total * LESS

    def serving(self, m, p, most):
        """Return the fewest PSs on one server that serve 1, 2, … workers there and elsewhere."""
        each = self.workers[m]["bandwidth_gbps"] / self.servers[p]["bandwidth_gbps"] * LESS
        fewest = np.full(most, 2**30)
        for c in range(len(self.has)):
            for beside in range(min(self.room[m][c], most) + 1):
                n = np.arange(beside + 1, most + 1)
                need = np.maximum(np.ceil((n - beside) * each), 1)
                fits = (beside * self.need[0][m] + need[:, None] * self.need[1][p] <= self.has[c] * MORE).all(axis=1)
                fits &= n - beside <= self.room[m] @ self.count - self.room[m][c]
                fewest[beside:] = np.minimum(fewest[beside:], np.where(fits, need, 2**30))
        return np.minimum.accumulate(fewest[::-1])[::-1]

    def choices(self, j):
        """Yield worker type, PS type, numbers of workers and PSs, and slots for all of the work."""
        compute, update, transfer = self.pace(self.jobs[j])
        n = np.arange(1, self.jobs[j].get("chunks", 1) + 1)
        share = (n - 1) / n if self.ring else 1.0
        for m, p, one in np.ndindex(len(self.workers), len(update), 2):
            if math.isfinite(compute[m]) and self.room[m].any():
                each = compute[m] + share * (update[p] + (0.0 if one else transfer[m]))
                slots = np.maximum(self.work[j] * LESS * each / n, 1.0)
                ps = np.zeros(len(n)) if self.ring else np.ones(len(n)) if one else self.serving(m, p, len(n))
                whole = self.need[0][m] * n[:, None] + (0 if self.ring else self.need[1][p] * one)
                held = (whole[:, None] <= self.has * MORE).all(axis=2)[:, self.room[m] > 0].any(axis=1)
                fits = held if one else (n <= self.room[m] @ self.count) & (ps < 2**30)
                if fits.any():
                    yield m, p, n[fits], ps[fits], slots[fits]

    def value(self, proof):
        prices = self.prices_of(proof)
        cost = [np.where(self.room[m] > 0, prices @ need, np.inf).min() for m, need in enumerate(self.need[0])]
        hosts = [[(need <= has * MORE).all() for has in self.has] for need in ([] if self.ring else self.need[1])]
        rent = [np.where(fits, prices @ need, np.inf).min() for fits, need in zip(hosts, self.need[-1], strict=False)]
        start, volume, alone, parts = [], [], [], []
        kept = [j for j, weight in enumerate(self.weights) if weight > 0]
        for j in kept:
            found = [
                ((n * cost[m] + (ps * rent[p] if rent else 0)) * slots, slots) for m, p, n, ps, slots in self.choices(j)
            ]
            volume.append(math.floor(min(v.min() for v, _ in found) * LESS / TINY))
            alone.append(math.floor(min(slots.min() for _, slots in found) / TINY))
            start.append(math.floor((self.begin(self.jobs[j]) + 1) / TINY))
        weight = [Fraction(self.weights[j]) for j in kept]
        if "parts" not in proof:
            require(len(set(weight)) == 1, "weights differ")
            return weight[0] * shortest_first(start, volume) * Fraction(TINY)
        parts = [Fraction(p) for p in proof["parts"]]
        require(len(parts) == len(kept) and all(0 <= p <= 1 for p in parts), "parts are not between 0 and 1")
        mean = mean_busy_times(start, volume, [p * w for p, w in zip(parts, weight, strict=True)])
        slot = Fraction(1) / Fraction(TINY)
        ends = [s + math.ceil(a / slot) * slot for s, a in zip(start, alone, strict=True)]
        return Fraction(TINY) * sum(
            w * (p * (m + Fraction(a, 2)) + (1 - p) * e)
            for w, p, m, a, e in zip(weight, parts, mean, alone, ends, strict=True)
        )


class InterruptedRing(Interrupted):
    """The same with rings."""

    ring = True


PROBLEMS = {"synergy.run": Machine, "zhou.ps.preemptive": Interrupted, "zhou.ra.preemptive": InterruptedRing}
