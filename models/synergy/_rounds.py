"""Compiled pricing of jobs over rounds, for :mod:`.columns`: when and how a job best does its work at given prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

MISSING = 1e-12
"""Fraction of a job's work that may be left undone because of rounding errors."""


class RoundJobs(NamedTuple):
    """Jobs, and the ways in which they may run; times are in rounds.

    `start` ``(n,)`` is the first round of a job, `size` ``(n,)`` its work, `kind` ``(n,)`` its kind. The ways of each
    kind begin at `first` ``(K + 1,)``, and a unit of work takes the `time` ``(q,)`` in each of them.
    """

    start: Ints
    size: Array
    kind: Ints
    first: Ints
    time: Array


class CheapestEnds(NamedTuple):
    """The cheapest way of each job to end: the `cost`, the `last` round, the `way` and the `time` in that round.

    All are ``(n,)``. If the last round is the number of all rounds, the job ends after all of them, where work is free.
    """

    cost: Array
    last: Ints
    way: Ints
    time: Array


class HeldRounds(NamedTuple):
    """Entries ``(e,)``: for which fraction (`part`) of a `round` a `job` holds what a `way` takes."""

    job: Ints
    round: Ints
    way: Ints
    part: Array


class StepOffers(NamedTuple):
    """The steps of earlier rounds that a job may take, cheapest first.

    `order` ``(T·S,)`` lists them, each as round times steps per round plus step. A step costs `price` ``(T, S)`` for
    all work and does at most `most` ``(T, S)`` of it; what it does is written to `part` ``(T·S,)``, by place.
    """

    order: Ints
    price: Array
    most: Array
    part: Array


@njit(cache=True)
def walked(order: Ints, offer: StepOffers, own: float, cap: float) -> tuple[float, float, int]:
    """Do all work of a job in the cheapest steps; return the cost, the work done in its last round, and steps taken.

    Steps of earlier rounds are those of `order`. The last round does up to `cap`, and its work delays the end by `own`
    per unit.
    """
    steps, left, cost, done, at = offer.price.shape[1], 1.0, 0.0, 0.0, 0
    while left > MISSING:
        dear = at == len(order)
        t, s = (0, 0) if dear else (order[at] // steps, order[at] % steps)
        if done < cap and (dear or own <= offer.price[t, s]):
            taken = min(left, cap - done)
            done = cap if taken == cap - done else done + taken
            cost += taken * own
        elif dear:
            break
        else:
            taken = min(left, offer.most[t, s])
            offer.part[at] = taken
            cost += taken * offer.price[t, s]
            at += 1
        left -= taken
    return cost, done, at


@njit(cache=True)
def sorted_in(
    curve: tuple[Array, Array, Ints, Ints], k: int, t: int, size: float, offer: StepOffers, known: int
) -> float:
    """Add the steps of a round to those of earlier rounds, of which there are `known`; return the work that they do."""
    unit, rate, _, steps = curve
    width, there = unit.shape[2], 0.0
    for s in range(steps[k, t]):
        offer.price[t, s], offer.most[t, s] = unit[k, t, s] * size, min(1.0, rate[k, t, s] / size)
        there += offer.most[t, s]
        i = known
        while i > 0 and offer.price[offer.order[i - 1] // width, offer.order[i - 1] % width] > offer.price[t, s]:
            offer.order[i] = offer.order[i - 1]
            i -= 1
        offer.order[i] = t * width + s
        known += 1
    return there


@njit(cache=True)
def best_end(
    j: int, cost: Array, curve: tuple[Array, Array, Ints, Ints], jobs: RoundJobs, offer: StepOffers, ends: CheapestEnds
) -> int:
    """Find the cheapest end of a job; return the number of steps that are sorted in."""
    k, size, known, there, rounds = jobs.kind[j], jobs.size[j], 0, 0.0, len(cost)
    a, b = jobs.first[k], jobs.first[k + 1]
    for t in range(jobs.start[j], rounds):
        if t >= ends.cost[j]:
            return known
        for q in range(a, b):
            whole, base = jobs.time[q] * size, t + cost[t, q]
            cap = min(1.0, 1.0 / whole)
            if there + cap >= 1.0 - MISSING and base < ends.cost[j]:
                paid, done, _ = walked(offer.order[:known], offer, whole, cap)
                if base + paid < ends.cost[j]:
                    ends.cost[j], ends.last[j], ends.way[j], ends.time[j] = base + paid, t, q, done * whole
        there += sorted_in(curve, k, t, size, offer, known)
        known += curve[3][k, t]
    fastest = a + int(np.argmin(jobs.time[a:b]))
    whole = jobs.time[fastest] * size
    paid, done, _ = walked(offer.order[:known], offer, whole, 1.0)
    if rounds + paid < ends.cost[j]:
        ends.cost[j], ends.last[j], ends.way[j], ends.time[j] = rounds + paid, rounds, fastest, done * whole
    return known


@njit(cache=True)
def cheapest(cost: Array, curve: tuple[Array, Array, Ints, Ints], jobs: RoundJobs) -> tuple[CheapestEnds, HeldRounds]:
    """Find the cheapest column of each job: completion time plus the price of what it holds, for whole rounds.

    Up to the round before its last one, a job may do any fraction of a round's work at the least cost of such a
    fraction. In its last round it holds one way, for the whole round, and it ends when its work is done. All last
    rounds and ways are tried, until the round itself is later than the best cost.

    `cost` ``(T, q)`` is the price of a round in each way, and `curve` the least cost of a fraction of a round
    (:func:`schedgap.models.engine.fluid._kernels.curves`).
    """
    unit, rate, way, steps = curve
    rounds, width, n = len(cost), unit.shape[2], len(jobs.start)
    ends = CheapestEnds(np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n))
    offer = StepOffers(
        np.empty(rounds * width, np.int64),
        np.zeros((rounds, width)),
        np.zeros((rounds, width)),
        np.empty(rounds * width),
    )
    job, at_round, at_way, fraction, done_in = [0][:0], [0][:0], [0][:0], [0.0][:0], np.zeros((rounds, width))
    for j in range(n):
        known = best_end(j, cost, curve, jobs, offer, ends)
        k, size, last, whole = jobs.kind[j], jobs.size[j], ends.last[j], jobs.time[ends.way[j]] * jobs.size[j]
        before = offer.order[:known][offer.order[:known] < last * width]
        _, _, taken = walked(before, offer, whole, min(1.0, 1.0 / whole) if last < rounds else 1.0)
        done_in[jobs.start[j] : last] = 0.0
        for i in range(taken):
            done_in[before[i] // width, before[i] % width] = offer.part[i]
        for t in range(jobs.start[j], last):
            faster = 0.0  # a partly used step is a mixture of two ways
            for s in range(steps[k, t] - 1, -1, -1):
                full = min(1.0, done_in[t, s] * size / rate[k, t, s])
                if full > faster:
                    job.append(j)
                    at_round.append(t)
                    at_way.append(way[k, t, s])
                    fraction.append(full - faster)
                    faster = full
        if last < rounds:
            job.append(j)
            at_round.append(last)
            at_way.append(ends.way[j])
            fraction.append(1.0)
    return ends, HeldRounds(np.array(job), np.array(at_round), np.array(at_way), np.array(fraction))
