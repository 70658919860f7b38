"""Commands that run studies, and those about the results folders that studies write.

They are ``compare``, ``sweep``, ``reproduce``, ``simulate``, ``audit`` and ``adversary``; ``table``, ``report``,
``merge``, ``diff`` and ``verify``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from schedgap.harness.cli import app as cli
from schedgap.harness.cli.catalogue import gpu_counts, pairs, say_derived
from schedgap.harness.engine.task import Limits
from schedgap.harness.table import Format, View
from schedgap.instances.errors import UsageError
from schedgap.instances.ranges import MOST_THREADS


@cli.study
def compare(
    instance: cli.InstanceOption,
    paper: Annotated[list[str], Option(help="Only this paper's methods. Repeatable.")] = [],  # noqa: B006
    method: Annotated[list[str], Option(help="Only methods that match ('oef.*'). Repeatable.")] = ["*"],  # noqa: B006
    seed: cli.SeedsOption = [0],  # noqa: B006
    solver: Annotated[
        list[str], Option(help="Solve models by highs, highs:ipm|hipo|pdlp, cbc, scip, cp-sat, gurobi, …. Repeatable.")
    ] = [],  # noqa: B006
    time_limit: Annotated[
        float | None,
        Option(help="Seconds each solve may take; 20, or less for searches, which share 7 on an instance."),
    ] = None,
    rel_gap: Annotated[float, Option(help="Relative gap at which a MIP counts as solved.")] = 1e-6,
    threads: Annotated[int, Option(min=1, max=MOST_THREADS, help="Threads of one solve.")] = 1,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    all_sizes: Annotated[bool, Option("--all", help="Run methods above their stated size, too.")] = False,
    cross_check: Annotated[bool, Option(help="Second opinion on every model by PuLP/CBC.")] = False,
    certificates: Annotated[Path | None, Option(metavar="DIR", help="Copy certificates, with instances.")] = None,
    bound: Annotated[bool, Option(help="Run the cheapest model that bounds a problem, where no method does.")] = True,
    decisions: Annotated[Path | None, Option(metavar="DIR", help="Write decisions as CSV and JSON, too.")] = None,
    **running: Any,
) -> Any:
    """Run papers' methods on an instance; report certified gaps, ratios, guarantees and times."""
    from schedgap.harness.certificates import export
    from schedgap.harness.compare.run import compare as run

    limits = Limits(time_limit, rel_gap, threads, memory_mb, all_sizes, cross_check)
    if decisions:
        decisions.mkdir(parents=True, exist_ok=True)
    found = run(instance, method, paper, seeds=seed, solvers=solver, limits=limits, bound=bound, **running)
    if certificates and found.folder:
        export(found.folder, certificates)
    if decisions:
        from schedgap.harness.decisions import save

        count, without = save(found, decisions)
        left_out = f"; those of {', '.join(without)} have no file format" if without else ""
        cli.say(f"decisions: {decisions} ({count}, as CSV and JSON{left_out})")
    return found


CERTIFY_S = 15.0
"""Seconds that each bound, and the search, may take unless asked."""


@cli.study
def certify(
    format_: Annotated[str, Argument(metavar="FORMAT", help="sacct, swf, csv, … (harness list formats).")],
    log: Annotated[Path, Argument(help="The log of what ran.")],
    objective: Annotated[str, Option(help="flow, slowdown, weighted, makespan or idle.")] = "flow",
    map_: Annotated[
        str | None,
        Option(
            "--map",
            metavar="NAME=COLUMN,…",
            help="Columns of a CSV log: id=job,submit=queued_at,start=begin,end=finish,gpus=n_gpu (or cores=…, …).",
        ),
    ] = None,
    gpus: Annotated[
        str | None, Option(help="Cluster, as V100=36,K80=36 or a number; else the log's own, or its peak.")
    ] = None,
    nodes: Annotated[Path | None, Option(help="Node list (CSV with gpus, type, server): the cluster.")] = None,
    by_partition: Annotated[bool, Option("--by-partition", help="Each partition has GPUs of its own.")] = False,
    resource: Annotated[str | None, Option(help="What a Slurm log counts: gpus, cpus or nodes.")] = None,
    time_format: Annotated[str | None, Option(help="How a log writes times: '%d.%m.%Y %H:%M'.")] = None,
    timezone: Annotated[str | None, Option(help="Zone of times without one: Europe/Berlin.")] = None,
    max_jobs: Annotated[int | None, Option(min=1, help="Only the first jobs by submission.")] = None,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Seconds each bound, and the search, may take.")] = CERTIFY_S,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Judge what really ran: beside a certified bound, the best schedule found, and other schedulers' ones."""
    from schedgap.harness.certify import certify as run
    from schedgap.instances.importers import Options

    read: dict[str, Any] = {"nodes": nodes, "by_partition": by_partition, "resource": resource}
    read |= {"time_format": time_format, "timezone": timezone, "max_jobs": max_jobs}
    columns = pairs(map_) if map_ else []
    if not all(name and column for name, column in columns) or len(dict(columns)) < len(columns):
        raise UsageError(f"--map {map_}: columns are written as id=job,submit=queued_at, each once")
    counts = {"": int(gpus)} if gpus and gpus.isdigit() else gpu_counts(gpus) if gpus else None
    options = Options(history=True, columns=dict(columns) or None, gpus=counts, **read)
    limits = Limits(time_limit, memory_mb=memory_mb)
    given = {"objective": None if objective == "flow" else objective, "map": map_, "gpus": gpus, **read}
    given |= {"seed": seed or None, **limits.given(Limits(CERTIFY_S))}
    return run(format_, log, options, objective, seed=seed, limits=limits, tell=say_derived, given=given, **running)


@cli.study
def sweep(
    file: Annotated[Path, Argument(help="TOML file with instances, grids of parameters, methods and seeds.")],
    seed: cli.SeedsOption = [],  # noqa: B006
    time_limit: Annotated[float | None, Option(help="Seconds each solve may take, instead of the file's.")] = None,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Run many instances × methods × seeds as a file says (sweeps/*.toml)."""
    from schedgap.harness.sweep import sweep as run

    return run(file, seeds=seed, time_limit_s=time_limit, memory_mb=memory_mb, **running)


@cli.study
def reproduce(
    figure: Annotated[list[str], Argument(metavar="FIGURE...", help="hadar/fig4, a paper, all, or a .toml file.")],
    quick: Annotated[bool, Option("--quick", help="Run small versions of the same shape.")] = False,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Run figures and tables of the papers: published beside measured beside certified, and a verdict on each."""
    from schedgap.harness.reproduce.run import reproduce as run

    return run(figure, quick=quick, memory_mb=memory_mb, **running)


@cli.study
def simulate(
    instance: cli.InstanceOption,
    more: Annotated[list[str] | None, Argument(metavar="[POLICY]...", help="More policies.")] = None,
    policy: Annotated[
        list[str] | None,
        Option(
            help="hadar, gavel, yarn-cs, an id or a pattern ('hadar.*'; harness list policies), exec:./program; "
            "several may follow. Repeatable. Default: those that Hadar's section IV compares."
        ),
    ] = None,
    round_s: Annotated[float | None, Option(help="Seconds of a round. Default: the instance's slot.")] = None,
    restart_s: Annotated[
        float | None, Option(help="Seconds that a changed allocation costs. Default: 10, 0 in shorter rounds.")
    ] = None,
    spread_factor: Annotated[float, Option(help="Factor on the rate of gangs that span servers, in (0, 1].")] = 1.0,
    until_h: Annotated[float, Option(help="No round starts after so many hours.")] = float("inf"),
    profiling_min: Annotated[
        float, Option(help="Minutes in which a job is profiled before policies that need it may schedule it.")
    ] = 0.0,
    window: Annotated[str | None, Option(metavar="FIRST:COUNT", help="Jobs, by arrival, whose times count.")] = None,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Wall-clock seconds after which a simulation is killed.")] = 3600.0,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    logs: Annotated[Path | None, Option(metavar="DIR", help="Write histories as sacct and SWF logs, too.")] = None,
    **running: Any,
) -> Any:
    """Simulate schedulers round by round; report times, utilisation and certified ratios, every history checked."""
    from schedgap.harness.simulate.run import COMPARED, Options
    from schedgap.harness.simulate.run import simulate as run

    same = {"round_s": round_s, "restart_s": restart_s, "spread_factor": spread_factor}
    options = Options.told(until_h, profiling_min, window, **same)
    limits = Limits(time_limit, memory_mb=memory_mb)
    policies = [*(policy or []), *(more or [])] or COMPARED
    found = run(instance, policies, **vars(options), seed=seed, limits=limits, **running)
    if logs:
        from schedgap.harness.certify import save
        from schedgap.harness.text import counted

        written = counted(save(found, logs), "history", "histories")
        cli.say(f"logs: {logs} ({written}, each for sacct and as SWF)")
    return found


@cli.study
def audit(
    paper: Annotated[list[str], Option(help="Only this paper's claims. Repeatable.")] = [],  # noqa: B006
    claim: Annotated[list[str], Option(help="Only claims that match ('oef.theorem-*'). Repeatable.")] = ["*"],  # noqa: B006
    effort: Annotated[float, Option(help="Factor on how many random cases are tried.")] = 1.0,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[
        float | None, Option(help="Wall-clock seconds that a claim may take. Default: 900, times the effort.")
    ] = None,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Try every theorem and printed number: confirmed, refuted (with a witness), only for …, not testable."""
    from schedgap.harness.audit.run import audit as run

    return run(paper, claim, effort=effort, seed=seed, time_limit_s=time_limit, memory_mb=memory_mb, **running)


@cli.study
def adversary(
    heuristic: Annotated[list[str], Option(help="Id, pattern, or paper (its online algorithms). Repeatable.")],
    budget: Annotated[str, Option(help="Time for the search in all: 300s, 5m, 1h.")] = "60s",
    most_jobs: Annotated[int, Option(min=1, max=20, help="Most jobs or tenants of an instance.")] = 6,
    anywhere: Annotated[bool, Option("--anywhere", help="Look where no guarantee is promised, too.")] = False,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Seconds each solve of a small instance may take.")] = 2.0,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Search the instance with the largest proved ratio of each online algorithm, shrink it and save it."""
    from schedgap.harness.adversary.run import adversary as run
    from schedgap.harness.adversary.run import seconds_of

    running |= {"most": most_jobs, "anywhere": anywhere, "seed": seed}
    limits = Limits(time_limit, rel_gap=0.0, memory_mb=memory_mb)
    return run(heuristic, budget_s=seconds_of(budget), limits=limits, **running)


@cli.app.command()
def report(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    output: Annotated[Path | None, Option("--output", "-o", help="HTML file; FOLDER/report.html by default.")] = None,
) -> None:
    """Write the self-contained HTML page of a results folder."""
    from schedgap.harness.engine.study import reopen

    cli.save_report(reopen(folder), output)


@cli.app.command()
def paper(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    output: Annotated[Path, Option("--output", "-o", help="New folder.")] = Path("artefact"),
) -> None:
    """Write what a paper needs of a run: tables, figures, numbers as macros, references, and a check of it all."""
    from schedgap.harness.artefact import write as write_artefact
    from schedgap.harness.engine.study import reopen

    for line in write_artefact(reopen(folder), output):
        cli.say(line)
    cli.say(f"{output}: make sets paper.tex, make check runs everything again and compares")


@cli.app.command()
def table(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    top: cli.TopOption = 0,
    all_rows: cli.AllRowsOption = False,
    sort: Annotated[str, Option(metavar="COLUMN", help="Sort by this column; -ratio: the largest first.")] = "",
    columns: Annotated[str, Option(help="Columns to show, by comma: method,gap,solve_s.")] = "",
    verbose: cli.VerboseOption = False,
    output: cli.FormatOption = Format.TABLE,
) -> None:
    """Print what a results folder holds once more."""
    from schedgap.harness.engine.study import reopen

    found = reopen(folder)
    cli.say_damage(found)
    names = [name.strip() for name in columns.split(",") if name.strip()]
    cli.write_results(found, output, View(math.inf if all_rows else top, sort, names, verbose))


@cli.app.command()
def merge(
    folders: Annotated[list[Path], Argument(help="Results folders of one command and code: parts of one run.")],
    output: cli.FormatOption = Format.TABLE,
    results: cli.ResultsOption = Path("results"),
    report: cli.ReportOption = True,
) -> None:
    """Put results folders of one kind together: each result once, certified anew with the bounds of all."""
    from schedgap.harness.engine.study import merge as merged

    found = merged(folders, results)
    if found.meta["missing"]:
        cli.say(f"{found.meta['missing']} planned results are in none of the folders")
    cli.finish(found, output, report)


@cli.app.command()
def diff(
    before: Annotated[Path, Argument(help="Results folder, or a figures.json of harness reproduce.")],
    after: Annotated[Path, Argument(help="Results folder of a later run.")],
    tolerance: Annotated[float, Option(min=0, max=1, help="Relative tolerance of numbers.")] = 1e-6,
    output: cli.FormatOption = Format.TABLE,
) -> None:
    """Say what got better, worse or slower between two runs of a kind; exit code 1 if anything but times got worse."""
    from schedgap.harness import diffing
    from schedgap.harness.engine.study import reopen
    from schedgap.harness.reproduce.row import read_rows

    first, second = (read_rows(path) if path.suffix == ".json" else reopen(path) for path in (before, after))
    for run in (first, second):
        cli.say_damage(run)
    found = diffing.diff(first, second, tolerance)
    if output is Format.TABLE:
        cli.write(diffing.blocks(found), (), (), output)
    else:
        for line in (diffing.sentence(found), *found.reasons):
            cli.say(line)
        cli.emit_lines("", diffing.columns(found), diffing.lines(found, everything=True), output)
    raise typer.Exit(cli.OK if found.ok else cli.FAILED)


@cli.app.command()
def verify(
    paths: Annotated[
        list[Path] | None, Argument(help="Results folder of any command; or, with --instance, files of decisions.")
    ] = None,
    instance: Annotated[str | None, Option(help="What the decisions in the files are about.")] = None,
    problem: Annotated[str | None, Option(help="Id of the problem they decide (hadar.utility).")] = None,
    solution: Annotated[
        list[Path],
        Option(help="Solution of an exported model by HiGHS, CBC, SCIP or Gurobi (harness export). Repeatable."),
    ] = [],  # noqa: B006
    model: Annotated[Path | None, Option(help="The .json beside the model. Default: of the solution's name.")] = None,
    bound: Annotated[bool, Option(help="Run the cheapest model that bounds the problem, for the gap.")] = True,
    time_limit: Annotated[float | None, Option(help="Seconds that it may take; 20 unless asked.")] = None,
    output: cli.FormatOption = Format.TABLE,
) -> None:
    """Check results again: a whole folder of ours, or decisions from elsewhere; exit code 1 if one does not hold."""
    if bool(paths) == bool(solution):
        raise UsageError("name a results folder, files of decisions, or solutions of exported models (--solution)")
    if paths and instance is None and problem is None:
        from schedgap.harness.engine.study import check

        if len(paths) > 1 or paths[0].is_file():
            raise UsageError(f"{paths[-1]}: one results folder, or files with --instance and --problem")
        lines = check(paths[0])
        bad = sum(bool(wrong) for *_, wrong in lines)
        columns = ("result", "what holds", "what is wrong")[: 2 if output is Format.TABLE and not bad else 3]
        cli.emit_lines(str(paths[0]), columns, (line[: len(columns)] for line in lines), output)
        cli.say(f"{len(lines) - bad} of {len(lines)} results hold")
        raise typer.Exit(cli.FAILED if bad else cli.OK)
    if paths and (instance is None or problem is None):
        raise UsageError("files of decisions take both --instance and --problem (harness list models has the problems)")
    from schedgap.harness.compare import given

    limits = Limits(time_limit)
    if paths and instance and problem:
        found = given.verify(instance, problem, paths, bound=bound, limits=limits)
    else:
        found = given.verify_solution(solution, model, bound=bound, limits=limits)
    cli.write_results(found, output)
    raise typer.Exit(cli.OK if found.ok else cli.FAILED)
