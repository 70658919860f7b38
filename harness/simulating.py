"""Simulate schedulers on instances, check their histories, and put them side by side."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness import environment
from harness.pool import run_all
from harness.render.text import clean
from harness.simulation.bounds import Bound, BoundTask, wanted
from harness.simulation.caps import Caps
from harness.simulation.compared import compared
from harness.simulation.naming import resolve
from harness.simulation.reading import is_simulation, journal, kept
from harness.simulation.result import Simulation
from harness.simulation.rows import SimulationRow
from harness.simulation.saving import SimulationStore
from harness.simulation.task import SimulationResult, SimulationTask
from harness.store import DAMAGE, SCHEMA_VERSION, SIMULATION, new_folder
from heuristics.simulator import PolicySpec, Rules, runnable, servers, workload
from heuristics.simulator.metrics import ALL, Window
from instances import load
from instances.canonical import to_json
from instances.errors import UsageError
from instances.schema import Instance

__all__ = ["POLICIES", "Simulation", "simulate"]

Reference = str | Path | Instance

POLICIES = ("hadar", "gavel", "tiresias", "yarn-cs")
"""Whom Hadar's section IV compares."""

Done = dict[tuple[str, str], SimulationResult]
"""By fingerprint and policy."""

Bounds = dict[tuple[str, str], Bound]
"""By fingerprint and model."""

MAX_ROUNDS = 1e7
"""Rounds that a simulation may need: the records of more do not fit into the memory of a worker."""

ROUND_S, RESTART_S = 360.0, 10.0
"""Hadar, section IV: rounds of 6 minutes, 10 seconds for a checkpoint and restart."""


def simulate(
    instance: Reference | Sequence[Reference],
    policies: Iterable[str] = POLICIES,
    *,
    round_s: float | None = None,
    restart_s: float | None = None,
    spread_factor: float = 1.0,
    until_s: float = math.inf,
    profiling_s: float = 0.0,
    window: Window = ALL,
    seed: int = 0,
    jobs: int = 0,
    caps: Caps | None = None,
    results: Path | None = None,
    resume: Path | None = None,
    command: str | None = None,
    on_start: Callable[[int], None] = lambda count: None,
    on_result: Callable[[SimulationRow], None] = lambda row: None,
) -> Simulation:
    """Simulate policies on one or more instances; every history is checked. Ctrl-C ends it early, finished rows stay.

    Parameters
    ----------
    instance, policies
        References (``gen/hadar-480``, a path) or loaded instances; names (:func:`harness.simulation.naming.resolve`).
    round_s, restart_s
        Seconds of a round, by default a slot of the instance, or 360; and seconds that a changed allocation costs, by
        default 10, or none where rounds are not longer than that.
    spread_factor, until_s
        Factor in (0, 1] on the rate of gangs that span servers; no round starts at or after this time.
    profiling_s, window
        Seconds in which jobs are profiled before policies that need it may schedule them; whose completion times count.
    seed, jobs, caps
        Seed of the solver, for policies that ask for optima; worker processes (0: as many as there are cores);
        wall-clock seconds and memory of one simulation.
    results, resume, command
        Folder in which a new results folder is made, if any; an earlier one to complete instead: finished policies of
        the same content, rules, seed and code stay, checked again; how to reproduce the run, if not by these arguments.
    on_start, on_result
        Called with the number of simulations, and with each finished row.

    Raises
    ------
    UsageError
        If a reference, policy, instance or option is wrong; nothing has run then.
    """
    references = [instance] if isinstance(instance, str | Path | Instance) else list(instance)
    chosen = resolve(policies := list(policies))
    loaded = [load(ref) for ref in references]
    rules = [rules_for(one, round_s, restart_s, spread_factor, until_s, profiling_s) for one in loaded]
    _some_are_counted(loaded, window)
    tasks = plan(loaded, chosen, rules, seed, window, caps or Caps())
    times: dict[str, Any] = {"round-s": round_s, "restart-s": restart_s, "until-s": until_s, "profiling-s": profiling_s}
    options = times | {"spread-factor": spread_factor, "window": window}
    bound_tasks = _bound_tasks(loaded, chosen, rules, window)
    meta = _meta(command or _reproduction(references, policies, options, seed), loaded, tasks, bound_tasks)
    folder = resume or (new_folder(results, meta, "-sim") if results else None)
    run = partial(_completed, resumed=resume is not None, jobs=jobs, on_start=on_start, on_result=on_result)
    return run(tasks, bound_tasks, loaded, meta, folder)


def _completed(
    tasks: list[SimulationTask],
    bound_tasks: list[BoundTask],
    loaded: list[Instance],
    meta: dict[str, Any],
    folder: Path | None,
    *,
    resumed: bool,
    jobs: int,
    on_start: Callable[[int], None],
    on_result: Callable[[SimulationRow], None],
) -> Simulation:
    """Run what the folder does not have yet, and put everything together."""
    done, bounds = _kept(folder, tasks, bound_tasks, loaded) if resumed and folder else ({}, {})
    store = _open(folder, loaded, meta)
    left = [task for task in tasks if (task.fingerprint, task.policy) not in done]
    on_start(len(left))
    began = time.perf_counter()
    bounds_left = [task for task in bound_tasks if (task.fingerprint, task.model) not in bounds]
    interrupted = _run([*left, *bounds_left], jobs, store, on_result, done, bounds)
    meta |= {"duration_s": time.perf_counter() - began, "interrupted": interrupted}
    return _collected(list(_results(done, tasks)), loaded, bounds, store, meta)


def _collected(
    results: Sequence[SimulationResult],
    loaded: Sequence[Instance],
    bounds: Bounds,
    store: SimulationStore | None,
    meta: dict[str, Any],
) -> Simulation:
    """Compare the rows, keep the histories of the last instance, and finish what is stored."""
    rows = compared([result.row for result in results], loaded, bounds)
    last = [result for result in results if result.row.fingerprint == loaded[-1].fingerprint]
    # Nothing unverified is drawn.
    confirmed = {result.row.policy for result in last if result.row.verified}
    if store:
        store.finish_rows(meta, rows)
    return Simulation(
        rows,
        traces={r.row.policy: r.trace for r in last if r.trace is not None and r.row.policy in confirmed},
        rounds={r.row.policy: r.rounds for r in last if r.rounds is not None},
        folder=store.folder if store else None,
        interrupted=meta["interrupted"],
        meta=meta,
        instances={one.fingerprint: one for one in loaded},
        bounds=list(bounds.values()),
    )


def _open(folder: Path | None, loaded: Sequence[Instance], meta: dict[str, Any]) -> SimulationStore | None:
    """Return a store in `folder` that already says what is going to run."""
    if folder is None:
        return None
    store = SimulationStore(folder)
    store.begin(loaded, meta)
    return store


def _kept(
    folder: Path, tasks: Sequence[SimulationTask], bound_tasks: Sequence[BoundTask], loaded: Sequence[Instance]
) -> tuple[Done, Bounds]:
    """Return what an earlier run has finished of these tasks.

    Raises
    ------
    UsageError
        If the folder is not one of a simulation, or of other instances or rules: it would lose or mix them.
    """
    if not is_simulation(folder):
        raise UsageError(f"{folder}: not a results folder of harness simulate, so it cannot be resumed")
    try:
        earlier = json.loads((folder / "run.json").read_bytes())
        names, rules = dict(earlier["instances"]), earlier["rules"]
    except DAMAGE as error:
        raise UsageError(f"{folder}: damaged results: {' '.join(str(error).split())[:200]}") from error
    if set(names) != {one.fingerprint for one in loaded}:
        told = ", ".join(map(str, names.values()))
        raise UsageError(f"{folder}: a run of {told}; only a run of the same instances can be resumed there")
    if rules != _rules(tasks):
        raise UsageError(f"{folder}: a run under other rules ({clean(rules, 200)}); it cannot be resumed under these")
    try:
        _, known = journal(folder)
        instances = {one.fingerprint: one for one in loaded}
        found = kept(folder, [task.key for task in tasks], instances)
    except DAMAGE as error:
        raise UsageError(f"{folder}: damaged results: {' '.join(str(error).split())[:200]}") from error
    done = {(result.row.fingerprint, result.row.policy): result for result in found}
    wanted = {task.key for task in bound_tasks}
    bounds = {(b.fingerprint, b.model): b for b in known.values() if b.key in wanted and b.seconds is not None}
    return done, bounds


def _some_are_counted(instances: Sequence[Instance], window: Window) -> None:
    for one in instances:
        if window.first >= len(one.jobs):
            raise UsageError(f"window = {window}: {one.name} has {len(one.jobs)} jobs, none of them is in it")


def rules_for(
    instance: Instance,
    round_s: float | None,
    restart_s: float | None,
    spread_factor: float,
    until_s: float,
    profiling_s: float = 0.0,
) -> Rules:
    """Return the rules of a simulation of `instance`, with the defaults of :func:`simulate`.

    Raises
    ------
    UsageError
        If the instance has no jobs, an option is out of range, or the jobs need more than :data:`MAX_ROUNDS` rounds.
    """
    if not instance.jobs:
        raise UsageError(f"{instance.name}: a simulation needs jobs; this instance has none")
    if round_s is None:
        round_s = instance.horizon.slot_s if instance.horizon else ROUND_S
    if restart_s is None:
        restart_s = RESTART_S if round_s > RESTART_S else 0.0
    rules = Rules(round_s, restart_s, spread_factor, until_s, profiling_s=profiling_s)
    if (least := least_rounds(instance, rules)) > MAX_ROUNDS:
        wanted = f"its jobs take at least {least:.3g} rounds, at most {MAX_ROUNDS:.3g} can be simulated"
        raise UsageError(f"round_s = {round_s:g}: {instance.name}: {wanted}")
    if restart_s >= round_s:
        raise UsageError(
            f"restart_s = {restart_s:g}: with rounds of {round_s:g} s, a job that moves would never advance"
        )
    return rules


def least_rounds(instance: Instance, rules: Rules) -> float:
    """Return a lower bound on the rounds of a simulation: every job at its best rate, on no GPU idle.

    Jobs that could leave or never run do not count, and no round begins after the end of the simulation.
    """
    work, cluster = workload(instance), servers(instance)
    count = runnable(work, cluster) & np.isinf(work.leave_s)
    with np.errstate(over="ignore"):
        needed_s = float((work.work[count] / work.rates[count].max(axis=1)).sum()) / max(int(cluster.gpus.sum()), 1)
    return min(needed_s, rules.until_s) / rules.round_s


def plan(
    instances: Sequence[Instance],
    chosen: Sequence[PolicySpec],
    rules: Sequence[Rules],
    seed: int,
    window: Window,
    caps: Caps,
) -> list[SimulationTask]:
    """Return one task per instance and policy, in the order of the table."""
    if len({i.fingerprint for i in instances}) < len(instances):
        raise UsageError("two of the instances have the same content; name each once")
    return [
        SimulationTask(text, one.name, one.fingerprint, spec.id, seed, rule, window, caps)
        for one, rule in zip(instances, rules, strict=True)
        for text in [to_json(one)]
        for spec in chosen
    ]


def _bound_tasks(
    instances: Sequence[Instance], chosen: Sequence[PolicySpec], rules: Sequence[Rules], window: Window
) -> list[BoundTask]:
    """Return the bounds on each instance that some policy can be measured by."""
    return [
        BoundTask(to_json(one), one.fingerprint, rule.round_s, model)
        for one, rule in zip(instances, rules, strict=True)
        for model in wanted(chosen, window == ALL)
    ]


def _run(
    tasks: Sequence[Any],
    jobs: int,
    store: SimulationStore | None,
    on_result: Callable[[SimulationRow], None],
    done: Done,
    bounds: Bounds,
) -> bool:
    """Run simulations and bounds in one pool; add what finishes, and return whether Ctrl-C ended it early."""
    try:
        for result in run_all(tasks, jobs):
            if isinstance(result, Bound):
                bounds[result.fingerprint, result.model] = result
                if store:
                    store.add_bound(result)
                continue
            done[result.row.fingerprint, result.row.policy] = result
            if store:
                store.add_result(result)
            on_result(result.row)
    except KeyboardInterrupt:
        return True
    return False


def _results(done: Done, tasks: Sequence[SimulationTask]) -> Iterator[SimulationResult]:
    names = ((task.fingerprint, task.policy) for task in tasks)
    return (done[name] for name in names if name in done)


def _meta(
    command: str, instances: Sequence[Instance], tasks: Sequence[SimulationTask], bounds: Sequence[BoundTask]
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": SIMULATION,
        "command": command,
        "started_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "instances": {i.fingerprint: i.name for i in instances},
        "order": [i.fingerprint for i in instances],
        "plan": [task.key for task in tasks],
        "bound_plan": [task.key for task in bounds],
        "limits": asdict(tasks[0].limits) if tasks else {},
        "policies": list(dict.fromkeys(task.policy for task in tasks)),
        "rules": _rules(tasks),
        "versions": environment.versions(),
        "machine": environment.machine(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
        "interrupted": True,
    }


def _rules(tasks: Sequence[SimulationTask]) -> str:
    """Return the rules of all tasks as text: rounds, restarts, and jobs that count."""
    return "; ".join(dict.fromkeys(f"{task.rules}, window {task.window}" for task in tasks))


def _reproduction(
    references: Sequence[Reference], policies: Sequence[str], options: Mapping[str, Any], seed: int
) -> str:
    """Return the command line that runs the same simulation."""
    words = ["harness", "simulate"]
    for ref in references:
        words += ["--instance", ref.name if isinstance(ref, Instance) else str(ref)]
    words += ["--policy", *policies]
    usual = {"spread-factor": 1.0, "until-s": math.inf, "profiling-s": 0.0, "window": ALL}
    units = {"until-s": ("until-h", 3600.0), "profiling-s": ("profiling-min", 60.0)}
    for name, value in options.items():
        if value is not None and value != usual.get(name):
            option, unit = units.get(name, (name, 1.0))
            words += [f"--{option}", str(value) if isinstance(value, Window) else repr(value / unit)]
    return shlex.join([*words, *(["--seed", str(seed)] if seed else [])])
