"""Commands that run studies, and commands that read the results folders of studies.

The first are ``compare``, ``certify``, ``sweep``, ``reproduce``, ``simulate``, ``audit``, ``adversary`` and
``frontier``; the others ``report``, ``paper``, ``table``, ``merge``, ``diff`` and ``verify``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from schedgap.harness.cli import app as cli
from schedgap.harness.cli import catalogue
from schedgap.harness.cli.status import FAILED, OK
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.table import OutputFormat, Selection
from schedgap.instances.errors import UsageError
from schedgap.instances.ranges import MAX_BAD, MOST_THREADS
from schedgap.instances.text import counted


@cli.study
def compare(
    instance: cli.InstanceOption,
    paper: Annotated[list[str], Option(help="Only methods of this paper. Repeatable.")] = [],  # noqa: B006
    method: Annotated[
        list[str], Option(help="Only this method or pattern ('oef.*'). Repeatable.", autocompletion=cli.METHODS)
    ] = ["*"],  # noqa: B006
    seed: cli.SeedsOption = [0],  # noqa: B006
    solver: Annotated[
        list[str],
        Option(
            help="Solver of models: highs, highs:ipm|hipo|pdlp, cbc, scip, cp-sat, mpax, gurobi, … Options of its own "
            "follow a question mark: 'highs?presolve=off'. Repeatable."
        ),
    ] = [],  # noqa: B006
    time_limit: Annotated[
        float | None,
        Option(help="Seconds per solve. By default, searches share a minute, and other solves have 20 s each."),
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Searches share seven seconds instead of a minute.")] = False,
    nodes: Annotated[
        int | None, Option(help="Nodes per search or MIP: a limit by count, which is the same on every machine.")
    ] = None,
    rel_gap: Annotated[
        float, Option(help="Relative gap at which a solve ends; in the minute of searches, by default 0.01.")
    ] = 1e-6,
    threads: Annotated[int, Option(min=1, max=MOST_THREADS, help="Threads per solve.")] = 1,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    all_sizes: Annotated[bool, Option("--all", help="Also run methods above their stated size.")] = False,
    cross_check: Annotated[bool, Option(help="Also solve every model by PuLP/CBC, and compare.")] = False,
    certificates: Annotated[Path | None, Option(metavar="DIR", help="Copy certificates and instances here.")] = None,
    bound: Annotated[bool, Option(help="Where no chosen method bounds a problem, run the cheapest that does.")] = True,
    decisions: Annotated[Path | None, Option(metavar="DIR", help="Also write decisions as CSV and JSON here.")] = None,
    solver_logs: cli.LogsOption = False,
    repeat: Annotated[
        int, Option(min=1, help="Runs of each method, after a warm-up: times are medians, with the least and largest.")
    ] = 1,
    reference: cli.ReferenceOption = "",
    **running: Any,
) -> Any:
    """Run methods on an instance and report certified gaps. Rows also have ratios, guarantees and times."""
    from schedgap.harness.engine.certificates import export
    from schedgap.harness.studies.compare.run import RUN_S
    from schedgap.harness.studies.compare.run import compare as run

    # A search that runs several times cannot share a minute with others.
    shares = time_limit is nodes is running.get("dask") is None and not quick and repeat == 1
    run_s = RUN_S if shares else None
    limits = Limits(time_limit, rel_gap, threads, memory_mb, all_sizes, cross_check, nodes, run_s, solver_logs, repeat)
    if decisions:
        decisions.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Any] = {"seeds": seed, "solvers": solver, "limits": limits, "reference": reference}
    found = run(instance, method, paper, bound=bound, **chosen, **running)
    if certificates and found.folder:
        export(found.folder, certificates)
    if decisions:
        from schedgap.harness.studies.compare.decisions import save

        count, without = save(found, decisions)
        left_out = f"; those of {', '.join(without)} have no file format" if without else ""
        cli.say(f"decisions: {decisions} ({count}, as CSV and JSON{left_out})")
    say_logs(found)
    return found


def say_logs(found: Any) -> None:
    """Say where the solvers' logs of a run are, if it kept any."""
    if found.folder and (logs := getattr(found, "logs", None)):
        cli.say(f"solver logs: {found.folder / 'logs'} ({counted(len(logs), 'file')})")


def say_bad(found: Any) -> Any:
    """Say where the bad rows of a log are listed, if it had any, and return the results."""
    from schedgap.instances.importers.rows import BAD_ROWS

    if found.folder and (found.folder / BAD_ROWS).exists():
        cli.say(f"bad rows: {found.folder / BAD_ROWS}")
    return found


CERTIFY_S = 15.0
"""Default time limit of each bound and of the search, in seconds."""


@cli.study
def certify(
    format_: Annotated[str, Argument(metavar="FORMAT", help="sacct, swf, csv, … (see harness list formats).")],
    log: Annotated[Path, Argument(help="Log file of the jobs that ran.")],
    objective: Annotated[str, Option(help="Measure: flow, slowdown, weighted, makespan or idle.")] = "flow",
    map_: catalogue.MapOption = None,
    gpus: catalogue.GpusOption = None,
    nodes: catalogue.NodesOption = None,
    by_partition: catalogue.PartitionOption = False,
    resource: catalogue.ResourceOption = None,
    time_format: catalogue.TimeFormatOption = None,
    timezone: catalogue.TimezoneOption = None,
    max_jobs: catalogue.MaxJobsOption = None,
    max_bad: catalogue.MaxBadOption = MAX_BAD,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Seconds for each bound and for the search.")] = CERTIFY_S,
    stretches: Annotated[
        int, Option(min=1, help="Stretches of time that are bounded and searched apart, each as a task of a worker.")
    ] = 1,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    what_if: Annotated[
        bool, Option("--what-if", help="Run changes of policy, time limits and cluster, sorted by the hours they save.")
    ] = False,
    base: Annotated[
        str,
        Option(metavar="POLICY", help="Policy that these change: fcfs, easy, …; by default the closest to the log."),
    ] = "",
    **running: Any,
) -> Any:
    """Measure the schedule in a log against a certified bound. Other policies run on the same jobs."""
    from schedgap.harness.studies.certify import certify as run
    from schedgap.harness.studies.whatif.run import what_if as changes
    from schedgap.instances.importers import Options

    read: dict[str, Any] = {"nodes": nodes, "by_partition": by_partition, "resource": resource}
    read |= {"time_format": time_format, "timezone": timezone, "max_jobs": max_jobs}
    counts, columns = catalogue.gpu_counts(gpus, of_log=True), catalogue.columns_of(map_)
    options = Options(columns=columns, gpus=counts, max_bad=max_bad, **read)
    limits = Limits(time_limit, memory_mb=memory_mb)
    given = {"objective": None if objective == "flow" else objective, "map": map_, "gpus": gpus, **read}
    given |= {"stretches": stretches if stretches > 1 else None}
    given |= {"max_bad": None if max_bad == MAX_BAD else max_bad}
    given |= {"seed": seed or None, **limits.given(Limits(CERTIFY_S))}
    same: dict[str, Any] = {"seed": seed, "limits": limits, "tell": catalogue.say_derived, "given": given, **running}
    if not what_if:
        if base:
            raise UsageError("--base: the policy that --what-if changes; add that option")
        return say_bad(run(format_, log, options, objective, stretches=stretches, **same))
    if stretches > 1:
        raise UsageError(f"--stretches {stretches}: --what-if runs whole logs")
    if objective != "flow":
        raise UsageError(f"--objective {objective}: --what-if compares hours of waiting, which are the objective flow")
    return say_bad(changes(format_, log, options, base, **same))


@cli.study
def sweep(
    file: Annotated[Path, Argument(help="TOML file with instances, parameter grids, methods and seeds.")],
    seed: cli.SeedsOption = [],  # noqa: B006
    time_limit: Annotated[float | None, Option(help="Seconds per solve, in place of the file's.")] = None,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    solver_logs: cli.LogsOption = False,
    reference: cli.ReferenceOption = "",
    **running: Any,
) -> Any:
    """Run a grid of instances, methods and seeds. A TOML file describes it, such as sweeps/reference.toml."""
    from schedgap.harness.studies.sweep import sweep as run

    own: dict[str, Any] = {"time_limit_s": time_limit, "memory_mb": memory_mb, "solver_logs": solver_logs}
    found = run(file, seeds=seed, reference=reference, **own, **running)
    say_logs(found)
    return found


@cli.study
def reproduce(
    figure: Annotated[
        list[str],
        Argument(metavar="FIGURE...", help="Id (hadar/fig4), paper, all or .toml file.", autocompletion=cli.FIGURES),
    ],
    quick: Annotated[bool, Option("--quick", help="Run smaller versions.")] = False,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Reproduce figures and tables of the papers. Each printed number gets a measured value and a verdict."""
    from schedgap.harness.studies.reproduce.run import reproduce as run

    return run(figure, quick=quick, memory_mb=memory_mb, **running)


@cli.study
def simulate(
    instance: cli.InstanceOption,
    more: Annotated[
        list[str] | None, Argument(metavar="[POLICY]...", help="More policies.", autocompletion=cli.POLICIES)
    ] = None,
    policy: Annotated[
        list[str] | None,
        Option(
            help="hadar, gavel, yarn-cs, an id or a pattern ('hadar.*'; harness list policies), exec:./program; "
            "several may follow. Repeatable. By default the four that Hadar compares in section IV.",
            autocompletion=cli.POLICIES,
        ),
    ] = None,
    round_s: Annotated[float | None, Option(help="Seconds per round; by default the instance's slot, or 360.")] = None,
    restart_s: Annotated[
        float | None, Option(help="Seconds lost when an allocation changes; by default 10, 0 in short rounds.")
    ] = None,
    spread_factor: Annotated[float, Option(help="Factor in (0, 1] on the rate of gangs that span servers.")] = 1.0,
    network: Annotated[
        bool, Option("--network", help="Gangs that span servers exchange gradients (gradient_mb) at their bandwidth.")
    ] = False,
    until_h: Annotated[float, Option(help="Start no round after this many hours.")] = float("inf"),
    profiling_min: Annotated[
        float, Option(help="Minutes of profiling before a policy that needs profiles may schedule a job.")
    ] = 0.0,
    window: Annotated[str | None, Option(metavar="FIRST:COUNT", help="Count only these jobs, by arrival.")] = None,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Wall-clock seconds per simulation.")] = 3600.0,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    logs: Annotated[Path | None, Option(metavar="DIR", help="Also write histories as sacct and SWF logs here.")] = None,
    **running: Any,
) -> Any:
    """Simulate schedulers round by round. Histories are checked, and times compared with certified bounds."""
    from schedgap.harness.studies.simulate.run import COMPARED, SimulationOptions
    from schedgap.harness.studies.simulate.run import simulate as run

    own = {"round_s": round_s, "restart_s": restart_s, "spread_factor": spread_factor, "network": network}
    options = SimulationOptions.of_command(until_h, profiling_min, window, **own)
    limits = Limits(time_limit, memory_mb=memory_mb)
    policies = [*(policy or []), *(more or [])] or COMPARED
    found = run(instance, policies, **vars(options), seed=seed, limits=limits, **running)
    if logs:
        from schedgap.harness.studies.certify import save

        written = counted(save(found, logs), "history", "histories")
        cli.say(f"logs: {logs} ({written}, each in sacct and SWF format)")
    return found


@cli.study
def audit(
    paper: Annotated[list[str], Option(help="Only claims of this paper. Repeatable.")] = [],  # noqa: B006
    claim: Annotated[list[str], Option(help="Only this claim or pattern ('oef.theorem-*'). Repeatable.")] = [],  # noqa: B006
    effort: Annotated[float, Option(help="Factor on the number of random cases.")] = 1.0,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[
        float | None, Option(help="Wall-clock seconds per claim; by default 900, times the effort.")
    ] = None,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Test theorems and printed numbers of the papers. A refuted claim comes with a witness."""
    from schedgap.harness.studies.audit.run import audit as run

    return run(paper, claim, effort=effort, seed=seed, time_limit_s=time_limit, memory_mb=memory_mb, **running)


@cli.study
def adversary(
    heuristic: Annotated[
        list[str], Option(help="Id, pattern, or a paper's online algorithms. Repeatable.", autocompletion=cli.METHODS)
    ],
    budget: Annotated[str, Option(help="Time of the whole search: 300s, 5m, 1h.")] = "60s",
    tries: Annotated[int | None, Option(min=1, help="Most instances per worker, so that a search repeats.")] = None,
    most_jobs: Annotated[int, Option(min=1, max=1000, help="Largest number of jobs or tenants.")] = 6,
    anywhere: Annotated[bool, Option("--anywhere", help="Also search where no guarantee applies.")] = False,
    seed: cli.SeedOption = 0,
    time_limit: Annotated[float, Option(help="Seconds per solve.")] = 2.0,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Search for worst cases of online algorithms. The one with the largest ratio is shrunk and saved."""
    from schedgap.harness.studies.adversary.run import adversary as run
    from schedgap.harness.studies.adversary.run import seconds_of

    running |= {"most": most_jobs, "anywhere": anywhere, "seed": seed}
    limits = Limits(time_limit, rel_gap=0.0, memory_mb=memory_mb)
    return run(heuristic, budget_s=seconds_of(budget), tries=tries, limits=limits, **running)


@cli.study
def frontier(
    instance: cli.InstanceOption,
    points: Annotated[int, Option(min=2, max=201, help="Points of each curve.")] = 21,
    seeds: Annotated[
        int, Option(min=0, max=1000, help="Draw each generated instance with the seeds 1 to this; 0: as it is.")
    ] = 0,
    time_limit: Annotated[float | None, Option(help="Seconds per solve; 20 by default.")] = None,
    memory_mb: cli.MemoryOption = Limits.memory_mb,
    **running: Any,
) -> Any:
    """Show what fairness costs tenants: total efficiency against envy and the sharing incentive, and each mechanism."""
    from schedgap.harness.studies.frontier.run import frontier as run

    limits = Limits(time_limit, memory_mb=memory_mb)
    return run(instance, points=points, seeds=seeds, limits=limits, **running)


@cli.app.command()
def report(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    output: Annotated[Path | None, Option("--output", "-o", help="HTML file; by default FOLDER/report.html.")] = None,
) -> None:
    """Write a results folder as one self-contained HTML page."""
    from schedgap.harness.studies.folders import reopen

    cli.save_report(reopen(folder), output)


@cli.app.command()
def paper(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    output: Annotated[Path, Option("--output", "-o", help="New folder.")] = Path("artefact"),
) -> None:
    """Write the files that a paper needs. They are tables, figures, macros, references, and a check of all."""
    from schedgap.harness.show.artefact import write as write_artefact
    from schedgap.harness.studies.folders import reopen

    failures = write_artefact(reopen(folder), output)
    cli.say(f"{output}: make typesets paper.tex; make check runs everything again and compares")
    for line in failures:
        cli.complain(f"{line}; to draw it again: harness paper {folder} --output {output}-again")
    if failures:
        raise typer.Exit(FAILED)


@cli.app.command()
def table(
    folder: Annotated[Path, Argument(help="Results folder of any command.")],
    top: cli.TopOption = 0,
    all_rows: cli.AllRowsOption = False,
    sort: Annotated[str, Option(metavar="COLUMN", help="Sort by this column; -ratio: largest first.")] = "",
    columns: Annotated[str, Option(help="Columns to show: method,gap,solve_s.")] = "",
    verbose: cli.VerboseOption = False,
    output: cli.FormatOption = OutputFormat.TABLE,
) -> None:
    """Print the rows of a results folder again."""
    from schedgap.harness.studies.folders import reopen

    found = reopen(folder)
    cli.say_damage(found)
    names = [name.strip() for name in columns.split(",") if name.strip()]
    cli.write_results(found, output, Selection(math.inf if all_rows else top, sort, names, verbose))


@cli.app.command()
def merge(
    folders: Annotated[list[Path], Argument(help="Results folders of the same command and code.")],
    output: cli.FormatOption = OutputFormat.TABLE,
    results: cli.ResultsOption = Path("results"),
    report: cli.ReportOption = True,
) -> None:
    """Merge results folders into a new one. Gaps are certified again with the bounds of all folders."""
    from schedgap.harness.studies.folders import merge as merged

    found = merged(folders, results)
    if found.meta["missing"]:
        cli.say(f"missing: {found.meta['missing']} planned results are in none of the folders")
    cli.finish(found, output, report)


@cli.app.command()
def diff(
    before: Annotated[Path, Argument(help="Results folder, or figures.json of harness reproduce.")],
    after: Annotated[Path, Argument(help="Results folder of a later run.")],
    tolerance: Annotated[float, Option(min=0, max=1, help="Relative tolerance of numbers.")] = 1e-6,
    output: cli.FormatOption = OutputFormat.TABLE,
) -> None:
    """List what got better, worse or slower between two runs. Exit with 1 if anything but times got worse."""
    from schedgap.harness.show import diff as diffing
    from schedgap.harness.studies.folders import reopen
    from schedgap.harness.studies.reproduce.row import read_rows

    first, second = (read_rows(path) if path.suffix == ".json" else reopen(path) for path in (before, after))
    for run in (first, second):
        cli.say_damage(run)
    found = diffing.diff(first, second, tolerance)
    if output is OutputFormat.TABLE:
        cli.write(diffing.blocks(found), (), (), output)
    else:
        for line in (diffing.sentence(found), *found.reasons):
            cli.say(line)
        cli.emit_lines("", diffing.columns(found), diffing.lines(found, everything=True), output)
    raise typer.Exit(OK if found.ok else FAILED)


@cli.app.command()
def verify(
    paths: Annotated[list[Path] | None, Argument(help="Results folder; or, with --instance, decision files.")] = None,
    instance: Annotated[str | None, Option(help="Instance that the decision files are about.")] = None,
    problem: Annotated[str | None, Option(help="Problem that they solve (hadar.utility).")] = None,
    solution: Annotated[
        list[Path],
        Option(help="Solution file of an exported model, by HiGHS, CBC, SCIP or Gurobi. Repeatable."),
    ] = [],  # noqa: B006
    model: Annotated[Path | None, Option(help="The model's .json file; by default named like the solution.")] = None,
    bound: Annotated[bool, Option(help="Run the cheapest model that bounds the problem, for the gap.")] = True,
    time_limit: Annotated[float | None, Option(help="Seconds for that model; 20 by default.")] = None,
    output: cli.FormatOption = OutputFormat.TABLE,
) -> None:
    """Check a results folder, or decisions from elsewhere. Exit with 1 if one of them does not hold."""
    if bool(paths) == bool(solution):
        raise UsageError("name a results folder, decision files, or solution files of exported models (--solution)")
    if paths and instance is None and problem is None:
        from schedgap.harness.studies.folders import check

        if len(paths) > 1 or paths[0].is_file():
            raise UsageError(f"{paths[-1]}: expected one results folder; decision files need --instance and --problem")
        lines = check(paths[0])
        bad = sum(bool(line.wrong) for line in lines)
        idle = sum(not (line.wrong or line.holds) for line in lines)
        columns = ("result", "what holds", "what is wrong")[: 2 if output is OutputFormat.TABLE and not bad else 3]
        cli.emit_lines(str(paths[0]), columns, (line[: len(columns)] for line in lines), output)
        rest = f"; {idle} have nothing to show (skipped, or failed)" if idle else ""
        cli.say(f"{len(lines) - bad - idle} of {len(lines) - idle} results and tables hold{rest}")
        raise typer.Exit(FAILED if bad else OK)
    if paths and (instance is None or problem is None):
        raise UsageError("decision files need both --instance and --problem (harness list models shows the problems)")
    from schedgap.harness.studies.compare import given

    limits = Limits(time_limit)
    if paths and instance and problem:
        found = given.verify(instance, problem, paths, bound=bound, limits=limits)
    else:
        found = given.verify_solution(solution, model, bound=bound, limits=limits)
    cli.write_results(found, output)
    raise typer.Exit(OK if found.ok else FAILED)
