"""Commands about instances and methods: `list`, `schema`, `show`, `import`, `fit`, `explain` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps as json_of
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from schedgap.harness.cli.app import INSTANCES, METHODS, FormatOption, app, emit_lines, say, stdout, write
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.table import OutputFormat
from schedgap.instances.errors import UsageError
from schedgap.instances.ranges import MAX_BAD
from schedgap.instances.text import counted, unit_of

Kind = Literal["instances", "models", "heuristics", "policies", "papers", "figures", "formats", "plugins"]
"""What ``harness list`` lists."""


@app.command("list")
def list_(
    kind: Annotated[Kind, Argument(help="What to list.")],
    name: Annotated[str | None, Argument(help="One of the formats: how its files look, and how they are read.")] = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """List instances, methods or other entries, each with its source."""
    if name is not None:
        typer.echo(described(kind, name))
        return
    columns: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    match kind:  # each case imports only what it lists
        case "figures":
            from schedgap.harness.show.page.columns import REPRODUCE
            from schedgap.harness.studies.reproduce.measure import rows
            from schedgap.harness.studies.reproduce.setting import known as figures

            (printed,) = (column.text for column in REPRODUCE if column.key == "published")
            columns = "figure", "place", "what it shows", "compared", "published"
            lines = []
            for id, one in figures().items():
                texts = [f"{r.method} {r.what} {printed(r)}".strip() if one.runs else printed(r) for r in rows(one, [])]
                needs = f"needs {one.needs}" if one.needs else ""
                compared = f"{len(one.items)}{'; more ' * bool(needs)}{needs}" if one.runs else f"no: {needs}"
                lines.append((id, one.place, one.title, compared, "; ".join(texts)))
        case "formats":
            from schedgap.instances.importers import IMPORTERS

            columns, lines = ("format", "what it is", "source"), sorted((i.id, i.title, i.source) for i in IMPORTERS)
        case "heuristics":
            from schedgap.heuristics import HEURISTICS

            columns = "heuristic", "kind", "problem", "claims", "source"
            lines = [(h.id, h.kind, h.problem, ", ".join(h.claims), h.source) for h in HEURISTICS]
        case "instances":
            from schedgap.instances.catalogue import known

            columns, lines = ("instance", "kind", "what it is"), [tuple(entry) for entry in known()]
        case "models":
            from schedgap.models import MODELS

            columns = "model", "kind", "problem", "claims", "source"
            lines = [(m.id, m.kind, f"{m.problem} ({m.sense})", ", ".join(m.claims), m.source) for m in MODELS]
        case "papers":
            import schedgap.instances.views  # noqa: F401 -- registers the papers
            from schedgap.heuristics import HEURISTICS
            from schedgap.instances.registry import PAPERS
            from schedgap.models import MODELS

            columns = "paper", "models", "heuristics", "title"
            methods = (MODELS, HEURISTICS)
            lines = [(p.id, *(str(sum(s.paper == p.id for s in specs)) for specs in methods), p.title) for p in PAPERS]
        case "plugins":
            from schedgap.instances.plugins import listed

            columns, lines = ("plug-in", "kind", "brought by", "registers"), listed()
        case "policies":
            from schedgap.heuristics.simulator import POLICIES

            columns = "policy", "copies", "source"
            lines = [(p.id, "forks jobs" if p.forks else "", p.source) for p in POLICIES]
    emit_lines(kind, columns, lines, output)


def described(kind: Kind, name: str) -> str:
    """Return what a format is, where it comes from, and its layout; raise `UsageError` for other kinds."""
    from schedgap.instances.importers import IMPORTERS

    if kind != "formats":
        raise UsageError(f"list {kind} {name}: only formats have a layout; `harness explain {name}` explains a method")
    spec = IMPORTERS.get(name)
    return f"{spec.title} ({spec.id})\nsource: {spec.source}\nlicence: {spec.licence}\n\n{spec.layout.strip()}"


@app.command()
def schema(
    what: Annotated[Literal["policy"], Argument(help="policy: what simulate sends to --policy exec:…")],
) -> None:
    """Print the JSON Schema of messages to external programs."""
    from schedgap.heuristics.simulator.messages import schema as of_policies

    typer.echo(json_of({"policy": of_policies}[what](), indent=2, ensure_ascii=False))


@app.command()
def show(
    instance: Annotated[str, Argument(help="gen/…, paper/…, worst/…, family/…, or a file.", autocompletion=INSTANCES)],
    picture: Annotated[Path | None, Option(help="Also save a figure to this .png, .svg or .pdf file.")] = None,
    json: Annotated[bool, Option("--json", help="Print the instance as canonical JSON instead.")] = False,
) -> None:
    """Describe an instance in words, with the parameters of a generated one, and optionally draw it."""
    from schedgap.harness.show.drawing import figures
    from schedgap.harness.show.page.instance import words
    from schedgap.instances import load
    from schedgap.instances.canonical import to_json
    from schedgap.instances.catalogue import parameters

    loaded = load(instance)
    if picture:
        figures(loaded)[0].save(picture)
    if json:
        sys.stdout.write(to_json(loaded))
    else:
        stdout().print(words(loaded), crop=False)
        if offered := parameters(instance):
            title = f"parameters: {instance.partition('?')[0]}?name=value&name=value"
            emit_lines(title, ("parameter", "value", "right values"), offered, OutputFormat.TABLE)


MapOption = Annotated[
    str | None,
    Option(
        "--map",
        metavar="NAME=COLUMN,…",
        help="Columns of a CSV log: id=job,submit=queued_at,start=begin,end=finish,gpus=n_gpu (or cores=…, …).",
    ),
]
GpusOption = Annotated[
    str | None, Option(help="Cluster: V100=36,K80=36, or a number for a log, which otherwise says it or its peak use.")
]
NodesOption = Annotated[Path | None, Option(help="Node list of the cluster (CSV: gpus, type, server).")]
PartitionOption = Annotated[bool, Option("--by-partition", help="Give each partition its own GPUs.")]
ResourceOption = Annotated[
    str | None, Option(help="What a log of Slurm, PBS, LSF or Kubernetes is read by: gpus, cpus or nodes.")
]
TimeFormatOption = Annotated[str | None, Option(help="Format of times in the log: '%d.%m.%Y %H:%M'.")]
TimezoneOption = Annotated[str | None, Option(help="Time zone of times without one: Europe/Berlin.")]
MaxBadOption = Annotated[
    float,
    Option(
        metavar="PERCENT",
        help="Refuse a file if more of its rows are bad (unreadable or impossible; they are left out and listed). One "
        "bad row is accepted, unless this is 0.",
    ),
]
MaxJobsOption = Annotated[int | None, Option(min=1, help="Keep only this many jobs, by arrival.")]


@app.command("import")
def import_(
    format_: Annotated[str, Argument(metavar="FORMAT", help="gavel, philly, … (see harness list formats).")],
    file: Annotated[Path, Argument(help="Trace file.")],
    output: Annotated[Path, Option("--output", "-o", help="Instance file to write (.json).")],
    throughputs: Annotated[Path | None, Option(help="JSON file with Gavel's throughputs.")] = None,
    nodes: NodesOption = None,
    max_jobs: MaxJobsOption = None,
    hours: Annotated[str, Option(help="Keep only jobs that arrive between these hours: 24,48.")] = "",
    gangs: Annotated[str, Option(help="Keep only jobs with these numbers of GPUs: 1,2,4.")] = "",
    split: Annotated[str, Option(help="Percentages of Synergy's image, language and speech models: 20,70,10.")] = "",
    gpus: GpusOption = None,
    gpus_per_server: Annotated[int | None, Option(min=1, help="GPUs per server; by default the format's.")] = None,
    cpus_per_gpu: Annotated[float | None, Option(help="CPUs per GPU of a server; 3 by default.")] = None,
    memory_gb_per_gpu: Annotated[float | None, Option(help="GB per GPU of a server; 62.5 by default.")] = None,
    name: Annotated[str | None, Option(help="Name of the instance.")] = None,
    history: Annotated[bool, Option("--history", help="Also read when jobs started and ended.")] = False,
    map_: MapOption = None,
    by_partition: PartitionOption = False,
    resource: ResourceOption = None,
    time_format: TimeFormatOption = None,
    timezone: TimezoneOption = None,
    max_bad: MaxBadOption = MAX_BAD,
) -> None:
    """Convert a real trace to an instance file. Options from --map to --timezone are for logs with --history."""
    from schedgap.instances.canonical import write
    from schedgap.instances.importers import Options, read_trace

    if output.suffix != ".json":
        raise UsageError(f"{output}: an instance file must end in .json")
    window = _numbers("hours", hours)
    if len(window) not in (0, 2):
        raise UsageError(f"--hours {hours}: expected two hours of the trace, such as 24,48")
    log: dict[str, Any] = {
        "by_partition": by_partition,
        "resource": resource,
        "time_format": time_format,
        "timezone": timezone,
    }
    if not history and (map_ or any(log.values())):
        raise UsageError("--map, --by-partition, --resource, --time-format and --timezone are for logs: add --history")
    options = Options(
        max_jobs=max_jobs,
        hours=(window[0], window[1]) if window else None,
        gangs=tuple(int(size) for size in _numbers("gangs", gangs)),
        split=_numbers("split", split),
        gpus=gpu_counts(gpus, of_log=history),
        columns=columns_of(map_),
        gpus_per_server=gpus_per_server,
        cpus_per_gpu=cpus_per_gpu,
        memory_gb_per_gpu=memory_gb_per_gpu,
        throughputs=throughputs,
        nodes=nodes,
        name=name,
        history=history,
        max_bad=max_bad,
        **log,
    )
    instance, rows = read_trace(format_, file, options)
    write(instance, output)
    say_derived(instance)
    say_bad(rows.bad, output.with_suffix(".bad-rows.csv"))
    size = counted(instance.cluster.gpus, unit_of(instance.cluster.gpus_by_type))
    counts = f"{counted(len(instance.jobs), 'job')}, {counted(len(instance.tenants), 'tenant')}, {size}"
    typer.echo(f"{output}: {counts}, fingerprint {instance.fingerprint[:12]}")


def _numbers(name: str, text: str) -> tuple[float, ...]:
    """Parse ``20,70,10``; an empty text has no numbers. Raise `UsageError` if the text is malformed."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise UsageError(f"--{name} {text}: expected numbers separated by commas, such as 20,70,10") from None


def columns_of(text: str | None) -> dict[str, str] | None:
    """Parse ``id=job,submit=queued_at`` to a dictionary; raise `UsageError` if the text is malformed."""
    columns = pairs(text) if text else []
    if not all(name and column for name, column in columns) or len(dict(columns)) < len(columns):
        raise UsageError(f"--map {text}: expected columns such as id=job,submit=queued_at, each once")
    return dict(columns) or None


def gpu_counts(text: str | None, *, of_log: bool) -> dict[str, int] | None:
    """Parse ``V100=36,P100=36`` to ``{"V100": 36, "P100": 36}``, and a plain number for a log to ``{"": 36}``.

    Raise `UsageError` if the text is malformed.
    """
    if not text:
        return None
    if of_log and text.isdigit():
        return {"": int(text)}
    counts = pairs(text)
    if not all(name and number.isdigit() and int(number) > 0 for name, number in counts):
        raise UsageError(f"--gpus {text}: expected GPUs by type, such as V100=36,P100=36, at least one of each type")
    return {name: int(number) for name, number in counts}


def pairs(text: str) -> list[tuple[str, str]]:
    """Parse ``V100=36,P100=36`` to ``[("V100", "36"), ("P100", "36")]``; a missing name or value is empty."""
    parts = (part.partition("=") for part in text.split(","))
    return [(name.strip(), value.strip()) for name, _, value in parts]


def say_bad(bad: Sequence[Any], path: Path) -> None:
    """Write the bad rows of a file, if there are any, and say where; an earlier list goes."""
    from schedgap.instances.importers.rows import save_bad

    if bad:
        save_bad(bad, path)
        say(f"bad rows: {path} ({counted(len(bad), 'row')})")
    else:
        path.unlink(missing_ok=True)


def say_derived(instance: Any) -> None:
    """Print a line for each value that the importer derived by a rule."""
    for line in instance.derived:
        say(f"derived: {line}")


@app.command()
def fit(
    instance: Annotated[str, Argument(help="A file, such as an imported trace, or gen/….", autocompletion=INSTANCES)],
    output: Annotated[Path | None, Option("--output", "-o", help="Spec file to write (.toml), else print it.")] = None,
    least_day: Annotated[
        float, Option(min=0, max=1, help="Share of all jobs that a day needs for its arrivals to count as observed.")
    ] = 0.0,
) -> None:
    """Fit the laws of generated instances to the jobs of an instance, and write them as a spec file."""
    from schedgap.instances import load
    from schedgap.instances.fitting import fit as fitted

    if output and output.suffix != ".toml":
        raise UsageError(f"{output}: a spec file must end in .toml")
    text = fitted(load(instance), least_day=least_day).spec
    if output:
        output.write_text(text, "utf-8")
        say(f"{output}: a spec; harness compare --instance {output}")
    else:
        sys.stdout.write(text)


@app.command()
def explain(
    name: Annotated[
        str,
        Argument(
            help="Id, prefix or pattern of models or heuristics: hadar.p1, hadar.p2, 'oef.*'.", autocompletion=METHODS
        ),
    ],
    instance: Annotated[str | None, Option(help="Instance to measure sizes on; by default a small one.")] = None,
    style: Annotated[Literal["text", "latex", "markdown", "json"], Option("--format", help="Output format.")] = "text",
    large: Annotated[bool, Option("--all", help="Also build models above their stated size.")] = False,
    drop: Annotated[
        list[str], Option(metavar="ROW", help="Solve without this row or family, and show what it costs. Repeatable.")
    ] = [],  # noqa: B006
    prices: Annotated[
        bool,
        Option("--prices", help="Run a primal–dual algorithm: its steps, job by job, and what its prices prove."),
    ] = False,
    picture: Annotated[Path | None, Option(help="With --prices: also save the figure (.svg, .png, .pdf).")] = None,
    certificates: Annotated[
        Path | None, Option(metavar="DIR", help="With --prices: copy the certificate of its own prices here.")
    ] = None,
) -> None:
    """Explain a model or heuristic. Print its mathematics and the paper's equation numbers, parameters and size."""
    if prices and drop:
        raise UsageError("--drop is about rows of a model, and --prices about an algorithm: use one of them")
    if prices:
        explain_prices(name, instance or SMALL, style, picture, certificates, everything=large)
        return
    if picture or certificates:
        raise UsageError("--picture and --certificates are about prices: add --prices")
    from schedgap.harness.ask.explain import explain as explained

    def begins(model: str, where: str) -> None:
        if sys.stderr.isatty():
            say(f"building {model} on {where}")

    explanation = explained(name, instance, large=large, drop=drop, on_model=begins)
    sys.stdout.write(str(getattr(explanation, style)))


SMALL = "gen/20jobs"
"""The instance on which prices are explained by default."""


def explain_prices(
    name: str, instance: str, style: str, picture: Path | None, certificates: Path | None, *, everything: bool
) -> None:
    """Print the steps of a primal–dual algorithm, and write the files that are asked for."""
    from schedgap.harness.ask.prices import prices
    from schedgap.harness.engine.certificates import save
    from schedgap.harness.show.drawing import figures
    from schedgap.harness.show.page.prices import blocks

    found = prices(name, instance)
    write(blocks(found, everything), list(found.columns), found.records, FORMATS[style])
    if picture:
        for drawing in figures(found):
            drawing.save(picture)
    if certificates:
        if found.own is None:
            raise UsageError(f"{certificates}: no certificate follows from these prices: {found.reasons['own']}")
        say(f"{save(found.own, found.instance, certificates)}: bound {found.own['bound']:.10g} of its own prices")


FORMATS = {"text": OutputFormat.TABLE} | {name: OutputFormat(name) for name in ("latex", "markdown", "json")}
"""Formats of tables by those of explanations."""


@app.command()
def export(
    method: Annotated[str | None, Argument(help="Id of a model (harness list models).")] = None,
    instance: Annotated[
        list[str], Option(help="gen/…, paper/…, worst/…, family/…, or a file. Repeatable with --library.")
    ] = [],  # noqa: B006
    output: Annotated[Path | None, Option("--output", "-o", help="File to write: .mps, .lp, or either + .gz.")] = None,
    library: Annotated[Path | None, Option(metavar="DIR", help="Write all models and an index to this folder.")] = None,
    known: Annotated[
        list[Path],
        Option(metavar="RESULTS", help="Results folder with best known values; by default models are run. Repeatable."),
    ] = [],  # noqa: B006
    time_limit: Annotated[float | None, Option(help="Seconds per solve, for --library without --known.")] = None,
) -> None:
    """Write models as files for solvers. harness verify --solution checks the solutions that come back."""
    if library is not None:
        if method or output:
            raise UsageError("--library writes all models: leave out METHOD and --output")
        from schedgap.harness.ask.export import DEFAULT
        from schedgap.harness.ask.export import library as write
        from schedgap.harness.studies.compare.run import compare, read_run
        from schedgap.models import MODELS

        references, runs = instance or list(DEFAULT), [read_run(path) for path in known]
        if not known:
            methods = [spec.id for spec in MODELS if spec.kind != "baseline"]
            runs = [compare(references, methods, limits=Limits(time_limit), bound=False, jobs=1)]
            if runs[0].interrupted:
                raise KeyboardInterrupt
        library.mkdir(parents=True, exist_ok=True)
        entries, left_out = write(library, references, runs)
        say(f"{library}: {len(entries)} models in index.csv, {len(left_out)} left out")
        return
    if method is None or output is None or len(instance) != 1:
        raise UsageError("name a model, one --instance and --output FILE; or --library DIR")
    from schedgap.harness.ask.export import export as run

    model = run(method, instance[0], output)
    rows, columns = model.form.matrix.shape
    whole = int(model.form.integer.sum())
    say(f"{output}: {rows:,} rows, {columns:,} columns ({whole:,} integer); the .json file next to it names them")
