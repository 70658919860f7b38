r"""How many schedules elastic jobs have: columns of their integer programs, counted and not listed."""

from __future__ import annotations

import math

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Machines
from schedgap.instances.elastic.options import ROUNDING
from schedgap.models.elastic.jobs import ElasticJobs
from schedgap.models.elastic.placements import starts


def elastic_schedules(jobs: ElasticJobs) -> tuple[float, bool]:
    """Return the logarithm of the number of schedules of elastic jobs: options, starts and placements on real servers.

    Dominated options are left out, as in :func:`schedgap.models.elastic.schedules`.
    """
    finite = np.isfinite(jobs.late)
    end = np.where(finite.any(axis=1), jobs.late.shape[1] - 1 - finite[:, ::-1].argmax(axis=1), 0)
    times = starts(jobs.options, jobs.earliest, end).astype(float)
    o = jobs.options
    kinds, kind = np.unique(
        np.column_stack((o.worker_type, o.ps_type, o.together, o.workers)), axis=0, return_inverse=True
    )
    total = np.zeros(len(kinds))
    types = kinds[:, :3].astype(np.int64)
    for m, p, together in np.unique(types, axis=0).tolist():
        members = np.flatnonzero((types == (m, p, together)).all(axis=1))
        total[members] = _placements(jobs.machines, m, p, bool(together), kinds[members, 3])
    number = float(times @ total[kind.ravel()])
    return (math.log10(number) if number > 0 else -math.inf), False


def _placements(m: Machines, worker_type: int, ps_type: int, together: bool, workers: Ints) -> Array:
    """Return the number of placements of each number of workers, as :mod:`.placements` lists them."""
    if not workers.size:
        return np.zeros(0)
    free, e = m.capacity * (1 + ROUNDING), m.worker[worker_type]
    z = m.ps[ps_type] if ps_type >= 0 else np.zeros(len(m.resources))
    room = m.room[worker_type]
    if together:
        fits = (workers[:, None, None] * e + z <= free).all(axis=2) & m.able[worker_type]
        return np.asarray(fits.sum(axis=1).astype(float))
    most = int(workers.max())
    if ps_type < 0:
        ways = _ways(room, most)[workers]
        return np.asarray(ways - (room >= workers[:, None]).sum(axis=1))
    ratio = m.worker_bandwidth[worker_type] / m.ps_bandwidth[ps_type] * (1 - ROUNDING)
    found = np.zeros(len(workers))
    # Equal hosts have equal numbers of placements.
    hosts, count = np.unique(np.column_stack((m.capacity, room)), axis=0, return_counts=True)
    for host, times in zip(hosts, count.tolist(), strict=True):
        capacity, beside_most = host[:-1] * (1 + ROUNDING), int(host[-1])
        others = np.delete(room, int(np.flatnonzero((np.column_stack((m.capacity, room)) == host).all(axis=1))[0]))
        ways = _ways(others, most)
        for i, number in enumerate(workers.tolist()):
            beside = np.arange(min(beside_most, number - 1) + 1)
            servers = np.maximum(1, np.ceil((number - beside) * ratio))
            fits = (beside[:, None] * e + servers[:, None] * z <= capacity).all(axis=1)
            found[i] += times * ways[number - beside[fits]].sum()
    return found


def _ways(room: Ints, most: int) -> Array:
    """Return ``(most + 1,)`` the numbers of ways to put 0, 1, … workers onto servers with the given room."""
    ways = np.zeros(most + 1)
    ways[0] = 1.0
    for space in np.minimum(room, most).tolist():
        if space:
            running = np.cumsum(ways)
            ways = running - np.concatenate([np.zeros(space + 1), running[: -space - 1]])[: most + 1]
    return ways
