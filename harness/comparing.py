"""Run methods on instances and certify what they reach."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from harness import environment
from harness.certify import certify
from harness.cluster import connect, run_on_cluster
from harness.comparison import Comparison
from harness.pool import run_all
from harness.published import with_published
from harness.rows import Name, Row
from harness.run import Run
from harness.store import SCHEMA_VERSION, Store, new_folder, read_run, trace_key
from harness.tasks import Limits, Spec, Task, TaskResult, run_task, specs
from instances import load
from instances.canonical import to_json
from instances.errors import UnknownNameError, UsageError
from instances.registry import PAPERS, in_order, matching, unknown
from instances.schema import Instance

Reference = str | Path | Instance
FINISHED = {"optimal", "feasible", "time limit with incumbent", "skipped"}
"""Statuses of rows that a resumed run keeps; failures are tried again."""


def compare(
    instance: Reference | Sequence[Reference],
    methods: Sequence[str] = ("*",),
    papers: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (0,),
    limits: Limits | Mapping[str, Limits] | None = None,
    jobs: int = 0,
    dask: str | None = None,
    results: Path | None = None,
    resume: Path | None = None,
    command: str | None = None,
    on_start: Callable[[int], None] = lambda count: None,
    on_result: Callable[[Row], None] = lambda row: None,
) -> Comparison:
    """Run methods on one or more instances and return certified rows; Ctrl-C ends the run early, finished rows stay.

    Parameters
    ----------
    instance, methods, papers
        References (``gen/200jobs``, a path) or loaded instances; ids or shell patterns (``oef.*``); papers to keep to.
    seeds, limits
        Of heuristics and solver; time, gap, threads and memory of one method, or several such limits by name. Every
        method runs once with each.
    jobs, dask
        Worker processes here (0: as many as there are cores), or a Dask scheduler's address (:mod:`harness.cluster`).
    results, resume
        Folder in which a new results folder is made, if any; or an earlier results folder to complete: finished rows
        of the same content, method, seed, limits and code stay, failed ones are tried again, more instances are fine.
    command
        How to reproduce the run, for the report; composed from the arguments where absent.
    on_start, on_result
        Called with the number of tasks to run, and with each finished row.

    Raises
    ------
    UsageError
        If a reference or method is unknown, an instance is invalid, results cannot be written, or no cluster answers;
        nothing has run then.
    """
    kinds = dict(limits) if isinstance(limits, Mapping) else {"": limits or Limits()}
    _refuse_impossible(kinds, seeds)
    references = [instance] if isinstance(instance, str | Path | Instance) else list(instance)
    chosen = select(methods, papers)
    loaded = _examples_of_one_case([load(ref) for ref in references])
    tasks = plan(loaded, chosen, seeds, kinds)
    command = command or reproduction(references, methods, papers, seeds, next(iter(kinds.values())))
    meta = _meta(command, loaded, seeds, kinds) | {"plan": [task.key for task in tasks]}
    kept = _kept(resume, tasks, meta) if resume else []
    run_tasks = partial(run_on_cluster, client=connect(dask)) if dask else partial(run_all, jobs=jobs)
    store = _open(resume or (new_folder(results, meta) if results else None), loaded, meta)
    left = [task for task in tasks if task.key not in {r.row.key for r in kept}]
    on_start(len(left))
    began = time.perf_counter()
    done, interrupted = _run(run_tasks(left), store, on_result)
    meta |= {"duration_s": time.perf_counter() - began, "interrupted": interrupted}
    run = assemble(meta, loaded, meta["plan"], [*kept, *done])
    if store:
        store.finish(run)
    return Comparison(run, store.folder if store else None)


def _refuse_impossible(kinds: Mapping[str, Limits], seeds: Sequence[int]) -> None:
    """Raise on limits or seeds that no method could run with."""
    for limits in kinds.values():
        for seed in seeds:
            limits.options(seed)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds = {', '.join(map(str, seeds))}: name each seed once")


def _examples_of_one_case(loaded: Sequence[Instance]) -> list[Instance]:
    """Return the instances; of several names for one content the first, with all numbers that were printed about it.

    Papers come back to an example: ``paper/oef-eq1``, ``-eq2`` and ``-eq3`` are allocations of the same tenants.
    """
    found: dict[str, Instance] = {}
    same: list[Instance] = []
    for instance in loaded:
        first = found.setdefault(instance.fingerprint, instance)
        if first is instance:
            continue
        if instance.name == first.name:
            same.append(instance)
        more = (entry for entry in instance.published if entry not in first.published)
        found[first.fingerprint] = first.model_copy(update={"published": (*first.published, *more)})
    return [*found.values(), *same]


def _open(folder: Path | None, loaded: Sequence[Instance], meta: dict[str, Any]) -> Store | None:
    """Return a store in `folder` that already says what is going to run."""
    if folder is None:
        return None
    store = Store(folder)
    store.add_instances(loaded)
    store.write_run(meta)
    return store


def select(methods: Iterable[str], papers: Iterable[str]) -> list[Spec]:
    """Return the registered methods that match a pattern and belong to one of the papers (any, where none is named).

    Raises
    ------
    UnknownNameError
        If a pattern or paper matches nothing.
    """
    wanted = {PAPERS.get(paper).id for paper in papers}
    everything = specs()
    among = [spec for spec in everything if not wanted or spec.paper in wanted]
    chosen: dict[str, Spec] = {}
    for pattern in methods:
        found = matching(among, pattern)
        if not found:
            raise UnknownNameError(unknown("method", pattern, [spec.id for spec in among]))
        chosen |= {spec.id: spec for spec in found}
    return in_order(chosen, everything)


def plan(
    instances: Sequence[Instance], chosen: Sequence[Spec], seeds: Sequence[int], kinds: Mapping[str, Limits]
) -> list[Task]:
    """Return one task per instance, method, seed and kind of limits, in the order of the table."""
    if len({i.fingerprint for i in instances}) < len(instances):
        raise UsageError("two of the instances have the same content; name each once")
    return [
        Task(text, instance.name, instance.fingerprint, spec.id, seed, limits, name)
        for instance in instances
        for text in [to_json(instance)]
        for spec in chosen
        for seed in seeds
        for name, limits in kinds.items()
    ]


def certified(instance: Instance, methods: Sequence[str], *, seed: int = 0, limits: Limits | None = None) -> list[Row]:
    """Run methods on a loaded instance in this process, one after the other, and return certified rows.

    What searches over thousands of small instances uses: no worker processes, so no hard limit on time or memory.

    Parameters
    ----------
    instance, methods
        The instance; ids or patterns of methods.
    seed, limits
        As in :func:`compare`.

    Raises
    ------
    UsageError
        If a method is unknown or a limit impossible.
    """
    kinds = {"": limits or Limits()}
    _refuse_impossible(kinds, [seed])
    rows = certify(run_task(task).row for task in plan([instance], select(methods, ()), [seed], kinds))
    return with_published(rows, {instance.fingerprint: instance})


def _run(
    results: Iterator[TaskResult], store: Store | None, on_result: Callable[[Row], None]
) -> tuple[list[TaskResult], bool]:
    """Keep results as they come; return what finished, and whether Ctrl-C ended it early."""
    done: list[TaskResult] = []
    try:
        for result in results:
            done.append(result)
            if store:
                store.add(result)
            on_result(result.row)
    except KeyboardInterrupt:
        return done, True
    return done, False


def assemble(
    meta: dict[str, Any], instances: Sequence[Instance], keys: Sequence[str], done: Iterable[TaskResult]
) -> Run:
    """Put finished tasks into a run: in the order of the plan's keys, with certified ratios and published numbers."""
    by_key = {result.row.key: result for result in done}
    ordered = [by_key[key] for key in keys if key in by_key]
    known = {instance.fingerprint: instance for instance in instances}
    return Run(
        meta=meta,
        rows=with_published(certify(result.row for result in ordered), known),
        instances=known,
        decisions={r.row.name: r.decision for r in ordered if r.decision is not None},
        traces=[_point(r.row, *point) for r in ordered for point in r.trace],
        prices={r.row.name: r.prices for r in ordered if r.prices is not None},
    )


def _point(row: Row, time_s: float, incumbent: float | None, bound: float | None) -> dict[str, Any]:
    return {**trace_key(row), "time_s": time_s, "incumbent": incumbent, "bound": bound}


def _kept(folder: Path, tasks: Sequence[Task], meta: Mapping[str, Any]) -> list[TaskResult]:
    """Return the finished results of an earlier run that these tasks would repeat.

    Raises
    ------
    UsageError
        If the earlier run was about other instances: its folder would lose them.
    """
    run = read_run(folder)
    if not set(run.meta["instances"]) <= set(meta["instances"]):
        names = _some(list(run.meta["instances"].values()))
        raise UsageError(f"{folder}: a run of {names}; only a run of at least these instances can go on there")
    wanted = {task.key for task in tasks}
    return [result for result in task_results(run) if result.row.key in wanted and finished(result.row)]


def finished(row: Row) -> bool:
    """Return whether a row need not be tried again."""
    return row.status in FINISHED and row.verified is not False


def task_results(run: Run) -> list[TaskResult]:
    """Return the results that a run was assembled from."""
    points: dict[Name, list[tuple[float, float | None, float | None]]] = {}
    for t in run.traces:
        name = (t["fingerprint"], t["method"], t["seed"], t["limits"])
        points.setdefault(name, []).append((t["time_s"], t["incumbent"], t["bound"]))
    return [
        TaskResult(row, run.decisions.get(row.name), tuple(points.get(row.name, ())), run.prices.get(row.name))
        for row in run.rows
    ]


def _some(names: Sequence[str], most: int = 5) -> str:
    """Return names with commas, of many only the first ones."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _meta(
    command: str, instances: Sequence[Instance], seeds: Sequence[int], kinds: Mapping[str, Limits]
) -> dict[str, Any]:
    plain = {name: asdict(limits) for name, limits in kinds.items()}
    return {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "started_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "instances": {i.fingerprint: i.name for i in instances},
        "seeds": list(seeds),
        "limits": plain.get("", plain),
        "versions": environment.versions(),
        "machine": environment.machine(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
        "interrupted": True,
    }


def reproduction(
    references: Sequence[Reference],
    methods: Sequence[str],
    papers: Sequence[str],
    seeds: Sequence[int],
    limits: Limits,
) -> str:
    """Return the command line that runs the same comparison."""
    words = ["harness", "compare"]
    for ref in references:
        words += ["--instance", ref.name if isinstance(ref, Instance) else str(ref)]
    for option, values in (("--paper", papers), ("--method", methods)):
        words += [word for value in values if value != "*" for word in (option, value)]
    words += [word for seed in seeds if tuple(seeds) != (0,) for word in ("--seed", str(seed))]
    return shlex.join([*words, *_limit_words(limits)])


def _limit_words(limits: Limits) -> list[str]:
    usual, words = asdict(Limits()), []
    options = {
        "time_limit_s": "--time-limit",
        "rel_gap": "--rel-gap",
        "threads": "--threads",
        "memory_mb": "--memory-mb",
        "all_sizes": "--all",
        "cross_check": "--cross-check",
    }
    for name, value in asdict(limits).items():
        if value != usual[name]:
            words += [options[name]] if value is True else [options[name], repr(value)]
    return words
