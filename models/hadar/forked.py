"""A bound for schedules in which jobs run as several copies at once (HadarE)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import FORKED, ROUNDING, View
from schedgap.models.columns import Columns, Domain, GenerationOptions, Packing, Priced, generate, statement
from schedgap.models.hadar.columns import too_large
from schedgap.models.registry import MODELS, ModelSpec, Outcome
from schedgap.models.solve import Solution, SolveOptions, Status

ENDED: dict[str, Status] = {
    "gap": "optimal",
    "exhausted": "optimal",
    "time limit": "time limit without incumbent",
    "iterations": "gap left",
}
"""Statuses by why column generation ended; a bound holds with each."""


class ForkedPricing:
    """The oracle: the cheapest GPUs that together do a job's work, for every last slot.

    Parameters
    ----------
    view
        Jobs, GPUs, slots.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.packing = Packing(np.repeat(view.capacity, view.slots).astype(float), view.size, floor=0.0)
        work = view.workload
        able = (view.servers.gpu_type[:, None] == np.arange(len(view.capacity))).astype(float)
        self.limit: Array = np.minimum(work.gpus[:, None], view.servers.gpus) @ able
        self.progress: Array = work.rates * view.slot_s
        self.worth = np.array([view.utility(j) for j in range(view.size)])
        alone = (self.limit * self.progress).sum(axis=1) * (view.slots - view.arrival)
        self.possible: Ints = np.flatnonzero(alone >= work.work * (1 - ROUNDING))

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best use of GPUs by every job at the prices ``(k·T,)``; see :class:`.Priced`."""
        from schedgap.models.hadar import _kernels as kernels

        by_slot = np.ascontiguousarray(prices.reshape(-1, self.view.slots))
        count = len(self.possible)
        most, last = np.zeros(count), np.zeros(count, np.int64)
        work = self.view.workload.work
        fixed = self.view.arrival, work, self.progress, self.limit, self.worth
        kernels.price_forked(by_slot, self.possible, *fixed, (most, last))
        everyone = np.zeros(self.view.size)
        everyone[self.possible] = most
        bought = [self._bought(by_slot, int(self.possible[i]), int(last[i])) for i in np.flatnonzero(last >= 0)]
        return Priced(everyone, Columns.of(len(prices), bought))

    def _bought(self, prices: Array, job: int, last: int) -> tuple[int, float, Ints, Array]:
        """Return the column of a job's cheapest GPUs up to its last slot."""
        types = np.flatnonzero((self.limit[job] > 0) & (self.progress[job] > 0))
        slots = np.arange(self.view.arrival[job], last + 1)
        unit = (prices[np.ix_(types, slots)] / self.progress[job, types, None]).ravel()
        amount = np.repeat(self.limit[job, types] * self.progress[job, types], len(slots))
        order = np.argsort(unit, kind="stable")
        work = self.view.workload.work[job]
        before = np.cumsum(amount[order]) - amount[order]
        used = order[before < work]
        done = np.minimum(amount[used], work - before[: len(used)])
        which = types[used // len(slots)]
        gpus = done / self.progress[job, which]
        # Rounding leaves slivers of work, and HiGHS refuses coefficients below 1e-9.
        kept = (done > ROUNDING * work) & (gpus > ROUNDING)
        rows = which * self.view.slots + slots[used % len(slots)]
        return job, float(self.worth[job, last]), rows[kept], gpus[kept]


def build_master(view: View) -> pyo.ConcreteModel:
    r"""Return the LP over columns: how much of which GPUs the copies of every job hold, if GPUs could be divided (§V).

    - :math:`s \in S_j'`: the columns, ways to do all work of a job by a last slot with up to :math:`m_j^r` GPUs of a
      type.
    - :math:`m_j^r = \sum_{h \colon r(h) = r} \min(W_j, c_h)`: GPUs of type r that all copies of a job hold at most.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max \sum_j \sum_{s \in S_j'} U_{j,s} \cdot x_{j,s} \tag{2}
    .. math:: \sum_j \sum_{s \in S_j'} n_{j,s,t,r} \cdot x_{j,s} \le C^r \quad \forall t, r \tag{2a} \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} \le 1 \quad \forall j \tag{2b} \label{once}

    A copy holds up to :math:`W_j` GPUs of one server and advances at its own rate, so that each of these GPUs does
    :math:`X_j^r L` iterations in a slot. Relaxed are that GPUs are whole, and what one server holds. Every schedule of
    P1 is one with copies, too: the part of a gang on one server is a copy that is at least as fast as the gang's
    slowest type.

    Duals: the prices of (2a) go to the pricing problem, which takes the cheapest progress first for every last slot. At
    any prices the cost of all GPUs and the largest payoffs of the jobs add up to a bound on every schedule with copies.

    *Erratum.* Theorem 3 claims that utilisation grows strictly with the number of copies; it can be equal (R1 = 3, n =
    5: 3, 4 and 5 copies alike).
    """
    pricing = ForkedPricing(view)
    return statement(pricing.packing, generate(Domain.of(pricing.packing), pricing).columns)


def forked_bound(view: View, options: SolveOptions) -> Outcome:
    """Bound by column generation until bound and master agree to 1e-4; there is no schedule to decode."""
    began = clock.now()
    pricing = ForkedPricing(view)
    built = clock.now()
    found = generate(Domain.of(pricing.packing), pricing, GenerationOptions(time_limit_s=options.time_limit_s), options)
    times = replace(found.times, build_s=built - began, solve_s=clock.now() - built - found.times.transfer_s)
    solution = Solution(
        status=ENDED.get(found.ended, "error"),
        termination=f"bound: {found.ended} after {found.pricings} pricings, {found.gap:.2g} above the master",
        bound=found.bound if np.isfinite(found.bound) else None,
        times=times,
        size=found.size,
        iterations=found.pivots,
        trace=found.trace,
    )
    return Outcome(solution, None, found.prices.reshape(-1, view.slots))


MODELS.register(
    ModelSpec(
        id="hadar.forked_bound",
        paper="hadar",
        problem=FORKED.id,
        kind="relaxation",
        build=build_master,
        decode=lambda view, model, solution: None,
        source="HadarE §V, divisible copies, by column generation",
        procedure=forked_bound,
        too_large=too_large,
        example="paper/hadar-fig1",
    )
)
