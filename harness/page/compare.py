"""What a comparison tells: how far from optimal, how sure, what went wrong; tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import schedgap.harness.page.rigid  # registers its story
import schedgap.instances.views  # noqa: F401 -- registers the papers whose views describe a table
from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.compare.solvers import by_solver
from schedgap.harness.compare.summary import CAVEAT, allowed_s, by_method
from schedgap.harness.page import frame
from schedgap.harness.page.columns import COMPARE as COLUMNS
from schedgap.harness.page.columns import SOLVERS, SUMMARY
from schedgap.harness.page.frame import NAMED, Group, Page
from schedgap.harness.page.stories import STORIES
from schedgap.harness.published import COMPARE
from schedgap.harness.table import Block, Column, Line, Table, explained, table, visible
from schedgap.harness.text import clean, number, numbers, percent, plain, seconds, some
from schedgap.instances.registry import PAPERS

MAX_ROWS = 60
"""More results of a paper than these are summed up only."""


def parts(run: Comparison) -> list[tuple[str, list[Row]]]:
    """Return the rows that share a table, with its caption: one paper's methods.

    A paper none of whose methods could run has no table beside others; the notes say why.
    """
    groups = frame.grouped(run.rows, "paper")
    told = [rows for rows in groups if any(row.status != "skipped" for row in rows)]
    return [(caption(run, rows), rows) for rows in told or groups]


def caption(run: Comparison, rows: Sequence[Row]) -> str:
    """Return the caption of a paper's table: instance, its view of it, and what all rows share."""
    names = list(dict.fromkeys(row.instance for row in rows))
    shared = [clean(names[0], 80) if len(names) == 1 else f"{len(names)} instances"]
    instance = run.instances.get(rows[0].fingerprint)
    if len(names) == 1 and instance is not None and rows[0].paper in PAPERS:
        paper = PAPERS.get(rows[0].paper)
        try:
            shared.append(clean(paper.describe(paper.view(instance)), 300))
        except Exception as error:  # what a view cannot say of an instance must not end a run that is done
            shared.append(clean(error, 300))
    problems = {(row.problem, row.sense) for row in rows}
    if len(problems) == 1:
        shared.append(f"problem {clean(rows[0].problem, 60)} ({rows[0].sense})")
    bounds = {row.bound_from for row in rows}
    if len(bounds) == 1 and (source := rows[0].bound_from):
        shared.append(f"bound from {clean(source, 60)}")
    return " · ".join(shared)


def notes(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return violations, failures and reasons for skipping in words: (method, what happened)."""
    several = len({row.fingerprint for row in rows}) > 1
    found = []
    for row in rows:
        name = clean(row.method, 60) + (f" on {clean(row.instance, 60)}" if several else "")
        if row.wrong:
            found += [(name, f"WRONG: {clean(v, 400)}") for v in row.violations or ("its claim does not hold",)]
        elif row.status == "infeasible":
            found.append((name, f"infeasible: no decision of {clean(row.problem, 60)} exists here"))
        elif row.failed or row.status == "skipped":
            reason = f": {clean(row.reason, 400)}" if row.reason else ""
            found.append((name, f"{row.status}{reason}"))
    return frame.together(found)


def blocks(run: Comparison) -> list[Block]:
    """Return what a command prints: headline, summary and results of each paper, published numbers, notes."""
    summed = [found for text, rows in parts(run) if (found := summary(text, rows, allowed_s(run.meta)))]
    shown: list[Block] = [Line(headline(run), "bold red" if any(row.wrong for row in run.rows) else "bold")]
    for content, below in summed:
        shown += [Line(""), content, Line(below, "dim")]
    for text, rows in parts(run):
        if summed and len(rows) > MAX_ROWS:
            shown.append(Line(f"{len(rows)} results: in report.html, rows.parquet, or with --format csv", "dim"))
        else:
            shown += [Line(""), table(text, COLUMNS, rows, dim=lambda row: row.status == "skipped")]
        for told in story(run, rows):
            shown += [Line(""), told]
    shown += [block for content in solvers(run) for block in (Line(""), content)]
    return [*shown, *frame.published_blocks(run.rows, run.instances, COMPARE, notes(run.rows))]


def groups(run: Comparison) -> list[Group]:
    """Return the tables of each paper: by method where that sums up, all results, properties."""
    found = []
    columns = [column for column in COLUMNS if column.key != "metrics"]
    for text, rows in parts(run):
        paper = rows[0].paper
        tables = [*story(run, rows), table(text, columns, rows), *_property_tables(rows)]
        if by_method := summary(text, rows, allowed_s(run.meta)):
            content, said = by_method
            means = f"{content.caption}; means are shifted geometric ones, failures counted. {said}".strip()
            tables.insert(0, Table(means, content.columns, content.rows))
        found.append(Group(f"results-{frame.slug(paper)}", clean(paper, 40), frame.title_of(paper), tables))
    if told := solvers(run):
        found.append(Group("results-solvers", "solvers", "Solvers", told))
    return found


def story(run: Comparison, rows: Sequence[Row]) -> list[Table]:
    """Return the tables that a paper has beside its results."""
    paper = rows[0].paper
    return STORIES.get(paper).tables(run, rows) if paper in STORIES else []


def solvers(run: Comparison) -> list[Table]:
    """Return the table that compares solvers, if several have run."""
    lines = by_solver(run.rows, allowed_s(run.meta))
    if not lines:
        return []
    many = f"{lines[0].common} models" if lines[0].common != 1 else "the model"
    return [
        table(f"Solvers · success is claimed, correct re-checked; means over {many} that none skipped", SOLVERS, lines)
    ]


def _property(name: str) -> Column[Row]:
    def value(row: Row) -> Any:
        return row.metrics.get(name)

    header = clean(name, 40).replace("_", " ")
    return Column(name, header, "", lambda row: numbers(value(row)), lambda row: plain(value(row)), align="right")


def _property_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the table of the decisions' properties, if they have some."""
    rows = [row for row in rows if row.metrics]
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    if not names:
        return []
    columns = [column for column in visible(COLUMNS, rows) if column.key in ("instance", "seed", "method")]
    columns += map(_property, names)
    cells = [[column.cell(row) for column in columns] for row in rows]
    return [Table("Properties of the decisions, as the checker found them. ✓: holds; ✗: does not.", columns, cells)]


def page(run: Comparison) -> Page:
    """Return the page of a comparison."""
    rows = run.rows
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "methods": len({row.method for row in rows}),
        "results": len(rows),
        "verified": sum(row.verified is True for row in rows),
        "optimum proved": sum(row.verified is True and row.ratio_is_upper is False for row in rows),
        "WRONG": sum(row.wrong for row in rows),
        "failed": sum(row.failed for row in rows),
        "skipped": sum(row.status == "skipped" for row in rows),
    }
    return Page(
        question="How far from optimal?",
        title=frame.titled(rows),
        headline=lead(run),
        groups=groups(run),
        legend=[*explained(COLUMNS, [rows for _, rows in parts(run)]), *_problems(rows)],
        notes=notes(rows),
        counts=frame.counted(counts, ("results", "verified", "WRONG")),
        answers=[(clean(paper, 40), text) for paper, text in answers(run)],
        study=COMPARE,
        figures={row.paper: frame.title_of(row.paper) for row in rows},
    )


def _problems(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the problems of the rows with title, sense and unit."""
    found = []
    for paper, name in dict.fromkeys((row.paper, row.problem) for row in rows):
        known = {problem.id: problem for problem in PAPERS.get(paper).problems} if paper in PAPERS else {}
        if problem := known.get(name):
            found.append((problem.id, f"{problem.title} ({problem.sense}, in {problem.unit})"))
    return found


def summary(caption: str, rows: Sequence[Row], allowed: float | Mapping[str, float]) -> tuple[Table, str] | None:
    """Return a table with a line per method, and what must be said beside it; ``None`` where each method ran once."""
    if len({(row.method, row.limits) for row in rows}) == len(rows):
        return None
    lines = by_method(rows, allowed)
    said = [CAVEAT] if any(line.largest_ratio is not None for line in lines) else []
    said += ["≤: an upper estimate, not every optimum is proved."] if any(line.gap_is_upper for line in lines) else []
    return table(f"{caption} · {len(rows)} results by method", SUMMARY, lines), " ".join(said)


# ---------------------------------------------------------------- sentences

HEURISTIC_KINDS = ("online", "baseline", "given")


def headline(run: Comparison) -> str:
    """Return what `run` found: trouble first, then the gaps paper by paper, then what was skipped."""
    if not run.rows:
        return "No method was run."
    found = " ".join(text for _, text in answers(run)) or "no method has a certified gap."
    return _answered(run, f"{_where(run.rows)}, {found}")


def lead(run: Comparison) -> str:
    """Return the headline of a page: of several papers one algorithm each, what else there is follows as a list."""
    known = []
    for rows in frame.grouped(run.rows, "paper"):  # the first algorithm of a paper's own that has gaps
        online = [row for row in rows if row.certified and row.kind == "online"]
        mine = [row for row in online if row.method == online[0].method]
        known += [sorted(mine, key=_gap, reverse=True)] if mine else []
    if len(known) < 2:
        return headline(run)
    named = _and([f"{_name(group)} {_amount(group)} {_side(group)}" for group in known])
    took = _bound_time([row for group in known for row in group], [*run.rows, *run.bounds])
    return _answered(run, f"{_where(run.rows)}, how far from the optimum: {named}; {took}.")


def answers(run: Comparison) -> list[tuple[str, str]]:
    """Return the sentence about each paper, with the paper's id."""
    found = []
    for rows in frame.grouped(run.rows, "paper"):
        own = STORIES.get(rows[0].paper).answer(run, rows) if rows[0].paper in STORIES else ""
        found.append((rows[0].paper, own or _answer(rows, [*run.rows, *run.bounds])))
    return [(paper, text) for paper, text in found if text]


def _answered(run: Comparison, answer: str) -> str:
    skipped = sum(row.status == "skipped" for row in run.rows)
    noun = "result was" if skipped == 1 else "results were"
    told = f"{skipped} {noun} skipped, for reasons given below." * bool(skipped)
    return frame.answered(run, "results", answer, _unasked(run.bounds), told)


def _unasked(bounds: Sequence[Row]) -> str:
    """Return which models ran for their bounds though nobody asked for them, and which of them found none."""
    ran = [row for row in bounds if row.status != "skipped"]
    if not ran:
        return ""
    names = list(dict.fromkeys(_name([row]) for row in ran))
    none = list(dict.fromkeys(f"{_name([row])} ({row.status})" for row in ran if row.own_bound is None))
    found = f"; {some(none)} found none" if none else ""
    return f"{_and(names)} ran, too, for {'its bound' if len(names) == 1 else 'their bounds'}{found} (off: --no-bound)."


def _where(rows: Sequence[Row]) -> str:
    return f"{'On' if len({row.instance for row in rows}) == 1 else 'Over'} {frame.titled(rows)}"


def _answer(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Return the sentence about one paper's methods, without its beginning (``On …,``)."""
    known = [row for row in rows if row.certified]
    heuristics = [row for row in known if row.kind in HEURISTIC_KINDS]
    if not heuristics:
        return _models(known) if known else ""
    # Gaps to the optima of different problems do not rank methods: a clause per problem, the paper's own ones first.
    groups = frame.grouped(sorted(heuristics, key=lambda row: row.kind != "online"), "problem")
    clauses = [_clause(group, alone=len(groups) == 1) for group in groups[:NAMED]]
    if rest := groups[NAMED:]:
        largest = max((row for group in rest for row in group), key=_gap)
        more = "1 more problem" if len(rest) == 1 else f"{len(rest)} more problems"
        clauses.append(f"of {more}, the largest gap is {_amount([largest])}")
    return "; ".join([*clauses, _bound_time(heuristics, everything)]) + "."


def _clause(rows: Sequence[Row], alone: bool) -> str:
    """Return what is said about one problem: its online algorithms and the best baseline, or its baselines."""
    online = [row for row in rows if row.kind == "online"]
    clause = _list(_by_method(online or rows), "heuristics")
    baselines = _by_method([row for row in rows if row.kind == "baseline"])
    if online and baselines:
        which = "the baseline" if len(baselines) == 1 else f"the best of {len(baselines)} baselines"
        clause += f"; {which}, {_apposition(baselines[0])}"
    return clause + _of_what(rows, alone)


def _models(rows: Sequence[Row]) -> str:
    """Return the sentence about a paper of which only models ran."""
    if len(rows) == 1 and _optimal(rows):
        return f"{_name(rows)} proves the optimum, {number(rows[0].objective)}, in {seconds(rows[0].solve_s)}."
    time = seconds(max(row.solve_s or 0.0 for row in rows))
    return f"{_list(_by_method(rows), 'models')}{_of_what(rows)}; solving took at most {time}."


def _by_method(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each method, worst first, the method with the smallest worst gap first."""
    ordered = sorted(sorted(rows, key=_gap, reverse=True), key=lambda row: row.method)
    return sorted(frame.grouped(ordered, "method"), key=lambda group: _gap(group[0]))


def _list(groups: Sequence[list[Row]], noun: str) -> str:
    """Return the methods' gaps, one by one or from the best to the worst."""
    if len(groups) > NAMED:
        best, worst = _apposition(groups[0]), _apposition(groups[-1])
        return f"the best of {len(groups)} {noun}, {best}, the worst, {worst}"
    optimal = [group for group in groups if _optimal(group)]
    sentences = []
    if optimal:
        sentences.append(f"{_and(map(_name, optimal))} {'is' if len(optimal) == 1 else 'are'} {_optimal(optimal[0])}")
    for side in ("below", "above"):
        here = [group for group in groups if not _optimal(group) and _side(group) == side]
        if here:
            amounts = [f"{_name(group)}{'' if i else ' is'} {_amount(group)}" for i, group in enumerate(here)]
            sentences.append(f"{_and(amounts)} {side} the optimum")
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


def _and(texts: Iterable[str]) -> str:
    *first, last = texts
    return " and ".join(filter(None, [", ".join(first), last]))


def _name(group: Sequence[Row]) -> str:
    return clean(group[0].method, 60)


def _gap(row: Row) -> float:
    return row.gap or 0.0


def _apposition(group: Sequence[Row]) -> str:
    return f"{_name(group)}, is {_optimal(group) or f'{_amount(group)} {_side(group)} the optimum'}"


def _optimal(group: Sequence[Row]) -> str:
    """Return ``optimal`` where that is proved of all results of a method, else nothing."""
    proved = all(row.ratio_is_upper is False for row in group) and percent(_gap(group[0])) == "0 %"
    return ("optimal every time" if len(group) > 1 else "optimal") if proved else ""


def _side(group: Sequence[Row]) -> str:
    return "below" if group[0].sense == "max" else "above"


def _amount(group: Sequence[Row]) -> str:
    """Return ``12.9 %`` where it is exact, ``at most 12.9 % (median 4.1 %)`` where it is a bound."""
    proved = group[0].ratio_is_upper is False
    at_most = "" if proved and len(group) == 1 else "at most "
    middle = f" (median {percent(median(map(_gap, group)))})" if len(group) > 2 else ""
    return f"{at_most}{percent(_gap(group[0]), up=not proved)}{middle}"


def _bound_time(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Return how long the bounds took that the gaps rest on."""
    wanted = {(row.fingerprint, row.bound_from) for row in rows}
    sources = [row for row in everything if (row.fingerprint, row.method) in wanted]
    times = [(row.build_s or 0.0) + row.solve_s for row in sources if row.solve_s is not None]
    if not times:
        return "the bound's time is not recorded"
    return f"{'the bound took' if len(times) == 1 else 'each bound took at most'} {seconds(max(times))}"
