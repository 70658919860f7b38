"""The page of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

from schedgap.harness.figures import Drawing
from schedgap.harness.render.formats import not_compared, published_table
from schedgap.harness.report.page import (
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
from schedgap.harness.report.tables import Group, slug
from schedgap.harness.simulation.headline import answers, headline
from schedgap.harness.simulation.render import COLUMNS, PUBLISHED, noted, parts, published_lines
from schedgap.harness.simulation.result import Simulation
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.studies import SIMULATE
from schedgap.harness.table import Cell, Table, of_texts, sort_key, table, visible
from schedgap.harness.text import ABSENT, clean, number, seconds


def page(simulated: Simulation, images: Sequence[Drawing], failures: Sequence[str] = ()) -> str:
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
        found.append(Group(f"results-{slug(group[0].fingerprint[:12])}", name, title, [table(text, COLUMNS, group)]))
    return found


def _legend(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    shown = {column.key for _, group in parts(rows) for column in visible(COLUMNS, group)}
    return [(column.header, column.explanation) for column in COLUMNS if column.key in shown]


def _published(rows: Sequence[SimulationRow]) -> Table | None:
    caption = "Numbers that papers printed, beside ours. ✓: equal to its last place; ≠: not."
    lines = list(published_lines(rows))
    return published_table(PUBLISHED, lines, caption) if lines else None


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
    from schedgap.harness.simulation.bounds import BOUNDS

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
    columns = of_texts(("instance", "of", "model", "at least", "took", "why none"), right=("at least", "took"))
    if not any(bound.reason for bound in simulated.bounds):
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    text = "Certified lower bounds: no schedule of the kind that the model is about gets below them."
    return [Section("bounds", "Bounds", macro("table", Table(text, columns, lines), "Bounds"))]
