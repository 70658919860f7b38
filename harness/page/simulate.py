"""What a simulation tells: captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from schedgap.harness.figure import Drawing
from schedgap.harness.page.columns import SIMULATE as COLUMNS
from schedgap.harness.page.columns import hours
from schedgap.harness.page.compare import not_compared, published_table
from schedgap.harness.page.frame import (
    Group,
    Page,
    Section,
    figures_section,
    instances_section,
    macro,
    notes_section,
    published_section,
    render,
    results_section,
    slug,
)
from schedgap.harness.published import SIMULATE
from schedgap.harness.simulate.bounds import BOUNDS
from schedgap.harness.simulate.row import Simulation, SimulationRow
from schedgap.harness.table import Block, Cell, Note, Table, of_texts, sort_key, table, visible
from schedgap.harness.text import ABSENT, clean, differs, number, percent, published_cells, seconds
from schedgap.instances.schema import Instance

NONE: Mapping[str, Instance] = {}
"""Where only rows are shown, and not what was published about their instances beside them."""

PUBLISHED = ("policy", "quantity", "published", "measured", "unit", "where")


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


def published_lines(rows: Sequence[SimulationRow]) -> Iterator[list[str]]:
    """Yield the cells (see `PUBLISHED`) of every published number."""
    for row in rows:
        for entry in row.published:
            printed, measured, _ = published_cells(entry)
            texts = [row.policy, entry["quantity"], printed, measured, entry["unit"], entry["where"]]
            yield [clean(text, 80) for text in texts]


def noted(rows: Sequence[SimulationRow], instances: Mapping[str, Instance] = NONE) -> list[tuple[str, str]]:
    """Return ``(subject, message)`` pairs: what went wrong or was skipped, jobs left, notes on published numbers."""
    lines = []
    for row in rows:
        name = clean(row.policy, 60)
        lines += [(name, f"WRONG: {clean(line, 400)}") for line in row.violations]
        lines += [(name, f"{clean(row.status, 40)}: {clean(row.reason, 400)}")] if row.reason else []
        lines += [(name, f"{count} jobs unfinished, {clean(why, 200)}") for why, count in row.unfinished.items()]
        printed = [e for e in row.published if e["note"] and differs(e)]
        lines += [(f"{name}, {clean(e['quantity'], 60)}", clean(e["note"], 400)) for e in printed]
    return [*lines, *not_compared(rows, instances, SIMULATE)]


def blocks(simulated: Simulation) -> list[Block]:
    """Return what a command prints: a table per instance, published numbers, notes."""
    shown: list[Block] = []
    for text, group in parts(simulated.rows):
        shown.append(table(text, COLUMNS, group, dim=lambda row: row.status == "skipped"))
        if lines := list(published_lines(group)):
            shown.append(published_table(PUBLISHED, lines, "published beside measured"))
        shown += [Note(which, note) for which, note in noted(group, simulated.instances)]
    return shown


def page(simulated: Simulation, drawings: Sequence[Drawing], failures: Sequence[str] = ()) -> str:
    """Return the page of a simulation.

    Parameters
    ----------
    simulated
        Rows, instances and what reproduces them.
    drawings, failures
        Its figures, and what is said about those that could not be drawn.
    """
    rows = simulated.rows
    told = answers(rows)
    sections = [
        results_section(_groups(rows), _legend(rows)),
        *_bounds_section(simulated),
        *notes_section(_notes(rows)),
        *published_section(_published(rows), not_compared(rows, simulated.instances, SIMULATE)),
        *figures_section(drawings, {"simulation": "Histories"}, failures),
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


def _bounds_section(simulated: Simulation) -> list[Section]:
    """Return the certified bounds, how long each took, and why there is none where there is none."""
    if not simulated.bounds:
        return []
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


NAMED = 3
"""So many policies that went wrong are named."""

METRICS = (
    ("ttd_s", "ttd_bound_ratio", "finishes all jobs first, after", "more than the least that any schedule can reach"),
    ("jct_mean_s", "jct_bound_ratio", "has the least mean completion time,", "more than the best possible mean"),
)
"""Field, its ratio to the bound, and what is said about the policy that is best in it."""


def headline(rows: Sequence[SimulationRow], interrupted: bool = False) -> str:
    """Return what was found: trouble first, then who is best and how far from the bound."""
    if not rows:
        return "No policy was simulated."
    sentences = answers(rows)
    answer = sentences[0][1] if len(sentences) == 1 else _over(rows)
    parts = [
        f"The run was stopped early, after {len(rows)} policies." if interrupted else "",
        _trouble(rows),
        answer or "No policy finished all jobs.",
    ]
    return " ".join(part for part in parts if part)


def answers(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return the sentence about each instance, with its name; instances without a confirmed time are left out."""
    found = []
    for fingerprint in dict.fromkeys(row.fingerprint for row in rows):
        here = [row for row in rows if row.fingerprint == fingerprint]
        if text := _answer(here):
            found.append((clean(here[0].instance, 60), text))
    return found


def _answer(rows: Sequence[SimulationRow]) -> str:
    clauses = [clause for metric in METRICS if (clause := _clause(rows, *metric))]
    if not clauses:
        return ""
    return f"On {clean(rows[0].instance, 60)}, {'; '.join(clauses)}."


def _clause(rows: Sequence[SimulationRow], field: str, ratio: str, what: str, beyond: str) -> str:
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
    return f"Over {len(names)} instances, no policy is bounded on all of them." if answers(rows) else ""


def _trouble(rows: Sequence[SimulationRow]) -> str:
    bad = [row for row in rows if not row.ok]
    if not bad:
        return ""
    named = ", ".join(
        f"{clean(row.policy, 60)} ({clean((row.violations or (row.reason or row.status,))[0], 100)})"
        for row in bad[:NAMED]
    )
    word = "WRONG" if any(row.verified is False for row in bad) else "failed"
    verb = "" if word == "failed" else "is " if len(bad) == 1 else "are "
    more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    return f"{len(bad)} of {len(rows)} policies {verb}{word}: {named}{more}."
