"""What a simulation tells: captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from schedgap.harness.figure import Drawing
from schedgap.harness.page.columns import SIMULATE as COLUMNS
from schedgap.harness.page.columns import hours
from schedgap.harness.page.frame import (
    Group,
    Page,
    Section,
    counted,
    figures_section,
    instances_section,
    macro,
    notes_section,
    render,
    results_section,
    slug,
    titled,
)
from schedgap.harness.page.headline import answers_of_simulation, headline_of_simulation
from schedgap.harness.page.published import not_compared, published_notes, published_section, published_table
from schedgap.harness.published import SIMULATE
from schedgap.harness.simulate.row import Simulation, SimulationRow
from schedgap.harness.table import Block, Cell, Note, Table, explained, of_texts, sort_key, table
from schedgap.harness.text import ABSENT, clean, seconds
from schedgap.models.simulated import SIMULATED


def parts(rows: Sequence[SimulationRow]) -> list[tuple[str, list[SimulationRow]]]:
    """Return the rows that share a table, with its caption: one instance."""
    groups = (list(group) for _, group in groupby(rows, key=lambda row: row.fingerprint))
    return [(caption(group), group) for group in groups]


def caption(rows: Sequence[SimulationRow]) -> str:
    """Return what all rows of a table share: instance, rules, whom ratios refer to, and the bound."""
    row = rows[0]
    shared = [clean(row.instance, 80), f"rounds of {row.round_s:g} s", f"{row.restart_s:g} s per restart"]
    if row.spread_factor != 1:
        shared.append(f"gangs over several servers run at {row.spread_factor:g}")
    if row.until_s is not None:
        shared.append(f"until {row.until_s / 3600:g} h")
    if profiling_s := max(r.profiling_s for r in rows):
        shared.append(f"{profiling_s / 60:g} min of profiling")
    if row.window:
        shared.append(f"JCT of {max(r.window_jobs or 0 for r in rows)} jobs (window {row.window})")
    if len({r.reference for r in rows}) == 1:
        shared.append(f"ref: {clean(row.reference or ABSENT, 60)}")
    found = [("TTD", r.ttd_bound_s, r.ttd_bound_from) for r in rows]
    found += [("mean JCT", r.jct_bound_s, r.jct_bound_from) for r in rows]
    told = dict.fromkeys((what, seconds, model) for what, seconds, model in found if seconds is not None)
    shared += [f"{what} ≥ {hours(seconds)} h ({model})" for what, seconds, model in told]
    return " · ".join(shared)


def noted(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return ``(subject, message)`` pairs: what went wrong or was skipped, and jobs left."""
    several = len({row.fingerprint for row in rows}) > 1
    lines = []
    for row in rows:
        name = clean(row.policy, 60) + (f" on {clean(row.instance, 60)}" if several else "")
        lines += [(name, f"WRONG: {clean(line, 400)}") for line in row.violations]
        lines += [(name, f"{clean(row.status, 40)}: {clean(row.reason, 400)}")] if row.reason else []
        lines += [(name, f"{count} jobs unfinished, {clean(why, 200)}") for why, count in row.unfinished.items()]
    return lines


def blocks(simulated: Simulation) -> list[Block]:
    """Return what a command prints: a table per instance, published numbers, notes."""
    shown: list[Block] = []
    for text, group in parts(simulated.rows):
        shown.append(table(text, COLUMNS, group, dim=lambda row: row.status == "skipped"))
        shown += published_table(group, "published beside measured")
        told = [*noted(group), *published_notes(group), *not_compared(group, simulated.instances, SIMULATE)]
        shown += [Note(which, note) for which, note in told]
    return shown


def page(simulated: Simulation, drawings: Sequence[Drawing], failures: Sequence[str] = ()) -> str:
    """Return the page of a simulation, with what is said about figures that could not be drawn."""
    rows = simulated.rows
    told = answers_of_simulation(rows)
    sections = [
        results_section(_groups(rows), explained(COLUMNS, [group for _, group in parts(rows)])),
        *_bounds_section(simulated),
        *notes_section(noted(rows)),
        *published_section(rows, simulated.instances, SIMULATE),
        *figures_section(drawings, {"simulation": "Histories"}, failures),
        *instances_section(simulated.instances, {row.fingerprint: row.instance for row in rows}),
    ]
    return render(
        Page(
            question="How far from the best possible schedule?",
            title=f"Simulation of {titled(rows)}",
            headline=headline_of_simulation(rows, simulated.interrupted),
            trouble=not simulated.ok,
            sections=sections,
            meta=simulated.meta,
            answers=told if len(told) > 1 else [],
            counts=_counts(rows),
            name="Instance by instance",
        )
    )


def _counts(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "policies": len({row.policy for row in rows}),
        "histories verified": sum(row.verified is True for row in rows),
        "WRONG": sum(row.verified is False for row in rows),
        "failed": sum(not row.ok and row.verified is not False for row in rows),
        "skipped": sum(row.status == "skipped" for row in rows),
    }
    return counted(counts, ("policies", "histories verified", "WRONG"))


# ---------------------------------------------------------------- tables


def _groups(rows: Sequence[SimulationRow]) -> list[Group]:
    found = []
    for text, group in parts(rows):
        name, jobs = clean(group[0].instance, 60), max(row.jobs or 0 for row in group)
        title = f"{jobs:,} jobs" if jobs else ""
        found.append(Group(f"results-{slug(group[0].fingerprint[:12])}", name, title, [table(text, COLUMNS, group)]))
    return found


def _bounds_section(simulated: Simulation) -> list[Section]:
    """Return the certified bounds, how long each took, and why there is none where there is none."""
    if not simulated.bounds:
        return []
    names = {row.fingerprint: row.instance for row in simulated.rows}
    what = {"ttd_s": "TTD", "jct_mean_s": "mean JCT"}
    lines = [
        [
            Cell(clean(names.get(bound.fingerprint, ""), 60), sort_key(names.get(bound.fingerprint)), "instance"),
            Cell(what[SIMULATED[bound.model].metric], SIMULATED[bound.model].metric),
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
