"""The columns of every kind of table, for the terminal, files and pages: the measures that it shows, and its layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from schedgap.harness.show import measures
from schedgap.harness.show.measures import NUMBER, TEXT, Measure
from schedgap.harness.show.table import Column
from schedgap.harness.show.text import ABSENT, SIGNS, between, clean, in_words, within
from schedgap.harness.show.text import numbers as values
from schedgap.harness.studies.audit.row import FAILED, REFUTED

if TYPE_CHECKING:
    from schedgap.harness.studies.adversary.row import Proved, Worst
    from schedgap.harness.studies.audit.row import Finding
    from schedgap.harness.studies.compare.row import Row
    from schedgap.harness.studies.compare.summary import MethodSummary, SolverSummary
    from schedgap.harness.studies.reproduce.row import ReproducedRow
    from schedgap.harness.studies.simulate.row import SimulationRow
    from schedgap.harness.studies.statistics import GapEffect, GapInterval, PairedDifference, TimeGrowth

LONGEST = 600
"""Maximum number of characters in a cell that holds sentences."""

Show = Callable[[Any], Any]
_wrong, _failed = attrgetter("wrong"), attrgetter("failed")


def column(measure: Measure, text: Show | None = None, of: Show | None = None, **layout: Any) -> Column[Any]:
    """Return the column of a measure; numbers are aligned right and sorted by value, only notes may be long.

    `of` takes the value from a row; by default it is the field with the measure's name. `text`, if given, makes the
    cell from the whole row.
    """
    value_of, longest = of or attrgetter(measure.name), LONGEST if layout.get("css") == "note" else 60

    def cell(row: Any) -> str:
        value = value_of(row)
        if measure.format is TEXT:
            return clean(value or ABSENT, longest)
        return measure.text(value, measure.side(partial(getattr, row)))

    usual: dict[str, Any] = {"css": measure.name}
    if measure.format.numeric or of:
        usual |= {"align": "right", "value": value_of}
    return Column(measure.name, measure.header, measure.explanation, text or cell, **(usual | layout))


def columns(table: measures.MeasureTable, **shown: Mapping[str, Any]) -> tuple[Column[Any], ...]:
    """Return the columns of some measures of a table, by name, each with the further arguments of :func:`column`."""
    return tuple(column(table[name], **how) for name, how in shown.items())


def _without_paper(policy: str, beside: str) -> str:
    """Return a policy's name, without the paper if `beside` is of the same paper; programs have no paper."""
    paper = "" if ":" in beside else beside.partition(".")[0]
    return policy.removeprefix(f"{paper}.") if paper else policy


# ---------------------------------------------------------------- comparisons


def _problem(row: Row | MethodSummary) -> str:
    name = clean(row.problem, 60)
    return name.partition(".")[2] or name


def _price(row: Row) -> str:
    if row.price_at_least is None or row.price_at_most is None:
        return ABSENT
    return between(row.price_at_least, row.price_at_most)


def _metrics(row: Row) -> str:
    return ", ".join(f"{in_words(name)} {values(value, 4)}" for name, value in row.metrics.items()) or ABSENT


def _guarantee(row: Row) -> str:
    factor = measures.COMPARE["guarantee_factor"]
    return clean(row.guarantee, 40) if row.guarantee else factor.text(row.guarantee_factor, "at most")


def _claimed(row: Row) -> str:
    return measures.COMPARE["claimed_bound"].text(row.claimed_bound if row.unproved else None)


def _status(row: Row) -> str:
    if row.claim:
        return f"{row.status}?"
    gives_a_bound = row.status == "optimal" and row.objective is None and row.own_bound is not None
    return "bound" if gives_a_bound else row.status


COMPARE: tuple[Column[Row], ...] = columns(
    measures.COMPARE,
    instance={"shared": True},
    paper={"priority": 9, "shared": True},
    method={},
    problem={"text": _problem, "priority": 1, "shared": True},
    kind={"priority": 2},
    sense={"priority": 7, "shared": True},
    seed={"priority": 3, "shared": True},
    limits={"priority": 3, "shared": True},
    objective={"priority": 1},
    best_bound={"priority": 4},
    own_bound={"priority": 4},
    gap={},
    loss={"priority": 2},
    price_at_most={"text": _price, "priority": 8},
    ratio={"priority": 2},
    guarantee={"text": _guarantee, "of": attrgetter("guarantee_factor"), "priority": 3},
    status={"text": _status, "bad": _failed},
    verified={"bad": _wrong},
    solve_s={},
    build_s={"priority": 5},
    total_s={"priority": 6},
    fastest_s={"priority": 5},
    slowest_s={"priority": 5},
    read_s={"priority": 8},
    compile_s={"priority": 8},
    transfer_s={"priority": 8},
    check_s={"priority": 8},
    certify_s={"priority": 8},
    bound_from={"priority": 6, "shared": True},
    claimed_bound={"text": _claimed, "priority": 5},
    metrics={"text": _metrics, "priority": 10},
)


def _bad(line: MethodSummary) -> int:
    return line.failed + line.wrong


def _passed(line: MethodSummary) -> str:
    return f"{line.verified} of {line.results}"


def _trouble(line: MethodSummary) -> str:
    counts = {"WRONG": line.wrong, "failed": line.failed, "skipped": line.skipped}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or ABSENT


def _estimate(measure: Measure) -> Show:
    """Return the text of a value with its interval, if it has one: ``≤ 3.9 % [3.1 %, 4.8 %]``.

    A gap to a bound that is not the certified optimum is an upper estimate, marked ≤.
    """

    def text(line: Any) -> str:
        value, side = getattr(line, measure.name), measure.side(partial(getattr, line))
        ends = getattr(line, f"{measure.name}_low", None), getattr(line, f"{measure.name}_high", None)
        return f"{SIGNS.get(side, '') if value else ''}{measure.text(value, side)}{within(ends, measure.text)}"

    return text


SUMMARY: tuple[Column[MethodSummary], ...] = columns(
    measures.METHODS,
    method={},
    problem={"text": _problem},
    kind={"priority": 5},
    limits={"align": "right"},
    verified={"text": _passed, "priority": 4, "css": ""},
    wrong={"text": _trouble, "of": _bad, "bad": _bad, "priority": 3, "css": "trouble"},
    median_gap={"text": _estimate(measures.METHODS["median_gap"])},
    mean_gap={"text": _estimate(measures.METHODS["mean_gap"])},
    largest_gap={"text": _estimate(measures.METHODS["largest_gap"])},
    largest_loss={"text": _estimate(measures.METHODS["largest_loss"])},
    largest_ratio={"priority": 2},
    median_s={"priority": 1},
    geometric_s={"priority": 2},
)
"""Summary of one method over many instances."""


_problem_of = {"text": _problem, "priority": 3, "shared": True}
_limits_of = {"priority": 3, "shared": True}

INTERVALS: tuple[Column[GapInterval], ...] = columns(
    measures.INTERVALS,
    method={},
    problem=_problem_of,
    limits=_limits_of,
    factor={"shared": True},
    value={},
    results={"priority": 2, "shared": True},
    cases={},
    units={"priority": 1, "shared": True},
    failed={"priority": 2, "bad": _failed, "shared": True},
    upper={"priority": 2, "shared": True},
    median={"text": _estimate(measures.INTERVALS["median"])},
    mean={"text": _estimate(measures.INTERVALS["mean"])},
)
"""Gaps of a method with their intervals."""

PAIRS: tuple[Column[PairedDifference], ...] = columns(
    measures.PAIRS,
    method={},
    reference={"shared": True},
    problem=_problem_of,
    limits=_limits_of,
    cases={"priority": 2, "shared": True},
    units={"priority": 2, "shared": True},
    wins={"priority": 1},
    ties={"priority": 2},
    losses={"priority": 1},
    ratio={"text": _estimate(measures.PAIRS["ratio"])},
    p={"priority": 2},
    p_holm={},
)
"""Methods against a reference."""

EFFECTS: tuple[Column[GapEffect], ...] = columns(
    measures.EFFECTS,
    method={},
    problem=_problem_of,
    limits=_limits_of,
    feature={},
    slope={"text": _estimate(measures.EFFECTS["slope"])},
    spread={"priority": 2},
    units={"priority": 2, "shared": True},
    explained={"priority": 1},
)
"""What explains the gaps of a method."""

GROWTH: tuple[Column[TimeGrowth], ...] = columns(
    measures.GROWTH,
    method={},
    limits=_limits_of,
    smallest={"shared": True},
    largest={"shared": True},
    results={"priority": 1, "shared": True},
    censored={"priority": 1},
    exponent={"text": _estimate(measures.GROWTH["exponent"])},
)
"""How solve times grow."""

SOLVERS: tuple[Column[SolverSummary], ...] = columns(
    measures.SOLVERS,
    solver={"css": "method"},
    limits={"align": "right"},
    success={"text": lambda line: f"{line.success} of {line.results - line.skipped}"},
    correct={},
    wrong={"text": lambda line: clean("; ".join(line.wrong) or ABSENT, LONGEST), "bad": _wrong, "css": "note"},
    failed={"priority": 2},
    skipped={"priority": 1},
    geometric_s={"priority": 2},
    mean_gap={},
    geometric_integral_s={"priority": 3},
)
"""Summary of one solver over the models of a run."""


# ---------------------------------------------------------------- simulations


def _beside(other: str, name: str) -> Show:
    """Return the text of a measure that is shown only where the row also has the `other` one."""
    measure = measures.SIMULATE[name]
    return lambda row: ABSENT if getattr(row, other) is None else measure.text(getattr(row, name))


def _ended(row: SimulationRow) -> str:
    unfinished = sum(row.unfinished.values())
    return f"{unfinished} of {row.jobs} jobs unfinished" if unfinished and row.jobs else clean(row.status, 40)


def _broke(row: SimulationRow) -> bool:
    return not row.ok and bool(row.reason)


def _reference(row: SimulationRow) -> str:
    return clean(_without_paper(row.reference or ABSENT, row.policy), 60)


_of_sensitive = partial(_beside, "cpu_given")

SIMULATE: tuple[Column[SimulationRow], ...] = columns(
    measures.SIMULATE,
    policy={"css": "method"},
    reference={"text": _reference, "shared": True, "priority": 1},
    ttd_s={},
    ttd_ratio={"priority": 3},
    ttd_printed={"priority": 5},
    ttd_bound_ratio={},
    jct_mean_s={},
    jct_ratio={"priority": 2},
    jct_bound_ratio={"priority": 1},
    jct_median_s={"priority": 8},
    jct_p99_s={"priority": 6},
    p99_bound_ratio={"priority": 7},
    jct_min_s={"priority": 18},
    jct_max_s={"priority": 17},
    jct_short_s={"text": _of_sensitive("jct_short_s"), "priority": 9},
    jct_long_s={"text": _of_sensitive("jct_long_s"), "priority": 10},
    jct_short_p99_s={"text": _of_sensitive("jct_short_p99_s"), "priority": 19},
    jct_long_p95_s={"text": _of_sensitive("jct_long_p95_s"), "priority": 20},
    jct_long_p99_s={"text": _of_sensitive("jct_long_p99_s"), "priority": 21},
    gru={"priority": 7},
    cru={"priority": 11},
    gru_bound={"priority": 12},
    cru_bound={"priority": 12},
    cpu_given={"priority": 15},
    cpu_needed={"priority": 16},
    lp1_share={},
    lp1_worst={"priority": 4},
    estimated_throughput={},
    actual_throughput={},
    straggler_share={"text": _beside("actual_throughput", "straggler_share")},
    served_short={"priority": 22},
    served_harmed={"priority": 23},
    served_behind_s={"priority": 24},
    served_envy={"priority": 25},
    served_finish={"priority": 26},
    utility={"priority": 21},
    decision_mean_s={"priority": 19},
    decision_max_s={"priority": 20},
    idle_gpus={"priority": 12},
    restarts={"priority": 14},
    changing={"priority": 13},
    status={"text": _ended, "bad": _broke, "priority": 2},
    verified={"bad": _wrong, "priority": 2},
)
"""Columns of a simulation; all but the first two and the last two are numbers."""


# ---------------------------------------------------------------- audits and searches


def _failures(finding: Finding) -> str:
    return f"{finding.stated.failed} of {finding.stated.tested}" if finding.stated.tested else ABSENT


AUDIT: tuple[Column[Finding], ...] = columns(
    measures.AUDIT,
    id={"css": "method"},
    status={
        "text": lambda finding: clean(finding.status, LONGEST),
        "bad": lambda finding: finding.status in (FAILED, REFUTED),
        "css": "wide",
    },
    failed={"text": _failures, "of": attrgetter("stated.failed"), "css": "stated.failed"},
    claim={
        "text": lambda finding: clean(f"{finding.claim.location}: {finding.claim.claim}", LONGEST),
        "priority": 1,
        "css": "note",
    },
    found={"text": lambda finding: clean(finding.text, LONGEST), "css": "note"},
)


def _there(take: Callable[[Proved], Any]) -> dict[str, Any]:
    """Return how to show what is known of the worst instance that the search found, if any."""
    return {"of": lambda worst: take(worst.found) if worst.found else None, "css": ""}


def _notes(worst: Worst) -> str:
    facts = {"reaches nothing on another instance": worst.nothing, "the guarantee is REFUTED here": worst.exceeded}
    return "; ".join(text for text, holds in facts.items() if holds)


ADVERSARY: tuple[Column[Worst], ...] = columns(
    measures.ADVERSARY,
    heuristic={"css": "method"},
    ratio=_there(attrgetter("ratio")),
    guarantee=_there(attrgetter("guarantee")),
    objective=_there(attrgetter("objective")),
    optimum=_there(attrgetter("optimum")),
    size=_there(attrgetter("size")),
    tried={},
    proved={},
    exceeded={"text": _notes, "bad": attrgetter("exceeded"), "css": ""},
)


# ---------------------------------------------------------------- reproductions


def _printed(row: ReproducedRow) -> str:
    if row.published is None:
        return ABSENT
    unit = f" {clean(row.unit, 20)}" if row.unit not in ("", "1") else ""
    return f"{SIGNS.get(row.relation, '')}{_text(row.published)}{unit}"


def _text(value: Any) -> str:
    return clean(value, LONGEST) if isinstance(value, str) else values(value)


def _measured(row: ReproducedRow) -> str:
    if row.low is None or row.high is None or row.low == row.high:
        return _text(row.measured)
    low, high = (measures.REPRODUCE[name].text(getattr(row, name)) for name in ("low", "high"))
    return f"{NUMBER.shown(row.measured, 'exactly')} [{low}, {high}]"


REPRODUCE: tuple[Column[ReproducedRow], ...] = columns(
    measures.REPRODUCE,
    method={"shared": True},
    what={"css": "wide"},
    published={"text": _printed, "css": "wide"},
    measured={"text": _measured, "css": "wide"},
    cases={"priority": 3},
    certified={"css": "wide"},
    verdict={"bad": attrgetter("trouble"), "css": "note"},
    place={"priority": 4, "shared": True},
)


# ---------------------------------------------------------------- while a study runs


def _keyed(columns: Iterable[Column[Any]], *keys: str) -> list[Column[Any]]:
    return [column for column in columns if column.key in keys]


RUNNING: dict[str, Sequence[Column[Any]]] = {
    "row": _keyed(COMPARE, "instance", "method", "seed", "limits", "objective", "status", "verified", "solve_s"),
    "dot": _keyed(COMPARE, "instance", "method", "objective", "status", "verified", "solve_s"),
    "curve": [column(measures.FRONTIER["kind"], text=attrgetter("label"))],
    "stretch": _keyed(COMPARE, "instance", "method", "status", "solve_s"),
    "changed": _keyed(COMPARE, "instance", "method", "objective", "status", "verified", "solve_s"),
    "simulation": _keyed(SIMULATE, "policy", "ttd_s", "jct_mean_s", "status", "verified"),
    "bound": [replace(column(measures.BOUNDS["model"]), header="bound")],
    "finding": _keyed(AUDIT, "id", "status", "failed"),
    "slice": [column(measures.ADVERSARY["heuristic"], text=attrgetter("label"))],
}
"""Columns shown of each result as it finishes, by the type of its record in the journal."""
