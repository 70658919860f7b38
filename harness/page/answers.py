"""How far from optimal, in a line per paper: the paper's own algorithm, and the best baseline beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.engine.result import grouped
from schedgap.harness.page import frame, rigid
from schedgap.harness.text import at_most, clean, counted, number, percent, seconds, some

KINDS = {"online": 0, "given": 1, "baseline": 2}
"""Kinds of heuristics, those first that an answer is about; models answer where there are none."""


def answers(run: Comparison, brief: bool = False) -> list[tuple[str, str]]:
    """Return the answer about each paper that has one, with the paper's id; a brief one names no baseline."""
    each = {rows[0].paper: rigid.answer(run, rows) or _answer(rows, brief) for rows in grouped(run.rows, "paper")}
    return [(paper, text) for paper, text in each.items() if text]


def lines(run: Comparison) -> list[str]:
    """Return what a terminal shows first: trouble, the answer about each paper, and models that nobody asked for."""
    found = [text for _, text in answers(run)]
    told = [_told(run, found)] if len(found) < 2 else [f"{_where(run.rows)}:", *(f"  {text}" for text in found)]
    return [line for line in (frame.answered(run, "results"), *told, _unasked(run.bounds)) if line]


def headline(run: Comparison, brief: bool = False) -> str:
    """Return all that, and how many methods were skipped, as sentences."""
    skipped = sum(row.status == "skipped" for row in run.rows)
    why = f"{counted(skipped, 'result was', 'results were')} skipped, for reasons given below." * bool(skipped)
    answer = _told(run, [text for _, text in answers(run, brief)])
    return frame.answered(run, "results", answer, _unasked(run.bounds), why)


def _told(run: Comparison, found: Sequence[str]) -> str:
    if not run.rows:
        return "No method was run."
    return f"{_where(run.rows)}, {'; '.join(found) or 'no method has a certified gap'}."


def _answer(rows: Sequence[Row], brief: bool) -> str:
    """Return the answer about one paper: its own algorithm that is registered first, or the best there is."""
    known = sorted((row for row in rows if row.certified), key=lambda row: KINDS.get(row.kind, len(KINDS)))
    if not known:
        return ""
    kind, peers = known[0].kind, [row for row in known if row.problem == known[0].problem]
    alike = _by_method(row for row in peers if row.kind == kind)
    own = next(group for group in alike if kind != "online" or group[0].method == known[0].method)
    far, name = _amount(own), _name(own)
    if kind not in KINDS and far == "optimal":
        return f"{name} proves the optimum, {number(own[0].objective)}, in {seconds(own[0].solve_s)}"
    if kind == "baseline" and len(alike) > 1:
        name = f"the best of {len(alike)} baselines, {name},"
    answer = f"{name} is {far}{'' if far.startswith('optimal') else ' from optimal'}"
    others = _by_method(row for row in peers if row.kind == "baseline" != kind)
    if not others or brief:
        return answer
    best, least = _name(others[0]).removeprefix(f"{known[0].paper}."), _amount(others[0])
    least = least.removeprefix("at most ") if far.startswith("at most ") else least
    least = {"optimal": "is, too" if far == "optimal" else "is optimal"}.get(least, least)
    return f"{answer}, {'best ' * (len(others) > 1)}baseline {best} {least}"


def _unasked(bounds: Sequence[Row]) -> str:
    """Return which models ran for their bounds though nobody asked for them, how long, and which found none."""
    ran = [row for row in bounds if row.status != "skipped"]
    if not ran:
        return ""
    names = list(dict.fromkeys(_name([row]) for row in ran))
    none = list(dict.fromkeys(f"{_name([row])} ({row.status})" for row in ran if row.own_bound is None))
    found = f"; {some(none)} found none" if none else ""
    took = seconds(max((row.build_s or 0.0) + (row.solve_s or 0.0) for row in ran))
    whose = f"its bound, in {took}" if len(ran) == 1 else f"their bounds, in at most {took}"
    *first, last = names
    subject = " and ".join(filter(None, [", ".join(first), last]))
    return f"{subject} ran, too, for {whose}{found} (off: --no-bound)."


def _where(rows: Sequence[Row]) -> str:
    return f"{'On' if len({row.instance for row in rows}) == 1 else 'Over'} {frame.titled(rows)}"


def _by_method(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows of each method, worst first, the method with the smallest worst gap first."""
    ordered = sorted(sorted(rows, key=_gap, reverse=True), key=lambda row: row.method)
    return sorted(grouped(ordered, "method"), key=lambda group: _gap(group[0]))


def _name(group: Sequence[Row]) -> str:
    return clean(group[0].method, 60)


def _gap(row: Row) -> float:
    return row.gap or 0.0


def _amount(group: Sequence[Row]) -> str:
    """Return ``12.9 %`` where it is exact, ``at most 12.9 % (median 4.1 %)`` where it is a bound, or ``optimal``."""
    proved = all(row.ratio_is_upper is False for row in group)
    if proved and percent(_gap(group[0])) == "0 %":
        return "optimal every time" if len(group) > 1 else "optimal"
    amount = percent(_gap(group[0])) if proved and len(group) == 1 else at_most(_gap(group[0]))
    return amount + (f" (median {percent(median(map(_gap, group)))})" if len(group) > 2 else "")
