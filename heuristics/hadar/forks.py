"""Compiled part of HadarE: the copies of one round, each placed where it adds most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.heuristics.hadar.kernels import Curves, compiled, utility
from schedgap.instances.arrays import Array, Ints


class Jobs(NamedTuple):
    """``a`` jobs of a round, in whole: GPUs of a gang, iterations left, seconds since the arrival ``(a,)``, utilities.

    `rate` ``(a, k)`` is what the tracker knows.
    """

    gpus: Ints
    remaining: Array
    waited_s: Array
    rate: Array
    curves: Curves


class Copies(NamedTuple):
    """Copies placed so far: GPUs ``(a, h)``; summed rate, cost of a slot and payoff of each job ``(a,)``."""

    gpus: Ints
    rate: Array
    cost: Array
    payoff: Array


@compiled
def gain(hosts, jobs, copies, used, slot_s, i, h):  # type: ignore[no-untyped-def]
    """Return the payoff that a copy of job `i` on server `h` adds, and its GPUs; ``-inf`` where none is possible."""
    gpus = min(jobs.gpus[i], hosts.gpus[h] - used[h])
    own = gpus * jobs.rate[i, hosts.gpu_type[h]]
    if own <= 0 or copies.gpus[i, h] > 0:
        return -np.inf, 0
    left_s = jobs.remaining[i] / (copies.rate[i] + own)
    cost = copies.cost[i] + gpus * hosts.price[hosts.first[h] + used[h]]
    worth = utility(jobs.curves, i, jobs.waited_s[i] + left_s)
    return worth - left_s / slot_s * cost - copies.payoff[i], gpus


@compiled
def best_server(hosts, jobs, copies, used, slot_s, i):  # type: ignore[no-untyped-def]
    """Return the most that a copy of job `i` adds, and the first server where it does."""
    most, where = -np.inf, -1
    for h in range(used.size):
        added, _ = gain(hosts, jobs, copies, used, slot_s, i, h)
        if added > most:
            most, where = added, h
    return most, where


@compiled
def first_of_highest(values):  # type: ignore[no-untyped-def]
    """Return where the first of the highest values is."""
    best = 0
    for i in range(1, values.size):
        if values[i] > values[best]:
            best = i
    return best


@compiled
def plan(hosts, jobs, slot_s):  # type: ignore[no-untyped-def]
    """Place the copy that adds most, of equals that of the first job on the first server, until none is possible.

    `most` bounds from above what a copy of each job adds, and is exact where `where` names a server. A copy takes GPUs
    and raises the price of its own server alone; so only bounds that this server gives, or could raise, change: with
    fewer GPUs a copy can add more. A bound is made exact when it is the highest.

    Returns the ``(copies, 3)`` table of job, server and GPUs, in the order of placing.
    """
    count, used = jobs.gpus.size, np.zeros(hosts.gpus.size, np.int64)
    copies = Copies(np.zeros((count, used.size), np.int64), np.zeros(count), np.zeros(count), np.zeros(count))
    most, where = np.empty(count), np.empty(count, np.int64)
    for i in range(count):
        most[i], where[i] = best_server(hosts, jobs, copies, used, slot_s, i)
    table, rows = np.empty((hosts.gpus.sum(), 3), np.int64), 0
    while True:
        i = first_of_highest(most)
        if most[i] == -np.inf:
            return table[:rows]
        if where[i] < 0:
            most[i], where[i] = best_server(hosts, jobs, copies, used, slot_s, i)
            continue
        h = where[i]
        added, gpus = gain(hosts, jobs, copies, used, slot_s, i, h)
        copies.gpus[i, h] = gpus
        copies.rate[i] += gpus * jobs.rate[i, hosts.gpu_type[h]]
        copies.cost[i] += gpus * hosts.price[hosts.first[h] + used[h]]
        copies.payoff[i] += added
        used[h] += gpus
        table[rows, 0], table[rows, 1], table[rows, 2] = i, h, gpus
        rows += 1
        most[i], where[i] = np.inf, -1
        for j in range(count):
            added, _ = gain(hosts, jobs, copies, used, slot_s, j, h)
            if where[j] == h or added >= most[j]:
                most[j], where[j] = max(most[j], added), -1
