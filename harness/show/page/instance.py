"""Text and character graphics with which ``harness show`` describes an instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from schedgap.harness.show.text import SIGNS, clean, numbers
from schedgap.harness.studies.published import commands, never_compared
from schedgap.harness.studies.reproduce.setting import elsewhere
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance
from schedgap.instances.schema.summary import describe
from schedgap.instances.text import unit_of

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

LEVELS = " ▁▂▃▄▅▆▇█"
SPARK_WIDTH = 60
BAR_WIDTH = 40


def words(instance: Instance) -> Group:
    """Return a description of the instance in words, with a picture drawn in characters."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in [*describe(instance), *profiled(instance)]:
        facts.add_row(Text(name), Text(value))
    parts: list[RenderableType] = [Text(instance.name, style="bold underline"), facts]
    lines = [*published(instance), *picture(instance)]  # never wrapped, since some are commands to copy
    return Group(*parts, *(Text(line, no_wrap=True, overflow="ignore") for line in lines))


def published(instance: Instance) -> list[str]:
    """Return lines with the numbers published about the instance, under the command that leads to ours beside them."""
    figures = elsewhere(instance)
    moved = [entry for entries in figures.values() for entry in entries]
    rest = instance.model_copy(update={"published": tuple(one for one in instance.published if one not in moved)})
    headings = {f"harness reproduce {figure}": entries for figure, entries in figures.items()} | commands(rest)
    headings |= {f"not compared: {why}": entries for why, entries in never_compared(rest).items()}
    lines = []
    for heading, entries in headings.items():
        lines += ["", f"published; {heading}"]
        for entry in entries:
            value = numbers(entry.exact) + " (exact)" if entry.value is None else numbers(entry.value)
            unit = "" if entry.unit == "1" else f" {entry.unit}"
            printed = f"{entry.quantity}: {SIGNS.get(entry.relation, '')}{value}{unit}"
            lines.append(f"  {clean(f'{entry.method} {printed}, {entry.where}', 200)}")
    return lines


def profiled(instance: Instance) -> list[tuple[str, str]]:
    """Return the cost and the errors of optimistic profiling as a fact; none if the jobs have no sensitivities."""
    from schedgap.heuristics.synergy.profiling import describe as describe_profiling
    from schedgap.instances.views.synergy import view

    try:
        return [("profiling", "\n".join(describe_profiling(view(instance))))]
    except NotApplicableError:
        return []


def picture(instance: Instance) -> list[str]:
    """Return lines that chart GPUs by type, arrivals over time, and jobs by gang size."""
    unit = unit_of(instance.cluster.gpus_by_type)
    lines = ["", f"{unit}s by type", *_bars(instance.cluster.gpus_by_type)]
    submit_s = [job.submit_s for job in instance.jobs]
    if len(set(submit_s)) > 1:
        counts, edges = np.histogram(submit_s, bins=SPARK_WIDTH, range=(0, max(1.0, *submit_s)))
        caption = f"jobs arriving, each column {edges[1] / 60:.3g} minutes, at most {counts.max()}"
        heights = -(-counts * (len(LEVELS) - 1) // counts.max())  # rounded up, so that any count above 0 is visible
        lines += ["", caption, "".join(LEVELS[height] for height in heights)]
    if gangs := Counter(job.gpus for job in instance.jobs):
        lines += ["", f"jobs by gang size ({unit}s)", *_bars({str(size): gangs[size] for size in sorted(gangs)})]
    return lines


def _bars(counts: Mapping[str, int]) -> list[str]:
    top = max(1, *counts.values())
    width = min(max(map(len, counts)), 24)
    return [f"{name[:width]:>{width}} {'█' * -(-count * BAR_WIDTH // top)} {count}" for name, count in counts.items()]
