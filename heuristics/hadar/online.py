"""Hadar (Algorithm 1): a policy that sets prices of GPUs from the workload, then plans every round.

There are two ways to treat running jobs:

``incremental``
    §IV: "dealing with solely newly incoming jobs ... without changing the allocated resources of running jobs". A job
    keeps its GPUs until it completes; waiting jobs are planned on the free GPUs, at prices that include the running
    jobs. The paper mentions preemption as an exception but no event that would trigger it, so nothing does.
``replan``
    Algorithm 1 as printed: in each round all unfinished jobs are planned from an empty cluster. A running job keeps
    its GPUs if they are free when its turn comes, unless another allocation pays more and ends earlier; jobs of higher
    payoff can preempt it.

Algorithm 1 keeps every unfinished job in its queue (line 10) and passes DP_allocation no previous allocation (line 6).
§IV reports that 30 % of the rounds change the allocations of jobs, which ``incremental`` never does. So ``replan`` is
the default, and ``incremental`` is the shortcut that §IV describes for scale.

There are three choices of the jobs over which (6) and (7) take ``U_max`` and ``U_min``:

``run``
    All jobs of the run, including future ones, as printed; Theorem 2 is about these prices.
``round``, ``learned``
    The active jobs, or all jobs seen so far: what an online scheduler can know.

If all jobs arrive at the start, ``learned`` equals ``run``.

By default a job pays for one round (``payoff="round"``, line 31), and few GPUs idle while jobs wait. With
``payoff="lifetime"``, the payoff of (8) and of Theorem 2, a job pays for all its rounds at once, and many more idle
under each of the three choices of prices (``docs/experiments.md`` has the numbers).

The communication cost is undefined in the paper. `beta` makes it proportional to the price of a gang's GPUs, as for
bandwidth; `communication` is an absolute cost, the one that ``hadar.p1.per_server?beta=`` uses, so that Algorithm 2 and
that model solve the same problem.

A job waits while its payoff is not positive. Hadar never idles forever: on an empty cluster all prices are
``U_min ≤ min_j U_j(T − a_j) / (4 t_j^max W_j)``, so a job that fits and completes by the horizon pays at most a
quarter of its utility. If the round would still be empty (at or near the horizon, or after all deadlines), P1 has no
answer; then all jobs that fit run, highest payoff first. Under ``replan``, jobs of utility 0 always get the GPUs that
the plan leaves idle, since they give way in the next round; with `conserving`, all jobs do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.advice import Advice
from schedgap.heuristics.hadar.planning import GangPlan, Planner, Planning, RoundToPlan
from schedgap.heuristics.hadar.prices import AdvisedPrices, ExtremePrices, prices
from schedgap.heuristics.simulator import Assignment, State
from schedgap.instances.arrays import ROUNDING, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.utility import utilities
from schedgap.instances.views.hadar import HadarView
from schedgap.instances.workload import slots_from

Mode = Literal["incremental", "replan"]
Period = Literal["run", "round", "learned"]


def in_rounds(instance: Instance, state: State) -> HadarView:
    """Return Hadar's view of an instance, with the simulator's rounds as slots.

    The horizon is the instance's own. An instance without one gets a horizon that is long enough to run all jobs first
    come, first served.
    """
    view: HadarView = PAPERS.get("hadar").view(instance)
    jobs, round_s = state.workload, state.round_s
    arrival = slots_from(jobs.arrival_s, round_s)
    slots = max(1, int(np.floor(view.slots * view.slot_s / round_s * (1 + ROUNDING))))
    worth = utilities(instance.jobs, np.asarray(arrival * round_s, float), jobs.rates.max(axis=1))
    view = replace(view, workload=jobs, servers=state.servers, utilities=worth)
    return replace(view, slot_s=round_s, slots=slots, arrival=arrival)


def _equal(some: Ints | None, before: Ints | None) -> bool:
    """Return whether prices take the same jobs as before; all jobs, or none, do not change."""
    return some is None or before is None or np.array_equal(some, before)


class Hadar:
    """The scheduler Hadar (Algorithm 1): it places the jobs of highest payoff, utility minus the price of their GPUs.

    Every round plans all unfinished jobs from an empty cluster, at prices (5) that grow with the number of GPUs taken.
    FIND_ALLOC finds the allocation of largest payoff for one job: its utility at the expected completion minus the cost
    of a round (line 31) or, with ``payoff="lifetime"``, of all rounds until then (8). DP_allocation (Algorithm 2)
    schedules or skips every job so that the total payoff is largest. Line 20 as printed compares costs and schedules
    nothing; lines 6, 7 and 28 to 30 as printed are settings.

    Parameters
    ----------
    instance
        The instance, for jobs, utilities and horizon.
    prices, mode
        See the module.
    conserving
        Whether jobs without a positive payoff run on GPUs that would otherwise idle; only under ``replan``.
    u_min, u_max
        Factors by which ``U_min`` and ``U_max`` are misjudged.
    advice
        Predicted prices by type and round, ``(k, T)``.
    **planning
        Fields of :class:`schedgap.heuristics.hadar.planning.Planning`.

    Attributes
    ----------
    plans
        Plans of all rounds with a queue, in order.

    See Also
    --------
    schedgap.heuristics.hadar.prices : prices (5) to (7) and Theorem 2.
    schedgap.heuristics.hadar.planning : FIND_ALLOC and DP_allocation, and the reason for each setting's default.
    schedgap.heuristics.hadar.online : choices that the paper leaves open.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        prices: Period = "run",
        mode: Mode = "replan",
        conserving: bool = False,
        u_min: float = 1.0,
        u_max: float = 1.0,
        advice: Advice | None = None,
        **planning: Any,
    ) -> None:
        self._how = Planning(**planning)
        costs = {"beta": self._how.beta, "communication": self._how.communication}
        if self._how.beam < 1 or not all(0 <= cost < np.inf for cost in costs.values()):
            values = ", ".join(f"{name} = {cost:g}" for name, cost in {"beam": self._how.beam, **costs}.items())
            raise UsageError(f"Hadar: {values}: the beam must be at least 1, costs finite and at least 0")
        self._instance, self._period, self._mode, self._conserving = instance, prices, mode, conserving
        self._believed = {"u_min": u_min, "u_max": u_max}
        self._advice = advice
        self._planner: Planner | None = None
        self._counted: Ints | None = None
        self.plans: list[GangPlan] = []

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        planner, previous = self._current_planner(state), state.previous
        table = np.column_stack((previous.job, previous.server, previous.gpus))
        running = table[np.isin(previous.job, state.jobs)]
        fixed, movable = (running, running[:0]) if self._mode == "incremental" else (running[:0], running)
        queued = ~np.isin(state.jobs, fixed[:, 0])
        used = np.bincount(fixed[:, 1], fixed[:, 2], state.servers.size).astype(np.int64)
        held = movable[np.argsort(movable[:, 0], kind="stable")]
        held[:, 0] = np.searchsorted(state.jobs, held[:, 0])
        around = RoundToPlan(state.jobs[queued], state.remaining[queued], state.round, used, held)
        if not around.jobs.size:
            return Assignment.of(fixed)
        line = planner.line_up(around)
        plan = planner.dp_allocation(line)
        self.plans.append(plan)
        entries = np.concatenate((fixed, plan.entries))
        if self._mode == "replan" or not len(entries):
            entries = np.concatenate((entries, planner.leftovers(line, plan, self._conserving)))
        return Assignment.of(entries)

    def _current_planner(self, state: State) -> Planner:
        """Return the planner, with its prices updated to this round if they depend on the jobs seen."""
        # The jobs over which prices take the smallest and largest utility; ``None`` for all.
        before, self._counted = self._counted, None if self._period == "run" else state.jobs
        if self._period == "learned" and before is not None:
            self._counted = np.union1d(before, state.jobs)
        if self._planner is None:
            view = in_rounds(self._instance, state)
            self._planner = Planner(view, self._posted(view, state), self._how)
        elif self._advice is not None or not _equal(self._counted, before):
            self._planner.reprice(self._posted(self._planner.view, state))
        return self._planner

    def _posted(self, view: HadarView, state: State) -> ExtremePrices:
        """Return the prices of the jobs that count."""
        own = prices(view, self._counted).believed(**self._believed)
        if self._advice is None:
            return own
        now = min(state.round, self._advice.predicted.shape[1] - 1)
        today = replace(self._advice, predicted=self._advice.predicted[:, now])
        return AdvisedPrices(own.low, own.high, own.floored, advice=today)
