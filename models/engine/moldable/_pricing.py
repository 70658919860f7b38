"""Compiled pricing of :mod:`.generation`: the best run of every job at prices of capacities and of knapsack cuts.

Shapes: ``n`` jobs with ``o`` options in total, ``h`` classes of servers, ``T`` slots, ``c`` cuts; see also
:mod:`schedgap.instances.moldable._kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import lean
from schedgap.instances.moldable._kernels import (
    BestRun,
    JobOptions,
    PlacementTables,
    SearchGoal,
    ServerArrays,
    WorkerWindow,
    place,
    search,
)


class OptionArrays(NamedTuple):
    """The options of all jobs (job j has ``first[j] … first[j + 1] − 1``), their earliest starts, and costs of ends.

    ``late (n, T + 1)`` is the cost of each end. Only ends and begins at ``stops (n, T + 1)`` are tried, and only runs
    whose total cost is below ``limit (n,)``.
    """

    first: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    together: Bools
    workers: Ints
    earliest: Ints
    late: Array
    stops: Bools
    limit: Array


class PaidCuts(NamedTuple):
    """Knapsack cuts that have a price, ``(c,)`` each: the class (−1 for a pool), resource, slot, price and weights.

    ``weights (w, n, levels)`` has all weights, of which cut i uses those of index ``which[i]``. Workers of type m use
    only the class ``alone[m]``.
    """

    host: Ints
    resource: Ints
    slot: Ints
    price: Array
    which: Ints
    weights: Ints
    alone: Ints


class PricedRuns(NamedTuple):
    """The best run of each job: ``total (n,)`` cost, ``where (n, 6)`` as in ``BestRun``, and ``workers (n, h)``.

    Where there is none below the limit, the option ``where[:, 0]`` is −1.
    """

    total: Array
    where: Ints
    workers: Ints


@lean
def surcharge(job: int, last: int, jobs: OptionArrays, need: Array, cuts: PaidCuts, out: Array) -> None:
    """Write to `out` what each option of a job pays for cuts from its earliest start up to each slot until `last`."""
    a, size, first = jobs.first[job], jobs.first[job + 1] - jobs.first[job], jobs.earliest[job]
    most = cuts.weights.shape[2] - 1
    for o in range(size):
        for t in range(first, last + 1):
            out[o, t] = 0.0
    for c in range(cuts.price.size):
        slot, which = cuts.slot[c], cuts.which[c]
        if slot < first or slot >= last or cuts.weights[which, job, most] == 0:
            continue
        for o in range(size):
            m = jobs.worker_type[a + o]
            if cuts.host[c] < 0 or cuts.alone[m] == cuts.host[c]:
                use = int(jobs.workers[a + o] * need[m, cuts.resource[c]] + 0.5)
                out[o, slot + 1] += cuts.price[c] * cuts.weights[which, job, min(use, most)]
    for o in range(size):
        for t in range(first, last):
            out[o, t + 1] += out[o, t]


@lean
def cheapest(
    jobs: OptionArrays,
    cuts: PaidCuts,
    extra: Array,
    servers: ServerArrays,
    tables: PlacementTables,
    window: WorkerWindow,
    best: BestRun,
    runs: PricedRuns,
) -> None:
    """Find the run of least total cost of every job.

    `extra` is scratch space for :func:`surcharge`, or empty if no cut has a price.
    """
    for job in range(runs.total.size):
        a, z = jobs.first[job], jobs.first[job + 1]
        runs.where[job, 0] = -1
        last = jobs.late.shape[1] - 1
        while last > 0 and jobs.late[job, last] == np.inf:
            last -= 1
        if a == z:
            continue
        kinds = jobs.slots[a:z], jobs.worker_type[a:z], jobs.ps_type[a:z]
        choices = JobOptions(kinds[0], kinds[1], kinds[2], jobs.together[a:z], jobs.workers[a:z])
        if extra.size > 0:
            surcharge(job, last, jobs, servers.worker, cuts, extra)
        goal = SearchGoal(jobs.earliest[job], last, jobs.late[job], jobs.stops[job], jobs.limit[job], 0, extra)
        search(choices, goal, servers, tables, window, best)
        if best.where[0] >= 0:
            place(choices, servers, tables, window, best, runs.workers[job])
            runs.total[job] = best.value[0]
            for i in range(best.where.size):
                runs.where[job, i] = best.where[i]
