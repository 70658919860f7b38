"""Report of a simulation: the best policy and its distance from the bound, tables, published numbers, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from schedgap.harness.check.served import tenants_of, unserved
from schedgap.harness.engine.result import grouped
from schedgap.harness.show.measures import BOUNDS, SERVED
from schedgap.harness.show.measures import SIMULATE as MEASURES
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import SIMULATE as COLUMNS
from schedgap.harness.show.page.columns import columns
from schedgap.harness.show.page.frame import Group, Page, Section
from schedgap.harness.show.page.statistics import MORE, details, differences, has_more, overall
from schedgap.harness.show.table import USUALLY, Block, Column, Line, Selection, explained, listed, table
from schedgap.harness.show.text import ABSENT, SIGNS, at_most, clean, percent
from schedgap.harness.studies.published import SIMULATE
from schedgap.harness.studies.simulate.row import Bound, Simulation, SimulationRow
from schedgap.harness.studies.statistics import statistics
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.schema import Instance


def parts(rows: Sequence[SimulationRow]) -> list[tuple[str, list[SimulationRow]]]:
    """Return ``(caption, rows)`` for each table; its rows share the instance, the seed and the options."""
    return [(caption(group), group) for group in grouped(rows, "case")]


def caption(rows: Sequence[SimulationRow]) -> str:
    """Return the caption of a table: the instance, rules, reference policy and bounds that its rows share."""
    row = rows[0]
    shared = [clean(row.instance, 80), f"rounds of {row.round_s:g} s", f"{row.restart_s:g} s per restart"]
    if row.spread_factor != 1:
        shared.append(f"gangs over several servers run at {row.spread_factor:g}")
    if row.network:
        shared.append("gangs over several servers exchange gradients over the network")
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
    bounds = [
        f"{MEASURES[metric].called} {SIGNS['at least']}{BOUNDS['seconds'].text(s, 'at least')} ({model})"
        for r in rows
        for metric, (s, model) in r.bounds.items()
    ]
    shared += dict.fromkeys(bounds)
    return " · ".join(shared)


def noted(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return ``(policy, message)`` pairs about violations, failures, skipped policies and unfinished jobs."""
    several = len({row.fingerprint for row in rows}) > 1
    lines = []
    for row in rows:
        name = clean(row.policy, 60) + (f" on {clean(row.instance, 60)}" if several else "")
        lines += [(name, f"WRONG: {clean(line, 400)}") for line in row.violations]
        lines += [(name, f"{clean(row.status, 40)}: {clean(row.reason, 400)}")] if row.reason else []
        lines += [(name, f"{count} jobs unfinished, {clean(why, 200)}") for why, count in row.unfinished.items()]
    return lines


def blocks(simulated: Simulation, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints: the answer, a table per instance, published numbers, and notes."""
    shown: list[Block] = [Line(headline(simulated), "bold red" if any(row.wrong for row in simulated.rows) else "bold")]
    found, several = simulated.once(statistics), parts(simulated.rows)
    if found and not (view.everything or view.sort or view.columns):
        shown += [*overall(found), *differences(found), *[Line(MORE, "dim")] * has_more(found)]
        more = f"{len(several)} tables of single instances: --all-rows"
        notes = frame.published_blocks(simulated.rows, simulated.instances, SIMULATE, noted(simulated.rows))
        return [*shown, Line(more, "dim"), *notes]
    for text, group in several:
        shown += listed(text, COLUMNS, group, dim=lambda row: row.status == "skipped", view=view)
        asked = any(name.startswith("served_") for name in view.columns)
        without = not_judged(group, simulated.instances.get(group[0].fingerprint)) if asked else []
        shown += frame.published_blocks(group, simulated.instances, SIMULATE, [*noted(group), *without])
    return shown


def page(simulated: Simulation) -> Page:
    """Return the page of a simulation."""
    rows = simulated.rows
    counts = {
        "instances": len({row.fingerprint for row in rows}),
        "policies": len({row.policy for row in rows}),
        "histories verified": sum(row.verified is True for row in rows),
    }
    found = simulated.once(statistics)
    tables = [*overall(found), *differences(found), *details(found)]
    groups = [Group("statistics", "statistics", "Over all instances", tables)] if tables else []
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
        more=[*_bounds_section(simulated), *_served_section(simulated)],
    )


def _bounds_section(simulated: Simulation) -> list[Section]:
    """Return a section with the certified bounds: value, time to compute, or the reason why there is none."""
    if not simulated.bounds:
        return []
    names = {row.fingerprint: clean(row.instance, 60) for row in simulated.rows}
    shown: tuple[Column[Bound], ...] = columns(
        BOUNDS,
        instance={"text": lambda bound: names.get(bound.fingerprint, "")},
        metric={"text": lambda bound: MEASURES[bound.metric].called, "css": "of"},
        model={"css": "method"},
        seconds={},
        took_s={},
        reason={"text": lambda bound: clean(bound.reason or "", 200), "css": "note"},
    )
    ordered = sorted(simulated.bounds, key=lambda bound: (names.get(bound.fingerprint, ""), bound.model))
    caption = "Certified lower bounds: no schedule of the kind that the model describes gets below them."
    return [Section("bounds", "Bounds", frame.macro("table", table(caption, shown, ordered), "Bounds"))]


@dataclass(frozen=True)
class TenantServed:
    """What a tenant got under a policy; its columns are :data:`schedgap.harness.show.measures.SERVED`."""

    policy: str
    tenant: str
    service_s: float
    split_s: float
    short: float
    behind_s: float
    envies: str
    finish: float | None

    @staticmethod
    def of(policy: str, told: Mapping[str, Any]) -> TenantServed:
        """Return what a row's `lacking` tells of a tenant."""
        told = dict(told)
        envied, envy = told.pop("envied"), told.pop("envy")
        envies = f"{clean(envied, 30)} ({percent(envy)})" if envied is not None else ""
        return TenantServed(policy, envies=envies, **told | {"tenant": clean(told["tenant"], 30)})


TENANTS: tuple[Column[TenantServed], ...] = columns(
    SERVED,
    policy={"css": "method"},
    tenant={},
    service_s={},
    split_s={},
    short={},
    behind_s={},
    envies={},
    finish={},
)


def harmed(rows: Sequence[SimulationRow]) -> list[TenantServed]:
    """Return the tenants that lack most of an equal split, for each policy."""
    return [TenantServed.of(row.policy, told) for row in rows if row.verified for told in row.lacking]


def not_judged(rows: Sequence[SimulationRow], instance: Instance | None) -> list[tuple[str, str]]:
    """Return ``(policy, message)`` pairs about policies whose service to several tenants is not judged."""
    tenants = len(tenants_of(instance.plain)[0]) if instance else 0
    if tenants < 2:
        return []
    said = []
    for row in rows:
        if row.verified and row.served_short is None:
            spec = POLICIES.get(row.policy)
            why = unserved(tenants, sensitive=spec.sensitive, forks=spec.forks)
            why = why or "there are too many tenants and rounds"
            said.append((clean(row.policy, 60), f"service to tenants is not judged: {why}"))
    return said


def _served_section(simulated: Simulation) -> list[Section]:
    """Return a section about who was harmed, by how much and for how long, in the service that was really got."""
    if not (several := parts(simulated.rows)):
        return []
    group = several[-1][1]
    rows, instance = harmed(group), simulated.instances.get(group[0].fingerprint)
    without = not_judged(group, instance)
    if not rows and not without:
        return []
    where = f" of {clean(group[0].instance, 60)}" if len(several) > 1 else ""
    caption = f"Served, not promised: the tenants{where} that lack most of an equal split, by policy"
    html = frame.macro("table", table(caption, TENANTS, rows), "Served") if rows else Markup("")
    return [Section("served", "Served", html + (frame.macro("notes", without) if without else ""))]


# ---------------------------------------------------------------- sentences


METRICS = (
    ("ttd_s", "ttd_bound_ratio", "finishes all jobs first, after", "more than the least that any schedule can reach"),
    ("jct_mean_s", "jct_bound_ratio", "has the least mean completion time,", "more than the best possible mean"),
)
"""For each metric: its field, the field with its ratio to the bound, and the words about the best policy."""


def headline(simulated: Simulation) -> str:
    """Return the headline: failures first, then the best policy and its distance from the bound."""
    if not simulated.rows:
        return "No policy was simulated."
    sentences = answers(simulated.rows)
    answer = sentences[0][1] if len(sentences) == 1 else _over(simulated.rows)
    return frame.answered(simulated, "policies", answer or "No policy finished all jobs.")


def answers(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return ``(name, sentence)`` for each instance with a verified time."""
    sentences = []
    for here in grouped(rows, "case"):
        name, options = clean(here[0].instance, 60), clean(here[0].options, 80)
        name += f" ({options})" if options else ""
        clauses = [_least(here, *metric) for metric in METRICS]
        if any(clauses):
            sentences.append((name, f"On {name}, {'; '.join(filter(None, clauses))}."))
    return sentences


def _least(rows: Sequence[SimulationRow], field: str, ratio: str, what: str, beyond: str) -> str:
    """Return a clause that names the best policy in one metric and its largest possible distance from the bound."""
    complete = [row for row in rows if row.verified and not row.unfinished and getattr(row, field) is not None]
    if not complete:
        return ""
    best = min(complete, key=lambda row: float(getattr(row, field)))
    text = f"{clean(best.policy, 60)} {what} {_hours(field, getattr(best, field))}"
    # If no bound covers the best policy, the policy nearest to its own bound answers the question.
    bounded = [row for row in complete if getattr(row, ratio) is not None]
    if not bounded:
        return text
    near = best if best in bounded else min(bounded, key=lambda row: float(getattr(row, ratio)))
    above = at_most(getattr(near, ratio) - 1.0)
    far = "optimal" if above == "at most 0 %" else f"{above} {beyond}"
    return f"{text}, {far}" if near is best else f"{text}; {clean(near.policy, 60)} is {far}"


def _hours(name: str, value_s: float) -> str:
    measure = MEASURES[name]
    return f"{measure.text(value_s)} {measure.format.unit}"


def _over(rows: Sequence[SimulationRow]) -> str:
    """Return a sentence about the policy whose largest ratio to a bound, over all instances, is the smallest."""
    cases = len({row.case for row in rows})
    over = f"Over {cases} {'instances' if cases == len({row.fingerprint for row in rows}) else 'cases'}"
    for field, beside, _, beyond in METRICS:
        bounded = [row for row in rows if row.verified and None not in (getattr(row, beside), getattr(row, field))]
        everywhere = [group for group in grouped(bounded, "policy") if len(group) == cases]
        if everywhere:
            worst = {group[0].policy: max(getattr(row, beside) for row in group) for group in everywhere}
            best = min(worst, key=worst.__getitem__)
            return f"{over}, the {MEASURES[field].words} of {clean(best, 60)} is {at_most(worst[best] - 1.0)} {beyond}."
    return f"{over}, no policy has a bound on all of them." if answers(rows) else ""
