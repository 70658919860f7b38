"""Tiresias (Gu et al., NSDI 2019) as Hadar runs it: two queues, discretised 2D-LAS, PromoteKnob off.

A job's attained service is two-dimensional: GPUs times seconds. Jobs start in the first queue and fall into the
second one when they have attained :data:`THRESHOLD_GPU_S`; nothing brings them back (PromoteKnob off). In every round
the first queue goes before the second, each first in, first out; a job that does not fit is passed over, and running
jobs may be preempted by any job before them.

Tiresias does not know types ("heterogeneity-unaware among accelerators", Hadar, section IV-B): a job that ran in the
previous round stays on its type where it can, others go where most GPUs are free, of equal types to any (`seed`). A
gang stays on one type (Hadar, section IV-B: "suffers from the same limitation as Gavel"), except where no single type
could ever hold it.

Who stays on a slow type runs on there alone while fast GPUs idle. On ``gen/hadar-480``, this tail is most of the total
time, wherever jobs start: 809 to 916 h (8 seeds), 892 h with ``types="fastest"``. Without `stay` it is gone: 454 h, at
115,273 restarts, and 400 h with ``types="fastest"`` as well, which Tiresias would have to know types for.
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.simulator import Assignment, PolicySpec, Servers, State, Workload, servers, workload
from schedgap.heuristics.simulator.gangs import SEED, TYPES, Gangs, Types, in_order
from schedgap.heuristics.simulator.slotted import register_baseline
from schedgap.instances.arrays import Ints
from schedgap.instances.parameters import Parameter, passing

THRESHOLD_GPU_S = 3600.0
"""GPU-seconds in the first queue: the example with two queues in the README of Tiresias's simulator."""


class Tiresias:
    """Tiresias as a simulation policy.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    threshold_gpu_s
        GPU-seconds after which a job falls into the second queue.
    types, seed
        Where jobs start, see :meth:`schedgap.heuristics.simulator.gangs.Gangs.take_anywhere`.
    """

    def __init__(
        self,
        work: Workload,
        cluster: Servers,
        *,
        threshold_gpu_s: float = THRESHOLD_GPU_S,
        types: Types = "free",
        seed: int = 0,
        stay: bool = True,
    ) -> None:
        self.gangs = Gangs(work, cluster)
        self.threshold_gpu_s, self.types, self.stay = threshold_gpu_s, types, stay
        self.rng = np.random.default_rng(seed)
        self._held: Ints = np.full(work.size, -1, np.int64)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        second = (state.attained_s >= self.threshold_gpu_s).astype(float)
        held = self._held if self.stay else np.full_like(self._held, -1)
        self._held = self.gangs.take_anywhere(in_order(state, second), held, self.types, self.rng)
        return self.gangs.assignment(state, self._held)


register_baseline(
    PolicySpec(
        id="hadar.tiresias",
        paper="hadar",
        build=passing(
            lambda instance, oracle, **settings: Tiresias(workload(instance), servers(instance), **settings), Tiresias
        ),
        source="Tiresias (Gu et al., NSDI 2019) with two queues and PromoteKnob off, as in Hadar, section IV-B",
        parameters=(
            Parameter(
                "threshold_gpu_s", "attained service that ends a job's time in the first queue", "GPU·s", least=0
            ),
            TYPES,
            Parameter("stay", "a job that ran in the previous round stays on its type where that has room"),
            SEED,
        ),
        variants=("types=fastest&stay=false",),
    )
)
