"""Gangs on GPU types: the types on which a gang can run, and the servers on which it is placed.

All policies that decide only the GPU types of gangs share this module. A gang of ``W`` GPUs has an *option* for each
GPU type: all its GPUs of that type. If no single type on which it can run is large enough, it has one *mixed* option
instead: GPUs of its types, fastest first, until it has ``W``. The slowest of these GPUs, which sets the gang's pace, is
as fast as in any other allocation. Options are numbered by type, and the mixed one is ``k``.

:meth:`Gangs.assignment` maps options to servers. A gang that uses the same number of GPUs of each type as in the
previous round stays where it is, so nothing restarts without need. The other gangs follow, the largest first, each on
the fullest server with enough free GPUs or, if there is none, over several servers, the emptiest first.
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
    "the type a job starts on, of those with room: most free GPUs, any, or the fastest (which requires knowing rates)",
    choices=("free", "random", "fastest"),
)
SEED = Parameter("seed", "seed of the generator that chooses among equal types", least=0)


class GangOptions:
    """The options (see the module) of the ``n`` jobs of a workload on the ``k`` GPU types of a cluster.

    `capacity` ``(k,)`` is the number of GPUs of each type, `usage` ``(n, k + 1, k)`` the GPUs that each option uses.
    `rates` ``(n, k + 1)`` are iterations per second of ONE GPU of an option, at the pace of its slowest type; 0 for
    options that a job does not have.
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
        """``(n, k + 1)`` mask of the options that a job has, as integers 0 and 1."""
        return (self.rates > 0).astype(np.int64)

    @cached_property
    def best_rate(self) -> Array:
        """``(n,)`` iterations per second of one GPU in a job's best option; 0 if it has none."""
        return np.asarray(self.rates.max(axis=1))

    @cached_property
    def by_rate(self) -> Ints:
        """``(n, k + 1)`` options of each job, fastest first, ties in the order of types; −1 for none."""
        order = np.argsort(-self.rates, axis=1, kind="stable")
        return np.where(np.take_along_axis(self.rates, order, axis=1) > 0, order, -1)

    def take(self, jobs: Ints, options: Ints, *, in_turn: bool = False) -> Ints:
        """Serve pairs ``(p,)`` of job and option in order; return the ``(n,)`` options that jobs get, −1 for none.

        A job takes its first option that fits; an option of −1 never does. A job that fits nowhere is skipped; if jobs
        are served `in_turn`, it ends the search instead, and the pairs of a job must be adjacent.
        """
        return self._kernels.take(jobs, options, self.usage, self.capacity.copy(), in_turn)

    def take_fastest(self, jobs: Ints, *, in_turn: bool = False) -> Ints:
        """Give GPUs to jobs in order, each on the fastest type with room; see :meth:`take`."""
        options = self.by_rate[jobs]
        return self.take(np.repeat(jobs, options.shape[1]), options.ravel(), in_turn=in_turn)

    def take_anywhere(self, jobs: Ints, held: Ints, types: Types, rng: np.random.Generator) -> Ints:
        """Give GPUs to jobs in order, each on its previous type if that fits; return the ``(n,)`` options, −1 for none.

        A job keeps the option it `held` (``(n,)``, −1 for none) in the previous round if that still fits. Otherwise it
        takes an option with room, chosen by `types`: the one with the most free GPUs (``free``), any one (``random``),
        or the fastest one (``fastest``). `rng` breaks ties, so the order in which types are listed has no effect.
        """
        value = {"free": np.zeros((0, 0)), "random": np.zeros(self.rates.shape), "fastest": self.rates}[types]
        ties = rng.random(self.rates.shape)
        return self._kernels.take_anywhere(jobs, held, self.allowed, self.usage, self.capacity.copy(), value, ties)

    def assignment(self, state: State, chosen: Ints) -> Assignment:
        """Return the assignment in which each job runs in its chosen option (``(n,)``, −1 for none)."""
        jobs = np.flatnonzero(chosen >= 0)
        before = state.previous
        # Contiguous columns, so that numba compiles only one version.
        held = self._kernels.Entries(*map(np.ascontiguousarray, (before.job, before.server, before.gpus)))
        need = self.usage[jobs, chosen[jobs]]
        entries = self._kernels.place(jobs, need, chosen.size, held, self.cluster.gpu_type, self.cluster.gpus)
        return Assignment(*np.ascontiguousarray(entries.T))


class GangPolicy(ABC):
    """Base of policies that decide only GPU types: a subclass chooses each job's option, this class finds servers."""

    def __init__(self, work: Workload, cluster: Servers) -> None:
        self.gangs = GangOptions(work, cluster)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        return self.gangs.assignment(state, self._chosen(state))

    @abstractmethod
    def _chosen(self, state: State) -> Ints:
        """Return the ``(n,)`` options of jobs in this round, −1 for none."""


def built(policy: Callable[..., Policy], **fixed: Any) -> Callable[..., Policy]:
    """Return a function that builds ``policy(workload, servers, **settings)`` for an instance; `fixed` settings win."""

    def build(instance: Instance, oracle: object, **settings: Any) -> Policy:
        return policy(workload(instance), servers(instance), **{**settings, **fixed})

    return passing(build, policy)


def in_order(state: State, *keys: Array) -> Ints:
    """Return the jobs of a state sorted by `keys` ``(a,)``, the primary key first; ties by arrival, then index."""
    return state.jobs[np.lexsort((state.arrival_s, *reversed(keys)))]
