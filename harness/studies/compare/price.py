"""Price and loss: what a requirement costs on an instance, and what a method loses beyond that.

A problem that requires something (envy-freeness, no preemption, …) has a worse optimum than its *base*, the same
problem without the requirement. The *price* of the requirement is how far its optimum is from the base's, relative to
the latter. It is a number of the instance: no method can avoid it. Each of the two optima lies between a verified
decision and a certified bound, so the price lies between two numbers as well.

A method that is made for the narrower problem, but measured in the base (:attr:`MethodSpec.aims
<schedgap.instances.registry.MethodSpec>`), has a gap that contains the price. Its *loss* is the gap to the certified
bound of the problem that it is made for. It is negative if the decision is better than that, because it need not meet
the requirement exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schedgap.harness.check import differ
from schedgap.harness.studies.compare.row import Row, gap
from schedgap.instances.registry import PAPERS, Sense


@dataclass(frozen=True)
class Optimum:
    """What is known of the optimum of a problem: a certified `bound`, and the best verified objective, if any."""

    sense: Sense
    bound: float | None
    reached: float | None

    @property
    def known(self) -> bool:
        """True if the best decision reaches the bound, so that both are the optimum."""
        return None not in (self.bound, self.reached) and not differ(self.bound or 0.0, self.reached or 0.0)


@dataclass(frozen=True)
class Price:
    """The price of what a problem `requires` over its `base`: a share of the base's optimum between two values."""

    requires: str
    problem: str
    base: str
    at_least: float
    at_most: float


def optimum(paper: str, problem: str, sense: Sense, peers: Iterable[Row]) -> Optimum:
    """Return the certified bound and the best verified objective of a problem, from the rows of one instance.

    Bounds of wider problems and decisions of narrower ones count, too.
    """
    spec = PAPERS.get(paper)
    wider, alike = spec.wider(problem), [row for row in peers if row.paper == paper]
    bounds = [row.best_bound for row in alike if row.best_bound is not None and row.problem in wider]
    decided = [row for row in alike if row.verified and row.objective is not None]
    reached = [row.objective for row in decided if problem in spec.wider(row.problem) and row.objective is not None]
    least, most = (min, max) if sense == "max" else (max, min)
    return Optimum(sense, least(bounds, default=None), most(reached, default=None))


def price(problem: Optimum, base: Optimum) -> tuple[float, float] | None:
    """Return the least and the largest value that the price can have, or ``None`` if it has no upper limit."""
    if problem.reached is None or base.bound is None or base.bound <= 0:
        return None
    largest = max(0.0, _behind(base.sense, problem.reached, base.bound))
    if problem.bound is None or base.reached is None or base.reached <= 0:
        return 0.0, largest
    if problem.known and base.known:
        return largest, largest
    return max(0.0, _behind(base.sense, problem.bound, base.reached)), largest


def _behind(sense: Sense, objective: float, reference: float) -> float:
    """Return how far an objective is behind a reference value, relative to the reference; negative if it is ahead."""
    far = gap(objective, reference)
    return far if (objective <= reference) == (sense == "max") else -far


def priced(row: Row, peers: Sequence[Row]) -> Row:
    """Fill in a row's price, and its loss if its method is made for a narrower problem."""
    paper = PAPERS.get(row.paper)
    narrow, base = row.aims or row.problem, row.problem if row.aims else paper.problem(row.problem).base
    if base is None:
        return row
    sense = paper.problem(row.problem).sense
    inner, outer = (optimum(row.paper, problem, sense, peers) for problem in (narrow, base))
    if row.aims and inner.bound and row.objective is not None and row.verified:
        row = row.replace(loss=_behind(sense, row.objective, inner.bound), loss_is_upper=not inner.known)
    if limits := price(inner, outer):
        row = row.replace(price_of=paper.problem(narrow).requires, price_at_least=limits[0], price_at_most=limits[1])
    return row


def measured_in(row: Row, other: Row) -> Row:
    """Return a row with its gap to the bound of another row of its case, if its problem restricts the other's."""
    wider = PAPERS.get(row.paper).wider
    if row.problem == other.problem or other.problem not in wider(row.problem):
        return row
    if row.objective is None or other.best_bound is None:
        return row
    return row.replace(gap=gap(row.objective, other.best_bound), ratio_is_upper=other.ratio_is_upper)


def prices(rows: Iterable[Row]) -> list[Price]:
    """Return the prices in rows, one per problem and base; over several instances, from the least to the largest."""
    found: dict[tuple[str, str], Price] = {}
    for row in rows:
        if row.price_at_least is None or row.price_at_most is None:
            continue
        problem = row.aims or row.problem
        base = row.problem if row.aims else PAPERS.get(row.paper).problem(problem).base or ""
        own = Price(row.price_of, problem, base, row.price_at_least, row.price_at_most)
        one = found.get((problem, base), own)
        least, most = min(one.at_least, own.at_least), max(one.at_most, own.at_most)
        found[problem, base] = replace(one, at_least=least, at_most=most)
    return [one for one in found.values() if math.isfinite(one.at_most)]
