"""FIFO: jobs in the order of their arrival, each on the fastest type that has room.

In every round the queue is served anew from its head. A job that fits on none of its types stops those behind it (as in
Gavel's FIFO; skipping would be backfilling). Jobs are served at the head first, so one that runs is not preempted by a
later one, but it moves to a faster type as soon as that has room. Ties by index.
"""

from __future__ import annotations

from schedgap.heuristics.simulator import Assignment, PolicySpec, Servers, State, Workload, servers, workload
from schedgap.heuristics.simulator.gangs import Gangs, in_order
from schedgap.heuristics.simulator.slotted import register_baseline


class Fifo:
    """FIFO as a simulation policy."""

    def __init__(self, work: Workload, cluster: Servers) -> None:
        self.gangs = Gangs(work, cluster)

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        return self.gangs.assignment(state, self.gangs.take_fastest(in_order(state), in_turn=True))


register_baseline(
    PolicySpec(
        id="hadar.fifo",
        paper="hadar",
        build=lambda instance, oracle: Fifo(workload(instance), servers(instance)),
        source="first in, first out; the fastest type with room, as in Gavel's FIFO (Narayanan et al., OSDI 2020)",
    )
)
