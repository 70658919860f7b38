"""HadarE (§V): every job is forked to a copy per node, and copies run concurrently.

In each round all copies are planned anew by Hadar's payoffs. A set of copies of a job is worth what Hadar would pay for
it, at the summed throughput ``X`` and the summed cost of a round (prices (5))::

    μ(copies) = U_j(now + remaining / X) − remaining / (X · L) · cost

and the copy that adds most to its job's payoff is placed next, until no copy fits: no node idles while a job has a
copy left, whatever the sign of its payoff (Corollary). Time is continuous here: in whole rounds most copies would add
nothing.

A copy on a server takes ``min(W_j, free GPUs)`` of it (the paper's nodes have one GPU), and a server holds copies of
several jobs while it has GPUs. The Job Tracker splits the steps left by what it knows of the throughputs: (10) first,
the measured rate after a round on that type. A wrong split costs time: see :func:`heuristics.hadar.tracker.pace`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heuristics.hadar.online import market
from heuristics.hadar.prices import Market, Prices, prices
from heuristics.hadar.throughput import estimate, initial
from heuristics.hadar.tracker import Dispatch, copy_id, pace, split
from heuristics.simulator import Assignment, State
from instances.errors import UsageError
from instances.schema import Instance
from instances.workload import Array, Ints


class HadarE:
    """HadarE as a policy of a simulation with forks.

    Parameters
    ----------
    instance
        Where jobs, utilities, models and horizon come from.
    overhead_s
        Seconds that a job of several copies loses per round to aggregation and consolidation.

    Attributes
    ----------
    dispatched
        The Job Tracker's orders of every round.
    """

    def __init__(self, instance: Instance, overhead_s: float = 0.0) -> None:
        self._instance, self._overhead_s = instance, overhead_s
        self._initial = initial(instance)
        self._measured = np.zeros(self._initial.shape, bool)
        self._market: Market | None = None
        self.dispatched: list[Dispatch] = []

    def __call__(self, state: State) -> Assignment:
        """Return the copies that run this round."""
        if not 0 <= self._overhead_s < state.round_s:
            given = f"HadarE: overhead_s = {self._overhead_s:g}"
            raise UsageError(f"{given}: 0 or more, and less than a round of {state.round_s:g} s")
        if self._market is None:
            self._market = market(self._instance, state)
            self._prices = prices(self._market)
        known = estimate(self._initial[state.jobs], state.rates, self._measured[state.jobs])
        row, server, gpus = _Forks(state, self._market, self._prices, known).plan()
        if not row.size:
            return Assignment.of(())
        kind = state.servers.gpu_type[server]
        steps = split(row, state.remaining, gpus * known[row, kind])
        speed = pace(row, steps, gpus * state.rates[row, kind], state.round_s, self._overhead_s)
        job = state.jobs[row]
        copy = copy_id(state.workload.size, server + 1, job)
        self.dispatched.append(Dispatch(copy, job, server, gpus, steps))
        self._measured[job, kind] = True
        return Assignment(job, server, gpus, speed)


@dataclass(eq=False)
class _Forks:
    """Placing the copies of one round."""

    state: State
    market: Market
    prices: Prices
    known: Array

    def __post_init__(self) -> None:
        jobs, hosts = self.state.jobs.size, self.state.servers.size
        self.free, self.used = self.state.servers.gpus.copy(), np.zeros(hosts, np.int64)
        self.copy = np.zeros((jobs, hosts), np.int64)
        self.rate, self.cost, self.payoff = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        # Of one more copy, by job and server: GPUs, slots left, utility, payoff added (-inf where none is possible).
        self.gpus = np.zeros((jobs, hosts), np.int64)
        self.left, self.worth, self.gain = (np.zeros((jobs, hosts)) for _ in range(3))

    def plan(self) -> tuple[Ints, Ints, Ints]:
        """Return row of the job, server and GPUs of every copy, by ascending row."""
        rows, columns = np.arange(self.state.jobs.size), np.arange(self.state.servers.size)
        self._look(rows, columns)
        self._value(rows, columns)
        while np.isfinite(self.gain.flat[where := int(self.gain.argmax())]):
            i, h = divmod(where, columns.size)
            self._place(i, h)
            self._look(rows[i : i + 1], columns)
            self._value(rows[i : i + 1], columns)
            # The server's price has risen; gangs that it no longer has room for get fewer GPUs.
            self._look(np.flatnonzero(self.gpus[:, h] > self.free[h]), columns[h : h + 1])
            self._value(rows, columns[h : h + 1])
        row, server = np.nonzero(self.copy)
        return row, server, self.copy[row, server]

    def _place(self, i: int, h: int) -> None:
        gpus = self.gpus[i, h]
        self.rate[i] += gpus * self.known[i, self.state.servers.gpu_type[h]]
        self.cost[i] += gpus * self._price(np.array([h]))[0]
        self.payoff[i] += self.gain[i, h]
        self.copy[i, h] = gpus
        self.used[h] += gpus
        self.free[h] -= gpus

    def _price(self, columns: Ints) -> Array:
        hosts = self.state.servers
        return self.prices.price(hosts.gpu_type[columns], self.used[columns], np.maximum(hosts.gpus[columns], 1))

    def _look(self, rows: Ints, columns: Ints) -> None:
        """Update GPUs, slots left and utility of further copies."""
        state, block, slot_s = self.state, np.ix_(rows, columns), self.market.slot_s
        gpus = np.minimum(state.gpus[rows][:, None], self.free[columns])
        own = gpus * self.known[np.ix_(rows, state.servers.gpu_type[columns])]
        gpus = np.where((own > 0) & (self.copy[block] == 0), gpus, 0)
        left_s = state.remaining[rows, None] / np.where(gpus > 0, self.rate[rows, None] + own, 1.0)
        waited_s = (state.round - self.market.arrival[state.jobs[rows]]) * slot_s
        self.gpus[block], self.left[block] = gpus, left_s / slot_s
        self.worth[block] = self.market.utilities.value(state.jobs[rows, None], waited_s[:, None] + left_s)

    def _value(self, rows: Ints, columns: Ints) -> None:
        """Update the payoffs that further copies add."""
        block = np.ix_(rows, columns)
        gpus = self.gpus[block]
        cost = self.cost[rows, None] + gpus * self._price(columns)
        added = self.worth[block] - self.left[block] * cost - self.payoff[rows, None]
        self.gain[block] = np.where(gpus > 0, added, -np.inf)
