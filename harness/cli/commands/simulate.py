"""``harness simulate``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.options import (
    DaskOption,
    Format,
    FormatOption,
    InstanceOption,
    JobsOption,
    MemoryOption,
    PolicyOption,
    ProfilingOption,
    ReportOption,
    ResultsOption,
    ResumeOption,
    WindowOption,
)
from schedgap.harness.cli.output import emit, finish
from schedgap.harness.cli.terminal import progress
from schedgap.instances.ranges import LARGEST_SEED


@app.command()
def simulate(
    instance: InstanceOption,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[POLICY]...", help="More policies, as in --policy a b c.")
    ] = None,
    policy: PolicyOption = None,
    round_s: Annotated[float | None, typer.Option(help="Seconds of a round. Default: the instance's slot.")] = None,
    restart_s: Annotated[
        float | None, typer.Option(help="Seconds that a changed allocation costs. Default: 10, 0 in shorter rounds.")
    ] = None,
    spread_factor: Annotated[
        float, typer.Option(help="Factor on the rate of gangs that span servers, in (0, 1].")
    ] = 1.0,
    until_h: Annotated[float, typer.Option(help="No round starts after so many hours.")] = float("inf"),
    profiling_min: ProfilingOption = 0.0,
    window: WindowOption = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=LARGEST_SEED, help="Seed of the solver; ?seed=… draws another instance."),
    ] = 0,
    time_limit: Annotated[float, typer.Option(help="Wall-clock seconds after which a simulation is killed.")] = 3600.0,
    memory_mb: MemoryOption = 4096,
    jobs: JobsOption = 0,
    dask: DaskOption = None,
    output: FormatOption = Format.TABLE,
    results: ResultsOption = Path("results"),
    resume: ResumeOption = None,
    report: ReportOption = True,
) -> None:
    """Simulate schedulers round by round; report times, utilisation and certified ratios, every history checked."""
    from schedgap.harness.engine.limits import Limits
    from schedgap.harness.simulate.run import COMPARED
    from schedgap.harness.simulate.run import simulate as run_simulation
    from schedgap.heuristics.simulator.metrics import ALL, Window

    with progress() as (start, advance):
        simulation = run_simulation(
            instance,
            [*(policy or []), *(more or [])] or COMPARED,
            round_s=round_s,
            restart_s=restart_s,
            spread_factor=spread_factor,
            until_s=until_h * 3600,
            profiling_s=profiling_min * 60,
            window=Window.parse(window) if window else ALL,
            seed=seed,
            jobs=jobs,
            limits=Limits(time_limit, memory_mb=memory_mb),
            dask=dask,
            results=results,
            resume=resume,
            on_start=start,
            on_result=advance,
        )
    finish(simulation, partial(emit, simulation, output), report and bool(simulation.rows))
