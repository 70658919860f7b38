"""Schedulers that Hadar is compared with and that need no program: FIFO, SRTF, Tiresias and YARN-CS.

Gavel and AlloX have files of their own.
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
"""GPU-seconds in the first queue: the example with two queues in the README of Tiresias's simulator."""

Order = Literal["arrival", "running", "attained", "random"]


@baseline(
    "hadar.fifo", "first in, first out; the fastest type with room, as in Gavel's FIFO (Narayanan et al., OSDI 2020)"
)
class Fifo(GangPolicy):
    """FIFO: jobs in the order of their arrival, each on the fastest type that has room.

    In every round the queue is served anew from its head. A job that fits on none of its types stops those behind it
    (as in Gavel's FIFO; skipping would be backfilling). Jobs are served at the head first, so one that runs is not
    preempted by a later one, but it moves to a faster type as soon as that has room. Ties by index.
    """

    def _chosen(self, state: State) -> Ints:
        return self.gangs.take_fastest(in_order(state), in_turn=True)


@baseline("hadar.srtf", "shortest remaining time first, at each job's best rate")
class Srtf(GangPolicy):
    """SRTF: the job with the shortest remaining time first, each on the fastest type that has room.

    The remaining time is that of the whole gang at its best rate, ``remaining / (W · max rate)``. In every round the
    queue is served anew, so a shorter job preempts a longer one; a job that fits on none of its types is passed over.
    Ties by arrival, then index.
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
            "inside a queue: arrival; who runs before who waits; least attained service; arrival with drawn ties",
            choices=("arrival", "running", "attained", "random"),
        ),
        TYPES,
        Parameter("stay", "a job that ran in the previous round stays on its type where that has room"),
        SEED,
    ),
    variants=("types=fastest&stay=false",),
)
class Tiresias(GangPolicy):
    """Tiresias (Gu et al., NSDI 2019) as Hadar runs it: two queues, discretised 2D-LAS, PromoteKnob off.

    A job's attained service is two-dimensional: GPUs times seconds. Jobs start in the first queue and fall into the
    second one when they have attained :data:`THRESHOLD_GPU_S`; nothing brings them back (PromoteKnob off). In every
    round the first queue goes before the second, each first in, first out; a job that does not fit is passed over, and
    running jobs may be preempted by any job before them.

    Hadar does not print the `order` inside a queue. By ``arrival``, jobs that come together go by index. Tiresias's
    simulator (``dlas_sim_jobs``) has each queue as a list, ``running``: who arrives or falls into the queue goes to its
    end, and after each round those that ran go before those that waited, so that fewer are preempted. ``attained`` is
    2D-LAS without discretisation inside the queues, ``random`` lets `seed` decide among jobs that come together. Who
    ends last decides the tail that follows: 857 to 897 h of total time by arrival (3 seeds), 633 to 910 h by
    ``running``, 701 to 844 h by ``random``, 528 to 556 h by ``attained``; mean completion times differ by 6 %.

    Tiresias does not know types ("heterogeneity-unaware among accelerators", Hadar, section IV-B): a job that ran in
    the previous round stays on its type where it can, others go where most GPUs are free, of equal types to any
    (`seed`). A gang stays on one type (Hadar, section IV-B: "suffers from the same limitation as Gavel"), except where
    no single type could ever hold it.

    Who stays on a slow type runs on there alone while fast GPUs idle. On ``gen/hadar-480``, this tail is most of the
    total time, wherever jobs start: 809 to 916 h (8 seeds), 892 h with ``types="fastest"``. Without `stay` it is gone:
    454 h, at 115,273 restarts, and 400 h with ``types="fastest"`` as well, which Tiresias would have to know types for.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    threshold_gpu_s
        GPU-seconds after which a job falls into the second queue.
    order
        Who goes first inside a queue.
    types, seed
        Where jobs start, see :meth:`schedgap.heuristics.simulator.gangs.Gangs.take_anywhere`.
    stay
        Whether a job that ran in the previous round stays on its type where that has room.
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
        self._place[state.jobs[second & ~self._second[state.jobs]]] = np.inf  # the end of the queue that they fall into
        self._second[state.jobs] = second
        inside: dict[Order, tuple[Array, ...]] = {
            "arrival": (),
            "running": (self._place[state.jobs],),
            "attained": (state.attained_s,),
            "random": (state.arrival_s, self._drawn[state.jobs]),
        }
        jobs = in_order(state, second.astype(float), *inside[self.order])
        held = self._held if self.stay else np.full_like(self._held, -1)
        self._held = self.gangs.take_anywhere(jobs, held, self.types, self.rng)
        listed = jobs[np.argsort(self._held[jobs] < 0, kind="stable")]  # those that run first
        self._place[listed] = np.arange(listed.size)
        return self._held


@baseline(
    "hadar.yarn_cs",
    "Apache YARN's capacity scheduler (Vavilapalli et al., SoCC 2013), as in Hadar, section IV-B",
    parameters=(TYPES, SEED),
    variants=("types=fastest",),
)
class YarnCS(GangPolicy):
    """YARN-CS: Apache YARN's capacity scheduler with one queue, first in, first out, without preemption.

    A job keeps its GPUs from its start to its end. Those that wait are served in the order of arrival (ties by index);
    one that does not fit is passed over, as the capacity scheduler goes on to the next application where a request
    cannot be met. Hadar's section IV-B measures the highest GPU utilisation under YARN-CS, which a queue that waits for
    its head would not have.

    It does not know types: a job starts where most GPUs are free, of equal types on any (`seed`; Gavel's simulator,
    too, draws a type for schedulers that do not know them), on one type, except where no single type could ever hold
    its gang. Jobs never move, so that those which start on a slow type run on there in the end: on ``gen/hadar-480``,
    677 to 881 h (8 seeds), 848 h where each starts on its fastest type with room.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    types, seed
        Where jobs start, see :meth:`schedgap.heuristics.simulator.gangs.Gangs.take_anywhere`.
    """

    def __init__(self, work: Workload, cluster: Servers, *, types: Types = "free", seed: int = 0) -> None:
        super().__init__(work, cluster)
        self.types, self.rng = types, np.random.default_rng(seed)
        self._held: Ints = np.full(work.size, -1, np.int64)

    def _chosen(self, state: State) -> Ints:
        """Return the options of those that run already, and of whoever fits beside them."""
        waits = (self._held[state.jobs] < 0).astype(float)
        self._held = self.gangs.take_anywhere(in_order(state, waits), self._held, self.types, self.rng)
        return self._held
