"""What a simulation tells: who is best and how far from the bound; captions, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Sequence

from schedgap.harness.engine.result import grouped
from schedgap.harness.page import frame
from schedgap.harness.page.columns import SIMULATE as COLUMNS
from schedgap.harness.page.columns import hours, numbers, words
from schedgap.harness.page.frame import Group, Page, Section
from schedgap.harness.published import SIMULATE
from schedgap.harness.simulate.row import BOUNDED, Bound, Simulation, SimulationRow
from schedgap.harness.table import USUALLY, Block, Column, Line, View, explained, listed, table
from schedgap.harness.text import ABSENT, at_most, clean, number, seconds


def parts(rows: Sequence[SimulationRow]) -> list[tuple[str, list[SimulationRow]]]:
    """Return the rows that share a table, with its caption: one instance, seed and kind of options."""
    return [(caption(group), group) for group in grouped(rows, "case")]


def caption(rows: Sequence[SimulationRow]) -> str:
    """Return what all rows of a table share: instance, rules, whom ratios refer to, and the bound."""
    row = rows[0]
    shared = [clean(row.instance, 80), f"rounds of {row.round_s:g} s", f"{row.restart_s:g} s per restart"]
    if row.spread_factor != 1:
        shared.append(f"gangs over several servers run at {row.spread_factor:g}")
    if row.seed:
        shared.append(f"seed {row.seed}")
    if row.until_s is not None:
        shared.append(f"until {row.until_s / 3600:g} h")
    if profiling_s := max(r.profiling_s for r in rows):
        shared.append(f"{profiling_s / 60:g} min of profiling")
    if row.window:
        shared.append(f"JCT of {max(r.window_jobs or 0 for r in rows)} jobs (window {row.window})")
    if len({r.reference for r in rows}) == 1:
        shared.append(f"ref: {clean(row.reference or ABSENT, 60)}")
    told = [f"{BOUNDED[metric][1]} ≥ {hours(s)} h ({model})" for r in rows for metric, (s, model) in r.bounds.items()]
    shared += dict.fromkeys(told)
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


def blocks(simulated: Simulation, view: View = USUALLY) -> list[Block]:
    """Return what a command prints: the answer, a table per instance, published numbers, notes."""
    shown: list[Block] = [Line(headline(simulated), "bold red" if any(row.wrong for row in simulated.rows) else "bold")]
    for text, group in parts(simulated.rows):
        shown += listed(text, COLUMNS, group, dim=lambda row: row.status == "skipped", view=view)
        shown += frame.published_blocks(group, simulated.instances, SIMULATE, noted(group))
    return shown


def page(simulated: Simulation) -> Page:
    """Return the page of a simulation."""
    rows = simulated.rows
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "policies": len({row.policy for row in rows}),
        "histories verified": sum(row.verified is True for row in rows),
    }
    groups = []
    for text, group in parts(rows):
        name, jobs = clean(group[0].instance, 60), max(row.jobs or 0 for row in group)
        id = "-".join(["results", *(frame.slug(part[:12]) for part in group[0].case if part not in ("", "0"))])
        groups.append(Group(id, name, f"{jobs:,} jobs" if jobs else "", [table(text, COLUMNS, group)]))
    return Page(
        question="How far from the best possible schedule?",
        title=f"Simulation of {frame.titled(rows)}",
        headline=headline(simulated),
        groups=groups,
        legend=explained(COLUMNS, [group for _, group in parts(rows)]),
        notes=noted(rows),
        counts=frame.summed_up(rows, counts, ("policies", "histories verified", "WRONG")),
        answers=answers(rows),
        parts="Instance by instance",
        study=SIMULATE,
        more=_bounds_section(simulated),
    )


def _bounds_section(simulated: Simulation) -> list[Section]:
    """Return the certified bounds, how long each took, and why there is none where there is none."""
    if not simulated.bounds:
        return []
    names = {row.fingerprint: clean(row.instance, 60) for row in simulated.rows}
    columns: list[Column[Bound]] = [
        words("instance", "instance", "", lambda bound: names.get(bound.fingerprint, "")),
        words("of", "of", "", lambda bound: BOUNDED[bound.metric][1]),
        words("model", "model", "", css="method"),
        numbers("seconds", "at least", "", lambda bound_s: f"{bound_s / 3600:.4g} h"),
        numbers("took_s", "took", "", seconds),
        words("reason", "why none", "", lambda bound: clean(bound.reason or "", 200), css="note"),
    ]
    ordered = sorted(simulated.bounds, key=lambda bound: (names.get(bound.fingerprint, ""), bound.model))
    caption = "Certified lower bounds: no schedule of the kind that the model is about gets below them."
    return [Section("bounds", "Bounds", frame.macro("table", table(caption, columns, ordered), "Bounds"))]


# ---------------------------------------------------------------- sentences


METRICS = (
    ("ttd_s", "ttd_bound_ratio", "finishes all jobs first, after", "more than the least that any schedule can reach"),
    ("jct_mean_s", "jct_bound_ratio", "has the least mean completion time,", "more than the best possible mean"),
)
"""Field, its ratio to the bound, and what is said about the policy that is best in it."""


def headline(simulated: Simulation) -> str:
    """Return what was found: trouble first, then who is best and how far from the bound."""
    if not simulated.rows:
        return "No policy was simulated."
    sentences = answers(simulated.rows)
    answer = sentences[0][1] if len(sentences) == 1 else _over(simulated.rows)
    return frame.answered(simulated, "policies", answer or "No policy finished all jobs.")


def answers(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return the sentence about each instance, with its name; instances without a confirmed time are left out."""
    found = []
    for here in grouped(rows, "case"):
        name, options = clean(here[0].instance, 60), clean(here[0].options, 80)
        name += f" ({options})" if options else ""
        clauses = [_least(here, *metric) for metric in METRICS]
        if any(clauses):
            found.append((name, f"On {name}, {'; '.join(filter(None, clauses))}."))
    return found


def _least(rows: Sequence[SimulationRow], field: str, ratio: str, what: str, beyond: str) -> str:
    """Return who is best in one metric, and how far from its bound at most."""
    known = [row for row in rows if row.verified and not row.unfinished and getattr(row, field) is not None]
    if not known:
        return ""
    best = min(known, key=lambda row: float(getattr(row, field)))
    value = getattr(best, field) / 3600
    # Of policies that move in the same way, the best one of those that a bound is about answers the question.
    bounded = [row for row in known if getattr(row, ratio) is not None]
    certified = [best] if best in bounded else bounded
    text = f"{clean(best.policy, 60)} {what} {number(value)} h"
    if not certified:
        return text
    near = min(certified, key=lambda row: float(getattr(row, ratio)))
    above = at_most(getattr(near, ratio) - 1.0)
    far = "proved optimal" if above == "at most 0 %" else f"{above} {beyond}"
    return f"{text}, {far}" if near is best else f"{text}; {clean(near.policy, 60)} is {far}"


def _over(rows: Sequence[SimulationRow]) -> str:
    """Return which policy stays nearest to the bounds over all instances."""
    cases = len({row.case for row in rows})
    over = f"Over {cases} {'instances' if cases == len({row.fingerprint for row in rows}) else 'cases'}"
    for field, ratio, _, beyond in METRICS:
        bounded = [row for row in rows if row.verified and None not in (getattr(row, ratio), getattr(row, field))]
        whole = [group for group in grouped(bounded, "policy") if len(group) == cases]
        if whole:
            furthest = {group[0].policy: max(getattr(row, ratio) for row in group) for group in whole}
            best = min(furthest, key=furthest.__getitem__)
            total = "total time" if field == "ttd_s" else "mean completion time"
            return f"{over}, the {total} of {clean(best, 60)} is {at_most(furthest[best] - 1.0)} {beyond}."
    return f"{over}, no policy is bounded on all of them." if answers(rows) else ""
