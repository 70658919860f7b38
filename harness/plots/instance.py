"""A picture of an instance: its GPUs, when its jobs come and how large they are, how fast its tenants run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from schedgap.harness.figure import Drawn, Part, figure, parts
from schedgap.harness.plots.results import counted
from schedgap.harness.plots.style import PALETTE, label, panels, sparse_ticks
from schedgap.harness.text import clean
from schedgap.instances.schema import Instance

MOST_BARS = 12
MOST_ROWS = 60
"""Tenants' job types shown in the heat map, the first of them where there are more."""


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
    instance = data.instance
    chosen: list[Callable[[Axes, Instance], None]] = [_gpus]
    if len({job.submit_s for job in instance.jobs}) > 1:
        chosen.append(_arrivals)
    if instance.jobs:
        chosen.append(_sizes)
    if any(tenant.job_types for tenant in instance.tenants):
        chosen.append(_speedups)
    canvas, axes = panels(len(chosen), 2.3, columns=2)
    for ax, draw in zip(axes, chosen, strict=True):
        draw(ax, instance)
        if draw is not _speedups:
            ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return canvas


def _gpus(ax: Axes, instance: Instance) -> None:
    counts = instance.cluster.gpus_by_type
    shown = dict(list(counts.items())[:MOST_BARS])
    bars = ax.bar(range(len(shown)), list(shown.values()), 0.7, color=PALETTE[0])
    ax.bar_label(bars, fontsize=7)
    ax.set_xticks(range(len(shown)), [label(name, 12) for name in shown], rotation=0 if len(shown) <= 4 else 45)
    more = " (the first)" if len(shown) < len(counts) else ""
    ax.set(title=f"{instance.cluster.gpus:,} GPUs by type{more}", ylabel="GPUs")


def _arrivals(ax: Axes, instance: Instance) -> None:
    hours = np.array([job.submit_s for job in instance.jobs]) / 3600
    ax.hist(hours, bins=min(48, max(8, len(hours) // 4)), color=PALETTE[0], edgecolor="white")
    ax.set(xlabel="submission [h]", ylabel="jobs", title=f"{counted(len(hours), 'job')} by submission")


def _sizes(ax: Axes, instance: Instance) -> None:
    counts = Counter(job.gpus for job in instance.jobs)
    sizes = sorted(counts)[:MOST_BARS]
    ax.bar([f"{size:,}" for size in sizes], [counts[size] for size in sizes], 0.7, color=PALETTE[0])
    more = " (the smallest)" if len(sizes) < len(counts) else ""
    ax.set(xlabel="GPUs per job", ylabel="jobs", title=f"jobs by gang size{more}")


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
