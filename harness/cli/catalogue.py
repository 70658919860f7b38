"""Commands about what there is to run: ``list``, ``schema``, ``show``, ``import``, ``explain`` and ``export``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps as json_of
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from schedgap.harness.cli.app import FormatOption, app, emit_lines, say, stdout
from schedgap.harness.engine.task import Limits
from schedgap.harness.table import Format
from schedgap.instances.errors import UsageError

Kind = Literal["instances", "models", "heuristics", "policies", "papers", "figures", "formats", "plugins"]
"""What ``harness list`` lists."""


@app.command("list")
def list_(kind: Annotated[Kind, Argument(help="What to list.")], output: FormatOption = Format.TABLE) -> None:
    """List what there is, one line each, with source."""
    columns: tuple[str, ...]
    found: Sequence[tuple[str, ...]]
    match kind:  # what other lists are about is not imported
        case "figures":
            from schedgap.harness.page.columns import REPRODUCE
            from schedgap.harness.reproduce.measure import rows
            from schedgap.harness.reproduce.setting import known as figures

            (printed,) = (column.text for column in REPRODUCE if column.key == "published")
            columns = "figure", "place", "what it shows", "compared", "published"
            found = []
            for id, one in figures().items():
                told = [f"{r.method} {r.what} {printed(r)}".strip() if one.runs else printed(r) for r in rows(one, [])]
                needs = f"needs {one.needs}" if one.needs else ""
                compared = f"{len(one.items)}{'; more ' * bool(needs)}{needs}" if one.runs else f"no: {needs}"
                found.append((id, one.place, one.title, compared, "; ".join(told)))
        case "formats":
            from schedgap.instances.importers import IMPORTERS

            columns, found = ("format", "what it is", "source"), sorted((i.id, i.title, i.source) for i in IMPORTERS)
        case "heuristics":
            from schedgap.heuristics import HEURISTICS

            columns = "heuristic", "kind", "problem", "claims", "source"
            found = [(h.id, h.kind, h.problem, ", ".join(h.claims), h.source) for h in HEURISTICS]
        case "instances":
            from schedgap.instances.catalogue import known

            columns, found = ("instance", "kind", "what it is"), [tuple(entry) for entry in known()]
        case "models":
            from schedgap.models import MODELS

            columns = "model", "kind", "problem", "claims", "source"
            found = [(m.id, m.kind, f"{m.problem} ({m.sense})", ", ".join(m.claims), m.source) for m in MODELS]
        case "papers":
            import schedgap.instances.views  # noqa: F401 -- registers the papers
            from schedgap.heuristics import HEURISTICS
            from schedgap.instances.registry import PAPERS
            from schedgap.models import MODELS

            columns = "paper", "models", "heuristics", "title"
            both = (MODELS, HEURISTICS)
            found = [(p.id, *(str(sum(one.paper == p.id for one in specs)) for specs in both), p.title) for p in PAPERS]
        case "plugins":
            from schedgap.instances.plugins import listed

            columns, found = ("plug-in", "kind", "brought by", "registers"), listed()
        case "policies":
            from schedgap.heuristics.simulator import POLICIES

            columns = "policy", "copies", "source"
            found = [(p.id, "forks jobs" if p.forks else "", p.source) for p in POLICIES]
    emit_lines(kind, columns, found, output)


@app.command()
def schema(
    what: Annotated[Literal["policy"], Argument(help="policy: what simulate says to the program of --policy exec:…")],
) -> None:
    """Print the JSON Schema of what is exchanged with programs from elsewhere."""
    from schedgap.heuristics.simulator.program import schema as of_policies

    typer.echo(json_of({"policy": of_policies}[what](), indent=2, ensure_ascii=False))


@app.command()
def show(
    instance: Annotated[str, Argument(help="gen/…, paper/…, worst/…, or a path.")],
    picture: Annotated[Path | None, Option(help="Also draw it to this .png, .svg or .pdf file.")] = None,
    json: Annotated[bool, Option("--json", help="Print the instance itself as canonical JSON.")] = False,
) -> None:
    """Show an instance in words and a picture."""
    from schedgap.harness.figure import figures
    from schedgap.harness.page.instance import words
    from schedgap.instances import load
    from schedgap.instances.canonical import to_json

    loaded = load(instance)
    if picture:
        figures(loaded)[0].save(picture)
    if json:
        sys.stdout.write(to_json(loaded))
    else:
        stdout().print(words(loaded), crop=False)


@app.command("import")
def import_(
    format_: Annotated[str, Argument(metavar="FORMAT", help="gavel, philly, … (harness list formats).")],
    file: Annotated[Path, Argument(help="The trace.")],
    output: Annotated[Path, Option("--output", "-o", help="Instance file to write (.json).")],
    throughputs: Annotated[Path | None, Option(help="Gavel's throughput JSON.")] = None,
    nodes: Annotated[Path | None, Option(help="Node list (openb).")] = None,
    max_jobs: Annotated[int | None, Option(min=1, help="Only the first jobs by arrival.")] = None,
    hours: Annotated[str, Option(help="Only jobs that arrive in these hours of the trace, as 24,48.")] = "",
    gangs: Annotated[str, Option(help="Only jobs of so many GPUs, as 1,2,4.")] = "",
    split: Annotated[str, Option(help="Shares of Synergy's image, language and speech models, as 20,70,10.")] = "",
    gpus: Annotated[str | None, Option(help="Cluster, as V100=36,P100=36,K80=36.")] = None,
    gpus_per_server: Annotated[int | None, Option(min=1, help="GPUs of one server, by default the format's.")] = None,
    cpus_per_gpu: Annotated[float | None, Option(help="CPUs per GPU of a server; 3 if absent.")] = None,
    memory_gb_per_gpu: Annotated[float | None, Option(help="GB per GPU of a server; 62.5 if absent.")] = None,
    name: Annotated[str | None, Option(help="Name of the instance.")] = None,
    history: Annotated[bool, Option("--history", help="Read when jobs started and ended, too.")] = False,
) -> None:
    """Import a real trace as an instance."""
    from schedgap.instances.canonical import write
    from schedgap.instances.importers import Options, import_trace

    if output.suffix != ".json":
        raise UsageError(f"{output}: an instance is written as .json")
    window = _numbers("hours", hours)
    if len(window) not in (0, 2):
        raise UsageError(f"--hours {hours}: two hours of the trace, as 24,48")
    options = Options(
        max_jobs=max_jobs,
        hours=(window[0], window[1]) if window else None,
        gangs=tuple(int(size) for size in _numbers("gangs", gangs)),
        split=_numbers("split", split),
        gpus=gpu_counts(gpus) if gpus else None,
        gpus_per_server=gpus_per_server,
        cpus_per_gpu=cpus_per_gpu,
        memory_gb_per_gpu=memory_gb_per_gpu,
        throughputs=throughputs,
        nodes=nodes,
        name=name,
        history=history,
    )
    instance = import_trace(format_, file, options)
    write(instance, output)
    say_derived(instance)
    counts = f"{len(instance.jobs)} jobs, {len(instance.tenants)} tenants, {instance.cluster.gpus} GPUs"
    typer.echo(f"{output}: {counts}, fingerprint {instance.fingerprint[:12]}")


def _numbers(name: str, text: str) -> tuple[float, ...]:
    """Return the numbers of ``20,70,10``, none of an empty text, or raise `UsageError` for anything else."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"--{name} {text}: numbers are written as 20,70,10") from None


def gpu_counts(text: str) -> dict[str, int]:
    """Return ``{"V100": 36, "P100": 36}`` for ``V100=36,P100=36``, or raise `UsageError` for anything else."""
    found = pairs(text)
    if not all(name and number.isdigit() and int(number) > 0 for name, number in found):
        raise UsageError(f"--gpus {text}: a cluster is written as V100=36,P100=36 with at least one GPU of a type")
    return {name: int(number) for name, number in found}


def pairs(text: str) -> list[tuple[str, str]]:
    """Return ``[("V100", "36"), ("P100", "36")]`` for ``V100=36,P100=36``; what is missing is empty."""
    parts = (part.partition("=") for part in text.split(","))
    return [(name.strip(), value.strip()) for name, _, value in parts]


def say_derived(instance: Any) -> None:
    """Tell what an importer filled in by rule."""
    for line in instance.derived:
        say(f"derived: {line}")


@app.command()
def explain(
    name: Annotated[str, Argument(help="Model or heuristic, or the beginning of ids: hadar.p1, hadar.p2, 'oef.*'.")],
    instance: Annotated[str | None, Option(help="gen/…, paper/…, or a path. Default: a small one.")] = None,
    style: Annotated[
        Literal["text", "latex", "markdown", "json"], Option("--format", help="How it is printed to standard output.")
    ] = "text",
    large: Annotated[bool, Option("--all", help="Build models above their stated size, too.")] = False,
) -> None:
    """Explain a model or heuristic: its docstring with mathematics and equation numbers, parameters, sizes."""
    from schedgap.harness.explain import explain as explained

    def begins(model: str, where: str) -> None:
        if sys.stderr.isatty():
            say(f"building {model} on {where}")

    found = explained(name, instance, large=large, on_model=begins)
    sys.stdout.write(str(getattr(found, style)))


@app.command()
def export(
    method: Annotated[str | None, Argument(help="Id of a model (harness list models).")] = None,
    instance: Annotated[list[str], Option(help="gen/…, paper/…, or a path. A library has several.")] = [],  # noqa: B006
    output: Annotated[Path | None, Option("--output", "-o", help="File in .mps, .lp, .mps.gz or .lp.gz.")] = None,
    library: Annotated[Path | None, Option(metavar="DIR", help="Write all models, with an index, instead.")] = None,
    known: Annotated[
        list[Path],
        Option(metavar="RESULTS", help="Results with best known values. Default: all models run. Repeatable."),
    ] = [],  # noqa: B006
    time_limit: Annotated[float | None, Option(help="Seconds of each solve, where they run.")] = None,
) -> None:
    """Write a model, or a library of models, as files for solvers; harness verify --solution takes answers back."""
    if library is not None:
        if method or output:
            raise UsageError("a library has all models: leave METHOD and --output out")
        from schedgap.harness.compare.run import compare, read_run
        from schedgap.harness.export import DEFAULT
        from schedgap.harness.export import library as write
        from schedgap.models import MODELS

        library.mkdir(parents=True, exist_ok=True)
        references, runs = instance or list(DEFAULT), [read_run(path) for path in known]
        if not known:
            methods = [spec.id for spec in MODELS if spec.kind != "baseline"]
            runs = [compare(references, methods, limits=Limits(time_limit), bound=False, jobs=1)]
        entries, left_out = write(library, references, runs)
        say(f"{library}: {len(entries)} models in index.csv, {len(left_out)} left out")
        return
    if method is None or output is None or len(instance) != 1:
        raise UsageError("name a model, one --instance and --output FILE; or --library DIR")
    from schedgap.harness.export import export as run

    found = run(method, instance[0], output)
    rows, columns = found.form.matrix.shape
    whole = int(found.form.integer.sum())
    say(f"{output}: {rows:,} rows, {columns:,} columns ({whole:,} integer); what they mean is in the .json beside it")
