"""Prices of resources in rounds: jobs hold what they run on for whole rounds, also after they have ended in the last.

Times are in rounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .basics import HIGH, LOW, Array, Data, require, total
from .fluid import Fleet, steps

MOST_ROUNDS = 1_000_000
"""Most rounds with prices."""

SPARE = 1e-12
"""Fraction of a job's work that counts as done because of rounding errors."""


def over_rounds(fleet: Fleet, proof: Data) -> Fraction:
    """Return a bound on the weighted sum of completion times of jobs that hold one way for each round.

    Column i of the `prices` counts in each of the rounds from ``rounds[i]`` to before ``rounds[i + 1]``; after them,
    work is free.
    """
    edges = proof["rounds"]
    whole = all(isinstance(edge, int) for edge in edges)
    require(whole and len(edges) > 1 and min(edges) >= 0, "rounds are not whole numbers")
    length: Array = np.diff(np.array(edges, np.int64))
    require(bool((length > 0).all()) and edges[0] <= min(fleet.start), "rounds do not go on")
    require(edges[-1] - edges[0] <= MOST_ROUNDS, "there are too many rounds")
    prices = np.array(proof["prices"], float).T * float(proof["unit"])
    there = np.asarray(fleet.there, float)
    require(prices.shape == (len(length), len(there)) and bool((prices >= 0).all()), "prices are negative or few")
    bound = -total(prices * there * length[:, None] * HIGH)
    by_round = np.repeat(prices, length, axis=0)
    for j, (start, weight) in enumerate(zip(fleet.start, fleet.weight, strict=True)):
        first = int(start) - edges[0]
        require(first >= 0 and start == int(start), "a job does not start with a round")
        bound += Fraction(least(fleet, j, by_round[first:], int(start), float(weight)) * LOW)
    return bound


def least(fleet: Fleet, j: int, prices: Array, start: int, weight: float) -> float:
    """Return the least weighted completion time of a job plus the price of what it holds, at prices ``(T, d)``.

    In its last round, the job holds one way, for the whole round; what it does there delays its end. Before, it does
    any fraction of a round's work in the cheapest steps, which lead from one way to a faster one.
    """
    times, costs = fleet.times(j), fleet.costs(j, prices)
    able = np.isfinite(times)
    times, costs = times[able], costs[:, able]
    held = costs / times  # of a whole round
    unit, rate = steps(times, costs, together=False)
    most = np.minimum(rate, 1.0)
    best, earlier = np.inf, np.zeros((2, 0))
    for t in range(len(prices) + 1):
        if weight * (start + t) >= best:
            break
        if t < len(prices):
            slope, cap, base = weight * times, np.minimum(1 / times, 1.0), weight * (start + t) + held[t]
        else:
            slope, cap, base = np.array([weight * times.min()]), np.ones(1), np.array([weight * (start + t)])
        done = np.concatenate([[0.0], np.cumsum(earlier[1])])
        paid = np.concatenate([[0.0], np.cumsum(earlier[0] * earlier[1])])
        before = done[np.searchsorted(earlier[0], slope)]
        before = np.minimum(np.clip(before, 1 - cap - SPARE, 1.0), done[-1])
        reached = done[-1] >= 1 - cap - SPARE
        cost = base + slope * np.maximum(1 - SPARE - before, 0.0) + np.interp(before, done, paid)
        best = min(best, float(np.where(reached, cost, np.inf).min()))
        if t < len(prices):
            there = most[t] > 0
            earlier = np.hstack([earlier, np.stack([unit[t, there], most[t, there]])])
            earlier = earlier[:, np.argsort(earlier[0], kind="stable")]
    return best
