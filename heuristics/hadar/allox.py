"""AlloX (Le et al., EuroSys 2020): a min-cost bipartite matching of jobs to pairs (device, position from the end).

On a device, the job in position ``p`` from the end delays ``p`` jobs (itself and those after it) by its own
processing time, so a perfect matching of least total ``p · time`` minimises the sum of completion times of
single-GPU jobs on unrelated devices. AlloX has no gangs. Here a gang counts with the time it would need on one device,
its GPU-seconds: exact for gangs of one GPU, an approximation for others. A gang that no single type could ever hold is
not matched: it runs when the others leave room.
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.hadar.slotted import baseline
from schedgap.heuristics.simulator import Servers, State, Workload
from schedgap.heuristics.simulator.gangs import GangPolicy
from schedgap.instances.arrays import Array, Ints


def match(times: Array, devices: Ints) -> tuple[Ints, Ints]:
    """Match jobs to GPU types and positions so that completion times have the least sum; return both, ``(a,)`` each.

    Positions count from the end of a device's queue.

    `times` ``(a, k)`` are seconds on one device of each type, ``inf`` where a job cannot run; `devices` ``(k,)`` counts
    the devices. Raises `ValueError` if some job can run nowhere.
    """
    from schedgap.heuristics.hadar._matching import assign

    used = np.flatnonzero(devices > 0)
    levels = -(-times.shape[0] // devices[used])
    kind = np.repeat(used, levels)
    position = np.concatenate([np.arange(1, level + 1) for level in levels.tolist()])
    longest_first = np.argsort(-np.where(np.isfinite(times), times, 0.0).max(axis=1), kind="stable")
    column = np.empty(times.shape[0], np.int64)
    column[longest_first] = assign(times[longest_first], (kind, position, devices[kind]))
    if column.min(initial=0) < 0:
        raise ValueError("some job can run nowhere")
    return kind[column], position[column]


@baseline("hadar.allox", "AlloX (Le et al., EuroSys 2020), min-cost bipartite matching")
class AlloX(GangPolicy):
    """The scheduler AlloX: it matches jobs to GPU types and positions, and starts them in that order.

    AlloX recomputes the matching whenever the set of jobs changes, which may move running jobs. Jobs with more jobs
    behind them on their type start first; a job that does not fit waits, and later ones may pass it.
    """

    def __init__(self, work: Workload, cluster: Servers) -> None:
        super().__init__(work, cluster)
        self._jobs: Ints = np.zeros(0, np.int64)
        self._kind = self._position = self._jobs

    def _chosen(self, state: State) -> Ints:
        types = self.gangs.capacity.size
        with np.errstate(divide="ignore"):
            seconds = state.remaining[:, None] / self.gangs.rates[state.jobs]
        if not np.array_equal(state.jobs, self._jobs):
            single = np.isfinite(seconds[:, :types]).any(axis=1)
            self._kind = np.full(state.jobs.size, types)
            self._position = np.zeros(state.jobs.size, np.int64)
            if single.any():
                self._kind[single], self._position[single] = match(seconds[single, :types], self.gangs.capacity)
            self._jobs = state.jobs
        on_type = seconds[np.arange(state.jobs.size), self._kind]
        order = np.lexsort((on_type, -self._position))
        return self.gangs.take(state.jobs[order], self._kind[order])
