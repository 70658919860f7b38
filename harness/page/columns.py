"""The columns of every kind of table, declared once for terminal, files and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from schedgap.harness.audit.row import FAILED, REFUTED
from schedgap.harness.compare.summary import GAP_SHIFT, TIME_SHIFT_S
from schedgap.harness.table import Column
from schedgap.harness.text import ABSENT, SIGNS, clean, in_words, number, percent, ratio, seconds
from schedgap.harness.text import numbers as values

if TYPE_CHECKING:
    from schedgap.harness.adversary.row import Worst
    from schedgap.harness.audit.row import Finding
    from schedgap.harness.compare.row import Row
    from schedgap.harness.compare.summary import MethodSummary, SolverSummary
    from schedgap.harness.reproduce.row import ReproducedRow
    from schedgap.harness.simulate.row import SimulationRow

LONGEST = 600
"""Longest text of a cell with sentences."""

Show = Callable[[Any], Any]
_wrong, _failed, _factor = attrgetter("wrong"), attrgetter("failed"), attrgetter("guarantee_factor")


def words(key: str, header: str, explanation: str, text: Show | None = None, **more: Any) -> Column[Any]:
    """Return a column of text, by default of the row's field, sorted by its text; only notes may be long."""
    most = LONGEST if more.get("css") == "note" else 60
    cell = text or (lambda row: clean(getattr(row, key) or ABSENT, most))
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
    """Return a column of numbers, by default of the row's field, sorted by their values.

    `show` formats a value that is there, `text` makes a cell of the whole row instead; `of` finds the value in the row.
    """
    value = of or attrgetter(key)

    def cell(row: Any) -> str:
        found = value(row)
        return ABSENT if found is None else show.format(found) if isinstance(show, str) else show(found)

    return Column(key, header, explanation, text or cell, value, align="right", **({"css": key} | more))


def _verdict(row: Any) -> str:
    return {True: "✓", False: "WRONG", None: ABSENT}[row.verified]


def hours(value_s: float | None) -> str:
    """Return seconds as hours."""
    return number(None if value_s is None else value_s / 3600)


def at_most(value: float) -> str:
    """Return a ratio to a bound, which is an upper estimate."""
    return ratio(value, is_upper=True) if value else ABSENT


# ---------------------------------------------------------------- comparisons


def _problem(row: Row | MethodSummary) -> str:
    name = clean(row.problem, 60)
    return name.partition(".")[2] or name


def _percent(row: Row) -> str:
    return percent(row.gap, up=row.ratio_is_upper is not False)


def _metrics(row: Row) -> str:
    return ", ".join(f"{in_words(name)} {values(value, 4)}" for name, value in row.metrics.items()) or ABSENT


def _guarantee(row: Row) -> str:
    if row.guarantee:
        return clean(row.guarantee, 40)
    return ABSENT if row.guarantee_factor is None else f"≤ {number(row.guarantee_factor)}"


def _certified(row: Row) -> str:
    if row.bound_by != "solver" or row.certified_bound is None:
        return ABSENT
    gap = "" if row.certified_gap is None else f" ({percent(row.certified_gap, up=True)})"
    return number(row.certified_bound) + gap


KINDS = (
    "exact: proves its optimum or reaches a limit; matheuristic: certifies a bound but may leave a gap; relaxation, "
    "bound: only bounds; online: the paper's own algorithm; baseline: what it is compared with; given: from a file."
)
RATIO = "Bound/objective (max) or objective/bound (min). With ≤ it is an upper estimate: the optimum is not proved."
VERIFIED = (
    "✓: every constraint and claim re-checked and the objective recomputed without the solver. "
    "WRONG: something did not hold. –: there was nothing to check."
)
CERTIFIED = "Beside a solver's word: the tightest bound that a certificate proves, and the gap to it."
BY = "certified: a certificate proves the bound (examples/check_certificate.py); solver: it is the solver's word."

COMPARE: tuple[Column[Row], ...] = (
    words("instance", "instance", "The instance, as it can be loaded again.", shared=True),
    words("paper", "paper", "The paper whose view of the instance the method works on.", priority=9, shared=True),
    words("method", "method", "Registered name; “harness list” prints the source of each."),
    words("problem", "problem", "What the objective means.", _problem, priority=1, shared=True),
    words("kind", "kind", KINDS, priority=2),
    words("sense", "sense", "Whether a larger (max) or a smaller (min) objective is better.", priority=7, shared=True),
    numbers("seed", "seed", "Seed of the method's random generator.", "{}", priority=3, shared=True),
    words("limits", "limits", "Which of the sweep's limits the method ran under.", priority=3, shared=True),
    numbers("objective", "objective", "Recomputed from the decision by an independent checker.", number, priority=1),
    numbers("best_bound", "bound", "Tightest certified bound on the problem's optimum here.", number, priority=4),
    numbers("own_bound", "own bound", "Bound that the method itself certified.", number, priority=4),
    numbers("gap", "gap", "|bound − objective| / |bound|.", percent, _percent),
    numbers("ratio", "ratio", RATIO, number, lambda row: ratio(row.ratio, row.ratio_is_upper), priority=2),
    numbers("guarantee", "guarantee", "The paper's worst-case ratio here.", number, _guarantee, _factor, priority=3),
    words("status", "status", "How the run ended: optimal, at a limit, with a gap, skipped, failed.", bad=_failed),
    words("verified", "verified", VERIFIED, _verdict, bad=_wrong),
    numbers("solve_s", "solve", "Time in the solver or the heuristic itself.", seconds),
    numbers("build_s", "build", "Time to build the model.", seconds, priority=5),
    words("bound_from", "bound from", "The method that certified the bound.", priority=6, shared=True),
    words("bound_by", "bound is", BY, priority=5, shared=True),
    numbers("certified_bound", "certified", CERTIFIED, number, _certified, priority=5),
    words("metrics", "properties", "Properties and other numbers of the decision.", _metrics, priority=10),
)


def _bad(line: MethodSummary) -> int:
    return line.failed + line.wrong


def _passed(line: MethodSummary) -> str:
    return f"{line.verified} of {line.results}"


def _trouble(line: MethodSummary) -> str:
    counts = {"WRONG": line.wrong, "failed": line.failed, "skipped": line.skipped}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or ABSENT


def _gap(key: str, header: str, explanation: str) -> Column[MethodSummary]:
    """Return a column of gaps, with ≤ (and rounded up) where one of them is to a bound, not to an optimum."""

    def text(line: MethodSummary) -> str:
        value = getattr(line, key)
        shown = percent(value, up=line.gap_is_upper)
        return f"≤ {shown}" if line.gap_is_upper and value else shown

    return numbers(key, header, explanation, percent, text)


MEAN = "Shifted geometric mean"
PROVED = "To optima that are proved; only a lower bound on the competitive ratio."
INTEGRAL = f"{MEAN} of the primal–dual integral: the gap over the time allowed, shift {TIME_SHIFT_S:g} s."

SUMMARY: tuple[Column[MethodSummary], ...] = (
    words("method", "method", "Registered name."),
    words("problem", "problem", "What the objective means.", _problem),
    words("kind", "kind", "As in the table of results.", priority=5),
    words("limits", "limits", "Which of the sweep's limits.", align="right"),
    numbers("verified", "verified", "Results that passed the checker.", str, _passed, priority=4, css=""),
    numbers("trouble", "trouble", "WRONG, failed or skipped results.", str, _trouble, _bad, bad=_bad, priority=3),
    _gap("median_gap", "median gap", "Of the certified gaps."),
    _gap("mean_gap", "mean gap", f"{MEAN} of the certified gaps, shift {GAP_SHIFT:.0%}."),
    _gap("largest_gap", "largest gap", "Of the certified gaps."),
    numbers("largest_ratio", "largest proved ratio", PROVED, partial(ratio, is_upper=False), priority=2),
    numbers("median_s", "median time", "Of results that did not fail.", seconds, priority=1),
    numbers("mean_s", "mean time", f"{MEAN}, shift {TIME_SHIFT_S:g} s; failures count with the time allowed.", seconds),
)
"""A method over many instances."""

SOLVERS: tuple[Column[SolverSummary], ...] = (
    words("solver", "solver", "What solved the models; some were skipped, as the notes say.", css="method"),
    words("limits", "limits", "Which of the sweep's limits.", align="right"),
    numbers(
        "success",
        "success",
        "Optima that it says it has proved, and problems that it says have no solution.",
        str,
        lambda line: f"{line.success} of {line.results - line.skipped}",
    ),
    numbers("correct", "correct", "Those that hold: re-checked without a solver, and beaten by no decision.", "{}"),
    words(
        "wrong",
        "wrong",
        "Answers that do not hold, whatever was claimed.",
        lambda line: clean("; ".join(line.wrong) or ABSENT, LONGEST),
        bad=_wrong,
        css="note",
    ),
    numbers("failed", "failed", "Ended without an answer, as at a time limit without a solution.", "{}", priority=2),
    numbers("skipped", "skipped", "Not installed, or the model is none for it.", "{}", priority=1),
    numbers("mean_s", "mean time", f"{MEAN}, shift {TIME_SHIFT_S:g} s; failures count with their limit.", seconds),
    numbers("mean_gap", "mean gap", f"{MEAN} of |bound − objective| of its own, shift {GAP_SHIFT:.0%}.", percent),
    numbers("mean_integral_s", "P–D integral", INTEGRAL, seconds, priority=3),
)
"""A solver over the models of a run."""


# ---------------------------------------------------------------- simulations


def _sensitive(key: str, header: str, explanation: str, priority: int) -> Column[SimulationRow]:
    """Return a column of hours that are worth one only where policies give out CPUs and memory."""

    def text(row: SimulationRow) -> str:
        return ABSENT if row.cpu_given is None else hours(getattr(row, key))

    return numbers(key, header, explanation, hours, text, priority=priority)


def _ended(row: SimulationRow) -> str:
    left = sum(row.unfinished.values())
    return f"{left} of {row.jobs} jobs unfinished" if left and row.jobs else clean(row.status, 40)


def _broke(row: SimulationRow) -> bool:
    return not row.ok and bool(row.reason)


def _milliseconds(value_s: float) -> str:
    return number(value_s * 1000, 3)


MOST_BUSY = "The most that any schedule can reach; 100 % where jobs on slow ones could keep all of them busy."
CONFIRMED = "✓: an independent checker confirms every round of the history. WRONG: it does not."
SLOWEST = "mean over the rounds, in devices of the slowest type."

SIMULATE: tuple[Column[SimulationRow], ...] = (
    words("policy", "policy", "Registered name; “harness list policies” prints the source of each.", css="method"),
    words(
        "reference",
        "ref",
        "The policy that ratios refer to.",
        lambda row: clean((row.reference or ABSENT).rpartition(f"{row.policy.partition('.')[0]}.")[2], 60),
        shared=True,
        priority=1,
    ),
    numbers("ttd_s", "TTD (h)", "Total time duration: from the first arrival to the last completion.", hours),
    numbers("ttd_ratio", "× ref", "TTD divided by that of the reference.", "{:.3f}", priority=3),
    numbers("ttd_printed", "paper", "The same ratio as the paper printed it.", "{:g}", priority=5),
    numbers("ttd_bound_ratio", "TTD/bound", "TTD divided by a certified lower bound on the least TTD.", at_most),
    numbers("jct_mean_s", "JCT mean (h)", "Mean time from arrival to completion.", hours),
    numbers("jct_ratio", "JCT × ref", "Mean completion time divided by that of the reference.", "{:.3f}", priority=2),
    numbers("jct_bound_ratio", "JCT/bound", "Mean completion time over a certified lower bound.", at_most, priority=1),
    numbers("jct_median_s", "median", "Median completion time in hours.", hours, priority=8),
    numbers("jct_p99_s", "p99", "99th percentile of the completion times in hours.", hours, priority=6),
    numbers("p99_bound_ratio", "p99/bound", "That divided by a certified lower bound.", at_most, priority=7),
    numbers("jct_min_s", "JCT min", "Shortest completion time in hours.", hours, priority=18),
    numbers("jct_max_s", "JCT max", "Longest completion time in hours.", hours, priority=17),
    _sensitive("jct_short_s", "< 4 h", "Mean completion time of short jobs in hours.", priority=9),
    _sensitive("jct_long_s", "≥ 4 h", "Mean completion time of long jobs in hours.", priority=10),
    _sensitive("jct_short_p99_s", "p99 < 4 h", "99th percentile of short jobs in hours.", priority=19),
    _sensitive("jct_long_p95_s", "p95 ≥ 4 h", "95th percentile of long jobs in hours.", priority=20),
    _sensitive("jct_long_p99_s", "p99 ≥ 4 h", "99th percentile of long jobs in hours.", priority=21),
    numbers("gru", "GRU", "GPU resource utilisation: share of the GPUs' time at work.", percent, priority=7),
    numbers("cru", "CRU", "Cluster resource utilisation: share of the servers' time at work.", percent, priority=11),
    numbers("gru_bound", "GRU ≤", MOST_BUSY, percent, priority=12),
    numbers("cru_bound", "CRU ≤", MOST_BUSY, percent, priority=12),
    numbers("cpu_given", "CPUs", "Share of the CPUs' time in which a job computed with them.", percent, priority=15),
    numbers("cpu_needed", "needed", "The same with the fewest CPUs at which jobs are as fast.", percent, priority=16),
    numbers("lp1_share", "LP1", "Mean progress of rounds over the most that LP1 allows for the picked jobs.", percent),
    numbers("lp1_worst", "worst", "The least of these.", percent, priority=4),
    numbers("estimated_throughput", "estimated", f"What fractional shares promise: {SLOWEST}", number),
    numbers("actual_throughput", "actual", f"What was done: {SLOWEST}", number),
    numbers(
        "straggler_share",
        "stragglers",
        "Part of the workers that ran in gangs over several GPU types.",
        percent,
        lambda row: percent(row.straggler_share) if row.actual_throughput is not None else ABSENT,
    ),
    numbers("utility", "ΣU", "Total utility of the completed jobs.", number, priority=21),
    numbers("decision_mean_s", "decision mean (ms)", "Mean wall-clock time of a decision.", _milliseconds, priority=19),
    numbers("decision_max_s", "max", "Longest time of a decision in milliseconds.", _milliseconds, priority=20),
    numbers("idle_gpus", "idle GPUs", "Mean number free while a job waits.", partial(number, digits=3), priority=12),
    numbers("restarts", "restarts", "Changed allocations that jobs paid for.", "{:,}", priority=14),
    numbers("changing", "changing", "Share of the rounds in which a job moves to other GPUs.", percent, priority=13),
    words("status", "status", "How the simulation ended, and how many jobs were left.", _ended, bad=_broke, priority=2),
    words("verified", "verified", CONFIRMED, _verdict, bad=_wrong, priority=2),
)
"""Columns of a simulation; all but the outer ones are numbers."""


# ---------------------------------------------------------------- audits and searches


SAID = "computed from the counts: confirmed, refuted, only for a narrower scope, not testable"

AUDIT: tuple[Column[Finding], ...] = (
    words("id", "claim", "", css="method"),
    words(
        "status",
        "verdict",
        SAID,
        lambda finding: clean(finding.status, LONGEST),
        bad=lambda finding: finding.status in (FAILED, REFUTED),
        css="wide",
    ),
    numbers(
        "stated.failed",
        "failed",
        "cases in which the claim does not hold, of those tried within the paper's scope",
        str,
        lambda finding: f"{finding.stated.failed} of {finding.stated.tested}" if finding.stated.tested else ABSENT,
    ),
    words(
        "claim",
        "what it says",
        "theorem, equation, figure or section of the paper, and the claim in a sentence",
        lambda finding: clean(f"{finding.claim.location}: {finding.claim.claim}", LONGEST),
        priority=1,
        css="note",
    ),
    words("text", "found", "which cases were tried, and the numbers that count", css="note"),
)


def _found(header: str, show: Show) -> Column[Worst]:
    """Return a column about the worst instance, where one was found."""
    return Column(header, header, "", lambda one: show(one.found) if one.found else ABSENT, align="right")


def _notes(one: Worst) -> str:
    told = {"reaches nothing on another instance": one.nothing, "the guarantee does not hold here": one.exceeded}
    return "; ".join(text for text, so in told.items() if so)


ADVERSARY: tuple[Column[Worst], ...] = (
    words("heuristic", "heuristic", "", css="method"),
    _found("worst ratio", lambda found: f"{found.ratio:.4g}"),
    _found("guarantee there", lambda found: clean(found.guarantee or ABSENT, 40)),
    _found("objective", lambda found: number(found.objective)),
    _found("optimum", lambda found: number(found.optimum)),
    _found("jobs", lambda found: str(found.size)),
    numbers("tried", "tried", "", "{}"),
    numbers("proved", "proved", "", "{}"),
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


ALLOWED = "What a certified bound allows: at least, or at most, with the model that proves it."

REPRODUCE: tuple[Column[ReproducedRow], ...] = (
    words("method", "method", "The method that the number is of; ratios name the other one.", shared=True),
    words("what", "what", "Quantity, ordering or trend, and the points that it is about.", css="wide"),
    words("published", "published", "As the paper prints it.", _printed, css="wide"),
    words("measured", "measured", "Mean over all cases, with its 95 % bootstrap interval.", _measured, css="wide"),
    numbers("cases", "cases", "Number of cases that the mean is over.", "{}", priority=3),
    words("certified", "certified", ALLOWED, css="wide"),
    words("verdict", "verdict", "What follows, computed from the numbers.", bad=attrgetter("trouble"), css="note"),
    words("place", "place", "Where the paper has it.", priority=4, shared=True),
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
"""Columns that are shown of results as they finish, by the record that a journal keeps of them."""
