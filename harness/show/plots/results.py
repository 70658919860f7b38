"""Parts of a comparison for figures (its papers and instances), and the overview figure of an instance alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import altair as alt

from schedgap.harness.engine.result import Later, Opened, grouped
from schedgap.harness.show.figure import Drawn, Part, figure, parts
from schedgap.harness.show.looks import Look
from schedgap.harness.show.plots import style
from schedgap.harness.show.text import clean
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

MAX_INSTANCES = 4
"""Maximum number of instances of a run, counted from the first, that have their own figures."""

MOST_BARS = 20
SIZE = 250, 150
"""Width and height of each chart of the overview in pixels."""

BAR = alt.MarkDef("bar", color=style.ACCENT)

MOST_ROWS = 60
"""Maximum number of tenants' job types in the heat map; the first ones are shown."""

D = TypeVar("D")
Things = TypeVar("Things", bound=Sized)


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared(Part):
    """Results of a comparison for one paper, on all instances or on one."""

    run: Comparison
    rows: list[Row]

    @cached_property
    def view(self) -> Any:
        """The paper's view of the (first) instance of the rows."""
        return PAPERS.get(self.group).view(self.instance)

    @property
    def instance(self) -> Instance:
        """The (first) instance of the rows."""
        return self.run.instances[self.rows[0].fingerprint]

    @cached_property
    def clock(self) -> style.Clock:
        """The unit of all times in the figures of this instance."""
        return style.clock_of(self.instance)

    @cached_property
    def verified(self) -> dict[str, Row]:
        """First verified row of each method, in order."""
        verified: dict[str, Row] = {}
        for row in self.rows:
            if row.verified:
                verified.setdefault(row.method, row)
        return verified

    @cached_property
    def decisions(self) -> Mapping[str, Any]:
        """First verified decision of each method, in the order of the rows; each is read on first access."""
        stored = self.run.decisions
        names = {method: row.name for method, row in self.verified.items() if row.name in stored}
        return Opened({method: Later(partial(stored.__getitem__, name)) for method, name in names.items()})

    @cached_property
    def prices(self) -> dict[str, Any]:
        """Prices behind the first bound of each method."""
        names = {row.method: row.name for row in reversed(self.rows) if row.verified is not False}
        return {method: self.run.prices[name] for method, name in names.items() if name in self.run.prices}

    def running(self, kind: type[D]) -> dict[str, D]:
        """Return the verified decisions of this type in which at least one job runs, by method."""
        return {method: d for method, d in self.decisions.items() if isinstance(d, kind) and d.job.size}  # type: ignore[attr-defined]

    def results(self, problem: str) -> list[Row]:
        """Return the first verified result of each method on a problem, by increasing objective."""
        rows = [row for row in self.verified.values() if row.problem == problem and row.objective is not None]
        return sorted(rows, key=lambda row: row.objective or 0.0)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Colour and dashes of each method, the same in all figures of a run.

        Methods with parameters, relaxations and bounds come last, so that the others get the first colours.
        """
        mine = {row.method: row for row in self.run.rows if row.paper == self.group}
        return style.looks(sorted(mine, key=lambda m: "?" in m or mine[m].kind in ("relaxation", "bound")))

    def sample(self, drawn: Iterable[Row]) -> str:
        """Return the end of a caption: ``n = 7 results of 5 methods on …``, and the results that are not drawn."""
        methods = [row.method for row in drawn]
        count = counted(len(set(methods)), "method")
        return f"n = {counted(len(methods), 'result')} of {count} on {self.where}.{self.left_out}"

    def n(self, drawn: int, what: str = "") -> str:
        """Return the end of a caption: ``n = 3 jobs, 2 methods on …``, and the results that are not drawn."""
        seeds = " Only the first of several seeds is shown." if len({row.seed for row in self.rows}) > 1 else ""
        size = what or counted(self.view.size, "job")
        return f"n = {size}, {counted(drawn, 'method')} on {self.where}.{seeds}{self.left_out}"

    @property
    def left_out(self) -> str:
        """Sentence that counts the results no figure draws, after a space; empty if there are none."""
        kinds = ["WRONG" if r.wrong else "failed" if r.failed else r.status for r in self.rows]
        listed = ", ".join(f"{kinds.count(k)} {k}" for k in ("WRONG", "failed", "skipped") if k in kinds)
        return f" Not drawn: {listed}." if listed else ""


@parts.register
def _(run: Comparison) -> list[Compared]:
    drawn_parts = []
    for rows in grouped(run.rows, "paper"):
        paper = rows[0].paper
        marks = list(dict.fromkeys(row.fingerprint for row in rows))
        for of, mark in [("paper", ""), *(("instance", mark) for mark in marks[:MAX_INSTANCES])]:
            mine = [row for row in rows if mark in ("", row.fingerprint)]
            names = {row.instance for row in mine}
            where = clean(mine[0].instance, 40) if len(names) == 1 else f"{len(names)} instances"
            place = {"heading": f"{clean(paper, 20)} on {where}", "where": where}
            suffix = f"-{mark[:8]}" if mark and len(marks) > 1 else ""
            drawn_parts.append(Compared(of=of, group=paper, **place, suffix=suffix, run=run, rows=mine))
    return drawn_parts


def some(things: Things) -> Things:
    """Return `things`, or raise :class:`NotApplicableError` if there are none, so that the figure is left out."""
    if not len(things):
        raise NotApplicableError("nothing to draw")
    return things


@dataclass(frozen=True, eq=False, kw_only=True)
class Described(Part):
    """An instance without results."""

    instance: Instance


@parts.register
def _(instance: Instance) -> list[Described]:
    name = clean(instance.name, 60)
    return [Described(of="input", group=name, heading=name, where=name, instance=instance)]


@figure("overview", "Instance", of="input")
def overview(data: Described) -> Drawn:
    """GPUs by type, jobs by submission time and by gang size, and speedups of the tenants."""
    jobs, cluster = data.instance.jobs, data.instance.cluster
    charts = [_bars(cluster.gpus_by_type, f"{cluster.gpus:,} GPUs by type", "GPUs")]
    hours = [job.submit_s / 3600 for job in jobs]
    if len(set(hours)) > 1:
        bins = alt.X("hour:Q", bin=alt.Bin(maxbins=40), title="submission [h]", axis=alt.Axis(grid=False))
        arrivals = style.plot([{"hour": hour} for hour in hours], BAR, bins, style.y("count()", "jobs"), size=SIZE)
        charts.append(arrivals.properties(title=f"{counted(len(jobs), 'job')} by submission"))
    if jobs:
        sizes = {f"{size:,}": count for size, count in sorted(Counter(job.gpus for job in jobs).items())}
        charts.append(_bars(sizes, "jobs by gang size", "jobs"))
    if any(tenant.job_types for tenant in data.instance.tenants):
        charts.append(_speedups(data.instance))
    chart: alt.ConcatChart = alt.concat(*charts, columns=2).resolve_scale(color="independent")
    return chart


def _bars(counts: Mapping[str, int], title: str, ylabel: str) -> Any:
    shown = [{"what": clean(what, 20), "count": count} for what, count in counts.items()][:MOST_BARS]
    title += f" (the first {MOST_BARS})" if len(counts) > MOST_BARS else ""
    axes = alt.X("what:N", sort=None, title=None), style.y("count", ylabel)
    return style.plot(shown, BAR, *axes, size=SIZE).properties(title=title)


def _speedups(instance: Instance) -> Any:
    """Return a heat map of the rates of the tenants' job types, relative to the slowest GPU type of each."""
    kinds = [(tenant.id, kind) for tenant in instance.tenants for kind in tenant.job_types]
    cells = [
        {"tenant": f"{i} {clean(tenant, 10)}", "type": clean(name, 12), "speedup": rate / slowest}
        for i, (tenant, kind) in enumerate(kinds[:MOST_ROWS], 1)
        for slowest in [min(kind.rates.values())]
        for name, rate in kind.rates.items()
    ]
    more = f" (first {MOST_ROWS} of {len(kinds)})" if len(kinds) > MOST_ROWS else ""
    axes = alt.X("type:N", sort=None, title=None), alt.Y("tenant:N", sort=None, title=None)
    colour = alt.Color("speedup:Q", title="rate / slowest type's rate")
    chart = style.plot(cells, "rect", *axes, color=colour, tips=["tenant", "type", "speedup"], size=SIZE)
    return chart.properties(title=f"speedup by tenant{more}")
