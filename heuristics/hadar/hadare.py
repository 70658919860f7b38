"""HadarE (§V): every job is forked to a copy per node, and copies run concurrently.

In each round all copies are planned anew by Hadar's payoffs. A set of copies of a job is worth what Hadar would pay for
it, at the summed throughput ``X`` and the summed cost of a round (prices (5))::

    μ(copies) = U_j(now + remaining / X) − remaining / (X · L) · cost

and the copy that adds most to its job's payoff is placed next, until no copy fits: no node idles while a job has a
copy left, whatever the sign of its payoff (Corollary). Time is continuous here: in whole rounds most copies would add
nothing.

A copy on a server takes ``min(W_j, free GPUs)`` of it (the paper's nodes have one GPU), and a server holds copies of
several jobs while it has GPUs. The Job Tracker splits the steps left by what it knows of the throughputs: (10) first,
the measured rate after a round on that type. A wrong split costs time: see
:func:`schedgap.heuristics.hadar.tracker.pace`.
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.hadar.online import market
from schedgap.heuristics.hadar.planning import curves, price_list
from schedgap.heuristics.hadar.prices import Market, prices
from schedgap.heuristics.hadar.throughput import estimate, initial
from schedgap.heuristics.hadar.tracker import Dispatch, copy_id, pace, split
from schedgap.heuristics.simulator import Assignment, State
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Instance


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
            self._hosts = price_list(self._market.servers, prices(self._market))
        known = estimate(self._initial[state.jobs], state.rates, self._measured[state.jobs])
        row, server, gpus = self._place(state, self._market, known)
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

    def _place(self, state: State, here: Market, known: Array) -> tuple[Ints, Ints, Ints]:
        """Return row of the job, server and GPUs of every copy, by ascending row and server."""
        from schedgap.heuristics.hadar.forks import Jobs, plan

        waited_s = np.asarray((state.round - here.arrival[state.jobs]) * here.slot_s, float)
        jobs = Jobs(state.gpus, state.remaining, waited_s, known, curves(here.utilities, state.jobs))
        row, server, gpus = plan(self._hosts, jobs, here.slot_s).T
        order = np.argsort(row * state.servers.size + server)
        return row[order], server[order], gpus[order]
