"""YARN-CS: Apache YARN's capacity scheduler with one queue, first in, first out, without preemption.

A job keeps its GPUs from its start to its end. Those that wait are served in the order of arrival (ties by index);
one that does not fit is passed over, as the capacity scheduler goes on to the next application where a request cannot
be met. Hadar's section IV-B measures the highest GPU utilisation under YARN-CS, which a queue that waits for its head
would not have.

It does not know types: a job starts where most GPUs are free, of equal types on any (`seed`; Gavel's simulator, too,
draws a type for schedulers that do not know them), on one type, except where no single type could ever hold its gang.
Jobs never move, so that those which start on a slow type run on there in the end: on ``gen/hadar-480``, 677 to 881 h
(8 seeds), 848 h where each starts on its fastest type with room.
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.simulator import Assignment, PolicySpec, Servers, State, Workload, servers, workload
from schedgap.heuristics.simulator.gangs import SEED, TYPES, Gangs, Types, in_order
from schedgap.heuristics.simulator.slotted import register_baseline
from schedgap.instances.arrays import Ints
from schedgap.instances.parameters import passing


class YarnCS:
    """YARN-CS as a simulation policy.

    Parameters
    ----------
    work, cluster
        Jobs and servers.
    types, seed
        Where jobs start, see :meth:`schedgap.heuristics.simulator.gangs.Gangs.take_anywhere`.
    """

    def __init__(self, work: Workload, cluster: Servers, *, types: Types = "free", seed: int = 0) -> None:
        self.gangs = Gangs(work, cluster)
        self.types, self.rng = types, np.random.default_rng(seed)
        self._held: Ints = np.full(work.size, -1, np.int64)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round: those that run already, and whoever fits beside them."""
        waits = (self._held[state.jobs] < 0).astype(float)
        self._held = self.gangs.take_anywhere(in_order(state, waits), self._held, self.types, self.rng)
        return self.gangs.assignment(state, self._held)


register_baseline(
    PolicySpec(
        id="hadar.yarn_cs",
        paper="hadar",
        build=passing(
            lambda instance, oracle, **settings: YarnCS(workload(instance), servers(instance), **settings), YarnCS
        ),
        source="Apache YARN's capacity scheduler (Vavilapalli et al., SoCC 2013), as in Hadar, section IV-B",
        parameters=(TYPES, SEED),
        variants=("types=fastest",),
    )
)
