"""The column generation loop: price, bound, add, solve — until bound and master agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.models.engine.columns.domain import Domain
from schedgap.models.engine.columns.master import Master, Relaxation
from schedgap.models.engine.columns.packing import Columns
from schedgap.models.engine.solve import Size, Solution, SolveOptions, Status, Times, TracePoint, peak_mb

Ended = Literal["gap", "exhausted", "time limit", "iterations", "infeasible", "cut off", "error"]
"""Why column generation ended."""

STATUSES: dict[Ended, Status] = {
    "gap": "optimal",
    "exhausted": "optimal",
    "cut off": "gap left",
    "iterations": "gap left",
    "time limit": "gap left",
    "infeasible": "infeasible",
    "error": "error",
}
"""Status of a bound model for each reason why column generation ended; the bound holds in every case."""


@dataclass(frozen=True, eq=False)
class Priced:
    """Result of the pricing problem at some prices.

    Attributes
    ----------
    most
        ``(blocks,)`` upper bound on the profit of every column of the block, generated or not (``-inf`` for blocks that
        have none).
    columns
        Columns worth adding, each feasible on its own; usually the best of each block.
    by_end
        ``(blocks, ends)`` upper bound on the profit of every column of the block by its end, if available.
    """

    most: Array
    columns: Columns
    by_end: Array | None = None


Price = Callable[[Array, Domain], Priced]
"""``price(prices, domain)`` prices all blocks at the prices ``(m,)`` of the capacities, within a domain."""


class Oracle(Protocol):
    """Solves the pricing problem of all blocks."""

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best column of every block, as accurately as possible."""
        ...

    @property
    def rough(self) -> Price | None:
        """A faster pricing with weaker upper bounds on profits; ``None`` if there is none.

        Column generation uses it as long as it improves the master.
        """
        return None


@dataclass(frozen=True)
class GenerationOptions:
    """Options of column generation.

    Parameters
    ----------
    gap
        Relative gap of bound and master at which the loop ends, not counting the oracle's discretisation error.
    smoothing
        Weight of the best bound's prices in the prices of the next round, for stability (Wentges 1997); 0 for none.
    time_limit_s
        Time limit in seconds of computing (:class:`schedgap.instances.clock.Budget`); ``None`` for none.
    iterations
        Largest number of pricing rounds.
    cutoff
        The loop ends once the bound is below this value.
    early
        It also ends once bound and master differ by less than this fraction of the bound's distance to the cutoff.
    start
        Prices for the first round; without a master, a round at zero prices comes before it.
    keep
        If there are more than `keep` columns per row, those idle for more than :data:`IDLE` rounds are dropped.
    """

    gap: float = 1e-4
    smoothing: float = 0.6
    time_limit_s: float | None = None
    iterations: int = 2000
    cutoff: float = -np.inf
    early: float = 0.0
    start: Array | None = None
    keep: float = 1.0


IDLE = 10
"""Rounds with share 0 after which a column counts as idle."""

LOOSE = 2.0
"""Windows are split if the estimated gain exceeds this multiple of the gap; the real gain is at most a fifth of it."""

PROOF = 1e-9
"""A bound proves infeasibility if it is below the floor by more than this fraction of the terms that it sums."""


@dataclass(frozen=True, eq=False)
class Generated:
    """Result of column generation, with its certified bound.

    Attributes
    ----------
    bound
        Lagrangian bound on every feasible solution, the best over all prices tried.
    value
        LP optimum of the restricted master; at most the LP optimum over all columns, unless windows leave it `loose`.
    prices
        ``(m,)`` prices of the bound.
    unpriced
        The oracle's discretisation error: amount of the bound that its columns do not attain at these prices.
    columns, x
        The columns of the master, and ``(c,)`` their shares in its LP optimum.
    ended
        Why it ended. ``"exhausted"``: no column improves the master, which is then the LP optimum up to `unpriced`.
    pricings
        Rounds of pricing.
    pivots
        Simplex iterations.
    pricing_s, times
        Seconds in the oracle; seconds in the master, by phase.
    size
        Shape of the master at the end.
    trace
        Bound over time, in seconds since the start.
    master
        The master, to be reused in other domains; ``None`` if no column was found.
    """

    bound: float
    value: float
    prices: Array
    unpriced: float
    columns: Columns
    x: Array
    ended: Ended
    pricings: int
    pivots: int
    pricing_s: float
    times: Times
    size: Size
    trace: tuple[TracePoint, ...] = field(default=())
    master: Master | None = None

    @property
    def gap(self) -> float:
        """Relative gap between the bound and the value of the master."""
        return (self.bound - self.value) / max(abs(self.bound), 1e-10)

    def solution(self, sense: int = 1) -> Solution:
        """Return the bound as a solution without incumbent; `sense` is −1 if values are negatives of costs."""
        infeasible = self.ended == "infeasible"
        error = self.unpriced / max(abs(self.bound), 1e-10)
        words = f"{self.ended} after {self.pricings} pricings, {self.gap:.2g} above the master"
        return Solution(
            status=STATUSES[self.ended],
            termination=f"bound: {words}, discretisation error {error:.2g}",
            bound=sense * self.bound if np.isfinite(self.bound) and not infeasible else None,
            times=self.times,
            size=self.size,
            iterations=self.pivots,
            trace=tuple(TracePoint(p.time_s, None, sense * p.bound) for p in self.trace if p.bound is not None),
            peak_mb=peak_mb(),
            solver=SolveOptions.solver if self.master is None else self.master.solver,
        )


def lagrangian(domain: Domain, prices: Array, most: Array) -> float:
    """Return the Lagrangian bound at any prices: the cost of all capacities plus the largest profit of each block."""
    return float(prices @ domain.packing.limits + np.where(domain.must, most, np.maximum(most, 0.0)).sum())


def generate(
    domain: Domain,
    oracle: Oracle,
    options: GenerationOptions | None = None,
    solver: SolveOptions | None = None,
    master: Master | None = None,
) -> Generated:
    """Solve the LP relaxation over all columns by column generation.

    Every round prices the blocks at smoothed prices; the Lagrangian bound is valid at any prices. Columns that improve
    the master are added. If smoothed prices yield none (mispricing), the master's own duals are tried; if these yield
    none either, the master is optimal.

    Parameters
    ----------
    domain
        Capacities and blocks, with branching decisions.
    oracle
        Prices blocks.
    options, solver
        Options of the loop, and of the master's solver (threads, seed).
    master
        The master of another domain of the same problem, to start from.
    """
    return _Loop(domain, oracle, options or GenerationOptions(), solver or SolveOptions(), master).run()


class _Loop:
    """State of one run of column generation."""

    def __init__(
        self, domain: Domain, oracle: Oracle, options: GenerationOptions, solver: SolveOptions, master: Master | None
    ) -> None:
        self.domain, self.packing, self.options = domain, domain.packing, options
        self.oracles: list[Price] = [oracle] if oracle.rough is None else [oracle.rough, oracle]
        self.budget = clock.Budget(options.time_limit_s)
        self.pricings, self.pricing_s = 0, 0.0
        self.bound, self.unpriced, self.proof = np.inf, 0.0, np.inf
        self.best_prices = np.zeros(len(self.packing.limits))
        self.trace: list[TracePoint] = []
        if master is not None:
            master.move(domain)
            if options.start is not None:
                self.price(options.start)
        elif len(first := self.price(self.best_prices).columns):
            master = Master(domain, first, solver)
            if options.start is not None:
                master.add(self.price(options.start).columns)
        self.master, self.pivots = master, 0 if master is None else master.iterations

    def price(self, prices: Array) -> Priced:
        """Call the oracle at these prices, and keep the bound that follows if it is the best so far."""
        began = clock.now()
        priced = self.oracles[0](prices, self.domain)
        priced = replace(priced, columns=self.packing.lifted(priced.columns))
        self.pricing_s += clock.now() - began
        self.pricings += 1
        bound = lagrangian(self.domain, prices, priced.most)
        # Whether the bound is below the floor must not depend on rounding errors of its terms, which can be large.
        size = float(prices @ self.packing.limits + np.abs(priced.most[np.isfinite(priced.most)]).sum())
        self.proof = min(self.proof, bound + PROOF * size)
        if bound < self.bound:
            self.bound, self.best_prices = bound, prices
            self.unpriced = bound - lagrangian(self.domain, prices, self.attained(priced, prices))
            self.trace.append(TracePoint(self.budget.wall_s, None, bound))
        return priced

    def attained(self, priced: Priced, prices: Array) -> Array:
        """Return the largest profit of each block among the generated columns."""
        most = np.where(self.domain.must | (priced.most == -np.inf), -np.inf, 0.0)
        np.maximum.at(most, priced.columns.block, self.domain.profit(priced.columns, prices))
        return np.asarray(most)

    def run(self) -> Generated:
        if self.master is None:
            return self.result("infeasible" if self.domain.must.any() else "exhausted", None)
        relaxation = self.master.solve(self.budget)
        weight = self.options.smoothing if np.isfinite(self.bound) else 0.0
        while True:
            ended = self.ended(relaxation)
            if ended not in (None, "gap"):
                return self.result(ended, relaxation)
            better = None if ended else self.better(weight, relaxation)
            if better is not None and len(better):
                self.clean()
                self.master.add(better)
                weight = self.options.smoothing
            elif weight > 0 and not ended:
                weight = 0.0
                continue
            elif self.master.refine(LOOSE * self.options.gap * abs(self.bound)):
                weight = self.options.smoothing
            elif self.closer():
                weight = 1.0
            else:
                return self.result(ended or self.ended(relaxation) or "exhausted", relaxation)
            relaxation = self.master.solve(self.budget)

    def better(self, weight: float, relaxation: Relaxation) -> Columns:
        """Return columns that improve the master, found at smoothed prices.

        `weight` is the weight of the prices of the best bound; those of the master have the rest.
        """
        assert self.master is not None
        columns = self.price(weight * self.best_prices + (1 - weight) * relaxation.prices).columns
        return columns.take(self.master.improves(columns, relaxation))

    def closer(self) -> bool:
        """Switch from the rough oracle to the accurate one; return whether there was one to switch from."""
        if len(self.oracles) == 1:
            return False
        del self.oracles[0]
        self.unpriced = 0.0
        return True

    def ended(self, relaxation: Relaxation) -> Ended | None:
        """Return why the loop ends here, or ``None`` if it continues."""
        late = relaxation.status.startswith("time limit")
        if relaxation.status != "optimal" and not late:
            return "error"
        if self.proof < self.packing.floor:
            return "infeasible"
        if self.proof < self.options.cutoff:
            return "cut off"
        if self.close(relaxation):
            return "gap"
        if late or self.budget.left_s <= 0:
            return "time limit"
        return "iterations" if self.pricings >= self.options.iterations else None

    def close(self, relaxation: Relaxation) -> bool:
        """Return whether bound and master differ by no more than the gap allows."""
        if relaxation.uncovered > 1e-7 or not np.isfinite(self.bound):
            return False
        # More columns cannot close the oracle's discretisation error.
        near = self.options.early * (self.bound - self.options.cutoff) if self.options.cutoff > -np.inf else 0.0
        return self.bound - relaxation.value <= max(self.options.gap * abs(self.bound), near) + self.unpriced

    def clean(self) -> None:
        """Drop columns that have long been idle if there are too many."""
        master = self.master
        if master is not None and len(master.columns) > self.options.keep * master.size.rows:
            idle = np.flatnonzero(master.idle > IDLE)
            if idle.size:
                master.drop(idle)

    def result(self, ended: Ended, relaxation: Relaxation | None) -> Generated:
        master = self.master
        nothing = Columns.of(len(self.packing.limits), [])
        return Generated(
            bound=self.bound,
            value=0.0 if relaxation is None else relaxation.value,
            prices=self.best_prices,
            unpriced=self.unpriced,
            columns=nothing if master is None else master.columns,
            x=np.zeros(0) if relaxation is None else relaxation.x,
            ended=ended,
            pricings=self.pricings,
            pivots=0 if master is None else master.iterations - self.pivots,
            pricing_s=self.pricing_s,
            times=Times() if master is None else master.times,
            size=Size() if master is None else master.size,
            trace=tuple(self.trace),
            master=master,
        )
