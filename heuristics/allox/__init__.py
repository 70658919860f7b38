"""AlloX (Le et al., EuroSys 2020): jobs to (device, position from the end) by a min-cost bipartite matching.

On a device, the job in position ``p`` from the end delays ``p`` jobs (itself and those after it) by its own
processing time, so a perfect matching of least total ``p · time`` minimises the sum of completion times of
single-GPU jobs on unrelated devices. A gang counts with the time it would need on one device, its
GPU-seconds: exact for gangs of one, an approximation for others, since AlloX itself knows no gangs.
"""

from __future__ import annotations

import numpy as np

from heuristics.oef.placement import on_hosts
from heuristics.simulator import Assignment, State, servers, workload
from instances.errors import NotApplicableError
from instances.schema import Instance
from instances.workload import Array, Ints, Servers


def match(times: Array, devices: Ints) -> tuple[Ints, Ints]:
    """Return the type and the position from the end of every job.

    Parameters
    ----------
    times
        ``(a, k)`` seconds of each job on one device of each type; ``inf`` where it cannot run.
    devices
        ``(k,)`` devices of each type.

    Raises
    ------
    ValueError
        If some job can run nowhere.
    """
    from scipy.optimize import linear_sum_assignment

    jobs = times.shape[0]
    kind = np.repeat(np.arange(devices.size), jobs)
    position = np.tile(np.arange(jobs), devices.size) // np.maximum(devices[kind], 1) + 1
    cost = times[:, kind] * position
    cost[:, devices[kind] == 0] = np.inf
    _, slot = linear_sum_assignment(cost)
    return kind[slot], position[slot]


class AlloX:
    """AlloX as a simulation policy.

    It matches anew whenever the set of jobs changes, which may move running jobs. Jobs start in the order of
    their positions on their type; one that does not fit waits, and later ones may pass it.
    """

    def __init__(self) -> None:
        self._jobs: Ints = np.zeros(0, np.int64)
        self._kind = self._position = self._jobs

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        devices = np.bincount(state.servers.gpu_type, state.servers.gpus, state.rates.shape[1]).astype(np.int64)
        with np.errstate(divide="ignore"):
            seconds = state.remaining[:, None] / state.rates
        if not np.array_equal(state.jobs, self._jobs):
            possible = np.where(state.gpus[:, None] <= devices, seconds, np.inf)
            self._kind, self._position = match(possible, devices)
            self._jobs = state.jobs
        own = seconds[np.arange(state.jobs.size), self._kind]
        requests = []
        for row in np.lexsort((own, -self._position)).tolist():
            kind, gpus = int(self._kind[row]), int(state.gpus[row])
            if gpus <= devices[kind]:
                devices[kind] -= gpus
                requests.append((int(state.jobs[row]), kind, gpus))
        return Assignment.of(on_hosts(requests, state.servers.gpus, state.servers.gpu_type, packed=True))


def allox(instance: Instance) -> AlloX:
    """Return AlloX for that instance.

    Raises
    ------
    NotApplicableError
        If some job fits on no single type.
    """
    work, cluster = workload(instance), servers(instance)
    fits = (work.rates > 0) & (work.gpus[:, None] <= _devices(cluster, len(work.gpu_types)))
    stuck = np.flatnonzero(~fits.any(axis=1))
    if stuck.size:
        raise NotApplicableError(f"AlloX: job {work.ids[stuck[0]]} fits on no single GPU type")
    return AlloX()


def _devices(cluster: Servers, types: int) -> Ints:
    """``(types,)`` devices of each type."""
    return np.bincount(cluster.gpu_type, cluster.gpus, types).astype(np.int64)
