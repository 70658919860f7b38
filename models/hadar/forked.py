r"""Jobs as several copies at once (HadarE), by column generation over the GPUs that all copies of a job hold.

A copy holds up to :math:`W_j` GPUs of one server and advances at its own rate, so only the number of GPUs of each type
that a job holds in a slot matters. Servers of one type and size are a *class*: :math:`m` of them with :math:`c` GPUs
hold up to :math:`m \min(W_j, c)` GPUs of a job. Whole GPUs of a class within these limits, and within its capacity, fit
on its servers if they are dealt out in turn, job after job: of n GPUs of a job, a server gets at most
:math:`\lceil n/m \rceil`, and the totals of two servers differ by at most one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import ROUNDING
from schedgap.instances.views.hadar import FORKED, HadarSchedule, HadarView
from schedgap.models.engine.columns import (
    Columns,
    GenerationOptions,
    PackingOptions,
    generate,
    statement,
)
from schedgap.models.engine.gangs.copies import ForkedPricing
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.hadar.columns import COLD, HOT, search
from schedgap.models.hadar.common import too_large
from schedgap.models.registry import SEEDED, Outcome, model


def build_master(view: HadarView) -> pyo.ConcreteModel:
    r"""Build the relaxation over columns: the GPUs that the copies of every job hold (§V).

    - :math:`s \in S_j'`: columns, ways to do all work of a job by a last slot with up to :math:`m_j^i` GPUs of class i.
    - :math:`i`: classes, of :math:`m_i` servers with :math:`c_i` GPUs of one type, :math:`C^i = m_i c_i`.
    - :math:`m_j^i = m_i \min(W_j, c_i)`: most GPUs of class i that all copies of a job hold together.
    - ``x`` :math:`y_{j,s} \ge 0`: share of column s.

    .. math:: \max \sum_j \sum_{s \in S_j'} U_{j,s} \cdot y_{j,s} \tag{2}
    .. math:: \sum_j \sum_{s \in S_j'} w^{i,s}_{j,t} \cdot y_{j,s} \le C^i \quad \forall t, i \tag{2a} \label{within}
    .. math:: \sum_{s \in S_j'} y_{j,s} \le 1 \quad \forall j \tag{2b} \label{once}

    A copy holds up to :math:`W_j` GPUs of one server and advances at its own rate, so each of these GPUs does
    :math:`X_j^r L` iterations in a slot. With integer columns this is the problem itself. Every schedule of P1 is also
    one with copies: the GPUs of a gang on one server form a copy at least as fast as the gang's slowest type.

    Duals: the prices of (2a) go to the pricing problem, which finds the cheapest whole GPUs for every last slot. At any
    prices, the cost of all GPUs plus the largest payoffs of the jobs bounds every schedule with copies.

    *Erratum.* Theorem 3 claims that utilisation grows strictly with the number of copies; it can stay equal (R1 = 3, n
    = 5: the same for 3, 4 and 5 copies).
    """
    pricing = ForkedPricing(view)
    return statement(pricing.packing, generate(pricing.anything, pricing).columns)


def forked_bound(view: HadarView, options: SolveOptions) -> Outcome:
    """Bound the optimum by column generation until bound and master agree to 1e-4; returns no schedule."""
    began = clock.now()
    pricing = ForkedPricing(view)
    built = clock.now()
    generated = generate(pricing.anything, pricing, GenerationOptions(time_limit_s=options.time_limit_s), options)
    times = replace(generated.times, build_s=built - began).since(began)
    solution = replace(generated.solution(), times=times)
    return Outcome(solution, None, generated.prices.reshape(-1, view.slots))


def columns(view: HadarView, options: SolveOptions, *, seeded: bool = True) -> Outcome:
    """Solve the problem with copies by branch and price, starting with column generation.

    Parameters
    ----------
    view
        Jobs, GPUs, slots.
    options
        Limits, gap, seed, known decisions.
    seeded
        Whether the search starts from known decisions.

    Returns
    -------
    Outcome
        Its prices are ``(classes, T)``: at most what one more GPU of a class in a slot would add to the bound.

    See Also
    --------
    solve_in_phases : the phases of the search, and what it can prove.
    """
    budget = clock.Budget(options.time_limit_s)
    pricing = ForkedPricing(view)
    effort = PackingOptions(hot=HOT, cold=COLD)
    answer = search(pricing, pricing.kind, effort, options.limited(budget.left_s), budget.wall_s, seeded)
    decision = answer.decision(lambda packed: decode(pricing, packed.columns))
    return Outcome(answer.solution, decision, answer.generated.prices.reshape(pricing.room.shape), answer.root)


def some_columns(view: HadarView) -> tuple[float, bool]:
    """Return log10 of a lower bound on the number of columns, and ``True`` because it is only a lower bound.

    It counts the columns that use one class of servers, the one on which a job does most in a slot: full slots, and the
    remaining work in one more slot.
    """
    from scipy.special import gammaln, logsumexp  # imports in 0.05 s, and few runs need it

    pricing = ForkedPricing(view)
    total = [-np.inf]
    for job in pricing.possible.tolist():
        power = pricing.limit[job] * pricing.progress[job]
        slots, best = int(view.slots - view.arrival[job]), int(power.argmax())
        gpus = math.ceil(view.workload.work[job] / pricing.progress[job, best] * (1 - ROUNDING))
        whole, rest = divmod(gpus, int(pricing.limit[job, best]))
        if whole + (rest > 0) <= slots:
            ways = gammaln(slots + 1) - gammaln(whole + 1) - gammaln(slots - whole + 1)
            total.append(float(ways) + (math.log(slots - whole) if rest else 0.0))
    return float(logsumexp(total)) / math.log(10), True


def decode(pricing: ForkedPricing, chosen: Columns) -> HadarSchedule:
    """Return the schedule of chosen columns, with the GPUs of a class dealt out to its servers in turn."""
    use = chosen.use.tocoo()
    each = np.repeat(np.arange(use.nnz), np.rint(use.data).astype(np.int64))
    each = each[np.argsort(use.row[each], kind="stable")]
    cell = use.row[each].astype(np.int64)
    turn = np.arange(len(cell)) - np.searchsorted(cell, cell)
    server = np.empty_like(cell)
    for kind in range(len(pricing.room)):
        hosts, mine = np.flatnonzero(pricing.kind == kind), cell // pricing.view.slots == kind
        server[mine] = hosts[turn[mine] % len(hosts)]
    table = np.column_stack((chosen.block[use.col[each]], cell % pricing.view.slots, server))
    entries, gpus = np.unique(table, axis=0, return_counts=True)
    return HadarSchedule.of(np.column_stack((entries, gpus)))


model(
    "hadar.forked_bound",
    problem=FORKED.id,
    kind="relaxation",
    source="HadarE §V, by column generation",
    procedure=forked_bound,
    too_large=too_large,
    example="paper/hadar-fig1",
)(build_master)
model(
    "hadar.forked.columns",
    problem=FORKED.id,
    source="HadarE §V, by column generation and branching",
    procedure=columns,
    too_large=too_large,
    parameters=(SEEDED,),
    implied=some_columns,
    example="paper/hadar-fig1",
)(build_master)
