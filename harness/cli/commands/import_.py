"""``harness import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedgap.harness.cli.app import app
from schedgap.harness.cli.terminal import say
from schedgap.instances.errors import UsageError


@app.command("import")
def import_(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="gavel, philly, … (harness list formats).")],
    file: Annotated[Path, typer.Argument(help="The trace.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Instance file to write (.json).")],
    throughputs: Annotated[Path | None, typer.Option(help="Gavel's throughput JSON.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Node list (openb).")] = None,
    max_jobs: Annotated[int | None, typer.Option(min=1, help="Only the first jobs by arrival.")] = None,
    gpus: Annotated[str | None, typer.Option(help="Cluster, as V100=36,P100=36,K80=36.")] = None,
    gpus_per_server: Annotated[
        int | None, typer.Option(min=1, help="GPUs of one server; the format's own if absent.")
    ] = None,
    cpus_per_gpu: Annotated[float | None, typer.Option(help="CPUs per GPU of a server; 3 if absent.")] = None,
    memory_gb_per_gpu: Annotated[float | None, typer.Option(help="GB per GPU of a server; 62.5 if absent.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None,
) -> None:
    """Import a real trace as an instance."""
    from schedgap.harness.listing import gpu_counts
    from schedgap.instances.canonical import write
    from schedgap.instances.importers import Options, import_trace

    if output.suffix != ".json":
        raise UsageError(f"{output}: an instance is written as .json")
    options = Options(
        max_jobs=max_jobs,
        gpus=gpu_counts(gpus) if gpus else None,
        gpus_per_server=gpus_per_server,
        cpus_per_gpu=cpus_per_gpu,
        memory_gb_per_gpu=memory_gb_per_gpu,
        throughputs=throughputs,
        nodes=nodes,
        name=name,
    )
    instance = import_trace(format_, file, options)
    write(instance, output)
    for line in instance.derived:
        say(f"derived: {line}")
    counts = f"{len(instance.jobs)} jobs, {len(instance.tenants)} tenants, {instance.cluster.gpus} GPUs"
    typer.echo(f"{output}: {counts}, fingerprint {instance.fingerprint[:12]}")
