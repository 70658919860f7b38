"""The columns of every kind of table, declared once for the terminal, files and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from schedgap.harness.show.table import Column
from schedgap.harness.show.text import (
    ABSENT,
    SIGNS,
    between,
    clean,
    estimate,
    in_words,
    limit,
    number,
    percent,
    ratio,
    seconds,
)
from schedgap.harness.show.text import numbers as values
from schedgap.harness.studies.audit.row import FAILED, REFUTED
from schedgap.harness.studies.compare.summary import TIME_SHIFT_S

if TYPE_CHECKING:
    from schedgap.harness.studies.adversary.row import Worst
    from schedgap.harness.studies.audit.row import Finding
    from schedgap.harness.studies.compare.row import Row
    from schedgap.harness.studies.compare.summary import MethodSummary, SolverSummary
    from schedgap.harness.studies.reproduce.row import ReproducedRow
    from schedgap.harness.studies.simulate.row import SimulationRow

LONGEST = 600
"""Maximum number of characters in a cell that holds sentences."""

Show = Callable[[Any], Any]
_wrong, _failed, _factor = attrgetter("wrong"), attrgetter("failed"), attrgetter("guarantee_factor")


def words(key: str, header: str, explanation: str, text: Show | None = None, **more: Any) -> Column[Any]:
    """Return a column of text, by default of the row's field `key`, sorted by text; only notes may be long."""
    limit = LONGEST if more.get("css") == "note" else 60
    cell = text or (lambda row: clean(getattr(row, key) or ABSENT, limit))
    return Column(key, header, explanation, cell, **({"css": key} | more))


def numbers(
    key: str,
    header: str,
    explanation: str,
    show: Show | str,
    text: Show | None = None,
    of: Show | None = None,
    **more: Any,
) -> Column[Any]:
    """Return a column of numbers, sorted by value.

    `of` takes the value from a row; by default it is the field `key`. `show` formats a value that is not ``None``;
    `text`, if given, makes the cell from the whole row instead.
    """
    value_of = of or attrgetter(key)

    def cell(row: Any) -> str:
        value = value_of(row)
        return ABSENT if value is None else show.format(value) if isinstance(show, str) else show(value)

    return Column(key, header, explanation, text or cell, value_of, align="right", **({"css": key} | more))


def _verdict(row: Any) -> str:
    return {True: "✓", False: "WRONG", None: ABSENT}[row.verified]


def hours(value_s: float | None) -> str:
    """Return a number of seconds as text in hours."""
    return number(None if value_s is None else value_s / 3600)


def _without_paper(policy: str, beside: str) -> str:
    """Return a policy's name, without the paper if `beside` is of the same paper; programs have no paper."""
    paper = "" if ":" in beside else beside.partition(".")[0]
    return policy.removeprefix(f"{paper}.") if paper else policy


def at_most(value: float) -> str:
    """Return a ratio to a bound as text, with ≤ because the ratio to the optimum is at most that."""
    return ratio(value, is_upper=True) if value else ABSENT


# ---------------------------------------------------------------- comparisons


def _problem(row: Row | MethodSummary) -> str:
    name = clean(row.problem, 60)
    return name.partition(".")[2] or name


def _percent(row: Row) -> str:
    return percent(row.gap, estimate(row.ratio_is_upper))


def _loss(row: Row) -> str:
    return percent(row.loss, estimate(row.loss_is_upper))


def _price(row: Row) -> str:
    if row.price_at_least is None or row.price_at_most is None:
        return ABSENT
    return between(row.price_at_least, row.price_at_most)


def _metrics(row: Row) -> str:
    return ", ".join(f"{in_words(name)} {values(value, 4)}" for name, value in row.metrics.items()) or ABSENT


def _guarantee(row: Row) -> str:
    if row.guarantee:
        return clean(row.guarantee, 40)
    return ABSENT if row.guarantee_factor is None else limit(row.guarantee_factor, "at most")


def _claimed(row: Row) -> str:
    return number(row.claimed_bound) if row.unproved else ABSENT


def _status(row: Row) -> str:
    if row.claim:
        return f"{row.status}?"
    gives_a_bound = row.status == "optimal" and row.objective is None and row.own_bound is not None
    return "bound" if gives_a_bound else row.status


KINDS = (
    "exact: solves its problem, or stops at a limit; matheuristic: bounds it, but may leave a gap; relaxation, "
    "bound: gives only a bound; online: the paper's own algorithm; baseline: a method that the paper compares with; "
    "given: read from a file."
)
JUDGED_BY = "The problem whose objective the method is judged by."
RATIO = (
    "Bound/objective (max) or objective/bound (min). ≤ marks an upper estimate: no verified decision reaches the bound."
)
LOSS = (
    "Of a method made for a narrower problem: the gap to that problem's certified bound. The rest of its gap is price."
)
PRICE = (
    "Price of what the problem (or the narrower one that the method is made for) requires: how far its optimum is from "
    "the optimum without it. It belongs to the instance; no method can avoid it."
)
VERIFIED = (
    "✓: every constraint and claim was re-checked and the objective recomputed without the solver. "
    "WRONG: a check failed. –: there was nothing to check."
)
CLAIMED = "A bound that the solver claims and no certificate shows; gaps and ratios do not use it."
STATUS = (
    "How the run ended: optimal, at a limit, with a gap, skipped, or failed. A question mark follows what only the "
    "solver says: no certificate shows the optimum, or that there is no solution."
)

COMPARE: tuple[Column[Row], ...] = (
    words("instance", "instance", "Reference that loads the instance again.", shared=True),
    words("paper", "paper", "The paper whose view of the instance the method uses.", priority=9, shared=True),
    words("method", "method", "Registered name; “harness list” prints the source of each."),
    words("problem", "problem", JUDGED_BY, _problem, priority=1, shared=True),
    words("kind", "kind", KINDS, priority=2),
    words("sense", "sense", "Whether a larger (max) or a smaller (min) objective is better.", priority=7, shared=True),
    numbers("seed", "seed", "Seed of the method's random generator.", "{}", priority=3, shared=True),
    words("limits", "limits", "The limits of the sweep that the method ran under.", priority=3, shared=True),
    numbers("objective", "objective", "Recomputed from the decision by an independent checker.", number, priority=1),
    numbers("best_bound", "bound", "Tightest certified bound on the optimum of this instance.", number, priority=4),
    numbers("own_bound", "own bound", "Bound that the certificate of the method itself shows.", number, priority=4),
    numbers("gap", "gap", "|bound − objective| / |bound|.", percent, _percent),
    numbers("loss", "loss", LOSS, percent, _loss, priority=2),
    numbers("price_at_most", "price", PRICE, percent, _price, priority=8),
    numbers("ratio", "ratio", RATIO, number, lambda row: ratio(row.ratio, row.ratio_is_upper), priority=2),
    numbers("guarantee", "guarantee", "The paper's worst-case ratio here.", number, _guarantee, _factor, priority=3),
    words("status", "status", STATUS, _status, bad=_failed),
    words("verified", "verified", VERIFIED, _verdict, bad=_wrong),
    numbers("solve_s", "solve", "Time spent in the solver or in the heuristic itself.", seconds),
    numbers("build_s", "build", "Time to build the model.", seconds, priority=5),
    words("bound_from", "bound from", "The method whose certificate shows the bound.", priority=6, shared=True),
    numbers("claimed_bound", "claimed", CLAIMED, number, _claimed, priority=5),
    words("metrics", "properties", "Properties and further measures of the decision.", _metrics, priority=10),
)


def _bad(line: MethodSummary) -> int:
    return line.failed + line.wrong


def _passed(line: MethodSummary) -> str:
    return f"{line.verified} of {line.results}"


def _trouble(line: MethodSummary) -> str:
    counts = {"WRONG": line.wrong, "failed": line.failed, "skipped": line.skipped}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or ABSENT


def _gap(key: str, header: str, explanation: str, upper: str = "gap_is_upper") -> Column[MethodSummary]:
    """Return a column of gaps; a gap to a bound that is not the certified optimum is an upper estimate, marked ≤."""

    def text(line: MethodSummary) -> str:
        value, is_upper = getattr(line, key), getattr(line, upper)
        shown = percent(value, estimate(is_upper))
        return f"≤ {shown}" if is_upper and value else shown

    return numbers(key, header, explanation, percent, text)


MEAN = "Shifted geometric mean"
SHORT = "shifted geom. mean"
TIMES = f"{MEAN} of the solve times, shift {TIME_SHIFT_S:g} s; a failure counts as its time limit."
LARGEST = "Largest ratio to a certified optimum; it is only a lower bound on the competitive ratio."
INTEGRAL = f"{MEAN} of the primal–dual integral, the gap integrated over the time allowed; shift {TIME_SHIFT_S:g} s."

SUMMARY: tuple[Column[MethodSummary], ...] = (
    words("method", "method", "Registered name."),
    words("problem", "problem", JUDGED_BY, _problem),
    words("kind", "kind", "As in the table of results.", priority=5),
    words("limits", "limits", "The limits of the sweep that the method ran under.", align="right"),
    numbers("verified", "verified", "Results that passed the checker.", str, _passed, priority=4, css=""),
    numbers("trouble", "trouble", "WRONG, failed or skipped results.", str, _trouble, _bad, bad=_bad, priority=3),
    _gap("median_gap", "median gap", "Median of the certified gaps."),
    _gap("mean_gap", "mean gap", "Arithmetic mean of the certified gaps."),
    _gap("largest_gap", "largest gap", "Largest of the certified gaps."),
    _gap("largest_loss", "largest loss", f"Largest loss. {LOSS}", "loss_is_upper"),
    numbers("largest_ratio", "largest ratio", LARGEST, partial(ratio, is_upper=False), priority=2),
    numbers("median_s", "median time", "Median solve time of the results that did not fail.", seconds, priority=1),
    numbers("geometric_s", f"time, {SHORT}", TIMES, seconds, priority=2),
)
"""Summary of one method over many instances."""

SOLVERS: tuple[Column[SolverSummary], ...] = (
    words("solver", "solver", "The solver of the models; the notes name those that it skipped.", css="method"),
    words("limits", "limits", "The limits of the sweep that the solver ran under.", align="right"),
    numbers(
        "success",
        "success",
        "Models for which the solver claims an optimum, or that there is no solution.",
        str,
        lambda line: f"{line.success} of {line.results - line.skipped}",
    ),
    numbers("correct", "correct", "Claims that hold: re-checked without a solver, and no decision beats them.", "{}"),
    words(
        "wrong",
        "wrong",
        "Answers that do not hold, whatever the solver claimed.",
        lambda line: clean("; ".join(line.wrong) or ABSENT, LONGEST),
        bad=_wrong,
        css="note",
    ),
    numbers("failed", "failed", "Runs without an answer, such as a time limit with no solution.", "{}", priority=2),
    numbers("skipped", "skipped", "Not installed, or unable to solve such a model.", "{}", priority=1),
    numbers("geometric_s", f"time, {SHORT}", TIMES, seconds, priority=2),
    numbers("mean_gap", "mean gap", "Arithmetic mean of the gaps that the solver claims.", percent),
    numbers("geometric_integral_s", f"P–D integral, {SHORT}", INTEGRAL, seconds, priority=3),
)
"""Summary of one solver over the models of a run."""


# ---------------------------------------------------------------- simulations


def _sensitive(key: str, header: str, explanation: str, priority: int) -> Column[SimulationRow]:
    """Return a column of hours that is filled only for policies that allocate CPUs and memory."""

    def text(row: SimulationRow) -> str:
        return ABSENT if row.cpu_given is None else hours(getattr(row, key))

    return numbers(key, header, explanation, hours, text, priority=priority)


def _ended(row: SimulationRow) -> str:
    unfinished = sum(row.unfinished.values())
    return f"{unfinished} of {row.jobs} jobs unfinished" if unfinished and row.jobs else clean(row.status, 40)


def _broke(row: SimulationRow) -> bool:
    return not row.ok and bool(row.reason)


def _milliseconds(value_s: float) -> str:
    return number(value_s * 1000, 3)


MOST_BUSY = "Upper bound over all schedules; 100 % where jobs on slow GPUs could keep all of them busy."
CONFIRMED = "✓: an independent checker confirms every round of the history. WRONG: a check failed."
SLOWEST = "mean over the rounds, in devices of the slowest type."

SIMULATE: tuple[Column[SimulationRow], ...] = (
    words("policy", "policy", "Registered name; “harness list policies” prints the source of each.", css="method"),
    words(
        "reference",
        "ref",
        "The policy that the ratios are relative to.",
        lambda row: clean(_without_paper(row.reference or ABSENT, row.policy), 60),
        shared=True,
        priority=1,
    ),
    numbers("ttd_s", "TTD (h)", "Total time duration: from the first arrival to the last completion.", hours),
    numbers("ttd_ratio", "× ref", "TTD divided by that of the reference.", "{:.3f}", priority=3),
    numbers("ttd_printed", "paper", "The same ratio, as printed in the paper.", "{:g}", priority=5),
    numbers("ttd_bound_ratio", "TTD/bound", "TTD divided by a certified lower bound on it.", at_most),
    numbers("jct_mean_s", "JCT mean (h)", "Mean time from arrival to completion.", hours),
    numbers("jct_ratio", "JCT × ref", "Mean completion time divided by that of the reference.", "{:.3f}", priority=2),
    numbers("jct_bound_ratio", "JCT/bound", "Mean JCT divided by a certified lower bound on it.", at_most, priority=1),
    numbers("jct_median_s", "median", "Median completion time in hours.", hours, priority=8),
    numbers("jct_p99_s", "p99", "99th percentile of the completion times in hours.", hours, priority=6),
    numbers("p99_bound_ratio", "p99/bound", "p99 divided by a certified lower bound on it.", at_most, priority=7),
    numbers("jct_min_s", "JCT min", "Shortest completion time in hours.", hours, priority=18),
    numbers("jct_max_s", "JCT max", "Longest completion time in hours.", hours, priority=17),
    _sensitive("jct_short_s", "< 4 h", "Mean completion time of short jobs in hours.", priority=9),
    _sensitive("jct_long_s", "≥ 4 h", "Mean completion time of long jobs in hours.", priority=10),
    _sensitive("jct_short_p99_s", "p99 < 4 h", "99th percentile for short jobs in hours.", priority=19),
    _sensitive("jct_long_p95_s", "p95 ≥ 4 h", "95th percentile for long jobs in hours.", priority=20),
    _sensitive("jct_long_p99_s", "p99 ≥ 4 h", "99th percentile for long jobs in hours.", priority=21),
    numbers("gru", "GRU", "GPU resource utilisation: share of all GPU time spent working.", percent, priority=7),
    numbers("cru", "CRU", "Cluster resource utilisation: share of server time spent working.", percent, priority=11),
    numbers("gru_bound", "GRU ≤", MOST_BUSY, partial(percent, side="at most"), priority=12),
    numbers("cru_bound", "CRU ≤", MOST_BUSY, partial(percent, side="at most"), priority=12),
    numbers("cpu_given", "CPUs", "Share of all CPU time that jobs held while computing.", percent, priority=15),
    numbers("cpu_needed", "needed", "The same with the fewest CPUs at which jobs are as fast.", percent, priority=16),
    numbers("lp1_share", "LP1", "Progress of a round divided by LP1's bound for the jobs picked; mean.", percent),
    numbers("lp1_worst", "worst", "The smallest such ratio of any round.", percent, priority=4),
    numbers("estimated_throughput", "estimated", f"Throughput that the fractional shares promise: {SLOWEST}", number),
    numbers("actual_throughput", "actual", f"Throughput achieved: {SLOWEST}", number),
    numbers(
        "straggler_share",
        "stragglers",
        "Share of the workers that ran in gangs spanning several GPU types.",
        percent,
        lambda row: percent(row.straggler_share) if row.actual_throughput is not None else ABSENT,
    ),
    numbers("utility", "ΣU", "Total utility of the completed jobs.", number, priority=21),
    numbers("decision_mean_s", "decision mean (ms)", "Mean wall-clock time of a decision.", _milliseconds, priority=19),
    numbers("decision_max_s", "max", "Longest time of a decision in milliseconds.", _milliseconds, priority=20),
    numbers("idle_gpus", "idle GPUs", "Mean number free while a job waits.", partial(number, digits=3), priority=12),
    numbers("restarts", "restarts", "Changes of allocation that cost a job its restart time.", "{:,}", priority=14),
    numbers("changing", "changing", "Share of the rounds in which a job moves to other GPUs.", percent, priority=13),
    words("status", "status", "How the simulation ended, and jobs left unfinished.", _ended, bad=_broke, priority=2),
    words("verified", "verified", CONFIRMED, _verdict, bad=_wrong, priority=2),
)
"""Columns of a simulation; all but the first two and the last two are numbers."""


# ---------------------------------------------------------------- audits and searches


AUDIT: tuple[Column[Finding], ...] = (
    words("id", "claim", "", css="method"),
    words(
        "status",
        "verdict",
        "computed from the counts: confirmed, refuted, true only in a narrower scope, or not testable",
        lambda finding: clean(finding.status, LONGEST),
        bad=lambda finding: finding.status in (FAILED, REFUTED),
        css="wide",
    ),
    numbers(
        "stated.failed",
        "failed",
        "cases in which the claim does not hold, out of those tried within the paper's scope",
        str,
        lambda finding: f"{finding.stated.failed} of {finding.stated.tested}" if finding.stated.tested else ABSENT,
    ),
    words(
        "claim",
        "what it says",
        "where the claim stands in the paper (theorem, equation, figure or section), and the claim in a sentence",
        lambda finding: clean(f"{finding.claim.location}: {finding.claim.claim}", LONGEST),
        priority=1,
        css="note",
    ),
    words("text", "found", "the cases tried, and the numbers that decide the verdict", css="note"),
)


def _found(header: str, show: Show) -> Column[Worst]:
    """Return a column about the worst instance that the search found, if any."""
    return Column(header, header, "", lambda worst: show(worst.found) if worst.found else ABSENT, align="right")


def _notes(worst: Worst) -> str:
    facts = {"reaches nothing on another instance": worst.nothing, "the guarantee is REFUTED here": worst.exceeded}
    return "; ".join(text for text, holds in facts.items() if holds)


ADVERSARY: tuple[Column[Worst], ...] = (
    words("heuristic", "heuristic", "", css="method"),
    _found("worst ratio", lambda found: limit(found.ratio, "at least")),
    _found("guarantee there", lambda found: clean(found.guarantee or ABSENT, 40)),
    _found("objective", lambda found: number(found.objective)),
    _found("decision", lambda found: number(found.optimum)),
    _found("jobs", lambda found: str(found.size)),
    numbers("tried", "tried", "", "{}"),
    numbers("proved", "with a ratio", "", "{}"),
    words("note", "note", "", _notes, bad=attrgetter("exceeded"), css=""),
)


# ---------------------------------------------------------------- reproductions


def _printed(row: ReproducedRow) -> str:
    unit = f" {clean(row.unit, 20)}" if row.unit not in ("", "1") else ""
    return f"{SIGNS.get(row.relation, '')}{_text(row.published)}{unit}"


def _text(value: Any) -> str:
    return clean(value, LONGEST) if isinstance(value, str) else values(value)


def _measured(row: ReproducedRow) -> str:
    if row.low is None or row.high is None or row.low == row.high:
        return _text(row.measured)
    return f"{number(row.measured)} [{number(row.low, 3)}, {number(row.high, 3)}]"


ALLOWED = "Limit that a certified bound sets, at least or at most, and the model that it comes from."

REPRODUCE: tuple[Column[ReproducedRow], ...] = (
    words("method", "method", "The method measured; a ratio names the other method under “what”.", shared=True),
    words("what", "what", "Quantity, ordering or trend, and the points that it covers.", css="wide"),
    words("published", "published", "As the paper prints it.", _printed, css="wide"),
    words("measured", "measured", "Mean over all cases, with its 95 % bootstrap interval.", _measured, css="wide"),
    numbers("cases", "cases", "Number of cases in the mean.", "{}", priority=3),
    words("certified", "certified", ALLOWED, css="wide"),
    words("verdict", "verdict", "Verdict computed from the numbers.", bad=attrgetter("trouble"), css="note"),
    words("place", "place", "Where the paper prints it.", priority=4, shared=True),
)


# ---------------------------------------------------------------- while a study runs


def _keyed(columns: Iterable[Column[Any]], *keys: str) -> list[Column[Any]]:
    return [column for column in columns if column.key in keys]


RUNNING: dict[str, Sequence[Column[Any]]] = {
    "row": _keyed(COMPARE, "instance", "method", "seed", "limits", "objective", "status", "verified", "solve_s"),
    "simulation": _keyed(SIMULATE, "policy", "ttd_s", "jct_mean_s", "status", "verified"),
    "bound": [words("model", "bound", "")],
    "finding": _keyed(AUDIT, "id", "status", "stated.failed"),
    "slice": [words("label", "heuristic", "")],
}
"""Columns shown of each result as it finishes, by the type of its record in the journal."""
