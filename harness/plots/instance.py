"""A picture of an instance: its GPUs, when its jobs come and how large they are, how fast its tenants run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from schedgap.harness.plots.figures import counted, saved
from schedgap.harness.plots.style import PALETTE, label, panels, sparse_ticks, styled
from schedgap.harness.text import clean
from schedgap.instances.schema import Instance

__all__ = ["instance_figure", "saved"]

MOST_BARS = 12
MOST_ROWS = 60
"""Tenants' job types shown in the heat map, the first of them where there are more."""


def instance_figure(instance: Instance) -> Figure:
    """Return a figure of the instance: one panel for each thing that it has."""
    chosen: list[Callable[[Axes, Instance], None]] = [_gpus]
    if len({job.submit_s for job in instance.jobs}) > 1:
        chosen.append(_arrivals)
    if instance.jobs:
        chosen.append(_sizes)
    if any(tenant.job_types for tenant in instance.tenants):
        chosen.append(_speedups)
    with styled():
        figure, axes = panels(len(chosen), 2.3, columns=2)
        for ax, draw in zip(axes, chosen, strict=True):
            draw(ax, instance)
        figure.suptitle(clean(instance.name, 60), x=0.01, ha="left")
    return figure


def _gpus(ax: Axes, instance: Instance) -> None:
    counts = instance.cluster.gpus_by_type
    shown = list(counts.items())[:MOST_BARS]
    bars = ax.bar(range(len(shown)), [count for _, count in shown], 0.7, color=PALETTE[0])
    ax.bar_label(bars, fontsize=7)
    ax.set_xticks(range(len(shown)), [label(name, 12) for name, _ in shown], rotation=0 if len(shown) <= 4 else 45)
    ax.set_title(f"{instance.cluster.gpus:,} GPUs by type" + (" (the first)" if len(shown) < len(counts) else ""))
    ax.set_ylabel("GPUs")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def _arrivals(ax: Axes, instance: Instance) -> None:
    hours = np.array([job.submit_s for job in instance.jobs]) / 3600
    ax.hist(hours, bins=min(48, max(8, len(hours) // 4)), color=PALETTE[0], edgecolor="white")
    ax.set(xlabel="submission [h]", ylabel="jobs", title=f"{counted(len(hours), 'job')} by submission")


def _sizes(ax: Axes, instance: Instance) -> None:
    counts = Counter(job.gpus for job in instance.jobs)
    sizes = sorted(counts)[:MOST_BARS]
    ax.bar(range(len(sizes)), [counts[size] for size in sizes], 0.7, color=PALETTE[0])
    ax.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    title = "jobs by gang size" + (" (the smallest)" if len(sizes) < len(counts) else "")
    ax.set(xlabel="GPUs per job", ylabel="jobs", title=title)


def _speedups(ax: Axes, instance: Instance) -> None:
    """Draw the rates of the tenants' job types, relative to each one's slowest GPU type."""
    types = list(instance.cluster.gpus_by_type)
    rows = [(tenant.id, kind) for tenant in instance.tenants for kind in tenant.job_types]
    shown = rows[:MOST_ROWS]
    rates = np.array([[kind.rates[name] for name in types] for _, kind in shown])
    cells = rates / rates.min(axis=1, keepdims=True)
    annotate = cells.size <= 40
    bar = {"label": "rate / slowest type's rate [1]"}
    sns.heatmap(cells, ax=ax, cmap="viridis", annot=annotate, fmt=".2g", annot_kws={"fontsize": 7}, cbar_kws=bar)
    sparse_ticks(ax, "y", [label(name, 10) for name, _ in shown], 12)
    sparse_ticks(ax, "x", [label(name, 9) for name in types], 6)
    more = f" (first {len(shown)} of {len(rows)})" if len(shown) < len(rows) else ""
    ax.set_title(f"speedup by tenant{more}")
