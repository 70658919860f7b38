"""Baselines of Hadar that solve no optimization problem: FIFO, SRTF, Tiresias and YARN-CS.

Gavel and AlloX have their own modules.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from schedgap.heuristics.hadar.slotted import baseline
from schedgap.heuristics.simulator import Servers, State, Workload
from schedgap.heuristics.simulator.gangs import SEED, TYPES, GangPolicy, Types, in_order
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Parameter

THRESHOLD_GPU_S = 3600.0
"""GPU-seconds that a job may use in the first queue, from an example in the README of Tiresias's simulator."""

Order = Literal["arrival", "running", "attained", "random"]


@baseline(
    "hadar.fifo", "first in, first out; the fastest type with room, as in Gavel's FIFO (Narayanan et al., OSDI 2020)"
)
class Fifo(GangPolicy):
    """The FIFO scheduler: jobs start in order of arrival, each on the fastest type with room.

    Every round serves the queue anew from its head. A job that fits on none of its types blocks those behind it (as in
    Gavel's FIFO; skipping would be backfilling). A running job is not preempted by a later one, but it moves to a
    faster type as soon as that has room. Ties are broken by index.
    """

    def _chosen(self, state: State) -> Ints:
        return self.gangs.take_fastest(in_order(state), in_turn=True)


@baseline("hadar.srtf", "shortest remaining time first, at each job's best rate")
class Srtf(GangPolicy):
    """The SRTF scheduler: it serves the job with the shortest remaining time first, on the fastest type with room.

    The remaining time is that of the whole gang at its best rate, ``remaining / (W · max rate)``. Every round serves
    the queue anew, so a shorter job preempts a longer one; a job that fits on none of its types is skipped. Ties are
    broken by arrival, then index.
    """

    def _chosen(self, state: State) -> Ints:
        left_s = state.remaining / (state.gpus * self.gangs.best_rate[state.jobs])
        return self.gangs.take_fastest(in_order(state, left_s))


@baseline(
    "hadar.tiresias",
    "Tiresias (Gu et al., NSDI 2019) with two queues and PromoteKnob off, as in Hadar, section IV-B",
    parameters=(
        Parameter("threshold_gpu_s", "attained service that ends a job's time in the first queue", "GPU·s", least=0),
        Parameter(
            "order",
            "order within a queue: arrival; running jobs first; least attained service; arrival with random ties",
            choices=("arrival", "running", "attained", "random"),
        ),
        TYPES,
        Parameter("stay", "whether a job that ran in the previous round stays on its type if that has room"),
        SEED,
    ),
    variants=("types=fastest&stay=false",),
)
class Tiresias(GangPolicy):
    """Tiresias (Gu et al., NSDI 2019) as Hadar runs it: two queues, discretised 2D-LAS, PromoteKnob off.

    The attained service of a job is two-dimensional: GPUs times seconds. Jobs start in the first queue and drop to the
    second one when they have attained :data:`THRESHOLD_GPU_S`; they never return (PromoteKnob off). Every round serves
    the first queue before the second, each first in, first out. A job that does not fit is skipped, and running jobs
    may be preempted by any job before them.

    Hadar does not print the `order` within a queue. With ``arrival``, jobs that arrive together go by index. Tiresias's
    simulator (``dlas_sim_jobs``) keeps each queue as a list, which is ``running``: a job that arrives or drops into the
    queue goes to its end, and after each round the jobs that ran go before those that waited, so that fewer are
    preempted. ``attained`` is 2D-LAS without discretisation within the queues; ``random`` lets `seed` decide among jobs
    that arrive together.

    Tiresias does not know types ("heterogeneity-unaware among accelerators", Hadar, section IV-B): a job that ran in
    the previous round stays on its type if it can; other jobs go where most GPUs are free, with ties broken by `seed`.
    A gang stays on one type (Hadar, section IV-B: "suffers from the same limitation as Gavel"), unless no single type
    could ever hold it.

    A job that stays on a slow type keeps running there alone at the end, while fast GPUs idle. Without `stay` it moves,
    at the price of many restarts. With ``types="fastest"`` as well it starts on fast GPUs, but Tiresias would have to
    know types. ``docs/experiments.md`` has the measured effect of each setting.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    threshold_gpu_s
        GPU-seconds after which a job falls into the second queue.
    order
        Order of jobs within a queue.
    types, seed
        Where jobs start; see :meth:`schedgap.heuristics.simulator.gangs.GangOptions.take_anywhere`.
    stay
        Whether a job that ran in the previous round stays on its type if that has room.
    """

    def __init__(
        self,
        work: Workload,
        cluster: Servers,
        *,
        threshold_gpu_s: float = THRESHOLD_GPU_S,
        order: Order = "arrival",
        types: Types = "free",
        seed: int = 0,
        stay: bool = True,
    ) -> None:
        super().__init__(work, cluster)
        self.threshold_gpu_s, self.order, self.types, self.stay = threshold_gpu_s, order, types, stay
        self.rng = np.random.default_rng(seed)
        self._drawn = np.random.default_rng([seed, 1]).random(work.size)
        self._second = np.zeros(work.size, bool)
        self._place: Array = np.full(work.size, np.inf)
        self._held: Ints = np.full(work.size, -1, np.int64)

    def _chosen(self, state: State) -> Ints:
        second = state.attained_s >= self.threshold_gpu_s
        self._place[state.jobs[second & ~self._second[state.jobs]]] = np.inf  # to the end of the second queue
        self._second[state.jobs] = second
        keys: dict[Order, tuple[Array, ...]] = {
            "arrival": (),
            "running": (self._place[state.jobs],),
            "attained": (state.attained_s,),
            "random": (state.arrival_s, self._drawn[state.jobs]),
        }
        jobs = in_order(state, second.astype(float), *keys[self.order])
        held = self._held if self.stay else np.full_like(self._held, -1)
        self._held = self.gangs.take_anywhere(jobs, held, self.types, self.rng)
        running_first = jobs[np.argsort(self._held[jobs] < 0, kind="stable")]
        self._place[running_first] = np.arange(jobs.size)
        return self._held


@baseline(
    "hadar.yarn_cs",
    "Apache YARN's capacity scheduler (Vavilapalli et al., SoCC 2013), as in Hadar, section IV-B",
    parameters=(TYPES, SEED),
    variants=("types=fastest",),
)
class YarnCS(GangPolicy):
    """The scheduler YARN-CS: Apache YARN's capacity scheduler with one queue, first in, first out, no preemption.

    A job keeps its GPUs from its start to its end. Waiting jobs are served in order of arrival (ties by index). One
    that does not fit is skipped, as the capacity scheduler proceeds to the next application if a request cannot be met.
    Hadar's section IV-B measures the highest GPU utilisation under YARN-CS, which a queue that waits for its head would
    not have.

    YARN-CS does not know types: a job starts where most GPUs are free, with ties broken by `seed` (Gavel's simulator
    also draws a type for schedulers that do not know them). It uses one type, unless no single type could ever hold its
    gang. Jobs never move, so jobs that start on a slow type stay there to the end.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    types, seed
        Where jobs start; see :meth:`schedgap.heuristics.simulator.gangs.GangOptions.take_anywhere`.
    """

    def __init__(self, work: Workload, cluster: Servers, *, types: Types = "free", seed: int = 0) -> None:
        super().__init__(work, cluster)
        self.types, self.rng = types, np.random.default_rng(seed)
        self._held: Ints = np.full(work.size, -1, np.int64)

    def _chosen(self, state: State) -> Ints:
        """Return the options of the running jobs, and of the waiting jobs that fit."""
        waiting = (self._held[state.jobs] < 0).astype(float)
        self._held = self.gangs.take_anywhere(in_order(state, waiting), self._held, self.types, self.rng)
        return self._held
