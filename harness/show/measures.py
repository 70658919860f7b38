"""The table of measures: the name, unit, sense, format and meaning of everything that a result tells.

Each column of a row is described here once. Rows, CSV, JSON and Parquet files, the terminal, pages, differences of
runs, figures, macros of papers and the documentation read it; the order is that of the columns in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import cleandoc
from typing import Any, Literal, TypeAlias, TypeVar

from schedgap.harness.show.text import (
    ABSENT,
    Side,
    clean,
    estimate,
    limit,
    number,
    numbers,
    percent,
    ratio,
    rounded,
    seconds,
)

Kind = Literal["str", "json", "bool", "int", "float"]
"""Type of a value in files."""

Sense = Literal["max", "min", "same", "sense", "bound", ""]
"""Which of two values is the better one.

The larger, the smaller, or neither (``same``: a change is a loss); as the row's field `sense` says; ``bound``: the
opposite of that, because a bound is better if it is tighter.
"""

Origin = Literal["history", "run", ""]
"""What a column of a simulation follows from: a `history`, or all rows of a `run`; else it is the worker's word."""


@dataclass(frozen=True)
class Format:
    """How values are written.

    Parameters
    ----------
    kind
        Type of the values in files.
    shown, bare
        Functions of a value and its side: the text in tables; and the number alone, in the macros of a paper.
    unit, words
        Unit of the text, if the text has none itself: on axes, and in a sentence.
    """

    kind: Kind
    shown: Callable[[Any, Side], str]
    bare: Callable[[Any, Side], str] = lambda value, side: f"{value:.6g}"
    unit: str = ""
    words: str = ""

    @property
    def numeric(self) -> bool:
        """True if the values are numbers."""
        return self.kind in ("int", "float")


def _plainly(form: str) -> Callable[[Any, Side], str]:
    return lambda value, side: form.format(value)


def _in(unit_s: float, digits: int = 4) -> Callable[[Any, Side], str]:
    return lambda value_s, side: number(value_s / unit_s, digits, side)


TEXT = Format("str", lambda value, side: clean(value))
DATA = Format("json", lambda value, side: numbers(value))
FLAG = Format("bool", lambda value, side: numbers(value))
CHECKED = Format("bool", lambda value, side: "✓" if value else "WRONG")
INTEGER = Format("int", _plainly("{}"))
COUNT = Format("int", _plainly("{:,}"))
NUMBER = Format("float", lambda value, side: number(value, side=side))
ROUGH = Format("float", lambda value, side: number(value, 3, side))
PRINTED = Format("float", _plainly("{:g}"))
FACTOR = Format("float", _plainly("{:.3f}"))
PERCENT = Format("float", percent, percent, "%")
_rounded: Callable[[Any, Side], str] = lambda value, side: f"{rounded(value, 3, side)}"  # noqa: E731
RATIO = Format("float", lambda value, side: ratio(value, side != "exactly"), _rounded, "1 = optimal")
LIMIT = Format("float", limit, _rounded)
SECONDS = Format("float", lambda value, side: seconds(value), _plainly("{:.3g}"))
HOURS = Format("float", _in(3600.0), unit="h", words="hours")
MILLISECONDS = Format("float", _in(0.001, 3), unit="ms", words="milliseconds")


@dataclass(frozen=True)
class Measure:
    """A column of a result.

    Parameters
    ----------
    name, header
        Its name in files and in Python, and its heading in tables.
    meaning
        One sentence.
    format, unit, sense
        How values are written, the unit of a value in files (empty for texts, counts and shares), and which of two
        values is better.
    limit, upper
        What a value says about the true one, and the column that says whether it is an upper estimate, if one does.
    title, words
        What it is called where it stands alone, and on axes and in sentences; by default the header, and the title.
    macro
        Name of its macro for LaTeX, if it has one.
    origin, clock
        What it follows from, and whether a clock of the machine measured it.
    """

    name: str
    header: str
    meaning: str
    format: Format = TEXT
    unit: str = ""
    sense: Sense = ""
    limit: Side = "exactly"
    upper: str = ""
    title: str = ""
    words: str = ""
    macro: str = ""
    origin: Origin = ""
    clock: bool = False

    @property
    def called(self) -> str:
        """Its title, or else its header."""
        return self.title or self.header

    @property
    def label(self) -> str:
        """What it is called, with the unit of its values: ``TTD (s)``."""
        return f"{self.called} ({self.unit})" if self.unit else self.called

    @property
    def data_axis(self) -> str:
        """Title of an axis of its values, with their unit: ``total time [s]``."""
        return f"{self.words or self.called}{f' [{self.unit}]' if self.unit else ''}"

    @property
    def axis(self) -> str:
        """Title of an axis of what tables show, with the unit of that: ``gap to the best certified bound [%]``."""
        return f"{self.words or self.called} [{self.format.unit or self.unit}]"

    @property
    def sentence(self) -> str:
        """Its meaning, with the unit of its values in brackets."""
        return f"{self.meaning} [{self.unit}]" if self.unit else self.meaning

    @property
    def explanation(self) -> str:
        """Its meaning, with the unit of the text in tables, unless the heading or the text has one."""
        if not self.format.words or f"({self.format.unit})" in self.header:
            return self.meaning
        return f"{self.meaning[:-1]} in {self.format.words}."

    def side(self, column: Callable[[str], Any]) -> Side:
        """Return what a value says about the true one; ``column(name)`` is another value of the same row."""
        return estimate(column(self.upper)) if self.upper else self.limit

    def goal(self, row: Mapping[str, Any]) -> str:
        """Return which values of a row are better: larger (``max``), smaller (``min``), or unchanged (``same``)."""
        if self.sense == "sense":
            return str(row["sense"])
        return {"max": "min", "min": "max"}[row["sense"]] if self.sense == "bound" else self.sense

    def text(self, value: Any, side: Side = "exactly") -> str:
        """Return a value as tables show it."""
        return ABSENT if value is None else self.format.shown(value, side)


MeasureTable: TypeAlias = Mapping[str, Measure]
"""Measures of a kind of row by name, in the order of its columns in files."""

R = TypeVar("R", bound=type)


def listed(*measures: Measure) -> MeasureTable:
    """Return measures by name."""
    return {measure.name: measure for measure in measures}


def described(measures: MeasureTable) -> Callable[[R], R]:
    """Add the measures of a row to the docstring of its class."""

    def add(kind: R) -> R:
        lines = [f"{one.name}\n    {one.sentence}" for one in measures.values()]
        kind.__doc__ = "\n".join([cleandoc(kind.__doc__ or ""), "", "Attributes", "----------", *lines])
        return kind

    return add


def kinds(measures: MeasureTable) -> dict[str, str]:
    """Return the type of each column in files."""
    return {one.name: one.format.kind for one in measures.values()}


# ---------------------------------------------------------------- comparisons

KINDS = (
    "exact: solves its problem, or stops at a limit; matheuristic: bounds it, but may leave a gap; relaxation, "
    "bound: gives only a bound; online: the paper's own algorithm; baseline: a method that the paper compares with; "
    "given: read from a file."
)
JUDGED_BY = "The problem whose objective the method is judged by."
RATIO_IS = (
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
STATUS = (
    "How the run ended: optimal, at a limit, with a gap, skipped, or failed. A question mark follows what only the "
    "solver says: no certificate shows the optimum, or that there is no solution."
)
LIMITS = "The limits of the sweep that the method ran under."
PUBLISHED = "Numbers that the paper printed, each with the measured value, and whether they agree."
VIOLATED = "A line for each constraint or claim that does not hold."
WHY = "Why it was skipped, or failed."
KEY = "Digest of all that determines the result."
FINGERPRINT = "Digest of the content of the instance."

COMPARE = listed(
    Measure("instance", "instance", "Reference that loads the instance again."),
    Measure("fingerprint", "fingerprint", FINGERPRINT),
    Measure("paper", "paper", "The paper whose view of the instance the method uses."),
    Measure("method", "method", "Registered name; “harness list” prints the source of each."),
    Measure("problem", "problem", JUDGED_BY),
    Measure("kind", "kind", KINDS),
    Measure("sense", "sense", "Whether a larger (max) or a smaller (min) objective is better."),
    Measure("seed", "seed", "Seed of the method's random generator.", INTEGER),
    Measure("limits", "limits", LIMITS),
    Measure("objective", "objective", "Recomputed from the decision by an independent checker.", NUMBER, sense="sense",
            macro="objective"),
    Measure("claimed_bound", "claimed",
            "A bound that the solver claims and no certificate shows; gaps and ratios do not use it.", NUMBER,
            sense="bound"),
    Measure("own_bound", "own bound", "Bound that the certificate of the method itself shows.", NUMBER, sense="bound",
            title="bound"),
    Measure("best_bound", "bound", "Tightest certified bound on the optimum of this instance.", NUMBER, sense="bound",
            macro="bound"),
    Measure("bound_from", "bound from", "The method whose certificate shows the bound."),
    Measure("best_objective", "best objective", "Best objective of a verified decision of the problem.", NUMBER,
            sense="sense"),
    Measure("gap", "gap", "|bound − objective| / |bound|.", PERCENT, sense="min", upper="ratio_is_upper",
            words="gap to the best certified bound", macro="gap"),
    Measure("ratio", "ratio", RATIO_IS, RATIO, sense="min", upper="ratio_is_upper", words="ratio to the optimum",
            macro="ratio"),
    Measure("ratio_is_upper", "ratio ≤",
            "True if gap and ratio are only upper estimates, because no verified decision reaches the bound.", FLAG),
    Measure("aims", "aims", "A narrower problem that the method is made for."),
    Measure("loss", "loss", LOSS, PERCENT, sense="min", upper="loss_is_upper", macro="loss"),
    Measure("loss_is_upper", "loss ≤", "True if the loss is only an upper estimate.", FLAG),
    Measure("price_of", "price of", "What the problem, or the narrower one, requires beyond its base."),
    Measure("price_at_least", "price ≥", "The least that this price can be.", PERCENT, limit="at least"),
    Measure("price_at_most", "price", PRICE, PERCENT, upper="ratio_is_upper", macro="price"),
    Measure("guarantee", "guarantee", "The paper's worst-case ratio here."),
    Measure("guarantee_factor", "guaranteed", "The paper's worst-case ratio here, if it is a number.", LIMIT),
    Measure("refuted", "refuted", "The verified decision that refutes the guarantee, in words."),
    Measure("published", "published", PUBLISHED, DATA),
    Measure("status", "status", STATUS),
    Measure("termination", "termination", "What the solver says about how it ended."),
    Measure("verified", "verified", VERIFIED, CHECKED),
    Measure("violations", "violations", VIOLATED, DATA),
    Measure("metrics", "properties", "Properties and further measures of the decision.", DATA),
    Measure("solve_s", "solve", "Time spent in the solver or in the heuristic itself.", SECONDS, "s", "min",
            words="solve time", macro="solvetime", clock=True),
    Measure("build_s", "build", "Time to build the model.", SECONDS, "s", "min", clock=True),
    Measure("transfer_s", "transfer", "Time to pass the model to its solver.", SECONDS, "s", "min", clock=True),
    Measure("check_s", "check", "Time to check the decision.", SECONDS, "s", "min", clock=True),
    Measure("certify_s", "certify", "Time to prove the bound and to certify it.", SECONDS, "s", "min", clock=True),
    Measure("compile_s", "compile", "Time to compile inner loops, or to load them.", SECONDS, "s", "min", clock=True),
    Measure("read_s", "read", "Time to read the instance, to import modules, and for the rest.", SECONDS, "s", "min",
            clock=True),
    Measure("total_s", "total", "Time for all of it: the sum of the other times of the row.", SECONDS, "s", "min",
            clock=True),
    Measure("fastest_s", "fastest", "Least total of the runs, if a method runs several times.", SECONDS, "s", "min",
            clock=True),
    Measure("slowest_s", "slowest", "Largest total of the runs, if a method runs several times.", SECONDS, "s", "min",
            clock=True),
    Measure("nodes", "nodes", "Nodes of the search tree.", INTEGER, sense="min"),
    Measure("iterations", "iterations", "Iterations of linear programs, or of column generation.", INTEGER,
            sense="min"),
    Measure("rows", "rows", "Rows of the model.", INTEGER),
    Measure("columns", "columns", "Columns of the model.", INTEGER),
    Measure("nonzeros", "nonzeros", "Nonzeros of the model.", INTEGER),
    Measure("peak_mb", "memory", "Most memory that the solver used.", NUMBER, "MB", "min"),
    Measure("solver", "solver", "Solver of the model."),
    Measure("integral_s", "P–D integral", "Primal–dual integral: the gap, integrated over the time allowed.", SECONDS,
            "s", "min", clock=True),
    Measure("core_share", "core", "Share of a core that a search got, if the clock ended it.", PERCENT, clock=True),
    Measure("cross_check", "cross-check", "Relative difference of the objective that CBC finds.", PERCENT,
            sense="min"),
    Measure("reason", "why", "Why it was skipped, or failed, or why its bound is not certified."),
    Measure("key", "key", KEY),
    Measure("claim", "claim", "What the solver says and no certificate shows, in words."),
)  # fmt: skip
"""Columns of a comparison."""

TRACE = listed(
    *(COMPARE[name] for name in ("instance", "fingerprint", "method", "limits", "seed")),
    Measure("time_s", "time", "Time since the method started.", SECONDS, "s", clock=True),
    Measure("incumbent", "incumbent", "Best objective found until then.", NUMBER, sense="sense"),
    Measure("bound", "bound", "Best bound until then.", NUMBER, sense="bound"),
)
"""Columns of the bound and the incumbent of a method over time."""

MEAN = "Shifted geometric mean"
SHORT = "shifted geom. mean"
TIME_SHIFT_S = 1.0
"""Shift of times in means, because heuristics of milliseconds and models of a minute share one table."""
TIMES = f"{MEAN} of the solve times, shift {TIME_SHIFT_S:g} s; a failure counts as its time limit."

METHOD = Measure("method", "method", "Registered name.")
PROBLEM, LIMIT_SET = Measure("problem", "problem", JUDGED_BY), Measure("limits", "limits", LIMITS)


def _ends(name: str, format: Format, of: str = "its 95 % interval") -> tuple[Measure, Measure]:
    """Return the measures of the two ends of an interval."""
    low = Measure(f"{name}_low", "from", f"Lower end of {of}.", format)
    return low, Measure(f"{name}_high", "to", f"Upper end of {of}.", format)


OF_CASES = "the certified gaps of instances, each the mean over solver seeds"

METHODS = listed(
    METHOD,
    Measure("kind", "kind", "As in the table of results."),
    PROBLEM,
    LIMIT_SET,
    Measure("results", "results", "Number of results.", INTEGER),
    Measure("verified", "verified", "Results that passed the checker.", INTEGER, sense="max"),
    Measure("failed", "failed", "Results that failed.", INTEGER, sense="min"),
    Measure("wrong", "trouble", "WRONG, failed or skipped results.", INTEGER, sense="min"),
    Measure("skipped", "skipped", "Results that were skipped.", INTEGER, sense="min"),
    Measure("median_gap", "median gap", f"Median of {OF_CASES}.", PERCENT, sense="min", upper="gap_is_upper"),
    *_ends("median_gap", PERCENT, "the 95 % interval of the median"),
    Measure("largest_gap", "largest gap", "Largest of the certified gaps.", PERCENT, sense="min",
            upper="gap_is_upper"),
    Measure("mean_gap", "mean gap", f"Arithmetic mean of {OF_CASES}.", PERCENT, sense="min",
            upper="gap_is_upper"),
    *_ends("mean_gap", PERCENT, "the 95 % interval of the mean"),
    Measure("gap_is_upper", "gap ≤", "True if one of the gaps is only an upper estimate.", FLAG),
    Measure("largest_loss", "largest loss", f"Largest loss. {LOSS}", PERCENT, sense="min", upper="loss_is_upper"),
    Measure("loss_is_upper", "loss ≤", "True if one of the losses is only an upper estimate.", FLAG),
    Measure("largest_ratio", "largest ratio",
            "Largest ratio to a certified optimum; it is only a lower bound on the competitive ratio.", RATIO,
            sense="min"),
    Measure("largest_on", "largest on", "The instance with the largest ratio."),
    Measure("median_s", "median time", "Median solve time of the results that did not fail.", SECONDS, "s", "min"),
    Measure("geometric_s", f"time, {SHORT}", TIMES, SECONDS, "s", "min"),
)  # fmt: skip
"""Summary of a method over many instances."""

VARIED = "The parameter of instances that the line is about; empty for all instances."
UNITS = "Independent units: seeds of generated instances, and instances that are not generated."

INTERVALS = listed(
    METHOD,
    PROBLEM,
    LIMIT_SET,
    Measure("factor", "by", VARIED),
    Measure("value", "value", "Value of that parameter."),
    Measure("results", "results", "Number of results: an instance has one for each solver seed.", INTEGER),
    Measure("cases", "instances", "Instances with a certified gap.", INTEGER),
    Measure("units", "units", UNITS, INTEGER),
    Measure("failed", "failed", "Results that failed; they have no gap.", INTEGER, sense="min"),
    Measure("upper", "upper estimates", "Share of the gaps that are only upper estimates.", PERCENT, sense="min"),
    Measure("median", "median gap", f"Median of {OF_CASES}.", PERCENT, sense="min"),
    *_ends("median", PERCENT, "the 95 % interval of the median"),
    Measure("mean", "mean gap", f"Arithmetic mean of {OF_CASES}.", PERCENT, sense="min"),
    *_ends("mean", PERCENT, "the 95 % interval of the mean"),
)  # fmt: skip
"""Gaps of a method with bootstrap intervals, over all results or at a value of a parameter."""

PAIRS = listed(
    METHOD,
    Measure("reference", "against", "The method that it is compared with, on the same cases."),
    PROBLEM,
    LIMIT_SET,
    Measure("cases", "cases", "Instances on which both have a verified, positive objective.", INTEGER),
    Measure("units", "units", UNITS, INTEGER),
    Measure("wins", "wins", "Cases in which the method is better.", INTEGER, sense="max"),
    Measure("ties", "ties", "Cases in which both are equal.", INTEGER),
    Measure("losses", "losses", "Cases in which the method is worse.", INTEGER, sense="min"),
    Measure("ratio", "times better",
            "Mean factor by which the method is better (of logarithms); below 1 it is worse.", FACTOR, sense="max"),
    *_ends("ratio", FACTOR),
    Measure("p", "p", "Wilcoxon signed-rank test of the mean logarithms of units, two-sided.", ROUGH),
    Measure("p_holm", "p (Holm)", "The same, adjusted for the number of methods by Holm's method.", ROUGH),
)  # fmt: skip
"""A method against a reference on the same cases."""

EFFECTS = listed(
    METHOD,
    PROBLEM,
    LIMIT_SET,
    Measure("feature", "feature", "Feature of the instance."),
    Measure("slope", "gap per SD",
            "Change of the gap with one standard deviation of the feature, all others equal (least squares).", PERCENT),
    *_ends("slope", PERCENT),
    Measure("spread", "SD", "Standard deviation of the feature.", ROUGH),
    Measure("units", "units", UNITS, INTEGER),
    Measure("explained", "explained", "Share of the variance of the gap that all features explain.", PERCENT),
)  # fmt: skip
"""How a method's gap depends on features of the instance."""

GROWTH = listed(
    METHOD,
    LIMIT_SET,
    Measure("results", "results", "Number of results.", INTEGER),
    Measure("censored", "at the limit", "Results that the time limit ended; they count as at least as long.", INTEGER),
    Measure("smallest", "from size", "Smallest number of jobs or tenants.", INTEGER),
    Measure("largest", "to size", "Largest number of jobs or tenants.", INTEGER),
    Measure("exponent", "exponent", "Solve time grows as the size to the power of this.", ROUGH, sense="min"),
    *_ends("exponent", ROUGH),
)  # fmt: skip
"""How a method's solve time grows with the size of instances."""

SOLVERS = listed(
    Measure("solver", "solver", "The solver of the models; the notes name those that it skipped."),
    Measure("limits", "limits", "The limits of the sweep that the solver ran under."),
    Measure("results", "results", "Number of models that it was given.", INTEGER),
    Measure("success", "success", "Models for which the solver claims an optimum, or that there is no solution.",
            INTEGER, sense="max"),
    Measure("correct", "correct", "Claims that hold: re-checked without a solver, and no decision beats them.",
            INTEGER, sense="max"),
    Measure("wrong", "wrong", "Answers that do not hold, whatever the solver claimed.", DATA),
    Measure("failed", "failed", "Runs without an answer, such as a time limit with no solution.", INTEGER,
            sense="min"),
    Measure("skipped", "skipped", "Not installed, or unable to solve such a model.", INTEGER, sense="min"),
    Measure("common", "common", "Models that no solver skipped, over which means are taken.", INTEGER),
    Measure("geometric_s", f"time, {SHORT}", TIMES, SECONDS, "s", "min"),
    Measure("mean_gap", "mean gap", "Arithmetic mean of the gaps that the solver claims.", PERCENT, sense="min"),
    Measure("geometric_integral_s", f"P–D integral, {SHORT}",
            f"{MEAN} of the primal–dual integral, the gap integrated over the time allowed; shift {TIME_SHIFT_S:g} s.",
            SECONDS, "s", "min"),
)  # fmt: skip
"""Summary of a solver over the models of a run."""


# ---------------------------------------------------------------- simulations

MOST_BUSY = "Upper bound over all schedules; 100 % where jobs on slow GPUs could keep all of them busy."
SLOWEST = "mean over the rounds, in devices of the slowest type."
MODEL = "The model that gives this bound."


_history, _run = partial(Measure, origin="history"), partial(Measure, origin="run")


def _bounded(prefix: str, name: str, header: str, meaning: str, **more: Any) -> tuple[Measure, Measure, Measure]:
    """Return the certified lower bound on a time, the model that gives it, and the ratio of the time to the bound."""
    title = f"bound on {name}"
    least = f"Certified lower bound on the {name} of any schedule of the kind."
    return (
        _run(f"{prefix}_bound_s", title, least, HOURS, "s", "max", limit="at least", title=title),
        _run(f"{prefix}_bound_from", f"{title} from", MODEL),
        _run(f"{prefix}_bound_ratio", header, meaning, RATIO, sense="min", limit="at most", **more),
    )


BEHIND = "Longest time for which a tenant's service so far is below the worth of its splits so far."
RHO = "its completion times divided by a bound on those with an equal split for itself."

SIMULATE = listed(
    Measure("instance", "instance", "Reference that loads the instance again."),
    Measure("fingerprint", "fingerprint", FINGERPRINT),
    Measure("policy", "policy", "Registered name; “harness list policies” prints the source of each."),
    Measure("seed", "seed", "Seed of the solver, for policies that solve models.", INTEGER),
    Measure("options", "options", "The options of a sweep that it ran under, if the sweep varies any."),
    Measure("round_s", "round", "Length of a round.", SECONDS, "s"),
    Measure("restart_s", "restart", "Time that a job loses when its allocation changes.", SECONDS, "s"),
    Measure("spread_factor", "spread", "Factor on the rate of gangs that span servers.", PRINTED),
    Measure("network", "network", "Whether gangs that span servers exchange gradients over the network.", FLAG),
    Measure("until_s", "until", "Time at which the simulation stops; absent if it runs to the end.", HOURS, "s"),
    Measure("profiling_s", "profiling", "Time for which a job is profiled before it may run.", SECONDS, "s"),
    Measure("window", "window", "The jobs whose completion times count, as FIRST:COUNT; absent for all."),
    _history("arrivals_per_h", "arrivals", "Mean number of arrivals per hour.", NUMBER, "jobs per hour"),
    Measure("status", "status", "How the simulation ended, and jobs left unfinished."),
    _history("ttd_s", "TTD (h)", "Total time duration: from the first arrival to the last completion.", HOURS, "s",
             "min", title="TTD", words="total time", macro="ttd"),
    _run("reference", "ref", "The policy that the ratios are relative to."),
    _run("ttd_ratio", "× ref", "TTD divided by that of the reference.", FACTOR, sense="min"),
    _run("ttd_printed", "paper", "The same ratio, as printed in the paper.", PRINTED),
    *_bounded("ttd", "TTD", "TTD/bound", "TTD divided by a certified lower bound on it.", macro="ttdratio"),
    _history("jct_mean_s", "JCT mean (h)", "Mean time from arrival to completion.", HOURS, "s", "min",
             title="mean JCT", words="mean completion time", macro="jct"),
    _run("jct_ratio", "JCT × ref", "Mean completion time divided by that of the reference.", FACTOR, sense="min"),
    *_bounded("jct", "mean JCT", "JCT/bound", "Mean JCT divided by a certified lower bound on it.", macro="jctratio"),
    _history("jct_median_s", "median", "Median completion time.", HOURS, "s", "min"),
    _history("jct_p99_s", "p99", "99th percentile of the completion times.", HOURS, "s", "min", title="p99 of JCT"),
    *_bounded("p99", "p99 of JCT", "p99/bound", "p99 divided by a certified lower bound on it."),
    _history("jct_min_s", "JCT min", "Shortest completion time.", HOURS, "s", "min"),
    _history("jct_max_s", "JCT max", "Longest completion time.", HOURS, "s", "min"),
    _history("jct_short_s", "< 4 h", "Mean completion time of short jobs.", HOURS, "s", "min"),
    _history("jct_long_s", "≥ 4 h", "Mean completion time of long jobs.", HOURS, "s", "min"),
    _history("jct_short_p99_s", "p99 < 4 h", "99th percentile for short jobs.", HOURS, "s", "min"),
    _history("jct_long_p95_s", "p95 ≥ 4 h", "95th percentile for long jobs.", HOURS, "s", "min"),
    _history("jct_long_p99_s", "p99 ≥ 4 h", "99th percentile for long jobs.", HOURS, "s", "min"),
    _history("window_jobs", "counted", "Jobs of the window that completed.", INTEGER, sense="max"),
    _history("gru", "GRU", "GPU resource utilisation: share of all GPU time spent working.", PERCENT, sense="max"),
    _history("cru", "CRU", "Cluster resource utilisation: share of server time spent working.", PERCENT, sense="max"),
    _run("gru_bound", "GRU ≤", MOST_BUSY, PERCENT, limit="at most"),
    _run("cru_bound", "CRU ≤", MOST_BUSY, PERCENT, limit="at most"),
    _history("cpu_given", "CPUs", "Share of all CPU time that jobs held while computing.", PERCENT),
    _history("cpu_needed", "needed", "The same with the fewest CPUs at which jobs are as fast.", PERCENT),
    _history("lp1_share", "LP1", "Progress of a round divided by LP1's bound for the jobs picked; mean.", PERCENT,
             sense="max"),
    _history("lp1_worst", "worst", "The smallest such ratio of any round.", PERCENT, sense="max"),
    _history("utility", "ΣU", "Total utility of the completed jobs.", NUMBER, sense="max"),
    Measure("estimated_throughput", "estimated", f"Throughput that the fractional shares promise: {SLOWEST}", NUMBER,
            sense="max"),
    Measure("actual_throughput", "actual", f"Throughput achieved: {SLOWEST}", NUMBER, sense="max"),
    Measure("throughput_deviation", "deviation", "Gap between the two, relative to the promised one.", PERCENT,
            sense="min"),
    Measure("profile_deviation", "by profiles",
            "Gap between what shares promise at profiled and give at true speedups, relative to the promise.", PERCENT,
            sense="min"),
    Measure("first_throughput", "first", f"Throughput of the first tenant: {SLOWEST}", NUMBER, sense="max"),
    Measure("other_throughput", "others", f"Throughput of all tenants but the first: {SLOWEST}", NUMBER, sense="max"),
    Measure("tenants_apart", "apart",
            "Largest minus smallest throughput of tenants per weight, relative to their mean, in the last rounds.",
            PERCENT, sense="min"),
    _history("served_short", "short", "Largest share that a tenant lacks of an equal split, in service really got.",
             PERCENT, sense="min"),
    _history("served_harmed", "harmed", "Number of tenants that got less than an equal split is worth.", INTEGER,
             sense="min"),
    _history("served_behind_s", "behind (h)", BEHIND, HOURS, "s", "min"),
    _history("served_envy", "envy", "Largest share that a tenant lacks of what the GPUs of another are worth to it.",
             PERCENT, sense="min"),
    Measure("served_finish", "ρ", f"Finish-time fairness of the worst tenant: {RHO}", RATIO, sense="min",
            limit="at most", origin="history"),
    _history("stragglers", "straggling", "Workers of gangs that span several GPU types, over all rounds.", INTEGER,
             sense="min"),
    _history("straggler_share", "stragglers", "Share of the workers that ran in gangs spanning several GPU types.",
             PERCENT, sense="min"),
    _history("straggler_events", "cross-type", "Number of placements of a gang on several GPU types, over all rounds.",
             INTEGER, sense="min"),
    _history("decision_mean_s", "decision mean (ms)", "Mean wall-clock time of a decision.", MILLISECONDS, "s", "min",
             clock=True),
    _history("decision_max_s", "max", "Longest time of a decision.", MILLISECONDS, "s", "min", clock=True),
    _history("idle_gpus", "idle GPUs", "Mean number free while a job waits.", ROUGH, "GPUs", "min"),
    _history("restarts", "restarts", "Changes of allocation that cost a job its restart time.", COUNT, sense="min"),
    _history("rounds", "rounds", "Number of rounds with a job.", INTEGER),
    _history("changing", "changing", "Share of the rounds in which a job moves to other GPUs.", PERCENT, sense="min"),
    _history("jobs", "jobs", "Number of jobs.", INTEGER),
    _history("finished", "finished", "Number of jobs that completed.", INTEGER, sense="max"),
    Measure("unfinished", "unfinished", "Number of unfinished jobs by reason.", DATA),
    Measure("lacking", "lacking", "The five tenants that lack most of an equal split, in service really got.", DATA),
    _run("published", "published", PUBLISHED, DATA),
    Measure("verified", "verified",
            "✓: an independent checker confirms every round of the history. WRONG: a check failed.", CHECKED),
    Measure("violations", "violations", VIOLATED, DATA),
    Measure("simulate_s", "simulate", "Time to simulate the policy.", SECONDS, "s", "min", clock=True),
    Measure("check_s", "check", "Time to check the history.", SECONDS, "s", "min", clock=True),
    Measure("reason", "why", WHY),
    Measure("key", "key", KEY),
)  # fmt: skip
"""Columns of a simulation. Jobs are long from a completion time of four hours on, as in Synergy, section 5.3."""

SERVED = listed(
    Measure("policy", "policy", "Registered name of the policy."),
    Measure("tenant", "tenant", "Name of the tenant."),
    Measure("service_s", "served (h)", "Time of one GPU of the fastest type that its jobs' progress takes.", HOURS, "s",
            "max"),
    Measure("split_s", "equal split (h)", "The same for the equal splits of all rounds.", HOURS, "s"),
    Measure("short", "short", "Share that it lacks of an equal split.", PERCENT, sense="min"),
    Measure("behind_s", "behind (h)", BEHIND, HOURS, "s", "min"),
    Measure("envies", "envies", "Whose GPUs would have been worth most more, and the share that it lacks of that."),
    Measure("finish", "ρ", f"Finish-time fairness: {RHO}", RATIO, sense="min", limit="at most"),
)  # fmt: skip
"""What tenants really got in a simulation."""

BOUNDS = listed(
    Measure("instance", "instance", "The instance whose schedules are bounded."),
    Measure("metric", "of", "The time that is bounded."),
    Measure("model", "model", MODEL),
    Measure("seconds", "at least", "The bound.", Format("float", lambda s, side: f"{number(s / 3600, side=side)} h"),
            "s", "max", limit="at least"),
    Measure("took_s", "took", "Time to compute the bound.", SECONDS, "s", "min", clock=True),
    Measure("reason", "why none", "Why there is no bound."),
)  # fmt: skip
"""Certified lower bounds on the times of simulations."""


# ---------------------------------------------------------------- audits, searches and reproductions

AUDIT = listed(
    Measure("id", "claim", "Id of the claim."),
    Measure("paper", "paper", "Id of the paper."),
    Measure("location", "place", "Where the claim stands in the paper."),
    Measure("claim", "what it says",
            "Where the claim stands in the paper (theorem, equation, figure or section), and the claim in a sentence."),
    Measure("scope", "scope", "The cases for which the paper states it."),
    Measure("how", "test", "How it is tested."),
    Measure("status", "verdict",
            "Computed from the counts: confirmed, refuted, true only in a narrower scope, or not testable."),
    Measure("verdict", "verdict", "The verdict that follows from the counts; absent if the check failed.",
            sense="same"),
    Measure("tested", "tried", "Number of cases tried within the paper's scope.", INTEGER),
    Measure("failed", "failed", "Cases in which the claim does not hold, out of those tried within the paper's scope.",
            INTEGER, sense="min"),
    Measure("narrower", "narrower", "The same numbers within narrower scopes.", DATA),
    Measure("found", "found", "The cases tried, and the numbers that decide the verdict."),
    Measure("numbers", "numbers", "Key figures by name.", DATA),
    Measure("witnesses", "witnesses", "Smallest instances that show the effect, with the command for each.", DATA),
    Measure("refuted", "refuted", "A guarantee that a row of the check states and a verified decision exceeds."),
    Measure("reason", "why", "Why the check failed."),
    Measure("seconds", "time", "Time for the check.", SECONDS, "s", "min", clock=True),
)  # fmt: skip
"""Columns of an audit."""

ADVERSARY = listed(
    Measure("heuristic", "heuristic", "Registered name of the heuristic."),
    Measure("problem", "problem", JUDGED_BY),
    Measure("ratio", "worst ratio", "Largest finite ratio of a verified decision to the heuristic's.", LIMIT,
            sense="max", limit="at least", title="ratio", macro="ratio"),
    Measure("objective", "objective", "Objective of the heuristic there.", NUMBER, sense="sense", macro="objective"),
    Measure("optimum", "decision", "Value of a verified decision there.", NUMBER, sense="sense"),
    Measure("model", "method", "The method that made the decision."),
    Measure("guarantee", "guarantee there", "The paper's worst-case ratio there."),
    Measure("guarantee_factor", "guaranteed", "The same, if it is a number.", LIMIT),
    Measure("size", "jobs", "Number of jobs and tenants of that instance.", INTEGER),
    Measure("also", "also bad", "Ratios of other heuristics that lose at least half as much there.", DATA),
    Measure("fingerprint", "fingerprint", FINGERPRINT),
    Measure("exceeded", "note", "True if the guarantee is refuted there.", FLAG, sense="same",
            title="guarantee exceeded"),
    Measure("nothing", "nothing", "True if the heuristic reaches 0 on an instance where the optimum is not 0.", FLAG),
    Measure("tried", "tried", "Number of instances tried.", INTEGER),
    Measure("proved", "with a ratio", "Number of instances with a verified decision to compare with.", INTEGER),
)  # fmt: skip
"""Columns of a search for worst cases."""

REPRODUCE = listed(
    Measure("figure", "figure", "Id of the figure or table."),
    Measure("place", "place", "Where the paper prints it."),
    Measure("what", "what", "Quantity, ordering or trend, and the points that it covers."),
    Measure("method", "method", "The method measured; a ratio names the other method under “what”."),
    Measure("published", "published", "As the paper prints it.", DATA),
    Measure("relation", "relation", "Whether the printed number is a limit: equal, at least or at most."),
    Measure("tolerance", "tolerance", "Difference up to which values agree.", NUMBER),
    Measure("unit", "unit", "Unit of the printed number."),
    Measure("measured", "measured", "Mean over all cases, with its 95 % bootstrap interval.", DATA),
    Measure("low", "from", "Lower end of the interval.", ROUGH),
    Measure("high", "to", "Upper end of the interval.", ROUGH),
    Measure("cases", "cases", "Number of cases in the mean.", INTEGER),
    Measure("certified", "certified",
            "Limit that a certified bound sets, at least or at most, and the model that it comes from."),
    Measure("verdict", "verdict", "Verdict computed from the numbers.", sense="same"),
    Measure("elsewhere", "elsewhere", "Values measured under other choices for what the paper leaves open.", DATA),
    Measure("flips", "flips", "Other choices under which the verdict is another, with that verdict.", DATA),
    Measure("note", "note", "A remark."),
    Measure("trouble", "trouble", "Runs that failed or are WRONG."),
)  # fmt: skip
"""Columns of a reproduction."""


# ---------------------------------------------------------------- logs of clusters

LOG = listed(
    Measure("objective", "objective", "The objective and its unit."),
    Measure("executed", "executed", "Value of the executed schedule.", NUMBER, sense="min"),
    Measure("best", "best found", "Value of the best schedule found; it interrupts jobs only if the executed one does.",
            NUMBER, sense="min"),
    Measure("bound", "bound ≥", "Lower bound; it allows interruptions only if the executed schedule has some.", NUMBER,
            sense="max", limit="at least"),
    Measure("at_most", "executed / optimum", "Upper estimate of the ratio to the optimum.", RATIO, sense="min",
            limit="at most"),
    Measure("open", "found / bound", "Ratio of the best schedule found to the bound: what is open.", RATIO, sense="min",
            limit="at most"),
    Measure("best_by", "found by", "The method that found the best schedule."),
    Measure("bound_by", "bound from", "The model whose certificate shows the bound."),
)  # fmt: skip
"""A schedule that a cluster executed, by objective."""

LADDER = listed(
    Measure("rung", "rung", "The rung: a bound, the best of a set of schedules, or the executed one."),
    Measure("value", "value", "Value of the objective.", NUMBER, sense="min"),
    Measure("waiting_h", "waiting [h]", "Mean waiting: time from submission to end, less the run time.", NUMBER, "h",
            "min"),
    Measure("above", "step", "Difference of the value to the rung before; negative where the executed schedule is "
            "better than all online rules.", NUMBER, sense="min"),
    Measure("step", "what it is", "What the rung has above the one before."),
    Measure("by", "by", "The method that reaches the rung."),
)  # fmt: skip
"""The ladder of a log, from what nobody can beat to what was executed."""

WAITING = listed(
    Measure("by", "by", "The property by which jobs are grouped."),
    Measure("name", "group", "The groups of which the best schedule saves the most waiting."),
    Measure("jobs", "jobs", "Number of jobs in the group.", NUMBER),
    Measure("waited_h", "waited [h]", "Total hours of waiting.", NUMBER, "h", "min"),
    Measure("saved_h", "saved [h]", "Hours that the best schedule found saves; another one as good may save others.",
            NUMBER, "h", "min"),
    Measure("share", "of all", "Share of all that it saves.", PERCENT),
    Measure("indicated_h", "bound [h]", "Hours beyond those in the completion times of rigid.bound: an indication, "
            "since a bound holds for all jobs together only.", NUMBER, "h", "min"),
)  # fmt: skip
"""Waiting in that schedule, by group of jobs."""

STARTS = listed(
    Measure("job", "job", "The job that was started."),
    Measure("start", "started", "Start time by the log's clock."),
    Measure("gpus", "GPUs", "Number of GPUs that it holds.", NUMBER),
    Measure("lasted", "ran [h]", "Duration of the job.", NUMBER, "h"),
    Measure("others", "passed over", "Shorter jobs with no more GPUs that were waiting.", NUMBER),
    Measure("cost_h", "their wait [h]", "Total time that these jobs waited meanwhile.", NUMBER, "h"),
)  # fmt: skip
"""Its most expensive decisions."""

WHATIF = listed(
    Measure("instance", "instance", "Name of the log, or of what it is after the change."),
    Measure("fingerprint", "fingerprint", FINGERPRINT),
    Measure("change", "change", "What is different; all else, and the jobs and their arrivals, stay."),
    Measure("kind", "kind", "The executed schedule, the base that stands for it, or what is changed of the base: "
            "policy, limits or cluster."),
    Measure("method", "method", "The online policy that runs after the change."),
    Measure("wait_h", "wait [h]", "Mean wait of a job, from its submission to its end, less its duration.", NUMBER, "h",
            "min", title="mean wait"),
    Measure("saved_h", "saved [h]", "Hours of waiting that all jobs together save against the base, with the 95 % "
            "bootstrap interval over weeks or days.", NUMBER, "h", "max", title="hours saved"),
    Measure("saved_low_h", "from", "Lower end of the interval.", ROUGH, "h"),
    Measure("saved_high_h", "to", "Upper end of the interval.", ROUGH, "h"),
    Measure("unit", "unit", "What is resampled: weeks, or days if there are too few weeks."),
    Measure("units", "units", "Number of these.", INTEGER),
    Measure("least_wait_h", "least wait [h]", "Certified: no schedule on that cluster that interrupts no job has a "
            "smaller mean wait.", NUMBER, "h", "min", limit="at least"),
    Measure("most_saved_h", "at most [h]", "Certified: no schedule on that cluster that interrupts no job saves more "
            "hours against the base, with whatever policy or knowledge.", NUMBER, "h", "max", limit="at most"),
    Measure("bound_from", "bound from", "The model whose certificate shows the bound."),
    Measure("best_wait_h", "with hindsight [h]", "Least mean wait of the schedules found on that cluster, those that "
            "know all run times among them.", NUMBER, "h", "min"),
    Measure("best_by", "found by", "The method that found it."),
    Measure("status", "status", STATUS),
    Measure("verified", "verified", VERIFIED, CHECKED),
    Measure("violations", "violations", VIOLATED, DATA),
    Measure("published", "published", PUBLISHED, DATA),
    Measure("reason", "why", WHY),
    Measure("key", "key", KEY),
)  # fmt: skip
"""What changes of a cluster save."""


# ---------------------------------------------------------------- frontiers

PRICE_LEAST = "Certified: the part of the largest total efficiency that is lost is at least this."
PRICE_MOST = "Certified: it is at most this."

FRONTIER = listed(
    Measure("instance", "instance", "Name of the instance."),
    Measure("fingerprint", "fingerprint", FINGERPRINT),
    Measure("kind", "kind", "A curve: against envy, against the share of the sharing incentive, or against envy with "
            "all of the sharing incentive (both); own: the program at a mechanism's own degree of fairness; or a "
            "mechanism."),
    Measure("method", "method", "The mechanism, or the program of a curve."),
    Measure("epsilon", "ε", "Part of what another's devices are worth to a tenant that it may lack; of a mechanism, "
            "the largest part that one lacks.", FACTOR, sense="min", title="envy"),
    Measure("sigma", "σ", "Share of its equal split that every tenant has at least; of a mechanism, the least share "
            "that one has.", FACTOR, sense="max", title="share of the equal split"),
    Measure("total", "total", "Verified total efficiency.", NUMBER, "slowest-GPU equivalents", "max",
            title="total efficiency"),
    Measure("bound", "bound", "Certified: nothing as fair has a larger total.", NUMBER, "slowest-GPU equivalents",
            "min", limit="at most"),
    Measure("price_at_least", "price ≥", PRICE_LEAST, PERCENT, sense="min", limit="at least"),
    Measure("price_at_most", "price ≤", PRICE_MOST, PERCENT, sense="min", limit="at most", title="price of fairness"),
    Measure("beyond_at_most", "beyond ≤", "Certified: an allocation that is as fair as the mechanism's is better by at "
            "most this part of it; 0 is on the frontier.", PERCENT, sense="min", limit="at most",
            title="loss beyond fairness"),
    Measure("status", "status", STATUS),
    Measure("verified", "verified", VERIFIED, CHECKED),
    Measure("violations", "violations", VIOLATED, DATA),
    Measure("published", "published", PUBLISHED, DATA),
    Measure("reason", "why", WHY),
    Measure("key", "key", KEY),
)  # fmt: skip
"""Points of a frontier of efficiency and fairness."""

PRICES = listed(
    Measure("requires", "property", "What an allocation, or a mechanism, has to have."),
    Measure("instance", "instance", "Name of the instance, or the number of instances."),
    Measure("instances", "instances", "Number of instances.", INTEGER),
    Measure("units", "units", "Number of seeds, which intervals resample.", INTEGER),
    Measure("price_at_least", "price ≥", f"{PRICE_LEAST} Over several instances, on each of them.", PERCENT,
            sense="min", limit="at least"),
    Measure("price_at_most", "price ≤", f"{PRICE_MOST} Over several instances, on each of them.", PERCENT,
            sense="min", limit="at most"),
    Measure("median", "median", "Median over instances of the most that it can be.", PERCENT, sense="min"),
    Measure("mean", "mean", "Mean over instances of the most that it can be, with the 95 % bootstrap interval over "
            "seeds.", PERCENT, sense="min"),
    Measure("mean_low", "from", "Lower end of the interval.", PERCENT),
    Measure("mean_high", "to", "Upper end of the interval.", PERCENT),
    Measure("worst", "worst", "The instance with the largest price."),
)  # fmt: skip
"""What properties cost."""


# ---------------------------------------------------------------- decisions


def _quantity(name: str, meaning: str = "", unit: str = "", sense: Sense = "") -> Measure:
    return Measure(name, name.replace("_", " "), meaning, DATA, unit, sense)


QUANTITIES = listed(
    _quantity("completed", "Number of jobs that complete.", sense="max"),
    _quantity("rejected", "Number of jobs that never run.", sense="min"),
    _quantity("admitted", "Number of jobs that are admitted.", sense="max"),
    _quantity("colocated", "Number of jobs that run on a single server.", sense="max"),
    _quantity("completion", "Slot in which each job completes.", sense="min"),
    _quantity("completion_s", "Time at which each job completes.", "s", "min"),
    _quantity("completion_slots", "Slots from the arrival of each job to its end.", "slots", "min"),
    _quantity("mean_completion_slots", "Mean number of slots from arrival to end.", "slots", "min"),
    _quantity("max_completion_slots", "Largest number of slots from arrival to end.", "slots", "min"),
    _quantity("job_jct_s", "Time from arrival to completion of each job.", "s", "min"),
    _quantity("round_cpu_given", "Share of all CPU time of each round that jobs hold while computing."),
    _quantity("makespan_s", "Synergy's name for the TTD.", "s", "min"),
    _quantity("makespan_slots", "Slots until the last job ends.", "slots", "min"),
    _quantity("ttd_rounds", "The TTD in rounds, or in slots of the instance.", sense="min"),
    _quantity("busy_servers", "Share of the servers' time until the last job ends in which a job runs there.",
              sense="max"),
    _quantity("gpu_utilisation", "Share of all GPU time until the last job ends that workers hold.", sense="max"),
    _quantity("workers_mean", "Mean over jobs of their mean number of workers over time."),
    _quantity("windows", "Number of windows of time, one for each batch of jobs."),
    _quantity("realised_alpha", "Largest number of rounds that scheduled jobs in one window."),
    _quantity("start", "First slot of the run."),
    _quantity("slots", "Number of slots of the run.", sense="min"),
    _quantity("workers", "Number of workers of the run."),
    _quantity("servers", "Number of servers that the run uses."),
    _quantity("running", "Number of jobs that run in the round.", sense="max"),
    _quantity("gpus_used", "Share of the GPUs that jobs hold.", sense="max"),
    _quantity("cpus_used", "Share of the CPUs that jobs hold."),
    _quantity("memory_used", "Share of the memory that jobs hold."),
    _quantity("cpus", "CPUs that each job holds."),
    _quantity("memory_gb", "Memory that each job holds.", "GB"),
    _quantity("throughput", "Progress of the round, in fair shares.", sense="max"),
    _quantity("mean_jct_speedup", "Mean time to finish at the fair share, divided by that at the rates given.",
              sense="max"),
    _quantity("fragments", "Number of jobs that run on more than one server.", sense="min"),
    _quantity("devices", "Devices of each type that each tenant gets."),
    _quantity("efficiency", "Efficiency of each tenant, by its reported speedups.", sense="max"),
    _quantity("true_efficiency", "Efficiency of each tenant, by its true speedups.", sense="max"),
    _quantity("true_total", "Sum of the tenants' true efficiencies.", sense="max"),
    _quantity("envy_free", "True if no tenant prefers the devices of another one."),
    _quantity("sharing_incentive", "True if no tenant prefers an equal share of all devices."),
    _quantity("gain_max", "Largest gain of a tenant over an equal share of all devices.", sense="max"),
    _quantity("preference_max", "Largest factor by which a tenant prefers its own devices to another one's."),
    _quantity("market_error", "Price of all devices over all budgets, less 1, at prices at which every tenant has at "
              "least what its budget can buy.", sense="min"),
    _quantity("support_size", "Number of positive entries of the allocation."),
    _quantity("missed", "Largest part by which the decision misses a rule, or exceeds the devices of a type.",
              sense="min"),
    _quantity("wait_h", "Mean time that jobs wait.", "h", "min"),
    _quantity("longest_wait_h", "Longest time that a job waits.", "h", "min"),
    _quantity("start_delay_h", "Mean time from submission to the first start.", "h", "min"),
    _quantity("flow_h", "Mean time from submission to end.", "h", "min"),
    _quantity("weighted_h", "Mean time from submission to end, weighted by the jobs' weights.", "h", "min"),
    _quantity("makespan_h", "Time from the first submission to the last end.", "h", "min"),
    _quantity("slowdown", "Mean bounded slowdown: the time from submission to end divided by the duration.",
              sense="min"),
    _quantity("idle_gpu_h", "GPU-hours that idle while a job waits.", "GPU-hours", "min"),
)  # fmt: skip
"""What checkers measure of decisions, beyond the columns of rows."""

TABLES: Mapping[str, MeasureTable] = {
    "compare": COMPARE,
    "simulate": SIMULATE,
    "audit": AUDIT,
    "adversary": ADVERSARY,
    "reproduce": REPRODUCE,
    "trace": TRACE,
    "methods": METHODS,
    "solvers": SOLVERS,
    "intervals": INTERVALS,
    "pairs": PAIRS,
    "effects": EFFECTS,
    "growth": GROWTH,
    "bounds": BOUNDS,
    "served": SERVED,
    "log": LOG,
    "ladder": LADDER,
    "waiting": WAITING,
    "starts": STARTS,
    "whatif": WHATIF,
    "frontier": FRONTIER,
    "prices": PRICES,
    "quantities": QUANTITIES,
}
"""All tables: of studies, by their names; of summaries, bounds and logs; and of decisions."""

KNOWN: MeasureTable = {**QUANTITIES, **COMPARE, **SIMULATE}
"""What is measured of methods and policies, and of their decisions."""


def quantity(name: str) -> Measure:
    """Return the measure of a property of decisions, also of one that only a plug-in knows."""
    return QUANTITIES.get(name) or _quantity(name)


def smaller_is_better(name: str, row: Mapping[str, Any]) -> bool:
    """Return whether smaller values of a measured quantity are better in a row of measured values.

    Larger values are better of a quantity that only a plug-in knows.
    """
    return KNOWN.get(name, quantity(name)).goal(row) == "min"


CLOCKED = frozenset(one.name for one in KNOWN.values() if one.clock)
"""Names of what a clock of the machine measured."""
