"""The sentence that answers the question first: how far from optimal, how sure, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import median

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.simulate.row import SimulationRow
from schedgap.harness.text import clean, number, percent, seconds
from schedgap.instances.registry import PAPERS

AnyRows = Sequence[Row | SimulationRow]

HEURISTIC_KINDS = ("online", "baseline")
NAMED = 3
"""So many methods are named one by one; of more, the best and the worst."""


def headline(run: Comparison) -> str:
    """Return what `run` found: trouble first, then the gaps paper by paper, then what was skipped."""
    if not run.rows:
        return "No method was run."
    where = _where(run.rows)
    answers = [answer for paper in _papers(run.rows) if (answer := _answer(paper, run.rows))]
    sentences = [
        f"The run was stopped early, after {len(run.rows)} results." if run.meta.get("interrupted") else "",
        *_troubles(run.rows, "results"),
        *([where + answers[0], *answers[1:]] if answers else [f"{where}no method has a certified gap."]),
        _skipped(run.rows),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def lead(run: Comparison) -> str:
    """Return the headline of a page: of several papers one algorithm each, what else there is follows as a list."""
    known = [group for paper in _papers(run.rows) if (group := _flagship(paper))]
    if len(known) < 2:
        return headline(run)
    where = _where(run.rows).removesuffix(", ")
    named = _and([f"{clean(group[0].method, 60)} {_amount(group)} {_side(group)}" for group in known])
    rows = [row for group in known for row in group]
    sentences = [
        f"The run was stopped early, after {len(run.rows)} results." if run.meta.get("interrupted") else "",
        *_troubles(run.rows, "results"),
        f"{where}, how far from the optimum: {named}; {_bound_time(rows, run.rows)}.",
        _skipped(run.rows),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def answers(run: Comparison) -> list[tuple[str, str]]:
    """Return the sentence about each paper, with the paper's id."""
    found = [(paper[0].paper, _answer(paper, run.rows)) for paper in _papers(run.rows)]
    return [(paper, text) for paper, text in found if text]


def _flagship(rows: Sequence[Row]) -> list[Row]:
    """Return the results of a paper's own algorithm, the first one that has gaps, worst first."""
    known = [row for row in rows if row.certified and row.kind == "online"]
    mine = [row for row in known if row.method == known[0].method]
    return sorted(mine, key=_gap, reverse=True)


def _papers(rows: Sequence[Row]) -> list[list[Row]]:
    names = dict.fromkeys(row.paper for row in rows)
    return [[row for row in rows if row.paper == name] for name in names]


def _where(rows: Sequence[Row]) -> str:
    names = dict.fromkeys(row.instance for row in rows)
    return f"On {clean(next(iter(names)), 60)}, " if len(names) == 1 else f"Over {len(names)} instances, "


def _troubles(rows: AnyRows, noun: str) -> list[str]:
    """Return what is wrong and what failed: ``2 of 9 results are WRONG: a (why), b (why).``, or nothing."""
    wrong, failed = [row for row in rows if row.wrong], [row for row in rows if row.failed]
    of = f"of {len(rows)} {noun}"
    return [_trouble(wrong, of, "WRONG", _violation), _trouble(failed, of, "failed", _failure)]


def _trouble(bad: AnyRows, of: str, word: str, why: Callable[[Row | SimulationRow], str]) -> str:
    if not bad:
        return ""
    by_method = {row.method: row for row in reversed(bad)}
    named = ", ".join(f"{clean(name, 60)} ({why(by_method[name])})" for name in list(reversed(by_method))[:NAMED])
    more = f" and {len(by_method) - NAMED} more methods" if len(by_method) > NAMED else ""
    verb = word if word == "failed" else f"{'is' if len(bad) == 1 else 'are'} {word}"
    return f"{len(bad)} {of} {verb}: {named}{more}."


def _violation(row: Row | SimulationRow) -> str:
    first = clean(row.violations[0], 100) if row.violations else "its claim does not hold"
    return first + (f", and {len(row.violations) - 1} more" if len(row.violations) > 1 else "")


def _failure(row: Row | SimulationRow) -> str:
    reason = clean(row.reason, 100) if row.reason else ""
    return f"{row.status}: {reason}" if reason else row.status


def _skipped(rows: Sequence[Row]) -> str:
    count = sum(row.status == "skipped" for row in rows)
    if not count:
        return ""
    return f"{count} {'result was' if count == 1 else 'results were'} skipped, for reasons given below."


def _answer(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Return the sentence about one paper's methods, without its beginning (``On …,``)."""
    known = [row for row in rows if row.certified]
    heuristics = [row for row in known if row.kind in HEURISTIC_KINDS]
    if heuristics:
        return _heuristics(heuristics, everything)
    return _models(known) if known else ""


def _heuristics(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Return the sentence about a paper's heuristics: a clause per problem, those of its own algorithms first."""
    # gaps to the optima of different problems do not rank methods
    problems = list(dict.fromkeys(row.problem for row in sorted(rows, key=lambda row: row.kind != "online")))
    groups = [[row for row in rows if row.problem == problem] for problem in problems]
    named = [_clause(group, alone=len(groups) == 1) for group in groups[:NAMED]]
    return "; ".join([*named, *_rest(groups[NAMED:]), _bound_time(rows, everything)]) + "."


def _clause(rows: Sequence[Row], alone: bool) -> str:
    """Return what is said about one problem: its online algorithms and the best baseline, or its baselines."""
    online = [row for row in rows if row.kind == "online"]
    clause = _list(_by_method(online or rows), "heuristics")
    baselines = _by_method([row for row in rows if row.kind == "baseline"])
    if online and baselines:
        which = "the baseline" if len(baselines) == 1 else f"the best of {len(baselines)} baselines"
        clause += f"; {which}, {_apposition(baselines[0])}"
    return clause + _of_what(rows, alone)


def _rest(groups: Sequence[Sequence[Row]]) -> list[str]:
    """Return what is said about the problems that are not named."""
    if not groups:
        return []
    largest = max((row for group in groups for row in group), key=_gap)
    problems = "1 more problem" if len(groups) == 1 else f"{len(groups)} more problems"
    return [f"of {problems}, the largest gap is {_amount([largest])}"]


def _by_method(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each method, worst first, the method with the smallest worst gap first."""
    ordered = sorted(rows, key=lambda row: row.method)
    groups = [sorted(group, key=_gap, reverse=True) for _, group in groupby(ordered, key=lambda row: row.method)]
    return sorted(groups, key=lambda group: _gap(group[0]))


def _gap(row: Row) -> float:
    return row.gap if row.gap is not None else 0.0


def _list(groups: Sequence[list[Row]], noun: str) -> str:
    """Return the methods' gaps, one by one or from the best to the worst."""
    if len(groups) > NAMED:
        best, worst = _apposition(groups[0]), _apposition(groups[-1])
        return f"the best of {len(groups)} {noun}, {best}, the worst, {worst}"
    optimal = [group for group in groups if _optimal(group)]
    others = [group for group in groups if not _optimal(group)]
    names = _and([clean(group[0].method, 60) for group in optimal])
    sentences = [f"{names} {'is' if len(optimal) == 1 else 'are'} optimal{_every_time(optimal[0])}"] if optimal else []
    for side in ("below", "above"):
        here = [f"{clean(g[0].method, 60)} is {_amount(g)}" for g in others if _side(g) == side]
        if here:
            sentences.append(
                _and([here[0], *(text.replace(" is ", " ", 1) for text in here[1:])]) + f" {side} the optimum"
            )
    return "; ".join(sentences)


def _of_what(rows: Sequence[Row], alone: bool = True) -> str:
    """Return which optimum the gaps are measured against; where there are others, by its id at least."""
    problems = {(row.paper, row.problem) for row in rows}
    if len(problems) > 1:
        return ", each of its own problem"
    ((paper, problem),) = problems
    known = {p.id: p.title for p in PAPERS.get(paper).problems} if paper in PAPERS else {}
    title = known.get(problem, "" if alone else clean(problem, 60))
    return f" ({title})" if title else ""


def _and(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _apposition(group: Sequence[Row]) -> str:
    return f"{clean(group[0].method, 60)}, {_predicate(group)}"


def _predicate(group: Sequence[Row]) -> str:
    if _optimal(group):
        return f"is optimal{_every_time(group)}"
    return f"is {_amount(group)} {_side(group)} the optimum"


def _optimal(group: Sequence[Row]) -> bool:
    return all(row.ratio_is_upper is False for row in group) and percent(_gap(group[0])) == "0 %"


def _every_time(group: Sequence[Row]) -> str:
    return " every time" if len(group) > 1 else ""


def _side(group: Sequence[Row]) -> str:
    return "below" if group[0].sense == "max" else "above"


def _amount(group: Sequence[Row]) -> str:
    """Return ``12.9 %`` where it is exact, ``at most 12.9 % (median 4.1 %)`` where it is a bound."""
    row = group[0]
    proved = row.ratio_is_upper is False
    at_most = "" if proved and len(group) == 1 else "at most "
    middle = f" (median {percent(median(_gap(r) for r in group))})" if len(group) > 2 else ""
    return f"{at_most}{percent(_gap(row), up=not proved)}{middle}"


def _bound_time(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Return how long the bounds took that the gaps rest on."""
    wanted = {(row.fingerprint, row.bound_from) for row in rows}
    times = [
        (row.build_s or 0.0) + row.solve_s
        for row in everything
        if (row.fingerprint, row.method) in wanted and row.solve_s is not None
    ]
    if not times:
        return "the bound's time is not recorded"
    return (
        f"the bound took {seconds(times[0])}" if len(times) == 1 else f"each bound took at most {seconds(max(times))}"
    )


def _models(rows: Sequence[Row]) -> str:
    """Return the sentence about a paper of which only models ran."""
    groups = _by_method(rows)
    if len(rows) == 1 and (row := rows[0]).ratio_is_upper is False and percent(_gap(row)) == "0 %":
        return f"{clean(row.method, 60)} proves the optimum, {number(row.objective)}, in {seconds(row.solve_s)}."
    time = seconds(max(row.solve_s or 0.0 for row in rows))
    return f"{_list(groups, 'models')}{_of_what(rows)}; solving took at most {time}."


# ---------------------------------------------------------------- simulations


METRICS = (
    ("ttd_s", "ttd_bound_ratio", "finishes all jobs first, after", "more than the least that any schedule can reach"),
    ("jct_mean_s", "jct_bound_ratio", "has the least mean completion time,", "more than the best possible mean"),
)
"""Field, its ratio to the bound, and what is said about the policy that is best in it."""


def headline_of_simulation(rows: Sequence[SimulationRow], interrupted: bool = False) -> str:
    """Return what was found: trouble first, then who is best and how far from the bound."""
    if not rows:
        return "No policy was simulated."
    sentences = answers_of_simulation(rows)
    answer = sentences[0][1] if len(sentences) == 1 else _over(rows)
    parts = [
        f"The run was stopped early, after {len(rows)} policies." if interrupted else "",
        *_troubles(rows, "policies"),
        answer or "No policy finished all jobs.",
    ]
    return " ".join(part for part in parts if part)


def answers_of_simulation(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return the sentence about each instance, with its name; instances without a confirmed time are left out."""
    found = []
    for fingerprint in dict.fromkeys(row.fingerprint for row in rows):
        here = [row for row in rows if row.fingerprint == fingerprint]
        if text := _fastest(here):
            found.append((clean(here[0].instance, 60), text))
    return found


def _fastest(rows: Sequence[SimulationRow]) -> str:
    clauses = [clause for metric in METRICS if (clause := _least(rows, *metric))]
    if not clauses:
        return ""
    return f"On {clean(rows[0].instance, 60)}, {'; '.join(clauses)}."


def _least(rows: Sequence[SimulationRow], field: str, ratio: str, what: str, beyond: str) -> str:
    """Return who is best in one metric, and how far from its bound at most."""
    known = [row for row in rows if row.verified and not row.unfinished and getattr(row, field) is not None]
    if not known:
        return ""
    best = min(known, key=lambda row: float(getattr(row, field)))
    value, above = getattr(best, field) / 3600, getattr(best, ratio)
    # Of policies that move in the same way, the best one of those that a bound is about answers the question.
    certified = [row for row in known if getattr(row, ratio) is not None]
    text = f"{clean(best.policy, 60)} {what} {number(value)} h"
    if above is not None:
        return f"{text}, {_beyond(above, beyond)}"
    if certified:
        near = min(certified, key=lambda row: float(getattr(row, ratio)))
        return f"{text}; {clean(near.policy, 60)} is {_beyond(getattr(near, ratio), beyond)}"
    return text


def _beyond(ratio: float, beyond: str) -> str:
    """Return how far a ratio to a bound is from 1, in words."""
    above = percent(ratio - 1.0, up=True)
    return "proved optimal" if above == "0 %" else f"at most {above} {beyond}"


def _over(rows: Sequence[SimulationRow]) -> str:
    """Return which policy stays nearest to the bounds over all instances."""
    names = list(dict.fromkeys(row.fingerprint for row in rows))
    for field, ratio, _, beyond in METRICS:
        by_policy: dict[str, list[float]] = {}
        for row in rows:
            if row.verified and getattr(row, ratio) is not None and getattr(row, field) is not None:
                by_policy.setdefault(row.policy, []).append(getattr(row, ratio))
        whole = {policy: max(found) for policy, found in by_policy.items() if len(found) == len(names)}
        if whole:
            best = min(whole, key=lambda policy: whole[policy])
            total = "total time" if field == "ttd_s" else "mean completion time"
            most = percent(whole[best] - 1.0, up=True)
            return f"Over {len(names)} instances, the {total} of {clean(best, 60)} is at most {most} {beyond}."
    return f"Over {len(names)} instances, no policy is bounded on all of them." if answers_of_simulation(rows) else ""
