r"""Lower bounds on a percentile of completion times, from the relaxation of a cluster to a single machine.

The machine is that of :mod:`schedgap.models.single_machine`: job j takes its volume :math:`v_j` of it, starts no
earlier than :math:`r_j`, and completes at :math:`e_j` at the earliest. A job is *in time* for t if it completes by
:math:`a_j + t`, where :math:`a_j` is its arrival. Jobs that are in time are so on the machine, too, and have
:math:`e_j \le a_j + t`. Whoever may start later is due later, so that the machine serves those in time one after
another. Going through the jobs in this order tells how many can be in time at most: where one is late, the job without
which all up to here end soonest is given up (Kise, Ibaraki, Mine: A solvable case of the one-machine scheduling problem
with ready and due times, 1978). Where fewer than k can be in time for t, the k-th smallest completion time is more than
t.

The percentile of n times lies between the k-th and the next one, :math:`(n - 1) p / 100 = k - 1 + f`, at the part f of
the way: it is no less than the same mean of their bounds.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Array
from schedgap.models.single_machine import Jobs, weigh

PERCENTILE = 99
"""The percentile that papers tell of."""

CLOSE = 1e-6
"""Part of a time up to which it is found."""


class Tail(NamedTuple):
    """A bound on the percentile of the times of jobs since their arrivals ``(n,)``, and what it follows from.

    `weights` ``(d,)`` are those of the resources, at which `times` bound the completion times of :func:`ranks`.
    """

    value: float
    times: list[float]
    weights: Array
    since: Array
    run: Jobs
    name: str = "most jobs in time on one machine"


def ranks(n: int) -> dict[int, float]:
    """Return between which of `n` times the percentile lies, the smallest being 1, and the part that each counts."""
    below, hundredths = divmod((n - 1) * PERCENTILE, 100)
    return {k: part for k, part in ((below + 1, 1 - hundredths / 100), (below + 2, hundredths / 100)) if part}


def in_time(start: Array, due: Array, volume: Array, enough: int) -> bool:
    """Return whether so many jobs can be in time on one machine; whoever starts later is due later, ``(n,)`` each."""
    order = np.lexsort((due, start))
    start, due, volume = start[order], due[order], volume[order]
    while len(start) >= enough:
        done = np.cumsum(volume)
        begin = start - (done - volume)
        late = np.flatnonzero(done + np.maximum.accumulate(begin) > due)
        if not late.size:
            return True
        # The last of them ends so late if the machine was idle last before job i.
        ends, own = begin[: late[0] + 1] + done[late[0]], volume[: late[0] + 1]
        without_earlier = np.maximum.accumulate(np.append(-np.inf, ends[:-1])) - own
        without_later = np.append(np.maximum.accumulate(ends[:0:-1])[::-1], -np.inf)
        given_up = np.maximum(without_earlier, without_later).argmin()
        start, due, volume = (np.delete(x, given_up) for x in (start, due, volume))
    return False


def longest(run: Jobs, since: Array, enough: int, volume: Array, known: float = 0.0) -> float:
    """Return a time for which fewer than `enough` jobs can be in time at volumes ``(n,)``, as long as is known."""

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


def tail(run: Jobs, since: Array) -> Tail:
    """Return the best bound on the percentile of times since arrivals ``(n,)`` that a small search finds."""
    parts = ranks(len(since))
    weights = weigh(run, [partial(longest, run, since, max(parts, key=parts.__getitem__))])
    times = [longest(run, since, k, run.volume(weights)) for k in parts]
    return Tail(sum(p * t for p, t in zip(parts.values(), times, strict=True)), times, weights, since, run)


def build_in_time(run: Jobs, since: Array, unit_s: float) -> pyo.ConcreteModel:
    r"""Return the bound on the 99th percentile of completion times as a MILP: who is in time on a single machine.

    - :math:`j = 1, 2, \ldots`: jobs in the order of their starts; :math:`k`: the ranks between which the percentile
      lies, each of which counts :math:`f_k`.
    - :math:`v_j`: volume, how long all of the machine takes for job j at least, at weights of its resources that a
      small search picks; :math:`p_j`: time of j at its fastest.
    - :math:`a_j, r_j`: arrival and first start.
    - :math:`D_j`: end of the last of the first j jobs if the machine serves them all.
    - ``t`` :math:`t_k \ge 0`: completion time of the k-th of all jobs.
    - ``z`` :math:`z_{k,j} \in \{0, 1\}`: whether j is among them.
    - ``end`` :math:`C_{k,j}`: when the machine has served those of them up to j.

    .. math:: \min \sum_k f_k \cdot t_k
    .. math:: \sum_j z_{k,j} \ge k \quad \forall k \label{enough}
    .. math:: C_{k,j} \ge r_j + v_j \cdot z_{k,j} \quad \forall k, j \label{after_start}
    .. math:: C_{k,j} \ge C_{k,j-1} + v_j \cdot z_{k,j} \quad \forall k, j > 1 \label{after_others}
    .. math:: C_{k,j} \le a_j + t_k + (D_j - a_j) \cdot (1 - z_{k,j}) \quad \forall k, j \label{in_time}
    .. math:: t_k \ge (r_j + p_j - a_j) \cdot z_{k,j} \quad \forall k, j \label{alone}

    Whoever arrives later is due later, so that one after another is no restriction
    (:mod:`schedgap.models.percentile`).

    Duals: none, it is a MILP.
    """
    found, order = tail(run, since), np.lexsort((since, run.start))
    volume, start, arrival = (x[order] for x in (run.volume(found.weights), run.start, since))
    done = np.cumsum(volume)
    last = done + np.maximum.accumulate(start - (done - volume))
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(1, len(order))
    m.RANKS = pyo.Set(initialize=list(ranks(len(order))))

    def given(values: Array) -> pyo.Param:
        return pyo.Param(m.JOBS, initialize=dict(enumerate((values * unit_s).tolist(), 1)))

    m.v, m.r, m.a, m.D = given(volume), given(start), given(arrival), given(last)
    m.least = given(run.earliest[order] - arrival)
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
