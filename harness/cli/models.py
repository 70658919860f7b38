"""Command about models as files: ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app, say
from schedgap.harness.engine.task import Limits
from schedgap.instances.errors import UsageError


@app.command()
def export(
    method: Annotated[str | None, typer.Argument(help="Id of a model (harness list models).")] = None,
    instance: Annotated[list[str], typer.Option(help="gen/…, paper/…, or a path. A library has several.")] = [],  # noqa: B006
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File that ends in .mps, .lp, .mps.gz or .lp.gz.")
    ] = None,
    library: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write all models of the instances, with an index, instead.")
    ] = None,
    known: Annotated[
        list[Path],
        typer.Option(metavar="RESULTS", help="Results with best known values. Default: all models run. Repeatable."),
    ] = [],  # noqa: B006
    time_limit: Annotated[float | None, typer.Option(help="Seconds of each solve, where they run.")] = None,
) -> None:
    """Write a model, or a library of models, as files for solvers; harness verify --solution takes answers back."""
    if library is not None:
        if method or output:
            raise UsageError("a library has all models: leave METHOD and --output out")
        _library(library, instance, known, time_limit)
        return
    if method is None or output is None or len(instance) != 1:
        raise UsageError("name a model, one --instance and --output FILE; or --library DIR")
    from schedgap.harness.export import export as run

    found = run(method, instance[0], output)
    rows, columns = found.form.matrix.shape
    whole = int(found.form.integer.sum())
    say(f"{output}: {rows:,} rows, {columns:,} columns ({whole:,} integer); what they mean is in the .json beside it")


def _library(folder: Path, instances: list[str], known: list[Path], time_limit_s: float | None) -> None:
    from schedgap.harness.compare.run import compare, read_run
    from schedgap.harness.export import DEFAULT
    from schedgap.harness.export import library as run
    from schedgap.models import MODELS

    folder.mkdir(parents=True, exist_ok=True)
    references = instances or list(DEFAULT)
    if known:
        runs = [read_run(path) for path in known]
    else:
        methods = [spec.id for spec in MODELS if spec.kind != "baseline"]
        runs = [compare(references, methods, limits=Limits(time_limit_s), bound=False, jobs=1)]
    entries, left_out = run(folder, references, runs)
    say(f"{folder}: {len(entries)} models in index.csv, {len(left_out)} left out")
