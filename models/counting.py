r"""How many columns a model would have that generates them: numbers of schedules, counted and not listed.

All counts are logarithms to base 10, since the numbers themselves have hundreds of digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln, logsumexp

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Machines
from schedgap.instances.elastic.options import ROUNDING
from schedgap.instances.views.hadar import ROUNDING as WORK_ROUNDING
from schedgap.instances.views.hadar import View as Gangs
from schedgap.models.elastic import ElasticJobs, starts
from schedgap.models.hadar.schedules import TooManyError, mixes

BUDGET = 20_000_000
"""Numbers of slots by pace that are looked at for all jobs together: about two seconds."""


def gang_schedules(view: Gangs) -> tuple[float, bool]:
    """Return the logarithm of the number of minimal schedules of all gangs, and whether it is a lower bound only.

    A schedule is minimal if it needs each of its slots (:mod:`schedgap.models.hadar.schedules`). Which slots run at
    which pace does not matter for that, only how many; the number of ways to pick them is a multinomial coefficient,
    times the mixes of GPU types of each pace.
    """
    jobs = view.possible.tolist()
    counts = [_of_gang(view, j, BUDGET // max(1, len(jobs))) for j in jobs]
    logs = np.array([log for log, _ in counts])
    return (float(logsumexp(logs)) / math.log(10) if jobs else -math.inf), any(partly for _, partly in counts)


def _of_gang(view: Gangs, job: int, budget: int) -> tuple[float, bool]:
    """Return the natural logarithm for one job, and whether paces were left out."""
    paces, partly = _paces(view, job)
    need = float(view.workload.work[job]) * (1 - WORK_ROUNDING)
    slots = int(view.slots - view.arrival[job])
    while len(paces) > 1 and math.prod(min(slots, math.ceil(need / p)) + 1 for p, _ in paces[1:]) > budget:
        paces, partly = paces[1:], True
    parts = [_frontier(need, slots, paces[lowest:]) for lowest in range(len(paces))]
    return float(logsumexp(np.concatenate([np.array([-np.inf]), *parts]))), partly


def _paces(view: Gangs, job: int) -> tuple[list[tuple[float, int]], bool]:
    """Return the paces of a gang, ascending, with the mixes of each; extreme mixes alone where there are many."""
    try:
        found, partly = mixes(view, job), False
    except TooManyError:
        found, partly = mixes(view, job, extreme=True), True
    values, count = np.unique([pace for _, pace in found if pace > 0], return_counts=True)
    return list(zip(values.tolist(), count.tolist(), strict=True)), partly


def _frontier(need: float, slots: int, paces: list[tuple[float, int]]) -> Array:
    """Return logarithms of the numbers of minimal schedules that use the first pace, by slots of the others.

    With the first pace the slowest in use, its number of slots follows from those of the others.
    """
    rate = np.array([pace for pace, _ in paces])
    ways = np.log([number for _, number in paces])
    axes = [np.arange(min(slots, math.ceil(need / pace)) + 1) for pace in rate[1:]]
    others = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]) if axes else np.zeros((0, 1))
    left = need - rate[1:] @ others
    others, left = others[:, left > 0], left[left > 0]
    slowest = np.ceil(left / rate[0])
    number = np.concatenate([slowest[None], others])
    idle = slots - number.sum(axis=0)
    number, idle = number[:, idle >= 0], idle[idle >= 0]
    chosen = gammaln(slots + 1) - gammaln(number + 1).sum(axis=0) - gammaln(idle + 1)
    return np.asarray(chosen + ways @ number)


def elastic_schedules(jobs: ElasticJobs) -> tuple[float, bool]:
    """Return the logarithm of the number of schedules of elastic jobs: options, starts and placements on real servers.

    Parameters
    ----------
    jobs
        What is scheduled. Dominated options are left out, as in :func:`schedgap.models.elastic.schedules`.
    """
    finite = np.isfinite(jobs.late)
    end = np.where(finite.any(axis=1), jobs.late.shape[1] - 1 - finite[:, ::-1].argmax(axis=1), 0)
    times = starts(jobs.options, jobs.earliest, end).astype(float)
    o = jobs.options
    kinds, kind = np.unique(
        np.column_stack((o.worker_type, o.ps_type, o.together, o.workers)), axis=0, return_inverse=True
    )
    total = np.zeros(len(kinds))
    for (m, p, together), members in _by_types(kinds.astype(np.int64)):
        total[members] = _placements(jobs.machines, m, p, bool(together), kinds[members, 3])
    number = float(times @ total[kind.ravel()])
    return (math.log10(number) if number > 0 else -math.inf), False


def _by_types(kinds: Ints) -> Iterator[tuple[tuple[int, int, int], Ints]]:
    for types in np.unique(kinds[:, :3], axis=0):
        yield (int(types[0]), int(types[1]), int(types[2])), np.flatnonzero((kinds[:, :3] == types).all(axis=1))


def _placements(m: Machines, worker_type: int, ps_type: int, together: bool, workers: Ints) -> Array:
    """Return how many placements of so many workers :func:`schedgap.models.elastic.placements.placements` lists."""
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
    """Return ``(most + 1,)`` in how many ways 0, 1, … workers go onto servers with so much room each."""
    ways = np.zeros(most + 1)
    ways[0] = 1.0
    for space in np.minimum(room, most).tolist():
        if space:
            running = np.cumsum(ways)
            ways = running - np.concatenate([np.zeros(space + 1), running[: -space - 1]])[: most + 1]
    return ways
