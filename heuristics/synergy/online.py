"""A policy and a mechanism together: one round, a simulation, and the whole run in model time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import getdoc

import numpy as np

from schedgap.heuristics.registry import Context, Oracle
from schedgap.heuristics.simulator import Assignment, Shares, State
from schedgap.heuristics.simulator.engine import in_slots
from schedgap.heuristics.synergy.mechanisms import Mechanism, Mechanisms, Round
from schedgap.heuristics.synergy.profiling import believed
from schedgap.heuristics.synergy.queues import ORDERS, Waiting
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import passing
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import Schedule, View


@dataclass(frozen=True)
class Scheduler:
    """A policy, a mechanism, and their settings.

    Attributes
    ----------
    policy, mechanism
        Names in :data:`schedgap.heuristics.synergy.queues.ORDERS`, and of a method of :class:`Mechanisms`.
    order, fit
        Settings of the mechanisms that tune demands, see :class:`Mechanisms`.
    first, by, speed
        Settings of the policies ``ftf``, ``drf`` and ``srtf``.
    """

    policy: str
    mechanism: str
    order: str = "demand"
    fit: str = "best"
    first: str = "largest"
    by: str = "job"
    speed: str = "share"

    @property
    def fair(self) -> bool:
        """Whether all picked jobs run, each at least at its fair progress; static demands pass some over."""
        return self.mechanism not in {"greedy", "tetris"}

    @property
    def stated(self) -> str:
        """What policy and mechanism do, in their own words."""
        return f"{getdoc(ORDERS[self.policy])}\n\n{getdoc(getattr(Mechanisms, self.mechanism))}"

    def place(self, view: View, oracle: Oracle) -> Mechanism:
        """Return the mechanism on the servers of a view."""
        mechanism: Mechanism = getattr(Mechanisms(view, oracle, order=self.order, fit=self.fit), self.mechanism)
        return mechanism

    def ranks(self, view: View, waiting: Waiting) -> Array:
        """Return ``(a,)`` keys of the policy; the smallest is served first."""
        settings = {"ftf": {"first": self.first}, "drf": {"by": self.by}, "srtf": {"speed": self.speed}}
        return ORDERS[self.policy](view, waiting, **settings.get(self.policy, {}))


class Policy:
    """A scheduler in the simulator, which decides by the tables of `view`; the simulator advances jobs by its own."""

    def __init__(self, scheduler: Scheduler, view: View, oracle: Oracle) -> None:
        self.view, self.scheduler, self.place = view, scheduler, scheduler.place(view, oracle)

    def __call__(self, state: State) -> Assignment:
        """Return who runs where in this round, with which CPUs and memory."""
        able = self.view.fair[state.jobs] > 0
        jobs = state.jobs[able]
        fair = self.view.fair[jobs]
        left_s = state.remaining[able] / fair
        arrival_s = state.workload.arrival_s[jobs]
        waiting = Waiting(
            jobs=jobs,
            elapsed_s=state.time_s - arrival_s,
            left_s=left_s,
            alone_s=state.workload.work[jobs] / fair,
            attained_s=state.attained_s[able],
        )
        order = np.lexsort((arrival_s, self.scheduler.ranks(self.view, waiting)))
        asked = asked_round(self.view, jobs[order], left_s[order])
        found = self.place(asked)
        shares = Shares(found.cpus, found.memory_gb, asked.jobs)
        return Assignment(found.job, found.server, found.gpus, shares=shares)


def asked_round(view: View, queue: Ints, left_s: Array) -> Round:
    """Return the round of a queue: the jobs at its head fill the GPUs.

    On mixed clusters, each of them gets the GPU type on which they progress most together with their shares: not the
    paper's, which leaves types to the ILP of A.2 or to other schedulers.
    """
    jobs, types = view.pick(queue.tolist())
    if view.mixed and jobs.size:
        from schedgap.heuristics.synergy import _kernels

        kind = view.profiles.kind[jobs]
        worth = np.where(view.needs.able[kind], view.needs.fair[kind] * view.weight[jobs, None], -1.0)
        types = _kernels.choose_types(view.workload.gpus[jobs], worth, types, view.pools.gpus)
    return Round(queue, jobs, types, left_s)


def built(scheduler: Scheduler) -> Callable[..., Policy]:
    """Return the function that builds the policy for the simulator."""

    def build(
        instance: Instance,
        oracle: Oracle,
        *,
        profiles: str = "true",
        noise: float = 0.0,
        noise_seed: int = 0,
        saturation: float = 0.0,
        **settings: str,
    ) -> Policy:
        seen: View = PAPERS.get("synergy").view(instance)
        if profiles != "true" or noise or saturation:
            tables = believed(seen, profiles, noise, noise_seed)
            seen = synergy.view(instance, tables=tables, saturation=saturation)
        return Policy(replace(scheduler, **settings), seen, oracle)

    return passing(build, Scheduler)


def one_round(scheduler: Scheduler) -> Callable[..., Schedule]:
    """Return the heuristic that places the round of a view."""

    def run(view: View, context: Context, **settings: str) -> Schedule:
        chosen, jobs = replace(scheduler, **settings), view.runnable
        alone_s = view.workload.work[jobs] / view.fair[jobs]
        zero = np.zeros(jobs.size)
        queue = np.argsort(chosen.ranks(view, Waiting(jobs, zero, alone_s, alone_s, zero)), kind="stable")
        found = chosen.place(view, context.oracle)(asked_round(view, jobs[queue], alone_s[queue]))
        held = found.gpus.astype(float), found.cpus, found.memory_gb
        return Schedule(np.zeros_like(found.job), found.job, found.server, *held, np.zeros_like(jobs), jobs)

    run.__doc__ = scheduler.stated
    return passing(run, Scheduler)


def whole_run(scheduler: Scheduler) -> Callable[..., Schedule]:
    """Return the heuristic that runs all jobs of a view in its rounds, without overheads."""

    def run(view: View, context: Context, **settings: str) -> Schedule:
        policy = Policy(replace(scheduler, **settings), view, context.oracle)
        trace, number = in_slots(
            view.workload, view.servers, policy, view.slot_s, profiles=view.profiles, sensitive=True
        )
        (row, job, server, gpus), (offered_row, offered) = trace.allocation.T, trace.offered.T
        held = gpus.astype(float), trace.cpus, trace.memory_gb
        return Schedule(number[row], job, server, *held, number[offered_row], offered)

    run.__doc__ = scheduler.stated
    return passing(run, Scheduler)
