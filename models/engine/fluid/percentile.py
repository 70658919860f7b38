r"""Lower bounds on a percentile of completion times, from the relaxation of a cluster to a single machine.

The machine is that of :mod:`schedgap.models.engine.fluid.single_machine`: job j has the volume :math:`v_j` on it,
starts no earlier than :math:`r_j`, and completes no earlier than :math:`e_j`. A job is *in time* for t if it completes
by :math:`a_j + t`, where :math:`a_j` is its arrival. Jobs that are in time in a schedule are also in time on the
machine, and have :math:`e_j \le a_j + t`. A job that may start later is also due later, so the machine can serve the
jobs that are in time one after another. Going through the jobs in this order gives the largest number that can be in
time: whenever a job is late, reject the job without which all jobs so far would end soonest (Kise, Ibaraki, Mine: A
solvable case of the one-machine scheduling problem with ready and due times, 1978). If fewer than k jobs can be in time
for t, the k-th smallest completion time exceeds t.

The percentile p of n times lies between the k-th smallest and the next, a fraction f of the way, with
:math:`(n - 1) p / 100 = k - 1 + f`. It is therefore at least the same weighted mean of their bounds.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Array
from schedgap.models.engine.fluid.single_machine import FluidJobs, weigh

PERCENTILE = 99
"""The percentile that the papers report."""

CLOSE = 1e-6
"""Relative accuracy of the bisection in :func:`longest`."""


class Tail(NamedTuple):
    """A bound on the percentile of times from the arrivals `since` ``(n,)`` to completion, and its proof.

    `weights` ``(d,)`` are the weights of the resources; `times` bounds the completion times of :func:`ranks`.
    """

    value: float
    times: list[float]
    weights: Array
    since: Array
    run: FluidJobs
    name: str = "most jobs in time on one machine"


def ranks(n: int) -> dict[int, float]:
    """Return the ranks (from 1) of the one or two of `n` times that the percentile interpolates, with their weights."""
    below, hundredths = divmod((n - 1) * PERCENTILE, 100)
    return {k: part for k, part in ((below + 1, 1 - hundredths / 100), (below + 2, hundredths / 100)) if part}


def in_time(start: Array, due: Array, volume: Array, enough: int) -> bool:
    """Return whether `enough` jobs can be in time on one machine; jobs ``(n,)`` that may start later are due later."""
    order = np.lexsort((due, start))
    start, due, volume = start[order], due[order], volume[order]
    while len(start) >= enough:
        done = np.cumsum(volume)
        begin = start - (done - volume)
        late = np.flatnonzero(done + np.maximum.accumulate(begin) > due)
        if not late.size:
            return True
        # ends[i]: when the last of them ends if the machine was last idle just before job i.
        ends, own = begin[: late[0] + 1] + done[late[0]], volume[: late[0] + 1]
        without_earlier = np.maximum.accumulate(np.append(-np.inf, ends[:-1])) - own
        without_later = np.append(np.maximum.accumulate(ends[:0:-1])[::-1], -np.inf)
        rejected = np.maximum(without_earlier, without_later).argmin()
        start, due, volume = (np.delete(x, rejected) for x in (start, due, volume))
    return False


def longest(run: FluidJobs, since: Array, enough: int, volume: Array, known: float = 0.0) -> float:
    """Return the longest time in which fewer than `enough` jobs can complete, by bisection; at least `known`."""

    def reached(time: float) -> bool:
        able = run.earliest - since <= time
        return in_time(run.start[able], since[able] + time, volume[able], enough)

    low = known * (1 + CLOSE)
    if reached(low):
        return known
    high = max(low, float(np.partition(run.earliest - since, enough - 1)[enough - 1]))
    while not reached(high):
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return low


def tail(run: FluidJobs, since: Array) -> Tail:
    """Return a bound on the percentile of times since the arrivals ``(n,)``, with weights from a small search."""
    parts = ranks(len(since))
    weights = weigh(run, [partial(longest, run, since, max(parts, key=parts.__getitem__))])
    times = [longest(run, since, k, run.volume(weights)) for k in parts]
    return Tail(sum(p * t for p, t in zip(parts.values(), times, strict=True)), times, weights, since, run)


def build_in_time(run: FluidJobs, since: Array, unit_s: float) -> pyo.ConcreteModel:
    r"""Return the bound on the 99th percentile of completion times as a MILP over the jobs in time on one machine.

    - :math:`j = 1, 2, \ldots`: jobs in order of their starts; :math:`k`: the ranks between which the percentile lies,
      each with weight :math:`f_k`.
    - :math:`v_j`: volume, the least time that the whole machine needs for job j, at weights of its resources that a
      small search picks; :math:`p_j`: duration of j at its best rate.
    - :math:`a_j, r_j`: arrival and earliest start.
    - :math:`D_j`: end of the last of the first j jobs if the machine serves them all.
    - ``t`` :math:`t_k \ge 0`: the k-th smallest completion time.
    - ``z`` :math:`z_{k,j} \in \{0, 1\}`: whether j is among the k jobs that complete by then.
    - ``end`` :math:`C_{k,j}`: when the machine has served those of them up to j.

    .. math:: \min \sum_k f_k \cdot t_k
    .. math:: \sum_j z_{k,j} \ge k \quad \forall k \label{enough}
    .. math:: C_{k,j} \ge r_j + v_j \cdot z_{k,j} \quad \forall k, j \label{after_start}
    .. math:: C_{k,j} \ge C_{k,j-1} + v_j \cdot z_{k,j} \quad \forall k, j > 1 \label{after_others}
    .. math:: C_{k,j} \le a_j + t_k + (D_j - a_j) \cdot (1 - z_{k,j}) \quad \forall k, j \label{in_time}
    .. math:: t_k \ge (r_j + p_j - a_j) \cdot z_{k,j} \quad \forall k, j \label{alone}

    A job that arrives later is due later, so serving the jobs one after another is no restriction
    (:mod:`schedgap.models.engine.fluid.percentile`).

    Duals: none, it is a MILP.
    """
    order = np.lexsort((since, run.start))
    volume, start, arrival = (x[order] for x in (run.volume(tail(run, since).weights), run.start, since))
    done = np.cumsum(volume)
    last = done + np.maximum.accumulate(start - (done - volume))
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(1, len(order))
    m.RANKS = pyo.Set(initialize=list(ranks(len(order))))

    def seconds(slots: Array) -> pyo.Param:
        return pyo.Param(m.JOBS, initialize=dict(enumerate((slots * unit_s).tolist(), 1)))

    m.v, m.r, m.a, m.D = seconds(volume), seconds(start), seconds(arrival), seconds(last)
    m.least = seconds(run.earliest[order] - arrival)
    m.f = pyo.Param(m.RANKS, initialize=ranks(len(order)))
    m.t = pyo.Var(m.RANKS, domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.RANKS, m.JOBS, domain=pyo.Binary)
    m.end = pyo.Var(m.RANKS, m.JOBS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.RANKS)
    def enough(m: Any, k: int) -> Any:
        return sum(m.z[k, j] for j in m.JOBS) >= k

    @m.Constraint(m.RANKS, m.JOBS)
    def after_start(m: Any, k: int, j: int) -> Any:
        return m.end[k, j] >= m.r[j] + m.v[j] * m.z[k, j]

    @m.Constraint(m.RANKS, pyo.RangeSet(2, len(order)))
    def after_others(m: Any, k: int, j: int) -> Any:
        return m.end[k, j] >= m.end[k, j - 1] + m.v[j] * m.z[k, j]

    @m.Constraint(m.RANKS, m.JOBS)
    def in_time(m: Any, k: int, j: int) -> Any:
        return m.end[k, j] <= m.a[j] + m.t[k] + (m.D[j] - m.a[j]) * (1 - m.z[k, j])

    @m.Constraint(m.RANKS, m.JOBS)
    def alone(m: Any, k: int, j: int) -> Any:
        return m.t[k] >= m.least[j] * m.z[k, j]

    m.percentile = pyo.Objective(rule=lambda m: sum(m.f[k] * m.t[k] for k in m.RANKS), sense=pyo.minimize)
    return m
