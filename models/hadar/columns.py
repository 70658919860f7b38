"""P2 by branch and price, at sizes where P1 has millions of binaries.

Capacities are the GPUs of a type in a slot, blocks are jobs, columns are schedules.
:mod:`schedgap.models.engine.columns` holds the algorithms, :mod:`schedgap.models.engine.gangs.pricing` the pricing
problem.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import COMPLETE, UTILITY, HadarSchedule, HadarView, placed
from schedgap.models.engine.columns import (
    Choice,
    Columns,
    Generated,
    Inserting,
    Oracle,
    Packing,
    PackingAnswer,
    PackingOptions,
    PackingProblem,
    generate,
    solve_in_phases,
)
from schedgap.models.engine.columns import statement as master
from schedgap.models.engine.gangs.periods import ByPeriod, Sampled
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.hadar.common import somebody_rejected, too_large
from schedgap.models.hadar.schedules import gang_schedules
from schedgap.models.registry import SEEDED, Outcome, model, no_reason

BOUND_SHARE = 0.6
"""Share of the time limit that the bound may take; the rest is for finding a schedule."""

MANY, FEW = 1_200, 50
"""Numbers of slots and of jobs above which, under a time limit, prices change only from period to period.

With prices by slot, jobs are then also too long for the plain checker of certificates.
"""

JOBS = 4_000
"""Number of jobs above which, under a time limit, there is no master problem of all jobs.

Prices then change by period, and come from a sample of the jobs and a descent for all of them. With 8,000 jobs, a
master over slots left a gap of 0.35 % after a minute; this leaves 0.05 %. With 2,000 jobs, the master leaves 0.04 %.
"""

HOT, COLD = 0.0005, 0.0001
"""First and last temperature of the search, which starts from a dive's solution: hotter ones destroy that solution."""


def build_master(view: HadarView, complete: bool = False) -> pyo.ConcreteModel:
    r"""Build the relaxation of P2 over the schedules :math:`S_j' \subseteq S_j` that column generation made.

    Parameters
    ----------
    view
        GPUs, slots, jobs.
    complete
        Whether every job completes: (2b) is then an equation.

    Notes
    -----
    - ``x`` :math:`y_{j,s} \ge 0`: share of schedule s.

    .. math:: \max \sum_j \sum_{s \in S_j'} U_{j,s} \cdot y_{j,s} \tag{2}
    .. math:: \sum_j \sum_{s \in S_j'} w^{r,s}_{j,t} \cdot y_{j,s} \le C^r \quad \forall t, r \tag{2a} \label{within}
    .. math:: \sum_{s \in S_j'} y_{j,s} \le 1 \quad \forall j \tag{2b} \label{once}

    Duals: the prices :math:`k^r_t` of (2a) go to the pricing problem. For every job it is a shortest path over (slot,
    progress) and finds the schedule of largest payoff :math:`\varphi_j(s) = U_{j,s} - \sum_t \sum_r w^{r,s}_{j,t} \cdot
    k^r_t`. At any prices, :math:`\sum_t \sum_r C^r \cdot k^r_t + \sum_j \max(0, \max_s \varphi_j(s))` is a bound on P1
    and P2.
    """
    pricing = GangPricing(view, complete)
    return master(pricing.packing, generate(pricing.anything, pricing).columns)


def columns(view: HadarView, options: SolveOptions, complete: bool = False, *, seeded: bool = True) -> Outcome:
    """Solve P2 by branch and price, starting with column generation at smoothed prices.

    Prices move until bound and master agree up to the error of the grids of progress. Under a limit, prices change
    by period if there are more than :data:`MANY` slots or :data:`JOBS` jobs; with that many jobs, they come from a
    sample of the jobs and a descent for all of them. Neither branches; the search then starts from lists of all jobs,
    ordered by their payoffs or ends.

    Parameters
    ----------
    view
        Jobs, GPUs, slots.
    options
        Limits, gap, seed, known decisions.
    complete
        Whether every job completes.
    seeded
        Whether the search starts from known decisions.

    Returns
    -------
    Outcome
        Its prices are ``(k, T)``: at most what one more GPU of a type in a slot would add to the bound.

    See Also
    --------
    solve_in_phases : the phases of the search, and what it can prove.
    """
    budget = clock.Budget(options.time_limit_s)
    pricing = GangPricing(view, complete)
    effort = PackingOptions(hot=HOT, cold=COLD)
    few = view.possible.size <= FEW or (options.time_limit_s is None and options.nodes is None)
    substitute: Substitute | None = None
    if not few and view.possible.size > JOBS:
        substitute = Sampled(pricing, options)
    elif not few and view.slots > MANY:
        substitute = ByPeriod(pricing, options)
    options = options.limited(budget.left_s)
    answer = search(pricing, view.servers.gpu_type, effort, options, budget.wall_s, seeded, substitute)
    decision = answer.decision(lambda packed: decode(view, packed.columns))
    prices = answer.generated.prices
    if substitute:
        return Outcome(answer.solution, decision, substitute.by_slot(prices), evidence=substitute)
    return Outcome(answer.solution, decision, prices.reshape(-1, view.slots), answer.root)


class Substitute(Protocol):
    """A relaxation that replaces the one over slots where column generation by slot would take too long."""

    def relax(self, time_limit_s: float | None) -> Generated:
        """Return the bound, prices and columns that it finds within the time limit."""
        ...

    def by_slot(self, prices: Array) -> Array:
        """Convert its prices to prices of one GPU by slot, ``(k, T)``."""
        ...


class Priceable(Oracle, Protocol):
    """A pricing problem whose rows are (kind of servers, slot), row ``kind·T + t``."""

    packing: Packing
    worth: Array

    def insert(self, job: int, room: Array, prices: Array) -> Choice | None:
        """Return the best column of one job within `room`, or ``None``."""
        ...


def search(
    pricing: Priceable,
    kind: Ints,
    effort: PackingOptions,
    options: SolveOptions,
    built_s: float,
    seeded: bool,
    substitute: Substitute | None = None,
) -> PackingAnswer:
    """Solve a problem by branch and price, given its pricing problem and the `kind` ``(h,)`` of each server.

    `built_s` is the time that it took to build the pricing problem. If `substitute` is given, it provides the bound and
    the prices.
    """

    def packer(bound: float, prices: Array, effort: PackingOptions) -> Inserting:
        by_slot = substitute.by_slot(prices).ravel() if substitute else prices
        return Inserting(pricing.packing, pricing.insert, bound, by_slot, effort)

    posed = PackingProblem(
        packing=pricing.packing,
        oracle=pricing,
        packer=packer,
        effort=effort,
        read=partial(read, pricing.worth, kind),
        share=BOUND_SHARE,
        whole=not substitute,
        otherwise=substitute.relax if substitute else None,
    )
    return solve_in_phases(posed, options, built_s, seeded)


def read(worth: Array, kind: Ints, decision: HadarSchedule) -> dict[int, Choice]:
    """Return the columns of a decision by job, given the `worth` of jobs by last slot and the `kind` of each server."""
    size, slots = worth.shape
    row = kind[decision.server] * slots + decision.slot
    shape = size, (int(kind.max()) + 1) * slots
    held = sp.csr_array((decision.gpus.astype(float), (decision.job, row)), shape)
    last = np.zeros(size, np.int64)
    np.maximum.at(last, decision.job, decision.slot)
    columns = {}
    for job in np.unique(decision.job).tolist():
        entries = slice(held.indptr[job], held.indptr[job + 1])
        columns[job] = Choice(float(worth[job, last[job]]), held.indices[entries].astype(np.int64), held.data[entries])
    return columns


def decode(view: HadarView, chosen: Columns) -> HadarSchedule:
    """Return the schedule of chosen columns, with their GPUs placed on servers."""
    use = chosen.use.tocoo()
    gpus = np.rint(use.data).astype(np.int64)
    cell = use.row.astype(np.int64)
    return placed(view, chosen.block[use.col], cell % view.slots, cell // view.slots, gpus)


for _complete, _problem in ((False, UTILITY), (True, COMPLETE)):
    model(
        "hadar.p2.columns.complete" if _complete else "hadar.p2.columns",
        problem=_problem.id,
        source="Hadar §III-B, eq. (2), by column generation" + (", every job completes" if _complete else ""),
        procedure=partial(columns, complete=_complete),
        skip=somebody_rejected if _complete else no_reason,
        too_large=too_large,
        parameters=(SEEDED,),
        example="paper/hadar-fig1",
        implied=gang_schedules,
    )(partial(build_master, complete=_complete))
