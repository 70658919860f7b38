"""The ILP (13), (21) that places one choice of a job at least cost, built directly as arrays.

Pyomo takes about 15 ms to build and compile a model of any size, longer than HiGHS needs to solve (13). The statement
in Pyomo is :func:`schedgap.models.zhou.mincost.build_mincost` for a single choice; tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Ints
from schedgap.instances.moldable import Machines
from schedgap.instances.moldable.machines import fitting
from schedgap.models.engine.solve import Session, SolveOptions, StandardForm
from schedgap.models.engine.solve.form import RowBlocks
from schedgap.models.engine.statements import largest

PRECISE = 1e-3
"""An optimal cost below this fraction of the dearest column's cost is too small for the solver's tolerances."""


class PlacementChoice(NamedTuple):
    """A choice of a job, as (13) needs it: types, layout, and the fewest and most workers.

    The PS type is −1 in a ring; `together` says whether everything is on one server.
    """

    worker_type: int
    ps_type: int
    together: bool
    workers: int
    most: int


@dataclass(frozen=True, eq=False)
class Placed:
    """A placement: its cost, and ``(h,)`` numbers of workers and parameter servers."""

    cost: float
    workers: Ints
    ps: Ints


def placement_form(
    machines: Machines, choice: PlacementChoice, free: Array, cost: Array, limit: float = np.inf
) -> tuple[StandardForm, Ints]:
    """Return (13) or (21) as arrays, and the servers ``(u,)`` that its columns belong to.

    Columns are ``y (u,)``, ``s (u,)``, ``one`` or ``has (u,)``, Σ y and Σ s. `free` ``(h, R)`` is what is free in all
    slots of the run, and `cost` ``(2, h)`` what a worker and a parameter server cost for all of these slots; those that
    cost more than `limit` are left out.
    """
    ring = choice.ps_type < 0
    e = machines.worker[choice.worker_type]
    z = np.zeros_like(e) if ring else machines.ps[choice.ps_type]
    ratio = 0.0 if ring else machines.ps_bandwidth[choice.ps_type] / machines.worker_bandwidth[choice.worker_type]
    covers = ratio * (1 + SLACK)
    within = free + SLACK * machines.capacity
    workers = np.minimum(fitting(within, e), choice.most) * (machines.able[choice.worker_type] & (cost[0] <= limit))
    # No solution needs more parameter servers than cover all workers.
    useful = 0 if ring else max(1, int(np.ceil(choice.most / covers)))
    ps = np.minimum(fitting(within, z), useful) * (cost[1] <= limit)
    servers = np.flatnonzero(workers + ps)
    workers, ps = workers[servers], ps[servers]
    scale = np.divide(1.0, machines.capacity, out=np.zeros_like(free), where=machines.capacity > 0)[servers]
    rows = _rows(choice, (workers, ps), (e * scale, z * scale), within[servers] * scale, covers)
    size = len(servers)
    lower = np.zeros(3 * size + 2)
    lower[3 * size :] = choice.workers, 0 if ring else 1
    most_workers = choice.workers if ring else min(choice.most, int(workers.sum()))
    form = rows.form(
        # Columns that are left out must not inflate the unit of the objective.
        cost=np.concatenate([cost[0, servers] * (workers > 0), cost[1, servers] * (ps > 0), np.zeros(size + 2)]),
        integer=np.arange(3 * size + 2) < 3 * size,
        lower=lower,
        upper=np.concatenate([workers, ps, np.ones(size), [most_workers, ps.sum()]]).astype(float),
    )
    # HiGHS refuses coefficients as small as these needs.
    form.matrix.data[np.abs(form.matrix.data) <= ROUNDING] = 0.0
    form.matrix.eliminate_zeros()
    return form, servers


def _rows(
    choice: PlacementChoice, most: tuple[Ints, Ints], part: tuple[Array, Array], free: Array, covers: float
) -> RowBlocks:
    """Return the rows of (13) or (21); `free` ``(u, R)`` and `part` ``(u, R)`` are fractions of the capacities.

    At most `most` ``(u,)`` workers (PSs) fit on each server, and each takes `part` of it. A PS has the bandwidth for
    `covers` workers on other servers.
    """
    workers, ps = most
    u, ring = len(workers), choice.ps_type < 0
    at = np.arange(u)
    y, s, k, all_y, all_s = at, at + u, at + 2 * u, 3 * u, 3 * u + 1
    rows, any_less, zeros, zero = RowBlocks(), np.full(u, -np.inf), np.zeros(u), np.zeros(1)
    for r in np.flatnonzero((part[0] + part[1]).any(axis=0)).tolist():
        rows.add(any_less, free[:, r], (part[0][:, r], at, y), (part[1][:, r], at, s))
    rows.add(zero, zero, (1.0, 0, y), (-1.0, 0, all_y))
    rows.add(zero, zero, (1.0, 0, s), (-1.0, 0, all_s))
    if choice.together:
        rows.add(zero + 1, zero + 1, (1.0, 0, k))
        rows.add(any_less, zeros, (1.0, at, y), (-workers, at, k))
        rows.add(any_less, zeros, (1.0, at, s), (-ps, at, k))
        return rows
    rows.add(zeros + 1, zeros + np.inf, (1.0, at, all_y), (1.0, at, all_s), (-1.0, at, y), (-1.0, at, s))
    if not ring:
        rows.add(any_less, zeros, (1.0, at, s), (-ps, at, k))
        covered = (-min(covers, choice.most), at, s)
        rows.add(any_less, zeros + choice.most, (1.0, at, all_y), (-1.0, at, y), covered, (choice.most, at, k))
    return rows


def unit_costs(machines: Machines, choice: PlacementChoice, price: Array) -> Array:
    """Return the ``(2, h)`` costs of a worker and of a parameter server at prices ``(h, R)``."""
    ps = machines.ps[choice.ps_type] if choice.ps_type >= 0 else np.zeros(len(machines.resources))
    return np.stack([price @ machines.worker[choice.worker_type], price @ ps])


def placement(
    machines: Machines,
    choice: PlacementChoice,
    free: Array,
    price: Array,
    options: SolveOptions | None = None,
    limit: float = np.inf,
) -> tuple[Placed | None, float]:
    """Return the cheapest placement (13), (21) of one choice, if one is found, and a lower bound on the least cost.

    The bound is infinite if there is proved to be no placement; running out of time proves nothing. `free` ``(h, R)``
    is what is free in all slots of the run, and `price` ``(h, R)`` what a unit costs for all of these slots, 0 or more.
    Placements that cost more than `limit` may be missed.
    """
    cost = unit_costs(machines, choice, price)
    best, bound = None, np.inf
    while True:
        form, servers = placement_form(machines, choice, free, cost, limit)
        if (form.lower > form.upper).any():
            return best, bound
        unit = largest(form.cost)
        solution = Session(replace(form, cost=form.cost / unit), options or SolveOptions()).run()
        if solution.status != "infeasible":
            bound = unit * (solution.bound or 0.0)
        if solution.column_values is None:
            return best, bound
        amounts = np.zeros((2, machines.size), np.int64)
        amounts[:, servers] = np.rint(solution.column_values[: 2 * len(servers)]).reshape(2, -1)
        best = Placed(float((cost * amounts).sum()), *amounts)
        if best.cost >= PRECISE * unit or not best.cost:
            return best, bound
        # No cheaper placement has a worker or PS that alone costs more than this; without those the unit is smaller.
        limit = best.cost
