"""The page of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.drawing import Image
from harness.render.formats import not_compared
from harness.render.text import ABSENT, clean, number, seconds
from harness.report.page import (
    Page,
    Section,
    figures_section,
    instances_section,
    macro,
    notes_section,
    published_section,
    render,
    results_section,
)
from harness.report.tables import Cell, Group, Table, published_of, slug, sort_key
from harness.simulation.headline import answers, headline
from harness.simulation.render import COLUMNS, PUBLISHED, TEXTS, noted, parts, published_lines, visible
from harness.simulation.result import Simulation
from harness.simulation.rows import SimulationRow
from harness.studies import SIMULATE

EXPLAINED: dict[str, tuple[str, str]] = {
    "policy": ("policy", "Registered name; “harness list policies” prints the source of each."),
    "ref": ("reference", "The policy that ratios refer to."),
    "TTD (h)": ("ttd_s", "Total time duration: from the first arrival to the last completion."),
    "× ref": ("ttd_ratio", "TTD divided by that of the reference."),
    "paper": ("ttd_printed", "The same ratio as the paper printed it."),
    "TTD/bound": ("ttd_bound_ratio", "TTD divided by a certified lower bound: at most so many times the least TTD."),
    "JCT mean (h)": ("jct_mean_s", "Mean time from arrival to completion."),
    "JCT × ref": ("jct_ratio", "Mean completion time divided by that of the reference."),
    "JCT/bound": ("jct_bound_ratio", "Mean completion time divided by a certified lower bound."),
    "median": ("jct_median_s", "Median completion time in hours."),
    "p99": ("jct_p99_s", "99th percentile of the completion times in hours."),
    "JCT min": ("jct_min_s", "Shortest completion time in hours."),
    "JCT max": ("jct_max_s", "Longest completion time in hours."),
    "< 4 h": ("jct_short_s", "Mean completion time of short jobs in hours."),
    "≥ 4 h": ("jct_long_s", "Mean completion time of long jobs in hours."),
    "GRU": ("gru", "GPU resource utilisation: share of the GPUs' time in which they computed."),
    "CRU": ("cru", "Cluster resource utilisation: share of the servers' time in which they computed."),
    "CPUs": ("cpu_given", "Share of the CPUs' time in which a job computed with them."),
    "needed": ("cpu_needed", "The same, had each job the fewest CPUs at which it is as fast."),
    "LP1": ("lp1_share", "Mean progress of a round divided by the most that LP1 allows for the jobs that were picked."),
    "worst": ("lp1_worst", "The least of these."),
    "ΣU": ("utility", "Total utility of the completed jobs."),
    "decision mean (ms)": ("decision_mean_s", "Mean wall-clock time of a decision."),
    "max": ("decision_max_s", "Longest wall-clock time of a decision in milliseconds."),
    "idle GPUs": ("idle_gpus", "Mean number of GPUs that nobody holds while a job waits."),
    "restarts": ("restarts", "Changed allocations that jobs paid for."),
    "changing": ("changing", "Share of the rounds in which a job that has run before gets other GPUs."),
    "status": ("status", "How the simulation ended, and how many jobs were left."),
    "verified": ("verified", "✓: an independent checker confirms every round of the history. WRONG: it does not."),
}
"""Field that a column sorts by, and its explanation."""


def page(simulated: Simulation, images: Sequence[Image], failures: Sequence[str] = ()) -> str:
    """Return the page of a simulation.

    Parameters
    ----------
    simulated
        Rows, instances and what reproduces them.
    images, failures
        Its figures, and what is said about those that could not be drawn.
    """
    rows = simulated.rows
    told = answers(rows)
    sections = [
        results_section(_groups(rows), _legend(rows)),
        *_bounds_section(simulated),
        *notes_section(_notes(rows)),
        *published_section(_published(rows), not_compared(rows, simulated.instances, SIMULATE)),
        *figures_section(images, {"simulation": "Histories"}, failures),
        *instances_section(simulated.instances, {row.fingerprint: row.instance for row in rows}),
    ]
    return render(
        Page(
            question="How far from the best possible schedule?",
            title=_title(rows),
            headline=headline(rows, simulated.interrupted),
            trouble=not simulated.ok,
            sections=sections,
            meta=simulated.meta,
            answers=told if len(told) > 1 else [],
            counts=_counts(rows),
            name="Instance by instance",
        )
    )


def _title(rows: Sequence[SimulationRow]) -> str:
    names = list(dict.fromkeys(row.instance for row in rows))
    return f"Simulation of {clean(names[0], 60)}" if len(names) == 1 else f"Simulation of {len(names)} instances"


def _counts(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "policies": len({row.policy for row in rows}),
        "histories verified": sum(row.verified is True for row in rows),
        "WRONG": sum(row.verified is False for row in rows),
        "failed": sum(not row.ok and row.verified is not False for row in rows),
        "skipped": sum(row.status == "skipped" for row in rows),
    }
    always = ("policies", "histories verified", "WRONG")
    return [(f"{count:,}", name) for name, count in counts.items() if name in always or count > (name == "instances")]


# ---------------------------------------------------------------- tables


def _groups(rows: Sequence[SimulationRow]) -> list[Group]:
    found = []
    for text, group in parts(rows):
        name, jobs = clean(group[0].instance, 60), max(row.jobs or 0 for row in group)
        title = f"{jobs:,} jobs" if jobs else ""
        found.append(Group(f"results-{slug(group[0].fingerprint[:12])}", name, title, [_table(text, group)]))
    return found


def _table(text: str, rows: Sequence[SimulationRow]) -> Table:
    headers = visible(rows)
    headings = [(header, EXPLAINED[header][1], "left" if header in TEXTS else "right") for header in headers]
    return Table(text, headings, [[_cell(header, row) for header in headers] for row in rows])


def _cell(header: str, row: SimulationRow) -> Cell:
    show: Callable[[SimulationRow], str] = COLUMNS[header]
    text, value = show(row), getattr(row, EXPLAINED[header][0])
    classes = {"policy": "method", "status": "status", "verified": "verified"}.get(header, "")
    if header not in TEXTS:
        classes = "right"
    bad = (header == "verified" and row.verified is False) or (header == "status" and not row.ok and row.reason)
    absent = text == ABSENT or value is None
    sort = sort_key(None if absent else text if header in TEXTS else value)
    return Cell(text, sort, f"{classes} bad".strip() if bad else classes)


def _legend(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    shown = {header for _, group in parts(rows) for header in visible(group)}
    return [(header, text) for header, (_, text) in EXPLAINED.items() if header in shown]


def _published(rows: Sequence[SimulationRow]) -> Table | None:
    lines = [cells for cells, _ in published_lines(rows)]
    # the mark stands at the end, where a table of published numbers looks for it
    agreement = "✓: equal to its last place, or within a printed limit; ≠: not."
    return published_of(PUBLISHED, lines, f"Numbers that papers printed, beside ours. {agreement}")


def _notes(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    several = len({row.fingerprint for row in rows}) > 1
    return [
        (f"{which} on {clean(group[0].instance, 60)}" if several else which, note)
        for _, group in parts(rows)
        for which, note in noted(group)
    ]


def _hours(value_s: float | None) -> str:
    return ABSENT if value_s is None else f"{number(value_s / 3600)} h"


def _bounds_section(simulated: Simulation) -> list[Section]:
    """Return the certified bounds, how long each took, and why there is none where there is none."""
    if not simulated.bounds:
        return []
    from harness.simulation.bounds import BOUNDS

    names = {row.fingerprint: row.instance for row in simulated.rows}
    what = {"ttd_s": "TTD", "jct_mean_s": "mean JCT"}
    lines = [
        [
            Cell(clean(names.get(bound.fingerprint, ""), 60), sort_key(names.get(bound.fingerprint)), "instance"),
            Cell(what[BOUNDS[bound.model].metric], BOUNDS[bound.model].metric),
            Cell(clean(bound.model, 60), sort_key(bound.model), "method"),
            Cell(
                ABSENT if bound.seconds is None else f"{bound.seconds / 3600:.4g} h", sort_key(bound.seconds), "right"
            ),
            Cell(seconds(bound.took_s), sort_key(bound.took_s), "right"),
            Cell(clean(bound.reason or "", 200), sort_key(bound.reason), "note" if bound.reason else ""),
        ]
        for bound in sorted(simulated.bounds, key=lambda bound: (names.get(bound.fingerprint, ""), bound.model))
    ]
    headings = [("instance", "", "left"), ("of", "", "left"), ("model", "", "left")]
    headings += [("at least", "", "right"), ("took", "", "right"), ("why none", "", "left")]
    if not any(bound.reason for bound in simulated.bounds):
        headings, lines = headings[:-1], [line[:-1] for line in lines]
    text = "Certified lower bounds: no schedule of the kind that the model is about gets below them."
    return [Section("bounds", "Bounds", macro("table", Table(text, headings, lines), "Bounds"))]
