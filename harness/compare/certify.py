"""From rows to certificates: the tightest bound of each problem, gaps, ratios, and what contradicts a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from schedgap.harness.compare.row import Row
from schedgap.harness.verify import differ
from schedgap.instances.registry import PAPERS


@dataclass(frozen=True)
class Bound:
    """A certified bound on a problem's optimum and the method it comes from."""

    value: float
    method: str


def certify(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with best bound, gap and ratio filled in; input order is kept.

    Bounds apply within one instance, to the bound's own problem and to the problems that restrict it. A decision that
    passed the checker is a proof: a bound that it beats is wrong, and is marked and left out; so is a model that calls
    its problem infeasible.
    """
    judged = _among_peers(rows, _judged)
    return _among_peers(judged, _certified)


def _among_peers(rows: Iterable[Row], judge: Callable[[Row, list[Row]], Row]) -> list[Row]:
    """Return what `judge` makes of each row among the rows of the same instance."""
    rows = list(rows)
    by_instance: dict[str, list[Row]] = {}
    for row in rows:
        by_instance.setdefault(row.fingerprint, []).append(row)
    return [judge(row, by_instance[row.fingerprint]) for row in rows]


def _judged(row: Row, peers: list[Row]) -> Row:
    """Mark a row whose bound is beaten, or whose problem is not infeasible, by a verified decision."""
    answered = row.own_bound is not None or (row.status == "infeasible" and row.kind != "baseline")
    for peer in peers if answered else ():
        if peer.objective is None or not peer.verified or row.problem not in _and_wider(peer):
            continue
        if row.own_bound is None:
            line = f"infeasible, but {peer.method} decides {row.problem}"
        elif _beyond(row.sense, peer.objective, row.own_bound) > 0 and differ(peer.objective, row.own_bound):
            line = f"bound {row.own_bound:.9g} is beaten by the objective {peer.objective:.9g} of {peer.method}"
        else:
            continue
        return row.replace(verified=False, violations=(*row.violations, line))
    return row


def _certified(row: Row, peers: list[Row]) -> Row:
    bound = tightest(row, peers)
    if bound is None:
        return row
    row = row.replace(best_bound=bound.value, bound_from=bound.method)
    if row.objective is None or row.verified is False:
        return row
    proved = any(_attains(peer, row.problem, bound.value) for peer in peers)
    return row.replace(
        gap=gap(row.objective, bound.value),
        ratio=ratio(row.sense, row.objective, bound.value),
        ratio_is_upper=not proved,
    )


def tightest(row: Row, peers: Iterable[Row]) -> Bound | None:
    """Return the tightest bound that `peers` certify for the row's problem, or ``None``."""
    problems = set(_and_wider(row))
    bounds = [
        Bound(peer.own_bound, peer.method)
        for peer in peers
        if peer.own_bound is not None and peer.problem in problems and peer.verified is not False
    ]
    pick = min if row.sense == "max" else max
    return pick(bounds, key=lambda b: b.value, default=None)


def _and_wider(row: Row) -> list[str]:
    """Return the row's problem and all problems it restricts."""
    return PAPERS.get(row.paper).wider(row.problem)


def _attains(row: Row, problem: str, bound: float) -> bool:
    """Whether a verified decision of this very problem reaches the bound, so that the optimum is proved."""
    if row.problem != problem or row.objective is None or not row.verified:
        return False
    return not differ(row.objective, bound)


def _beyond(sense: str, objective: float, bound: float) -> float:
    return objective - bound if sense == "max" else bound - objective


def gap(objective: float, bound: float) -> float:
    """Return ``|bound − objective| / |bound|`` (0 where both are 0, infinite where only the bound is)."""
    difference = abs(bound - objective)
    if difference == 0:
        return 0.0
    return difference / abs(bound) if bound != 0 else float("inf")


def ratio(sense: str, objective: float, bound: float) -> float | None:
    """Return how many times better the bound is, at least 1, or ``None`` where a ratio makes no sense.

    ``bound/objective`` to maximise, ``objective/bound`` to minimise; both must be positive (or both 0: ratio 1).
    """
    if objective == bound:
        return 1.0
    better, worse = (bound, objective) if sense == "max" else (objective, bound)
    if worse <= 0 or better <= 0:
        return None
    return max(1.0, better / worse)


def proved_ratio(row: Row) -> float | None:
    """Return the ratio of a verified row to the optimum, infinite for nothing against something.

    ``None`` where the optimum is not proved or is 0, or where the method did not run.
    """
    if not row.verified or row.ratio_is_upper is not False or row.objective is None or not row.best_bound:
        return None
    if row.ratio is None:
        return math.inf if row.sense == "max" and row.best_bound > 0 else None
    return row.ratio
