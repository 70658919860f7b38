"""Report of a comparison: the headline (how far from optimal), tables, published numbers, and notes on failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import quote

import schedgap.instances.views  # noqa: F401 -- registers the papers whose views describe a table
from schedgap.harness.engine.result import grouped
from schedgap.harness.show import measures
from schedgap.harness.show.measures import MEAN
from schedgap.harness.show.page import frame, rigid
from schedgap.harness.show.page.answer import answer, known
from schedgap.harness.show.page.columns import COMPARE as COLUMNS
from schedgap.harness.show.page.columns import SOLVERS, SUMMARY, column
from schedgap.harness.show.page.frame import Group, Page, Section
from schedgap.harness.show.page.statistics import MORE, details, differences, has_more
from schedgap.harness.show.table import USUALLY, Block, Column, Line, Selection, Table, explained, left_out, table
from schedgap.harness.show.text import between, clean, plain, seconds
from schedgap.harness.studies.compare.price import prices
from schedgap.harness.studies.compare.row import TOO_LARGE, Comparison, Row, allowed_s, log_file
from schedgap.harness.studies.compare.summary import CAVEAT, MethodSummary, by_method, by_solver
from schedgap.harness.studies.published import COMPARE
from schedgap.harness.studies.statistics import Statistics, statistics
from schedgap.instances.registry import PAPERS, Problem
from schedgap.instances.text import counted, some


def parts(run: Comparison) -> list[tuple[str, list[Row]]]:
    """Return ``(caption, rows)`` for the table of each paper.

    A paper whose methods were all skipped gets no table if others do; the notes say why.
    """
    groups = grouped(run.rows, "paper")
    with_results = [rows for rows in groups if any(row.status != "skipped" for row in rows)]
    return [(caption(run, rows), rows) for rows in with_results or groups]


def caption(run: Comparison, rows: Sequence[Row]) -> str:
    """Return the caption of a paper's table: the instance, the paper's view of it, and the values all rows share."""
    names = list(dict.fromkeys(row.instance for row in rows))
    shared = [clean(names[0], 80) if len(names) == 1 else f"{len(names)} instances"]
    instance = run.instances.get(rows[0].fingerprint)
    if len(names) == 1 and instance is not None and rows[0].paper in PAPERS:
        paper = PAPERS.get(rows[0].paper)
        try:
            shared.append(clean(paper.describe(paper.view(instance)), 300))
        except Exception as error:  # a view that fails to describe the instance must not lose a finished run
            shared.append(clean(error, 300))
    problems = {(row.problem, row.sense) for row in rows}
    if len(problems) == 1:
        shared.append(f"problem {clean(rows[0].problem, 60)} ({rows[0].sense})")
    bounds = {row.bound_from for row in rows}
    if len(bounds) == 1 and (source := rows[0].bound_from):
        shared.append(f"bound from {clean(source, 60)}")
    return " · ".join(shared)


def notes(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return ``(method, message)`` pairs about violations, failures, skipped methods, and refused certificates."""
    several = len({row.fingerprint for row in rows}) > 1
    messages = []
    for row in rows:
        name = clean(row.method, 60) + (f" on {clean(row.instance, 60)}" if several else "")
        if row.wrong:
            messages += [(name, f"WRONG: {clean(v, 400)}") for v in row.violations or ("its claim does not hold",)]
        elif row.status == "infeasible":
            messages.append((name, f"{row.claim}: {clean(row.problem, 60)} has no solution, by the solver's word"))
        elif row.refuted:
            messages.append((name, f"REFUTED: {clean(row.refuted, 400)}"))
        elif row.failed or row.status == "skipped":
            # A solver that ends with neither an answer nor a limit says so in a word of its own.
            ended = f"{row.solver} ends with {row.termination}" if row.status == "error" and row.termination else ""
            reason = row.reason or ended
            messages.append((name, f"{row.status}: {clean(reason, 400)}" if reason else row.status))
        elif row.reason:
            messages.append((name, clean(row.reason, 400)))
    return frame.together(messages)


TOP = 10
"""Number of rows per paper that a terminal shows by default."""

USUAL = (
    *("method", "instance", "seed", "limits", "gap", "loss", "ratio", "guarantee", "objective", "best_bound"),
    *("status", "solve_s"),
)
"""Columns that a terminal shows by default."""

ON_A_WORD = ("claimed_bound",)
"""Columns that a terminal also shows if a solver claims a better bound than is certified."""


def blocks(run: Comparison, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints: the answer, a table per paper, published numbers, and notes."""
    style = "bold red" if any(row.wrong or row.refuted for row in run.rows) else "bold"
    shown: list[Block] = [Line(line, style) for line in lines(run)]
    tables = parts(run)
    for text, rows in tables:
        if (summed := summary(run, text, rows)) and not (view.everything or view.sort or view.columns):
            ran = [line for line in summed.lines if line.skipped < line.results]
            shown += [*_listed(summed.caption, SUMMARY, ran, view, "mean_gap"), Line(summed.caveats, "dim")]
            found = _statistics(run, rows)
            shown += [*differences(found), *[Line(MORE, "dim")] * has_more(found)]
        else:
            listed = [row for row in rows if view.everything or row.status != "skipped"]
            usual = (*USUAL, *["verified"] * any(row.wrong for row in rows))
            usual += ON_A_WORD if any(row.unproved for row in listed) else ()
            shown += _listed(text, COLUMNS, listed, view, "gap", usual)
        shown += [Line(line, "dim") for line in [_prices(rows)] if line]
        shown += [*([] if view.everything else _skips(rows)), *rigid.tables(run, rows)]
    tabled = {rows[0].paper for _, rows in tables}
    shown += [line for rows in grouped(run.rows, "paper") if rows[0].paper not in tabled for line in _skips(rows)]
    shown += solvers(run)
    finished = [row for row in run.rows if row.status not in WITHOUT or row.wrong]
    messages = notes(run.rows if view.verbose or not finished else finished)
    return [*shown, *frame.published_blocks(run.rows, run.instances, COMPARE, messages)]


def _listed(
    caption: str,
    columns: Sequence[Column[Any]],
    lines: Sequence[Any],
    view: Selection,
    gap: str,
    usual: Sequence[str] = (),
) -> list[Block]:
    """Return a table of `lines` with a heading per problem, and a line that counts the lines left out.

    Unless the user sorts them, lines are picked in this order: WRONG ones, those of the paper's own algorithm, then the
    best of each kind on each problem, by gap.
    """
    ordered = Selection(sort=view.sort or gap).ordered(columns, lines)
    own = [line.method for line in lines if line.kind == "online"][:1]
    seen: Counter[tuple[str, str]] = Counter()
    priority: list[tuple[Any, ...]] = []
    for i, line in enumerate(ordered):
        priority.append((not line.wrong, line.method not in own, seen[line.problem, line.kind], i))
        seen[line.problem, line.kind] += 1
    picked = range(len(lines)) if view.sort else [i for *_, i in sorted(priority)]
    problems = list(dict.fromkeys(line.problem for line in lines))
    first = [ordered[i] for i in sorted(picked[: view.most(TOP)])]
    shown = sorted(first, key=lambda line: problems.index(line.problem))
    content = table(caption, columns, shown, lambda line: line.verified is None, Selection(columns=view.columns), usual)
    ids, heads = [line.problem for line in shown], {}
    for id in dict.fromkeys(ids) if len(problems) > 1 else ():
        paper, _, name = clean(id, 60).partition(".")
        heads[ids.index(id)] = name + (f": {problem.title} ({goal(problem)})" if (problem := known(paper, id)) else "")
    return [replace(content, heads=heads), *left_out(len(lines) - len(shown))]


def _prices(rows: Sequence[Row]) -> str:
    """Return a line with the known prices of what a paper's problems require, or an empty string."""
    by_base: dict[str, list[str]] = {}
    for one in prices(rows):
        base = clean(one.base, 60).removeprefix(f"{clean(rows[0].paper, 40)}.")
        by_base.setdefault(base, []).append(f"{clean(one.requires, 80)} {between(one.at_least, one.at_most)}")
    parts = (f"of the optimum of {base}, {', '.join(found)}" for base, found in by_base.items())
    return f"prices: {'; '.join(parts)}" if by_base else ""


def goal(problem: Problem) -> str:
    """Return ``max`` or ``min``, with the unit if it is one of time, since ``min`` alone would read as minutes."""
    return f"{problem.sense}, in {problem.unit}" if problem.unit in ("s", "h") else problem.sense


WITHOUT = frozenset({"skipped", "infeasible"})
"""Statuses of methods that have no result although nothing failed."""


def _skips(rows: Sequence[Row]) -> list[Block]:
    """Return a line that counts a paper's skipped methods and names its problems without a solution, if any."""
    reasons = [row.reason or "" for row in rows if row.status == "skipped"]
    kinds = Counter(TOO_LARGE if reason.startswith(TOO_LARGE) else "not applicable" for reason in reasons)
    counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    parts = [f"{len(reasons)} skipped: {counts}"] if reasons else []
    without = list(dict.fromkeys(clean(row.problem, 60) for row in rows if row.status == "infeasible"))
    parts += [f"{problem} has no solution, by the solver's word" for problem in without]
    line = f"{clean(rows[0].paper, 40)}: {'; '.join(parts)}; -v lists them"
    return [Line(line, "dim")] if parts else []


def groups(run: Comparison) -> list[Group]:
    """Return a group of tables per paper: a summary by method (if methods ran repeatedly), all results, properties."""
    found, told = [], dict(answers(run))
    columns = [column for column in COLUMNS if column.key != "metrics"]
    for text, rows in parts(run):
        paper = rows[0].paper
        skipped = [row for row in rows if row.status == "skipped"]
        by_gap = sorted(rows, key=lambda row: (row.gap is None, row.gap or 0.0))  # rows without a gap come last
        ran = [row for row in by_gap if row.status != "skipped"] or rows
        results = " · ".join(filter(None, [text, _prices(rows)]))
        tables = [*rigid.tables(run, rows), table(results, columns, ran), *_property_tables(rows)]
        of_skips = [column for column in COLUMNS if column.key in ("instance", "method", "problem", "kind")]
        why = measures.COMPARE["reason"]
        of_skips.append(column(why, lambda row: clean(row.reason or "", 300), css="note"))
        folded = [table(f"{len(skipped)} skipped", of_skips, skipped)] if skipped and ran is not rows else []
        found_here = _statistics(run, rows)
        tables[:0] = [*differences(found_here), *details(found_here)]
        if summed := summary(run, text, rows):
            means = f"gaps are of instances, the mean gap is arithmetic; {MEAN.lower()}s of times count failures"
            tables.insert(0, table(f"{summed.caption}; {means}. {summed.caveats}".strip(), SUMMARY, summed.lines))
        name = f"results-{frame.slug(paper)}", clean(paper, 40), frame.title_of(paper)
        found.append(Group(*name, tables, told.get(paper, ""), folded))
    by_solver = solvers(run)
    return [*found, Group("results-solvers", "solvers", "Solvers", by_solver)] if by_solver else found


def solvers(run: Comparison) -> list[Table]:
    """Return a list with the table that compares solvers; the list is empty if only one solver ran."""
    lines = by_solver(run.rows, allowed_s(run.meta))
    if not lines:
        return []
    models = f"{lines[0].common} models" if lines[0].common != 1 else "the model"
    title = f"Solvers · success: claimed by the solver; correct: re-checked; means over {models} that no solver skipped"
    return [table(title, SOLVERS, lines)]


def _property_tables(rows: Sequence[Row]) -> list[Table]:
    def measured(name: str) -> Column[Row]:
        return column(measures.quantity(name), of=lambda row: plain(row.metrics.get(name)), css="")

    rows = [row for row in rows if row.metrics]
    columns = [column for column in COLUMNS if column.key in ("instance", "seed", "method")]
    columns += map(measured, dict.fromkeys(name for row in rows for name in row.metrics))
    caption = "Properties of the decisions, recomputed by the checker. ✓: holds; ✗: does not hold."
    return [table(caption, columns, rows)] if rows else []


def page(run: Comparison) -> Page:
    """Return the page of a comparison."""
    rows, sentences = run.rows, answers(run)
    papers = {row.problem: row.paper for row in rows}
    problems = filter(None, (known(paper, name) for name, paper in papers.items()))
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "methods": len({row.method for row in rows}),
        "results": len(rows),
        "verified": sum(row.verified is True for row in rows),
        "optimum certified": sum(row.verified is True and row.ratio_is_upper is False for row in rows),
    }
    return Page(
        question="How far from optimal?",
        title=frame.titled(rows),
        headline=headline(run, brief=len(sentences) > 1),  # several answers follow as a list
        groups=groups(run),
        legend=[
            *explained(COLUMNS, [rows for _, rows in parts(run)]),
            *((problem.id, f"{problem.title} ({problem.sense}, in {problem.unit})") for problem in problems),
        ],
        notes=notes(rows),
        counts=frame.summed_up(rows, counts, ("results", "verified", "WRONG")),
        answers=[(clean(paper, 40), text) for paper, text in sentences],
        study=COMPARE,
        last=_logs(run),
    )


def _logs(run: Comparison) -> list[Section]:
    """Return a list with a section of links to HiGHS's logs in the results folder; it is empty if there are none."""
    several = len(run.instances) > 1
    rows = [row for row in [*run.rows, *run.bounds] if row.name in run.logs] if run.folder else []
    named = [(clean(row.method, 120) + (f" on {clean(row.instance, 60)}" if several else ""), row) for row in rows]
    body = frame.macro("links", [(name, quote(log_file(row)), log_file(row)) for name, row in named])
    return [Section("logs", "Solver logs", body)] if rows else []


class Summed(NamedTuple):
    """A table with a line per method: its caption, lines and caveats."""

    caption: str
    lines: list[MethodSummary]
    caveats: str


def _summaries(run: Comparison) -> list[MethodSummary]:
    return by_method(run.rows, allowed_s(run.meta))


def summary(run: Comparison, caption: str, rows: Sequence[Row]) -> Summed | None:
    """Return a line for each method of a paper's rows, and caveats; ``None`` if each method ran only once."""
    methods = {row.method for row in rows}
    if len({(row.method, row.limits) for row in rows}) == len(rows):
        return None
    lines = [line for line in run.once(_summaries) if line.method in methods]
    caveats = [CAVEAT] if any(line.largest_ratio is not None for line in lines) else []
    caveats += ["≤: an upper estimate; not every optimum is certified."] * any(line.gap_is_upper for line in lines)
    return Summed(f"{caption} · {len(rows)} results by method", lines, " ".join(caveats))


def _statistics(run: Comparison, rows: Sequence[Row]) -> Statistics:
    """Return the part of the run's statistics that is about a paper's rows."""
    return run.once(statistics).of({row.method for row in rows})


# ---------------------------------------------------------------- sentences


def answers(run: Comparison, brief: bool = False) -> list[tuple[str, str]]:
    """Return ``(paper, answer)`` for each paper with an answer (:func:`schedgap.harness.show.page.answer.answer`)."""
    texts = {rows[0].paper: rigid.answer(run, rows) or answer(rows, brief) for rows in grouped(run.rows, "paper")}
    return [(paper, text) for paper, text in texts.items() if text]


def lines(run: Comparison) -> list[str]:
    """Return the first lines on a terminal: failures, the answer about each paper, and models run only for bounds."""
    texts = [text for _, text in answers(run)]
    shown = [_sentence(run, texts)] if len(texts) < 2 else [f"{_where(run.rows)}:", *(f"  {text}" for text in texts)]
    before = frame.answered(run, "results"), _exceeded(run.rows)
    return [line for line in (*before, *shown, _unasked(run.bounds), _hurried(run.rows)) if line]


def headline(run: Comparison, brief: bool = False) -> str:
    """Return the content of :func:`lines`, and the number of skipped results, as sentences of one paragraph."""
    skipped = sum(row.status == "skipped" for row in run.rows)
    why = f"{counted(skipped, 'result was', 'results were')} skipped, for reasons given below." * bool(skipped)
    answer = _sentence(run, [text for _, text in answers(run, brief)])
    return frame.answered(run, "results", _exceeded(run.rows), answer, _unasked(run.bounds), _hurried(run.rows), why)


def _sentence(run: Comparison, texts: Sequence[str]) -> str:
    if not run.rows:
        return "No method was run."
    return f"{_where(run.rows)}, {'; '.join(texts) or 'no method has a certified gap'}."


def _unasked(bounds: Sequence[Row]) -> str:
    """Return a sentence on the models that ran only for their bounds: names, time, and those that found no bound."""
    ran = [row for row in bounds if row.status != "skipped"]
    if not ran:
        return ""
    names = list(dict.fromkeys(clean(row.method, 60) for row in ran))
    boundless = list(dict.fromkeys(f"{clean(row.method, 60)} ({row.status})" for row in ran if row.own_bound is None))
    without = f"; {some(boundless)} found none" if boundless else ""
    took = seconds(max((row.build_s or 0.0) + (row.solve_s or 0.0) for row in ran))
    whose = f"its bound, in {took}" if len(ran) == 1 else f"their bounds, in at most {took}"
    *first, last = names
    subject = " and ".join(filter(None, [", ".join(first), last]))
    return f"{subject} also ran, for {whose}{without} (off: --no-bound)."


def _exceeded(rows: Sequence[Row]) -> str:
    """Return a sentence on the guarantees that verified decisions refute, if any."""
    bad = [row for row in rows if row.refuted]
    methods = [f"{clean(some[0].method, 60)} ({clean(some[0].refuted, 100)})" for some in grouped(bad, "method")]
    verb = "is" if len(bad) == 1 else "are"
    return f"{counted(len(bad), 'guarantee')} {verb} REFUTED: {', '.join(methods)}." if bad else ""


QUIET = 0.8
"""Fraction of a core; if searches had less of one on average, the headline says so."""


def _hurried(rows: Iterable[Row]) -> str:
    """Return a sentence on the share of a core that searches with a time limit had, if the share was small."""
    shares = [row.core_share for row in rows if row.core_share is not None]
    if not shares or fmean(shares) >= QUIET:
        return ""
    return f"Searches had {100 * fmean(shares):.0f} % of a core; a quieter machine gives smaller gaps."


def _where(rows: Sequence[Row]) -> str:
    ran = [row for row in rows if row.status != "skipped"] or rows
    return f"{'On' if len({row.instance for row in ran}) == 1 else 'Over'} {frame.titled(ran)}"
