"""Prover of the problem of fewest fragmented jobs: worths of whole jobs, and prices of resources for split jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from schedgap.certificates.basics import STRETCH
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.synergy import PLACEMENT, SynergyView
from schedgap.models.engine.solve import Session, SolveOptions
from schedgap.models.engine.solve.form import RowBlocks
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import MARGIN, listed, unit_of, whole
from schedgap.models.registry import Outcome
from schedgap.models.synergy.placement import Demands

MANY = 4_000
"""Largest number of sets of whole jobs that fit on a server for which worths are computed; ``gen/200jobs`` has 24."""

CORNERS = 200_000
"""Largest number of candidates for vertices that are enumerated; 40 demands have 12,341."""

SURE = 1e-6
"""Fraction of a server's largest amount of a resource below which an amount counts as 0 in the LP."""


def fewest(view: SynergyView, outcome: Outcome, options: SolveOptions) -> Content:
    r"""Return worths of jobs and prices that bound the number of fragmented jobs among the demands of the outcome.

    Let a whole job of demand d be worth :math:`\alpha_d \ge 0`, and a split one :math:`\alpha_d - 1`. All jobs of a GPU
    type are then worth :math:`\sum_d n_d \alpha_d` less the number of split ones. This is at most the worth of what the
    servers hold: each holds a set of whole jobs that fit together, and parts of split jobs. At prices of its resources,
    these parts are worth at most the cost of what the whole jobs leave. The best :math:`\alpha` are duals of the LP
    over these sets.
    """
    wanted: Demands = outcome.evidence
    server_type = view.servers.gpu_type[wanted.hosts]
    worth, prices = np.zeros(len(wanted.count)), []
    unit = unit_of(float(wanted.count.sum()) + 1.0)
    kind = np.zeros(len(wanted.count), np.int64)
    kind[wanted.demand] = server_type[wanted.host]
    for r in range(view.types):
        mine = np.flatnonzero(kind == r)
        servers = view.servers.amounts[wanted.hosts[server_type == r]]
        room, count = np.unique(servers, axis=0, return_counts=True)
        need, jobs = wanted.amount[mine] * (1 - 2 * MARGIN), wanted.count[mine]
        sets = [np.array(list(islice(_sets(need, jobs, amounts * STRETCH), MANY + 1))) for amounts in room]
        if len(mine) and max(map(len, sets)) <= MANY and math.comb(len(mine) + 3, 3) <= CORNERS:
            worth[mine] = whole(_worth(need, jobs, room, count, sets, options), unit) * unit
        else:  # a job that fits on no server is split
            fits = np.all(need[:, None] <= room * STRETCH, axis=2)
            worth[mine] = ~np.any(fits, axis=1)
            sets = [np.zeros((1, len(mine)))] * len(room)
        costs = _costs(need, worth[mine] - 1)
        left = [amounts * STRETCH - of @ need for amounts, of in zip(room, sets, strict=True)]
        used = np.unique(np.concatenate([[0], *((part @ costs.T).argmin(axis=1) for part in left)]).astype(int))
        prices.append(listed(whole(costs[used], unit)))
    demand = np.repeat(np.arange(len(wanted.count)), wanted.count)
    content: Content = {"unit": unit, "slot_s": view.slot_s, "round": [view.workload.ids[j] for j in wanted.jobs]}
    content["held"] = [[int(kind[d]), *wanted.amount[d, 1:].tolist()] for d in demand]
    return content | {"worth": listed(whole(worth[demand], unit)), "prices": prices}


def _sets(need: Array, jobs: Ints, room: Array) -> Iterator[tuple[int, ...]]:
    """Yield the sets of whole jobs that fit on an empty server, as numbers of jobs of each demand."""
    if not len(jobs):
        yield ()
        return
    for times in range(int(jobs[0]) + 1):
        left = room - times * need[0]
        if (left < 0).any():
            return
        for others in _sets(need[1:], jobs[1:], left):
            yield times, *others


def _worth(need: Array, jobs: Ints, room: Array, count: Ints, sets: list[Array], options: SolveOptions) -> Array:
    """Return what a whole job of each demand is worth: the duals of the LP of fewest split jobs over sets of jobs.

    In this LP, servers hold fractions of sets of whole jobs, and split jobs.
    """
    d, of = len(jobs), np.concatenate(sets)
    host = np.repeat(np.arange(len(room)), list(map(len, sets)))
    cell, demand = np.repeat(np.arange(len(of)), d), np.tile(np.arange(d), len(of))
    split, shares, parts = np.arange(d), d + np.arange(len(of)), d + len(of) + np.arange(len(cell))
    rows = RowBlocks()
    rows.add(jobs, np.full(d, np.inf), (1.0, split, split), (of.ravel(), demand, shares[cell]))
    rows.add(np.zeros(d), np.full(d, np.inf), (1.0, demand, parts), (-1.0, split, split))
    rows.add(count, count, (1.0, host, shares))
    for demanded, amounts in zip(need.T, room.T, strict=True):
        unit = max(amounts.max(), MARGIN)
        left, part = (amounts[host] - of @ demanded) / unit, demanded[demand] / unit
        left, part = np.where(left < SURE, 0.0, left), np.where(part < SURE, 0.0, part)
        sides = np.full(len(of), -np.inf), np.zeros(len(of))
        rows.add(*sides, (part, cell, parts), (-left, np.arange(len(of)), shares))
    cost = np.concatenate([np.ones(d), np.zeros(len(of) + len(cell))])
    form = rows.form(cost, integer=np.zeros(len(cost), bool))
    duals = Session(form, SolveOptions(method="simplex", seed=options.seed, logs=options.logs)).run().row_duals
    return np.zeros(d) if duals is None else np.maximum(duals[:d], 0.0)


def _costs(need: Array, worth: Array) -> Array:
    """Return the vertices ``(v, 3)`` of the set of prices at which no job costs less than it is worth."""
    positive = worth > 0
    resources = need.shape[1]
    if not positive.any():
        return np.zeros((1, resources))
    unit = need[positive].max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    sides = np.concatenate([need[positive] / unit, np.eye(resources)])
    least = np.concatenate([worth[positive], np.zeros(resources)])
    tight = np.array(list(combinations(range(len(least)), resources)))
    tight = tight[np.abs(np.linalg.det(sides[tight])) > MARGIN]
    vertices = np.linalg.solve(sides[tight], least[tight][..., None])[..., 0]
    valid = (vertices >= -MARGIN).all(axis=1) & (vertices @ sides.T >= least - MARGIN).all(axis=1)
    return np.asarray(np.unique(np.maximum(vertices[valid], 0.0) / unit, axis=0))


PROVERS.register(ProverSpec(PLACEMENT.id, fewest))
