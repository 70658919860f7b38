"""Completion times: prices make a cluster a single machine, on which the work of each job takes so long at least."""

import heapq
import math
from fractions import Fraction

from rules.packing import LESS, require
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


PROBLEMS = {"synergy.run": Machine}
