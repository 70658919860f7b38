"""Prices for very many blocks, without a master problem: subgradient descent on the Lagrangian bound.

With tens of thousands of blocks, the row of each block makes the master the slowest part of column generation, while a
single block hardly matters: the bound is then nearly smooth in the prices. Every round prices all blocks, and moves the
prices against the capacity that is left by their best columns. Only prices and the sum of what columns use pass between
the rounds, so that blocks may be priced apart.

Steps are Polyak's, towards a target below the best bound. Where the target is not approached, it moves closer, and the
descent goes on from the best prices (Brännlund, 1993; the direction averages earlier ones, as in Camerini, Fratta and
Maffioli, 1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.engine.columns.domain import Domain
from schedgap.models.engine.columns.generation import Ended, Generated, Price, Priced, lagrangian
from schedgap.models.engine.columns.packing import Columns
from schedgap.models.engine.solve import Size, Times, TracePoint

REACHED = 0.7
"""Part of the distance to the target that a step covers where the target is too close; the distance is then doubled."""


@dataclass(frozen=True)
class DescentOptions:
    """Options of a descent.

    Parameters
    ----------
    far, near
        Distance of the target from the best bound at first, and the distance at which the descent ends, as fractions of
        the bound.
    patience
        Rounds without a better bound after which the distance is halved.
    inertia
        Weight of the previous direction in the next one.
    rounds
        Largest number of rounds.
    time_limit_s
        Time limit in seconds of computing (:class:`schedgap.instances.clock.Budget`); ``None`` for none.
    """

    far: float = 5e-4
    near: float = 2e-5
    patience: int = 3
    inertia: float = 0.5
    rounds: int = 200
    time_limit_s: float | None = None


class _Best(NamedTuple):
    """The best bound so far, with its prices, the best column of each block there, and what these leave of capacity."""

    bound: float
    prices: Array
    columns: Columns
    left: Array


def descend(domain: Domain, price: Price, start: Array, options: DescentOptions | None = None) -> Generated:
    """Return the best bound found by descent from the prices `start` ``(m,)``, which holds at any time.

    Its `columns` are the best ones of all blocks at its prices: they may use more than the capacity. It has no master.

    Parameters
    ----------
    domain, price
        Capacities and blocks, and the pricing of all blocks.
    start
        Prices of the first round.
    options
        Options of the descent.
    """
    options = options or DescentOptions()
    budget, limits = clock.Budget(options.time_limit_s), domain.packing.limits
    best: _Best | None = None
    trace = list[TracePoint]()
    prices, far, vain, rounds, pricing_s = start, options.far, 0, 0, 0.0
    direction = np.zeros(len(limits))
    while True:
        began = clock.now()
        priced = price(prices, domain)
        pricing_s += clock.now() - began
        rounds += 1
        bound, columns = lagrangian(domain, prices, priced.most), chosen(domain, priced, prices)
        left = limits - np.asarray(columns.use.sum(axis=1)).ravel()
        if best is None or bound < best.bound:
            if best is not None and best.bound - bound > REACHED * far * abs(best.bound):
                far *= 2
            best = _Best(bound, prices, columns, left)
            trace.append(TracePoint(budget.wall_s, None, bound))
            vain = 0
        else:
            vain += 1
        if vain > options.patience:
            # The direction belongs to where the descent went astray.
            bound, prices, _, left = best
            far, vain = far / 2, 0
            direction = np.zeros(len(limits))
        late = budget.left_s <= 0 or rounds >= options.rounds
        direction = left if not direction.any() else options.inertia * direction + (1 - options.inertia) * left
        moving = np.where((prices <= 0) & (direction > 0), 0.0, direction)
        norm = float(moving @ moving)
        if late or far < options.near or norm <= 0 or not np.isfinite(best.bound):
            break
        target = best.bound - far * abs(best.bound)
        prices = np.maximum(prices - (bound - target) / norm * moving, 0.0)
    ended: Ended = "time limit" if budget.left_s <= 0 else "iterations"
    return _generated(domain, best, ended, rounds, pricing_s, trace)


def _generated(
    domain: Domain, best: _Best, ended: Ended, rounds: int, pricing_s: float, trace: list[TracePoint]
) -> Generated:
    """Return the best round as the result of column generation without a master."""
    return Generated(
        bound=best.bound,
        value=float(best.columns.value.sum()),
        prices=best.prices,
        unpriced=0.0,
        columns=best.columns,
        x=np.ones(len(best.columns)),
        ended=ended,
        pricings=rounds,
        pivots=0,
        pricing_s=pricing_s,
        times=Times(),
        size=Size(rows=len(domain.packing.limits), columns=domain.packing.blocks),
        trace=tuple(trace),
    )


def chosen(domain: Domain, priced: Priced, prices: Array) -> Columns:
    """Return the best column of each block at these prices; of blocks that need none, only those with a profit."""
    columns = priced.columns
    profit = columns.profit(prices)
    order: Ints = np.lexsort((-profit, columns.block))
    first = order[np.diff(columns.block[order], prepend=-1) > 0]
    return columns.take(first[(profit[first] > 0) | domain.must[columns.block[first]]])
