"""SRTF: the job with the shortest remaining time first, each on the fastest type that has room.

The remaining time is that of the whole gang at its best rate, ``remaining / (W · max rate)``. In every round the
queue is served anew, so a shorter job preempts a longer one; a job that fits on none of its types is passed over.
Ties by arrival, then index.
"""

from __future__ import annotations

from schedgap.heuristics.simulator import Assignment, PolicySpec, Servers, State, Workload, servers, workload
from schedgap.heuristics.simulator.gangs import Gangs, in_order
from schedgap.heuristics.simulator.slotted import register_baseline


class Srtf:
    """SRTF as a simulation policy."""

    def __init__(self, work: Workload, cluster: Servers) -> None:
        self.gangs = Gangs(work, cluster)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        left_s = state.remaining / (state.gpus * self.gangs.best_rate[state.jobs])
        return self.gangs.assignment(state, self.gangs.take_fastest(in_order(state, left_s)))


register_baseline(
    PolicySpec(
        id="hadar.srtf",
        paper="hadar",
        build=lambda instance, oracle: Srtf(workload(instance), servers(instance)),
        source="shortest remaining time first, at each job's best rate",
    )
)
