r"""The steps of a primal–dual algorithm: by how much each job raises the primal and the dual objective.

Such an algorithm posts a price for every *cell*, which is a resource of a server in a slot. The price rises with the
amount :math:`\gamma` of the capacity c that is in use. A job that is scheduled raises the primal objective P by its
worth, and the dual objective D by its payoff (worth less what it pays at the prices it finds) and by what all capacity
costs more afterwards. The proof of a ratio :math:`2 \alpha` has three parts:

*Lemma 1.* If :math:`\Delta P \ge \Delta D / \alpha` in every step, and the empty cluster's :math:`D_0` is at most half
of the optimum, the ratio is :math:`2 \alpha`.

*Definition 1.* Every step pays for what it causes, in every cell that it uses: what is paid, :math:`k \cdot
\Delta\gamma`, is at least :math:`(c / \alpha) \cdot \Delta k`. (Where the price of an empty cell is 0, :math:`k + 1`
takes the place of k. Lemma 2 then needs each unit of consumption to be worth at least 1, which Zhou assumes, and the
admission example does not.)

*Lemma 2.* Definition 1 implies the inequality of Lemma 1.

The price functions solve Definition 1 as a differential equation, for infinitely small steps. Steps are integers:
:attr:`PriceStep.needed` is the least α with which Definition 1 holds for a step.

Steps are replayed from a decision, so they speak of what was earned. Each job takes all that it gets in the end at
once, in the order of the decision. The loads after all steps are those of the decision, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Ints


class Purchase(NamedTuple):
    """What a job gets: its worth, the cells that it uses, each at most once, and how much of each."""

    job: int
    worth: float
    cells: Ints
    amounts: Array


@dataclass(frozen=True)
class PriceStep:
    """The step of a job.

    Attributes
    ----------
    job, worth
        Index of the job, and what it adds to the primal objective.
    paid
        What it pays, at the prices before the step.
    rise
        By how much the cost of all capacity rises.
    needed
        Least α with which Definition 1 holds for the step; infinite where a job pays nothing and prices rise.
    cell
        The cell that needs it.
    """

    job: int
    worth: float
    paid: float
    rise: float
    needed: float
    cell: int

    @property
    def payoff(self) -> float:
        """Worth less what is paid. It may be negative if the algorithm did not know what the job would pay."""
        return self.worth - self.paid

    @property
    def primal(self) -> float:
        """ΔP: by how much the step raises the primal objective."""
        return self.worth

    @property
    def dual(self) -> float:
        """ΔD: by how much the step raises the dual objective, payoff and rise together."""
        return max(self.payoff, 0.0) + self.rise


@dataclass(frozen=True, eq=False)
class PriceRun:
    """All steps of a run.

    Attributes
    ----------
    steps
        One for each job that is scheduled, in order.
    start
        :math:`D_0`, what all capacity costs at the prices of the empty cluster.
    alpha
        α of Definition 1.
    ratio
        α of Lemma 1, half of the ratio that the theorem states; ``None`` if there is no theorem.
    promise
        The theorem, for sentences; empty if there is none.
    rows
        Final prices in the rows of the problem's certificate, an array of any shape. A row stands for several servers,
        and its price is their mean, so that all capacity costs the same.
    place
        Returns the name of a cell.
    """

    steps: tuple[PriceStep, ...]
    start: float
    alpha: float
    ratio: float | None
    promise: str
    rows: Array
    place: Callable[[int], str]

    @cached_property
    def primal(self) -> Array:
        """``(steps,)`` primal objective after each step."""
        return np.cumsum([step.primal for step in self.steps])

    @cached_property
    def dual(self) -> Array:
        """``(steps,)`` dual objective after each step, as the proof counts it."""
        return self.start + np.cumsum([step.dual for step in self.steps])

    def breaks(self, step: PriceStep) -> bool:
        """Return whether Definition 1 fails for a step."""
        return step.needed > self.alpha * (1 + ROUNDING)

    def behind(self, step: PriceStep) -> bool:
        """Return whether the inequality of Lemma 1 fails for a step; never, if there is no theorem."""
        return self.ratio is not None and step.dual > self.ratio * step.primal * (1 + ROUNDING)


def follow(
    purchases: Iterable[Purchase], capacity: Array, price: Callable[[Ints, Array], Array], unit: float = 0.0
) -> tuple[tuple[PriceStep, ...], float, Array]:
    """Replay purchases; return their steps, D before the first, and the final amounts in use ``(cells,)``.

    Parameters
    ----------
    purchases
        In the order of the algorithm.
    capacity
        ``(cells,)``.
    price
        ``price(cells, used)`` returns the prices of some cells with these amounts in use.
    unit
        What a unit of consumption is worth at least, in Definition 1: 0, or 1 if empty cells are free.
    """
    used, everything = np.zeros(capacity.size), np.arange(capacity.size)
    start = float(price(everything, used) @ capacity)
    steps = []
    for job, worth, cells, amounts in purchases:
        before = price(cells, used[cells])
        used[cells] += amounts
        dearer = capacity[cells] * (price(cells, used[cells]) - before)
        with np.errstate(divide="ignore"):
            needed = np.divide(dearer, (before + unit) * amounts, out=np.zeros_like(dearer), where=dearer > 0)
        worst = int(needed.argmax())
        paid = float(before @ amounts)
        steps.append(PriceStep(job, worth, paid, float(dearer.sum()), float(needed[worst]), int(cells[worst])))
    return tuple(steps), start, used
