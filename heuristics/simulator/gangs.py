"""Options and servers of gangs, shared by all policies that give out GPUs by type.

A gang of ``W`` GPUs has an *option* for each GPU type: all its GPUs of that type. Where no single type on which it
has a rate could ever hold it, it has one more option instead, the *mixed* one: the GPUs of its types, fastest first,
until it has ``W``; its bottleneck then is the best that any allocation has. Options are numbered by type, the mixed
one is ``k``.

Servers follow from options (:meth:`Gangs.assignment`): a gang that runs on the same numbers of GPUs of the same types
as in the previous round stays where it is, so that nothing restarts without need; then the others, the largest first,
each on the fullest server that has enough, or over several, the emptiest first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.simulator.state import Assignment, Policy, State
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Parameter, passing
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload, servers, workload

Types = Literal["free", "random", "fastest"]
TYPES = Parameter(
    "types",
    "where a job starts of the types with room: most free GPUs, any, the fastest (which the scheduler must know)",
    choices=("free", "random", "fastest"),
)
SEED = Parameter("seed", "of the generator that decides among types", least=0)


class Gangs:
    """Options of the ``n`` jobs of a workload on the ``k`` GPU types of a cluster.

    `capacity` ``(k,)`` are GPUs of each type, `usage` ``(n, k + 1, k)`` those that each option uses. `rates`
    ``(n, k + 1)`` are iterations per second of ONE GPU, at the rate of the slowest, 0 for options that a job does not
    have.
    """

    def __init__(self, work: Workload, cluster: Servers) -> None:
        from schedgap.heuristics.simulator import _kernels

        self._kernels = _kernels
        self.work, self.cluster = work, cluster
        types = len(work.gpu_types)
        self.capacity: Ints = np.bincount(cluster.gpu_type, cluster.gpus, types).astype(np.int64)
        self.usage: Ints = np.zeros((work.size, types + 1, types), np.int64)
        self.rates: Array = np.zeros((work.size, types + 1))
        self.usage[:, np.arange(types), np.arange(types)] = work.gpus[:, None]
        single = (work.rates > 0) & (work.gpus[:, None] <= self.capacity)
        self.rates[:, :types] = np.where(single, work.rates, 0.0)
        for job in np.flatnonzero(~single.any(axis=1)).tolist():
            rates = work.rates[job]
            order = np.argsort(-rates, kind="stable")[: np.count_nonzero(rates > 0)]
            taken = np.diff(np.minimum(np.cumsum(self.capacity[order]), work.gpus[job]), prepend=0)
            if taken.sum() == work.gpus[job]:  # all its types together hold it
                self.usage[job, -1, order] = taken
                self.rates[job, -1] = rates[order[taken > 0]].min()

    @cached_property
    def allowed(self) -> Ints:
        """``(n, k + 1)`` 1 for the options that a job has."""
        return (self.rates > 0).astype(np.int64)

    @cached_property
    def best_rate(self) -> Array:
        """``(n,)`` iterations per second of one GPU in a job's best option; 0 where it has none."""
        return np.asarray(self.rates.max(axis=1))

    @cached_property
    def by_rate(self) -> Ints:
        """``(n, k + 1)`` options of each job, fastest first (equal ones in the order of types); −1 for none."""
        order = np.argsort(-self.rates, axis=1, kind="stable")
        return np.where(np.take_along_axis(self.rates, order, axis=1) > 0, order, -1)

    def take(self, jobs: Ints, options: Ints, *, in_turn: bool = False) -> Ints:
        """Give GPUs to pairs ``(p,)`` of job and option in order; return ``(n,)`` options of the jobs, −1 for none.

        A job takes the first option that fits, −1 is no option. A job that fits nowhere is passed over, or ends the
        search if jobs are served `in_turn` (the pairs of a job then follow one another).
        """
        return self._kernels.take(jobs, options, self.usage, self.capacity.copy(), in_turn)

    def take_fastest(self, jobs: Ints, *, in_turn: bool = False) -> Ints:
        """Give GPUs to jobs in order, to each of the fastest type that has room; see :meth:`take`."""
        wanted = self.by_rate[jobs]
        return self.take(np.repeat(jobs, wanted.shape[1]), wanted.ravel(), in_turn=in_turn)

    def take_anywhere(self, jobs: Ints, held: Ints, types: Types, rng: np.random.Generator) -> Ints:
        """Give GPUs to jobs in order.

        A job keeps the option that it held (``(n,)``, −1 for none) if that still fits; otherwise it takes one that has
        room: with the most free GPUs, any, or the fastest. `rng` decides among equal ones, so that the order in which
        types are named decides nothing.
        """
        wanted = {"free": np.zeros((0, 0)), "random": np.zeros(self.rates.shape), "fastest": self.rates}[types]
        ties = rng.random(self.rates.shape)
        return self._kernels.take_anywhere(jobs, held, self.allowed, self.usage, self.capacity.copy(), wanted, ties)

    def assignment(self, state: State, chosen: Ints) -> Assignment:
        """Return the assignment in which each job runs in its chosen option (``(n,)``, −1 for none)."""
        jobs = np.flatnonzero(chosen >= 0)
        before = state.previous
        # Compiled once, however the columns of the previous assignment lie in memory.
        held = self._kernels.Entries(*map(np.ascontiguousarray, (before.job, before.server, before.gpus)))
        need = self.usage[jobs, chosen[jobs]]
        entries = self._kernels.place(jobs, need, chosen.size, held, self.cluster.gpu_type, self.cluster.gpus)
        return Assignment(*np.ascontiguousarray(entries.T))


class GangPolicy(ABC):
    """A policy that gives out GPUs by type: it chooses the option in which each job runs."""

    def __init__(self, work: Workload, cluster: Servers) -> None:
        self.gangs = Gangs(work, cluster)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        return self.gangs.assignment(state, self._chosen(state))

    @abstractmethod
    def _chosen(self, state: State) -> Ints:
        """Return ``(n,)`` options of the jobs, −1 for none."""


def built(policy: Callable[..., Policy], **fixed: Any) -> Callable[..., Policy]:
    """Return the function that builds a ``policy(workload, servers, **settings)`` for an instance."""

    def build(instance: Instance, oracle: object, **settings: Any) -> Policy:
        return policy(workload(instance), servers(instance), **{**settings, **fixed})

    return passing(build, policy)


def in_order(state: State, *keys: Array) -> Ints:
    """Return the jobs of a state by ascending keys ``(a,)``, the first counting most; ties by arrival, then index."""
    return state.jobs[np.lexsort((state.arrival_s, *reversed(keys)))]
