"""Hadar (Algorithm 1) as a policy: prices from the workload, then a plan for every round.

Two ways to treat jobs that run:

``incremental``
    §IV: "dealing with solely newly incoming jobs ... without changing the allocated resources of running jobs". A job
    keeps its GPUs until it completes; jobs that wait are planned on what is left, at prices that count what runs. The
    paper names preemption as the exception and nothing that would cause it, so nothing does.
``replan``
    Algorithm 1 as printed: in each round all unfinished jobs are planned from an empty cluster. A running job keeps
    its GPUs if they are free when its turn comes, unless another place pays more and ends earlier; jobs of higher
    payoff can preempt it.

Which is the paper's? Algorithm 1 keeps every unfinished job in its queue (line 10) and hands DP_allocation no previous
allocation (line 6); and §IV reports that 30 % of the rounds change allocations of jobs, which ``incremental`` never
does. So ``replan`` is the default, and ``incremental`` the shortcut that §IV describes for scale.

Over which jobs (6) and (7) take ``U_max`` and ``U_min``:

``run``
    All jobs of the run, also future ones, as printed; Theorem 2 is about these prices.
``round``, ``learned``
    Those that are there, or that have been: what an online scheduler can know.

On ``gen/hadar-480`` (see :mod:`schedgap.heuristics.hadar.planning`), where all jobs are there at the start, ``learned``
is ``run``. ``round`` halves the median completion time (162.5 h instead of 260.3 h) and leaves total time and idle GPUs
as they are (420.9 h; 8.6 of 60 GPUs while 50 or more jobs wait): it is not the range of the prices that idles GPUs, but
that a job pays for all its rounds at once. With ``payoff="round"``, ``round`` makes 358.2 h and ``run`` 359.9 h, and no
GPU idles. ``incremental`` makes 447.0 h, ``conserving`` 368.7 h (0.0 idle GPUs).

The cost of communication is undefined in the paper. `beta` prices it by the GPUs of a gang, as bandwidth would be;
`communication` is a number, with which Algorithm 2 weighs what ``hadar.p1.per_server?beta=`` does, so that the two
decide one problem.

A job waits while its payoff is not positive. Hadar never idles for ever: on an empty cluster all prices are
``U_min ≤ min_j U_j(T − a_j) / (4 t_j^max W_j)``, so a job that fits and completes by the horizon pays at most a
quarter of what it is worth. Where the round would still be empty (the horizon is near or over, deadlines have passed),
P1 has no answer: then all jobs that fit run, highest payoff first. Under ``replan``, jobs that are worth 0 always get
the GPUs that the plan leaves idle, since they give way again in the next round; with `conserving`, all jobs do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.hadar.planning import Plan, Planner, Planning, Round
from schedgap.heuristics.hadar.prices import prices
from schedgap.heuristics.simulator import Assignment, State
from schedgap.instances.arrays import Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.utility import utilities
from schedgap.instances.views.hadar import ROUNDING, View
from schedgap.instances.workload import slots_from

Mode = Literal["incremental", "replan"]
Period = Literal["run", "round", "learned"]


def in_rounds(instance: Instance, state: State) -> View:
    """Return Hadar's view of an instance in rounds of the simulator instead of its slots.

    The horizon is the instance's own; without one, the view's: long enough for all jobs, first come, first served.
    """
    seen: View = PAPERS.get("hadar").view(instance)
    jobs, round_s = state.workload, state.round_s
    arrival = slots_from(jobs.arrival_s, round_s)
    slots = max(1, int(np.floor(seen.slots * seen.slot_s / round_s * (1 + ROUNDING))))
    worth = utilities(instance.jobs, np.asarray(arrival * round_s, float), jobs.rates.max(axis=1))
    seen = replace(seen, workload=jobs, servers=state.servers, utilities=worth)
    return replace(seen, slot_s=round_s, slots=slots, arrival=arrival)


class Hadar:
    """Hadar (Algorithm 1) as a simulation policy.

    In every round all unfinished jobs are planned from an empty cluster, at prices (5) that grow with what is taken.
    FIND_ALLOC finds the allocation of largest payoff for one job: its utility at the expected completion less the cost
    of all rounds until then. DP_allocation (Algorithm 2) takes or leaves every job, whichever leads to the larger total
    payoff. Line 20 as printed compares costs and schedules nothing; lines 6, 7 and 28 to 31 as printed are settings.

    Parameters
    ----------
    instance
        Where jobs, utilities and horizon come from.
    prices, mode
        See the module.
    conserving
        Whether jobs without a positive payoff run on GPUs that would be idle; only under ``replan``.
    **planning
        Fields of :class:`schedgap.heuristics.hadar.planning.Planning`.

    Attributes
    ----------
    plans
        Plan of every round with a queue, in order.

    See Also
    --------
    schedgap.heuristics.hadar.prices : prices (5) to (7) and Theorem 2.
    schedgap.heuristics.hadar.planning : FIND_ALLOC and DP_allocation, and what each setting was measured to do.
    schedgap.heuristics.hadar.online : what the paper leaves open.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        prices: Period = "run",
        mode: Mode = "replan",
        conserving: bool = False,
        **planning: Any,
    ) -> None:
        self._how = Planning(**planning)
        costs = {"beta": self._how.beta, "communication": self._how.communication}
        if self._how.beam < 1 or not all(0 <= cost < np.inf for cost in costs.values()):
            given = ", ".join(f"{name} = {cost:g}" for name, cost in {"beam": self._how.beam, **costs}.items())
            raise UsageError(f"Hadar: {given}: a beam is 1 or more, costs are 0 or more")
        self._instance, self._period, self._mode, self._conserving = instance, prices, mode, conserving
        self._planner: Planner | None = None
        self._counted: Ints | None = None
        self.plans: list[Plan] = []

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        planner, before = self._priced(state), state.previous
        table = np.column_stack((before.job, before.server, before.gpus))
        running = table[np.isin(before.job, state.jobs)]
        kept, planned = (running, running[:0]) if self._mode == "incremental" else (running[:0], running)
        waiting = ~np.isin(state.jobs, kept[:, 0])
        used = np.bincount(kept[:, 1], kept[:, 2], state.servers.size).astype(np.int64)
        held = planned[np.argsort(planned[:, 0], kind="stable")]
        held[:, 0] = np.searchsorted(state.jobs, held[:, 0])
        around = Round(state.jobs[waiting], state.remaining[waiting], state.round, used, held)
        if not around.jobs.size:
            return Assignment.of(kept)
        line = planner.line_up(around)
        plan = planner.dp_allocation(line)
        self.plans.append(plan)
        entries = np.concatenate((kept, plan.entries))
        if self._mode == "replan" or not len(entries):
            entries = np.concatenate((entries, planner.leftovers(line, plan, self._conserving)))
        return Assignment.of(entries)

    def _priced(self, state: State) -> Planner:
        """Return the planner, with the prices of this round."""
        # The jobs over which prices take the least and the largest utility; ``None`` for all.
        before, self._counted = self._counted, None if self._period == "run" else state.jobs
        if self._period == "learned" and before is not None:
            self._counted = np.union1d(before, state.jobs)
        if self._planner is None:
            here = in_rounds(self._instance, state)
            self._planner = Planner(here, prices(here, self._counted), self._how)
        elif self._counted is not None and before is not None and not np.array_equal(self._counted, before):
            self._planner.reprice(prices(self._planner.view, self._counted))
        return self._planner
