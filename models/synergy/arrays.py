"""ILP1 and LP2 straight as arrays, for schedulers that solve both in every round.

Pyomo takes about 15 ms to build and compile a model of any size, ten times what HiGHS needs for LP2. The statements in
Pyomo are :func:`~schedgap.models.synergy.throughput.build_round` and
:func:`~schedgap.models.synergy.placement.build_vertex`; tests compare the two, row by row.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.synergy import View
from schedgap.models.solve import StandardForm
from schedgap.models.synergy.configurations import capacity, units
from schedgap.models.synergy.throughput import Choices


def round_form(view: View, chosen: Choices) -> StandardForm:
    """Return the integer model of a round in which every job runs at its floor: eq. (1)–(5) with GPU rows."""
    group, held, at = chosen.classes, chosen.held, chosen.at
    gpu_type = held.gpu_type[at]
    types = np.unique(gpu_type)
    place = np.searchsorted(types, gpu_type)
    columns = np.arange(len(at))
    amount = (held.amount(view) / units(view)[held.gpu_type])[at]
    resources = [(amount[:, r], place + r * len(types), columns) for r in range(3)]
    one_each = (np.ones(len(at)), 3 * len(types) + chosen.owner, columns)
    room = (capacity(view) / units(view))[types].T.ravel()
    return _form(
        [*resources, one_each],
        cost=group.weight[chosen.owner] * held.rate[at],
        lower=np.r_[np.full(len(room), -np.inf), group.count],
        upper=np.r_[room, group.count],
        integer=True,
    )


def placement_form(held: Array, server: Ints, demand: Ints, jobs: Ints, room: Array, cost: Array) -> StandardForm:
    """Return LP2 (eq. 15–19).

    Parameters
    ----------
    held
        ``(x, 3)`` parts of the server's GPUs, CPUs and memory that a whole job takes there.
    server, demand
        ``(x,)`` server and demand of each variable.
    jobs
        ``(d,)`` jobs of each demand.
    room
        ``(3, s)`` free parts of the servers' GPUs, CPUs and memory.
    cost
        ``(x,)`` objective, to minimise.
    """
    columns, servers = np.arange(len(server)), room.shape[1]
    resources = [(held[:, r], server + r * servers, columns) for r in range(3)]
    all_of_it = (np.ones(len(server)), 3 * servers + demand, columns)
    count = jobs.astype(float)
    return _form(
        [*resources, all_of_it],
        cost=cost,
        lower=np.r_[np.full(3 * servers, -np.inf), count],
        upper=np.r_[room.ravel(), count],
        integer=False,
    )


def _form(
    entries: list[tuple[Array, Ints, Ints]], *, cost: Array, lower: Array, upper: Array, integer: bool
) -> StandardForm:
    """Return a form with variables ≥ 0, to maximise where they are integer, from entries (value, row, column)."""
    value, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return StandardForm(
        cost=cost,
        offset=0.0,
        maximise=integer,
        matrix=sp.csc_array((value, (row, column)), shape=(len(lower), len(cost))),
        row_lower=lower,
        row_upper=upper,
        lower=np.zeros(len(cost)),
        upper=np.full(len(cost), np.inf),
        integer=np.full(len(cost), integer),
        columns=[],
        rows=[],
    )
