"""Simulate policies on instances, check their histories, and compare them with certified bounds."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self, Unpack

import numpy as np

from schedgap.harness.engine.result import Later, Opened
from schedgap.harness.engine.study import Finished, Reference, Running, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits, Task, sent
from schedgap.harness.show.measures import SIMULATE, kinds
from schedgap.harness.show.table import to_json_lines, to_parquet
from schedgap.harness.show.text import number
from schedgap.harness.studies.simulate.bounds import BoundTask, compared, wanted
from schedgap.harness.studies.simulate.row import Bound, Simulation, SimulationRow
from schedgap.harness.studies.simulate.task import SimulationResult, SimulationTask
from schedgap.harness.studies.statistics import parquet
from schedgap.heuristics.simulator import POLICIES, PolicySpec, Rules, runnable, servers, workload
from schedgap.heuristics.simulator.metrics import ALL, Window
from schedgap.heuristics.simulator.program import named
from schedgap.instances import load
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance

COMPARED = ("hadar", "gavel", "tiresias", "yarn-cs")
"""Schedulers compared in Hadar, section IV."""

USUAL = Limits(time_limit_s=3600.0)
"""Default limits of one simulation: wall-clock seconds and memory."""

MAX_ROUNDS = 10_000_000
"""Maximum number of rounds of a simulation; the records of more do not fit into the memory of a worker."""

ROUND_S, RESTART_S = 360.0, 10.0
"""Hadar, section IV: rounds of 6 minutes, 10 seconds for a checkpoint and restart."""


@dataclass(frozen=True)
class SimulationOptions:
    """Options of a simulation as the user gave them; :func:`rules_for` replaces ``None`` by the instance's defaults."""

    round_s: float | None = None
    restart_s: float | None = None
    spread_factor: float = 1.0
    until_s: float = math.inf
    profiling_s: float = 0.0
    window: Window = ALL
    network: bool = False

    @classmethod
    def of_command(
        cls, until_h: float = math.inf, profiling_min: float = 0.0, window: str | None = None, **others: Any
    ) -> Self:
        """Return options from values in the units of the command line."""
        if not until_h > 0:
            raise UsageError(f"--until-h {until_h:g}: must be a positive number of hours")
        jobs = Window.parse(window) if window else ALL
        return cls(until_s=until_h * 3600, profiling_s=profiling_min * 60, window=jobs, **others)


def simulate(
    instance: Reference | Sequence[Reference],
    policies: str | Iterable[str] = COMPARED,
    *,
    round_s: float | None = None,
    restart_s: float | None = None,
    spread_factor: float = 1.0,
    until_s: float = math.inf,
    profiling_s: float = 0.0,
    window: Window = ALL,
    network: bool = False,
    seed: int = 0,
    limits: Limits = USUAL,
    **running: Unpack[Running],
) -> Simulation:
    """Simulate policies on one or more instances and check every history; Ctrl-C ends the run and keeps finished rows.

    Raise `UsageError`, before anything runs, if a reference, policy, instance or option is wrong.

    Parameters
    ----------
    instance, policies
        References (``gen/hadar-480``, a path) or loaded instances; names of policies (:func:`resolve`).
    round_s, restart_s
        Seconds per round, by default a slot of the instance, or 360; and seconds lost when an allocation changes, by
        default 10, or 0 if rounds are not longer than that.
    spread_factor, until_s
        Factor in (0, 1] on the rate of gangs that span servers; no round starts at or after `until_s`.
    profiling_s, window
        Seconds of profiling before policies that need profiles may schedule a job; jobs whose completion times count.
    network
        Whether gangs that span servers exchange their gradients over the network
        (:class:`~schedgap.heuristics.simulator.Rules`).
    seed, limits
        Seed of the solver, for policies that solve models; wall-clock seconds and memory of one simulation.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).
    """
    references, policies = several(instance), several(policies)
    options = SimulationOptions(round_s, restart_s, spread_factor, until_s, profiling_s, window, network)
    arguments = {
        "instance": references,
        "policy": tuple(policies),
        "round_s": round_s,
        "restart_s": restart_s,
        "spread_factor": None if spread_factor == 1 else spread_factor,
        "network": network or None,
        "until_h": None if until_s == math.inf else until_s / 3600,
        "profiling_min": profiling_s / 60 or None,
        "window": window.told,
        "seed": seed or None,
        **limits.given(USUAL),
    }
    command = command_line(arguments, "simulate")
    return run(references, policies, {"": options}, seeds=[seed], limits=limits, command=command, **running)


def run(
    references: Sequence[Reference],
    policies: Iterable[str],
    options: Mapping[str, SimulationOptions],
    *,
    seeds: Sequence[int],
    limits: Limits,
    command: str,
    **running: Unpack[Running],
) -> Simulation:
    """Simulate policies on instances under each of the `options`, whose keys label the rows; see :func:`simulate`."""
    chosen = resolve(policies)
    loaded = [load(ref) for ref in references]
    tasks = plan(loaded, chosen, options, seeds, limits)
    simulations = [task for task in tasks if isinstance(task, SimulationTask)]
    programs = {task.policy: task.program for task in simulations if task.program}
    rules = [{**asdict(task.rules), "window": task.window}.items() for task in simulations]
    meta = {
        "command": command,
        "limits": asdict(limits),
        "policies": [spec.id for spec in chosen],
        "plugins": [{"name": name, "kind": "program", "digest": one.digest} for name, one in programs.items()],
        "rules": "; ".join(dict.fromkeys(", ".join(f"{k} = {v}" for k, v in one) for one in rules)),
    }
    return execute(STUDY, [lambda done: tasks], meta, instances=loaded, **running)


def plan(
    instances: Sequence[Instance],
    chosen: Sequence[PolicySpec],
    options: Mapping[str, SimulationOptions],
    seeds: Sequence[int],
    limits: Limits,
) -> list[Task[Any]]:
    """Return the tasks: simulations in the order of the table, then bounds; raise `UsageError` on bad options."""
    programs = {spec.id: named(spec.id) for spec in chosen}
    tasks: list[Task[Any]] = []
    bounds: list[Task[Any]] = []
    for one in instances:
        of = sent(one)
        for label, own in options.items():
            rules = rules_for(one, own)
            if own.window.first >= len(one.jobs):
                raise UsageError(f"window = {own.window}: beyond the {len(one.jobs)} jobs of {one.name}")
            tasks += [
                SimulationTask(*of, spec.id, seed, rules, own.window, programs[spec.id], label, limits=limits)
                for seed in seeds
                for spec in chosen
            ]
            bounds += [
                BoundTask(*of, rules.round_s, metric, sensitive, forks, window)
                for metric, sensitive, forks, window in wanted(chosen, own.window)
            ]
    return [*tasks, *{task.key: task for task in bounds}.values()]


def collected(found: Finished) -> Simulation:
    """Return the finished simulation: its compared rows, and the verified histories of the last instance."""
    results = [one for one in found.results if isinstance(one, SimulationResult)]
    bounds = [one for one in found.results if isinstance(one, Bound)]
    last = next(reversed(found.instances), "")
    shown = [one for one in results if one.row.fingerprint == last and one.row.verified]
    sensitive = [one for one in shown if POLICIES.get(one.row.policy).sensitive]
    rows = judged(found)
    traces = Opened({one.row.policy: Later(partial(getattr, one, "trace")) for one in shown})
    rounds = Opened({one.row.policy: Later(partial(getattr, one, "rounds")) for one in sensitive})
    return Simulation(found.meta, rows, found.instances, traces, rounds, bounds, folder=found.folder)


def _tables(simulation: Simulation) -> Mapping[str, bytes]:
    records = [row.as_dict() for row in simulation.rows]
    rows = {"rows.jsonl": to_json_lines(SIMULATE, records), "rows.parquet": to_parquet(kinds(SIMULATE), records)}
    return {**rows, **parquet(simulation)}


def judged(found: Finished) -> list[SimulationRow]:
    """Return the rows of a run, compared with each other and with the bounds on their metrics."""
    bounds = [one for one in found.results if isinstance(one, Bound)]
    rows = [one.row for one in found.results if isinstance(one, SimulationResult)]
    return compared(rows, found.instances, bounds)


STUDY = Study("simulate", (SimulationResult, Bound), collected, _tables, judged)


def rules_for(instance: Instance, options: SimulationOptions) -> Rules:
    """Return the rules of a simulation of `instance`; raise `UsageError` if they are out of range."""
    if not instance.jobs:
        raise UsageError(f"{instance.name}: a simulation needs jobs; this instance has none")
    round_s, restart_s = options.round_s, options.restart_s
    if round_s is None:
        round_s = instance.horizon.slot_s if instance.horizon else ROUND_S
    if restart_s is None:
        restart_s = RESTART_S if round_s > RESTART_S else 0.0
    given = {name: getattr(options, name) for name in ("spread_factor", "until_s", "profiling_s", "network")}
    rules = Rules(round_s, restart_s, **given)
    # Lower bound: every job runs at its best rate, and no GPU idles. Jobs that may leave or never run do not count.
    work, cluster = workload(instance), servers(instance)
    if options.network:
        work.over_network()
    count = runnable(work, cluster) & np.isinf(work.leave_s)
    with np.errstate(over="ignore"):
        needed_s = float((work.work[count] / work.rates[count].max(axis=1)).sum()) / max(int(cluster.gpus.sum()), 1)
    if (least := min(needed_s, rules.until_s) / round_s) > MAX_ROUNDS:
        reason = (
            f"its jobs take at least {number(least, 3, 'at least')} rounds, at most {MAX_ROUNDS:,} can be simulated"
        )
        raise UsageError(f"round_s = {round_s:g}: {instance.name}: {reason}")
    if restart_s >= round_s:
        reason = f"with rounds of {round_s:g} s, a job that moves would never advance"
        raise UsageError(f"restart_s = {restart_s:g}: {reason}")
    return rules


FIRST = "hadar"
"""Paper whose policy a short name refers to if several papers have a policy of that name."""


def resolve(names: Iterable[str]) -> list[PolicySpec]:
    """Return the policies with these names, each once, in order of first appearance.

    A name is an id (``hadar.gavel``), a shell pattern (``hadar.*``), the end of an id (``gavel``, ``yarn-cs``), a paper
    (``hadar``, its own online algorithm), or a program (``exec:./mine``); several names may be joined by commas. Raise
    `UnknownNameError`, which suggests similar names, if a name matches nothing.
    """
    chosen: dict[str, PolicySpec] = {}
    for name in (part.strip() for text in names for part in text.split(",")):
        short, question, settings = name.partition("?")
        if short.partition(":")[0] in POLICIES.families:
            program = POLICIES.get(name)
            chosen[program.id] = program
            continue
        plain = short.lower().replace("-", "_")
        exact = [spec for wanted in (plain, f"{plain}.online") for spec in POLICIES if spec.id == wanted]
        endings = [spec for spec in POLICIES if spec.id.partition(".")[2] == plain]
        matches = exact[:1] or [spec for spec in POLICIES if fnmatch.fnmatchcase(spec.id, plain)]
        matches = matches or sorted(endings, key=lambda spec: spec.paper != FIRST)[:1]
        if not matches:
            ends = (spec.id.partition(".")[2] for spec in POLICIES if not spec.settings)
            shorts = [end for end in dict.fromkeys(ends) if "." not in end and end != "online"]
            raise UnknownNameError(unknown("policy", short, [*POLICIES.ids(), *shorts]))
        if question:
            matches = [POLICIES.get(f"{spec.id}?{settings}") for spec in matches if not spec.settings]
        chosen |= {spec.id: spec for spec in matches}
    return list(chosen.values())
