"""Schedulers, each a policy with a mechanism: they place one round, run in a simulation, or run in model time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import getdoc

import numpy as np

from schedgap.heuristics.registry import Context, Oracle
from schedgap.heuristics.simulator import Assignment, Shares, State
from schedgap.heuristics.simulator.engine import in_slots
from schedgap.heuristics.synergy.mechanisms import Mechanism, Mechanisms, Request
from schedgap.heuristics.synergy.profiling import believed
from schedgap.heuristics.synergy.queues import ORDERS, Waiting
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import passing
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergySchedule, SynergyView


@dataclass(frozen=True)
class SynergyScheduler:
    """One scheduler of Synergy: the names of its policy and its mechanism, and their settings.

    Attributes
    ----------
    policy, mechanism
        A key of :data:`schedgap.heuristics.synergy.queues.ORDERS`, and the name of a method of :class:`Mechanisms`.
    order, fit
        Settings of the mechanisms that tune demands; see :class:`Mechanisms`.
    first, by, speed
        Settings of the policies: `first` of ``ftf``, `by` of ``drf``, `speed` of ``srtf`` and ``ftf``.
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
        """Whether all picked jobs run and make their fair progress; mechanisms with static demands skip some jobs."""
        return self.mechanism not in {"greedy", "tetris"}

    @property
    def statement(self) -> str:
        """What the scheduler does, in words: the docstrings of its policy and its mechanism."""
        return f"{getdoc(ORDERS[self.policy])}\n\n{getdoc(getattr(Mechanisms, self.mechanism))}"

    def place(self, view: SynergyView, oracle: Oracle) -> Mechanism:
        """Return the mechanism for the servers of a view."""
        mechanism: Mechanism = getattr(Mechanisms(view, oracle, order=self.order, fit=self.fit), self.mechanism)
        return mechanism

    def ranks(self, view: SynergyView, waiting: Waiting) -> Array:
        """Return the ``(a,)`` keys of the policy; the job with the smallest key is served first."""
        settings = {
            "ftf": {"first": self.first, "speed": self.speed},
            "drf": {"by": self.by},
            "srtf": {"speed": self.speed},
        }
        return ORDERS[self.policy](view, waiting, **settings.get(self.policy, {}))


class Policy:
    """A scheduler as a policy of the simulator; it decides by the tables of `view`, jobs advance by the true ones."""

    def __init__(self, scheduler: SynergyScheduler, view: SynergyView, oracle: Oracle) -> None:
        self.view, self.scheduler, self.place = view, scheduler, scheduler.place(view, oracle)

    def __call__(self, state: State) -> Assignment:
        """Return the assignment of this round, with CPUs and memory."""
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
        request = asked_round(self.view, jobs[order], left_s[order])
        placement = self.place(request)
        shares = Shares(placement.cpus, placement.memory_gb, request.jobs)
        return Assignment(placement.job, placement.server, placement.gpus, shares=shares)


def asked_round(view: SynergyView, queue: Ints, left_s: Array) -> Request:
    """Pick the jobs at the head of a queue that fill the GPUs, and return the round with which to ask a mechanism.

    On clusters with several GPU types, types are chosen so that these jobs make a large total progress with their
    shares. This is not in the paper, which leaves types to the ILP of A.2 or to other schedulers.
    """
    jobs, types = view.pick(queue.tolist())
    if view.mixed and jobs.size:
        from schedgap.heuristics.synergy import _kernels

        kind = view.profiles.kind[jobs]
        worth = np.where(view.needs.able[kind], view.needs.fair[kind] * view.weight[jobs, None], -1.0)
        types = _kernels.choose_types(view.workload.gpus[jobs], worth, types, view.pools.gpus)
    return Request(queue, jobs, types, left_s)


def built(scheduler: SynergyScheduler) -> Callable[..., Policy]:
    """Return a function that builds the scheduler's policy for the simulator."""

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
        view: SynergyView = PAPERS.get("synergy").view(instance)
        if profiles != "true" or noise or saturation:
            tables = believed(view, profiles, noise, noise_seed)
            view = synergy.view(instance, tables=tables, saturation=saturation)
        return Policy(replace(scheduler, **settings), view, oracle)

    return passing(build, SynergyScheduler)


def one_round(scheduler: SynergyScheduler) -> Callable[..., SynergySchedule]:
    """Return the heuristic that places jobs for a single round: fair ones the view's round, others its whole queue."""

    def run(view: SynergyView, context: Context, **settings: str) -> SynergySchedule:
        configured, jobs = replace(scheduler, **settings), view.runnable if scheduler.fair else view.queue
        alone_s = view.workload.work[jobs] / view.fair[jobs]
        zero = np.zeros(jobs.size)
        queue = np.argsort(configured.ranks(view, Waiting(jobs, zero, alone_s, alone_s, zero)), kind="stable")
        request = asked_round(view, jobs[queue], alone_s[queue])
        placement, offered = configured.place(view, context.oracle)(request), request.jobs
        job, server, held = placement.job, placement.server, (placement.cpus, placement.memory_gb)
        return SynergySchedule(
            np.zeros_like(job), job, server, placement.gpus.astype(float), *held, np.zeros_like(offered), offered
        )

    run.__doc__ = scheduler.statement
    return passing(run, SynergyScheduler)


def whole_run(scheduler: SynergyScheduler) -> Callable[..., SynergySchedule]:
    """Return the heuristic that simulates all jobs of a view in its rounds, without restarts or profiling."""

    def run(view: SynergyView, context: Context, **settings: str) -> SynergySchedule:
        policy = Policy(replace(scheduler, **settings), view, context.oracle)
        trace, number = in_slots(
            view.workload, view.servers, policy, view.slot_s, profiles=view.profiles, sensitive=True
        )
        (row, job, server, gpus), (offered_row, offered) = trace.allocation.T, trace.offered.T
        held = gpus.astype(float), trace.cpus, trace.memory_gb
        return SynergySchedule(number[row], job, server, *held, number[offered_row], offered)

    run.__doc__ = scheduler.statement
    return passing(run, SynergyScheduler)
