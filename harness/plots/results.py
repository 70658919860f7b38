"""What figures are drawn from: papers and instances of a comparison; and an instance on which nothing has run yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots.style import PALETTE, Look, label, looks, panels, sparse_ticks
from schedgap.harness.text import clean
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

MAX_INSTANCES = 4
"""Instances of a run that have figures of their own, the first of them."""

MOST_BARS = 12
MOST_ROWS = 60
"""Tenants' job types shown in the heat map, the first of them where there are more."""

D = TypeVar("D")
Things = TypeVar("Things", bound=Sized)


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared(Part):
    """Results of a comparison that are about one paper, on all instances or on one."""

    run: Comparison
    rows: list[Row]

    @cached_property
    def view(self) -> Any:
        """The paper's view of the (first) instance of the rows."""
        return PAPERS.get(self.group).view(self.run.instances[self.rows[0].fingerprint])

    @cached_property
    def verified(self) -> dict[str, Row]:
        """Verified rows by method, in order; of several seeds the first."""
        known: dict[str, Row] = {}
        for row in self.rows:
            if row.verified:
                known.setdefault(row.method, row)
        return known

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """Verified decisions by method, in the order of the rows; of several seeds the first."""
        found = {method: self.run.decisions.get(row.name) for method, row in self.verified.items()}
        return {method: decision for method, decision in found.items() if decision is not None}

    @cached_property
    def prices(self) -> dict[str, Any]:
        """Prices that bounds come from, by method; of several seeds the first."""
        found = {row.method: row.name for row in reversed(self.rows) if row.verified is not False}
        return {method: self.run.prices[name] for method, name in found.items() if name in self.run.prices}

    def running(self, kind: type[D]) -> dict[str, D]:
        """Return the verified decisions of that type in which some job runs, by method."""
        return {method: d for method, d in self.decisions.items() if isinstance(d, kind) and d.job.size}  # type: ignore[attr-defined]

    def few(self, kind: type[D], most: int) -> tuple[dict[str, D], str]:
        """Return the decisions of that type that find room, and the end of a caption: the others, and n."""
        known = self.running(kind)
        methods, out = fitting(known, most)
        return {method: known[method] for method in methods}, out + self.n(len(methods))

    def results(self, problem: str) -> list[Row]:
        """Return the verified results of a problem, of several seeds the first, those of least objective first."""
        found = [row for row in self.verified.values() if row.problem == problem and row.objective is not None]
        return sorted(found, key=lambda row: row.objective or 0.0)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each method of the paper in the whole run, those that decide without settings of their own first."""
        mine = {row.method: row for row in self.run.rows if row.paper == self.group}
        return looks(sorted(mine, key=lambda m: "?" in m or mine[m].kind in ("relaxation", "bound")))

    def sample(self, drawn: Iterable[Row]) -> str:
        """Return the end of a caption: ``n = 7 results of 5 methods on …``, and what is not drawn."""
        methods = [row.method for row in drawn]
        count = counted(len(set(methods)), "method")
        return f"n = {counted(len(methods), 'result')} of {count} on {self.where}.{self.left_out}"

    def n(self, drawn: int, what: str = "") -> str:
        """Return the end of a caption: ``n = 3 jobs, 2 methods on …``, and what is not drawn."""
        seeds = " Of several seeds the first is shown." if len({row.seed for row in self.rows}) > 1 else ""
        size = what or counted(self.view.size, "job")
        return f"n = {size}, {counted(drawn, 'method')} on {self.where}.{seeds}{self.left_out}"

    @property
    def left_out(self) -> str:
        """Sentence about the results that no figure draws, behind a space; empty where there are none."""
        kinds = ["WRONG" if r.wrong else "failed" if r.failed else r.status for r in self.rows]
        listed = ", ".join(f"{kinds.count(k)} {k}" for k in ("WRONG", "failed", "skipped") if k in kinds)
        return f" Not drawn: {listed}." if listed else ""


@parts.register
def _(run: Comparison) -> list[Compared]:
    found = []
    for paper in dict.fromkeys(row.paper for row in run.rows):
        rows = [row for row in run.rows if row.paper == paper]
        marks = list(dict.fromkeys(row.fingerprint for row in rows))
        for of, mark in [("paper", ""), *(("instance", mark) for mark in marks[:MAX_INSTANCES])]:
            mine = [row for row in rows if mark in ("", row.fingerprint)]
            names = {row.instance for row in mine}
            where = clean(mine[0].instance, 40) if len(names) == 1 else f"{len(names)} instances"
            place = {"heading": f"{clean(paper, 20)} on {where}", "where": where}
            suffix = f"-{mark[:8]}" if mark and len(marks) > 1 else ""
            found.append(Compared(of=of, group=paper, **place, suffix=suffix, run=run, rows=mine))
    return found


def some(things: Things) -> Things:
    """Return what is to be drawn; if that is nothing, a :class:`NotApplicableError` leaves the figure out."""
    if not len(things):
        raise NotApplicableError("nothing to draw")
    return things


def counted(number: int, noun: str) -> str:
    """Return ``1 tenant`` or ``3 tenants``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fitting(methods: Collection[str], most: int) -> tuple[list[str], str]:
    """Return the methods that find room, and a sentence about the others; those with settings are left out first."""
    kept = sorted(some(methods), key=lambda method: base_id(method) != method)[:most]
    out = ", ".join(clean(method, 30) for method in methods if method not in kept)
    return [method for method in methods if method in kept], f"No room for: {out}. " if out else ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Described(Part):
    """An instance before anything has run on it."""

    instance: Instance


@parts.register
def _(instance: Instance) -> list[Described]:
    name = clean(instance.name, 60)
    return [Described(of="input", group=name, heading=name, where=name, instance=instance)]


@figure("overview", "Instance", of="input")
def overview(data: Described) -> Drawn:
    """GPUs by type, jobs by submission and size, and speedups of the tenants."""
    jobs, cluster = data.instance.jobs, data.instance.cluster
    hours = np.array([job.submit_s for job in jobs]) / 3600
    several, speedups = np.unique(hours).size > 1, any(tenant.job_types for tenant in data.instance.tenants)
    canvas, axes = panels(1 + several + bool(jobs) + speedups, 2.3, columns=2)
    rest = iter(axes)
    _bars(next(rest), cluster.gpus_by_type, f"{cluster.gpus:,} GPUs by type", "the first", ylabel="GPUs")
    if several:
        ax = next(rest)
        ax.hist(hours, bins=min(48, max(8, len(jobs) // 4)), color=PALETTE[0], edgecolor="white")
        ax.set(xlabel="submission [h]", ylabel="jobs", title=f"{counted(len(jobs), 'job')} by submission")
    if jobs:
        sizes = {f"{size:,}": count for size, count in sorted(Counter(job.gpus for job in jobs).items())}
        _bars(next(rest), sizes, "jobs by gang size", "the smallest", xlabel="GPUs per job", ylabel="jobs")
    for ax in axes[: len(axes) - speedups]:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    if speedups:
        _speedups(next(rest), data.instance)
    return canvas


def _bars(ax: Axes, counts: Mapping[str, int], title: str, which: str, **labels: str) -> None:
    """Draw a bar for each of the first counts."""
    shown = list(counts.items())[:MOST_BARS]
    bars = ax.bar(range(len(shown)), [count for _, count in shown], 0.7, color=PALETTE[0])
    ax.bar_label(bars, fontsize=7)
    names = [label(name, 12) for name, _ in shown]
    ax.set_xticks(range(len(shown)), names, rotation=45 if sum(map(len, names)) > 30 else 0)
    ax.set(title=title + (f" ({which})" if len(shown) < len(counts) else ""), **labels)


def _speedups(ax: Axes, instance: Instance) -> None:
    """Draw the rates of the tenants' job types, relative to each one's slowest GPU type."""
    types = list(instance.cluster.gpus_by_type)
    rows = [(tenant.id, kind) for tenant in instance.tenants for kind in tenant.job_types]
    shown = rows[:MOST_ROWS]
    rates = np.array([[kind.rates[name] for name in types] for _, kind in shown])
    cells = rates / rates.min(axis=1, keepdims=True)
    annotated = {"annot": cells.size <= 40, "fmt": ".2g", "annot_kws": {"fontsize": 7}}
    sns.heatmap(cells, ax=ax, cmap="viridis", cbar_kws={"label": "rate / slowest type's rate [1]"}, **annotated)
    sparse_ticks(ax, "y", [label(name, 10) for name, _ in shown], 12)
    sparse_ticks(ax, "x", [label(name, 9) for name in types], 6)
    more = f" (first {len(shown)} of {len(rows)})" if len(shown) < len(rows) else ""
    ax.set_title(f"speedup by tenant{more}")
