"""``harness adversary``."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import app
from harness.cli.options import (
    DaskOption,
    Format,
    FormatOption,
    JobsOption,
    MemoryOption,
    ResultsOption,
    ResumeOption,
)
from harness.cli.output import emit_lines, finish
from harness.cli.terminal import progress, say
from instances.ranges import LARGEST_SEED

if TYPE_CHECKING:
    from harness.adversary import Adversary

COLUMNS = ("heuristic", "worst ratio", "guarantee there", "objective", "optimum", "jobs", "tried", "proved", "note")


@app.command()
def adversary(
    heuristic: Annotated[
        list[str], typer.Option(help="Id, pattern, or paper (its online algorithms); '*' for all. Repeatable.")
    ],
    budget: Annotated[str, typer.Option(help="Time for the search in all: 300s, 5m, 1h.")] = "60s",
    most_jobs: Annotated[int, typer.Option(min=1, max=20, help="Most jobs or tenants of an instance.")] = 6,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Look also where a guarantee of the paper promises nothing.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the search.")] = 0,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
) -> None:
    """Search the instance with the largest proved ratio of each online algorithm, shrink it and save it."""
    from harness.adversary import adversary as run
    from harness.adversary.running import seconds_of
    from harness.engine.limits import Limits

    with progress() as (start, advance):
        found = run(
            heuristic,
            budget_s=seconds_of(budget),
            most=most_jobs,
            anywhere=anywhere,
            seed=seed,
            limits=Limits(memory_mb=memory_mb),
            jobs=jobs,
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(found, partial(_emit, found, output), report=False)


def _emit(found: Adversary, output: Format) -> None:
    """Print the worst ratios to standard output."""
    from harness.adversary.running import as_dict

    if output is Format.JSON:
        sys.stdout.write(json.dumps([as_dict(one) for one in found.worst], indent=2) + "\n")
        return
    emit_lines("largest proved ratios", COLUMNS, _lines(found), output)
    for one in found.worst if output is Format.TABLE else ():
        if one.found:
            file = f"{found.folder}/worst/{one.heuristic}.json"
            say(f"replay: harness compare --instance {file} --method {one.heuristic} --method {one.found.model}")


def _lines(found: Adversary) -> list[tuple[str, ...]]:
    from harness.text import ABSENT, clean, number

    lines: list[tuple[str, ...]] = []
    for one in found.worst:
        notes = ["reaches nothing on another instance"] if one.nothing else []
        notes += ["the guarantee does not hold here"] if one.exceeded else []
        numbers = [ABSENT] * 5
        if one.found:
            guarantee, values = clean(one.found.guarantee or ABSENT, 40), (one.found.objective, one.found.optimum)
            numbers = [f"{one.found.ratio:.4g}", guarantee, *map(number, values), str(one.found.size)]
        lines.append((one.heuristic, *numbers, str(one.tried), str(one.proved), "; ".join(notes)))
    return lines
