"""Sentences about one paper of a comparison: how far from optimal its algorithm is, and how far the best baseline.

The numbers are those of the tables: gaps by :func:`schedgap.harness.studies.compare.summary.gaps`, prices and losses of
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.text import amount, between, clean, number, percent, seconds, within
from schedgap.harness.studies.compare.price import measured_in, prices
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.summary import Gaps, gaps
from schedgap.heuristics import HEURISTICS
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.parameters import base_id, shown
from schedgap.instances.registry import PAPERS, Problem

KINDS = {"online": 0, "given": 1, "baseline": 2}
"""Kinds of methods by rank: the answer is about the first kind that has results; models rank after all of these."""

NOTHING = {"completed": "completes no job", "admitted": "admits no job", "running": "runs no job"}
"""Words about a decision with objective 0, by the metric that is 0 then."""


@dataclass(frozen=True)
class MethodRuns:
    """All certified results of one method, and their gaps."""

    rows: Sequence[Row]
    gaps: Gaps

    @property
    def name(self) -> str:
        """The method."""
        return clean(self.rows[0].method, 60)

    @property
    def optimal(self) -> str:
        """``optimal`` or ``optimal every time`` if every certified gap is 0 %, else an empty string."""
        if self.gaps.is_upper or percent(self.gaps.largest) != "0 %":
            return ""
        return "optimal every time" if len(self.rows) > 1 else "optimal"

    @property
    def nothing(self) -> str:
        """Words about decisions with objective 0: ``runs no job, where the optimum is 5``; empty if there are none."""
        zero = [row for row in self.rows if row.sense == "max" and row.objective == 0 and row.best_bound is not None]
        if not zero:
            return ""
        what = next((text for name, text in NOTHING.items() if zero[0].metrics.get(name) == 0), "reaches 0")
        if len(self.rows) > 1:
            return f"{what} in {len(zero)} of {len(self.rows)} results"
        if zero[0].best_bound == 0:
            return f"{what}, and nothing is worth more than 0"
        bound = number(zero[0].best_bound)
        return f"{what}, where the optimum is {'' if zero[0].ratio_is_upper is False else 'at most '}{bound}"

    @property
    def amount(self) -> str:
        """The gap in words (``12.9 %``, ``at most 12.9 %``); for several results, the largest gap and the median."""
        largest = amount(self.gaps.largest, self.gaps.is_upper)
        if len(self.rows) == 1:
            return largest
        worst = "" if self.gaps.is_upper else " at worst"
        shown = amount(self.gaps.median, self.gaps.is_upper) + within(self.gaps.median_ends or (None, None))
        median = f" (median {shown})" if len(self.rows) > 2 else ""
        return largest + worst + median


def answer(rows: Sequence[Row], brief: bool = False) -> str:
    """Return the answer about one paper: how far its first algorithm (or else its best method) is from optimal.

    A brief answer leaves out other settings, baselines and prices. Without a certified gap, the answer is empty.
    """
    certified = sorted((row for row in rows if row.certified), key=lambda row: KINDS.get(row.kind, len(KINDS)))
    if not certified:
        return ""
    kind, problem = certified[0].kind, certified[0].problem
    alike = by_method(row for row in certified if (row.kind, row.problem) == (kind, problem))
    own = next(runs for runs in alike if kind != "online" or runs.rows[0].method == certified[0].method)
    if kind not in KINDS:
        return _of_a_model(own)
    name = f"the best of {len(alike)} baselines, {own.name}," if kind == "baseline" and len(alike) > 1 else own.name
    variant = "" if brief or kind != "online" else _variant(own, alike)
    others = [] if brief or kind == "baseline" else by_method(_baselines(own, certified))
    clauses = [
        _clause(name + (_defaults(own, variant) if variant else ""), own) + _loss(own) + variant,
        _baseline(own, others) if others else "",
        "" if brief or own.rows[0].aims else _price(own.rows),
    ]
    return "; ".join(filter(None, clauses))


def by_method(rows: Iterable[Row]) -> list[MethodRuns]:
    """Return the results of each method; methods are sorted by their largest gap."""
    found = [MethodRuns(group, gaps(group)) for group in grouped(sorted(rows, key=lambda row: row.method), "method")]
    return sorted(found, key=lambda runs: runs.gaps.largest)


def _of_a_model(own: MethodRuns) -> str:
    row = own.rows[0]
    if own.optimal == "optimal":
        return f"{own.name} finds the optimum, {number(row.objective)}, in {seconds(row.solve_s)}"
    if len(own.rows) == 1 and row.claim:
        return f"{own.name} finds {number(row.objective)}; {row.claim}; certified: {own.amount} from optimal"
    return _clause(own.name, own)


def _clause(name: str, runs: MethodRuns) -> str:
    if runs.nothing:
        return f"{name} {runs.nothing}"
    return f"{name} is {runs.optimal or f'{runs.amount} from optimal'}"


def _loss(own: MethodRuns) -> str:
    """Return a clause with the price and the loss of a method made for a narrower problem, or an empty string."""
    losses = [row.loss for row in own.rows if row.loss is not None]
    if not losses or own.nothing:
        return ""
    upper = any(row.loss_is_upper is not False for row in own.rows)
    price, largest = _price(own.rows), max(losses)
    before = f": {f'{price}, ' if price else ''}"
    if percent(-largest) != "0 %" and largest < 0:
        return f"{before}and as it need not meet that exactly, it is {percent(-largest)} better than what does"
    return f"{before}its own loss {amount(max(largest, 0.0), upper)}"


def _price(rows: Sequence[Row]) -> str:
    """Return the known price of the rows' problem in words: ``the price of envy-freeness is 10.0 %``."""
    return "".join(f"the price of {one.requires} is {between(one.at_least, one.at_most)}" for one in prices(rows)[:1])


def _variant(own: MethodRuns, alike: Sequence[MethodRuns]) -> str:
    """Return how far the best other setting of the algorithm is from optimal, if that is better."""
    best = next(runs for runs in alike if base_id(runs.name) == base_id(own.name))
    settings = best.name.partition("?")[2]
    better = best.gaps.largest < own.gaps.largest and len(best.rows) == len(own.rows)
    if not settings or not better or best.nothing:
        return ""
    return f", with {settings} {best.optimal or best.amount}"


def _defaults(own: MethodRuns, variant: str) -> str:
    """Return the algorithm's own values of the settings that the best variant changes: `` (alpha=4)``."""
    if own.name not in HEURISTICS:
        return ""
    spec = HEURISTICS.get(own.name)
    changed = [p for p in spec.parameters if f"{p.name}=" in variant]
    values = (f"{p.name}={shown(spec.settings.get(p.name, spec.default(p)))}" for p in changed)
    return f" ({', '.join(values)})"


def _baselines(own: MethodRuns, certified: Iterable[Row]) -> list[Row]:
    """Return the results of the baselines that share the algorithm's objective.

    A baseline made for a narrower problem is measured by the bound of the algorithm's problem. A baseline that may do
    more than the algorithm is measured by the bound of its own problem.
    """
    rows = [row for row in certified if row.kind == "baseline" and _related(row, own.rows[0])]
    by_case = {row.case: row for row in own.rows}
    return [measured_in(row, by_case[row.case]) if row.case in by_case else row for row in rows]


def _baseline(own: MethodRuns, others: Sequence[MethodRuns]) -> str:
    best = others[0]
    row = best.rows[0]
    name = f"{'best ' * (len(others) > 1)}baseline {best.name.removeprefix(f'{row.paper}.')}"
    if best.nothing:
        return f"{name} {'is no better' if best.nothing == own.nothing else best.nothing}"
    far = ("is, too" if own.optimal == best.optimal else f"is {best.optimal}") if best.optimal else best.amount
    return f"{name} {far}{_freedom(row, own.rows[0])}"


def _freedom(row: Row, own: Row) -> str:
    """Return a clause on what a baseline may do and the algorithm may not, or must keep and the algorithm need not."""
    problem = known(row.paper, row.problem)
    if row.problem == own.problem or problem is None:
        return ""
    if own.problem in PAPERS.get(row.paper).wider(row.problem):
        price = "".join(f" (price {between(one.at_least, one.at_most)})" for one in prices([row]))
        return f", with {problem.requires}{price}"
    return f", where {problem.allows}" if problem.allows else f" ({problem.title})"


def _related(row: Row, own: Row) -> bool:
    if row.problem == own.problem:
        return True
    here, there = known(row.paper, row.problem), known(own.paper, own.problem)
    return bool(here and there) and PAPERS.get(row.paper).related(row.problem, own.problem)


def known(paper: str, problem: str) -> Problem | None:
    """Return the problem with this id, or ``None`` if it is not registered."""
    try:
        return PAPERS.get(paper).problem(problem)
    except UnknownNameError:
        return None
