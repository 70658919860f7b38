"""Compare a log with rules, the best schedule found and bounds; write simulations as logs.

Histories are written as ``sacct -P`` prints them and in the Standard Workload Format; the importers read both. A job
has a line for each period in which it held the same GPUs without interruption; all but the last are PREEMPTED. Times
are whole microseconds; simulations begin at the start of 2026. A job's number is its position in the instance, from 1;
its name is in JobName. Jobs that never ran are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from schedgap.harness.engine.study import Running, command_line
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.text import clean
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.run import compare
from schedgap.harness.studies.simulate.row import Simulation
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.rigid import affordable
from schedgap.heuristics.simulator.trace import Trace
from schedgap.instances.canonical import write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.importers import Options, read_trace
from schedgap.instances.importers.registry import DEFAULTS
from schedgap.instances.importers.rows import list_bad
from schedgap.instances.registry import unknown
from schedgap.instances.rigid import OBJECTIVES
from schedgap.instances.schema import Instance
from schedgap.models import MODELS


def methods(objective: str, jobs: int = 0, stretches: int = 1) -> list[str]:
    """Return the methods to run on so many jobs: rules, search and bounds for one objective, quick bounds for all."""
    setting = "" if objective == "flow" else f"objective={objective}"
    apart = f"stretches={stretches}" if stretches > 1 else ""
    ids = [affordable(spec.id, jobs) for spec in HEURISTICS if spec.paper == "rigid"]
    models = [MODELS.get(name) for name in ("rigid.intervals", "rigid.starts", "rigid.search", "rigid.exact")]
    models = [spec for spec in models for p in spec.parameters if p.name == "objective" and objective in p.choices]
    own = {spec.id: apart if spec.stretches else "" for spec in models}
    ids = [*ids, *own]
    settings = {name: "&".join(filter(None, (setting, own.get(name)))) for name in ids}
    chosen = [f"{name}{'&' if '?' in name else '?'}{more}" if more else name for name, more in settings.items()]
    return [*chosen, *(f"rigid.bound?objective={name}" for name in OBJECTIVES if name != "flow"), "rigid.bound"]


def certify(
    format: str,
    log: str | Path,
    options: Options = DEFAULTS,
    objective: str = "flow",
    *,
    stretches: int = 1,
    seed: int = 0,
    limits: Limits | None = None,
    tell: Callable[[Instance], None] = lambda instance: None,
    given: dict[str, Any] | None = None,
    **running: Unpack[Running],
) -> Comparison:
    """Compare the schedule in a log with rules, the best schedule found, and bounds.

    >>> sg.certify("sacct", "log.txt", sg.Options(gpus={"V100": 36}))  # doctest: +SKIP

    Parameters
    ----------
    format, log, options
        The log (:func:`schedgap.instances.importers.import_trace`); its `history` is read whatever the options say. Its
        bad rows are listed in the results folder.
    objective
        The objective of the comparison (:data:`schedgap.instances.rigid.OBJECTIVES`).
    stretches
        Stretches of time of a long log in which the bound over starts and the search run as tasks of their own.
    seed, limits
        Seed of the search; limits of each method.
    tell
        Called with the instance before anything runs.
    given
        Options that the recorded command line repeats.
    **running
        Workers, results folder and callbacks.

    Raises
    ------
    UsageError
        If the log cannot be read, or an option makes no sense; nothing has run then.
    """
    if objective not in OBJECTIVES:
        raise UsageError(unknown("objective", objective, OBJECTIVES))
    instance, rows = read_trace(format, log, replace(options, history=True))
    tell(instance)
    command = command_line(given or {}, "certify", format, str(log))
    limits = limits or Limits()
    chosen: dict[str, Any] = {"seeds": [seed], "limits": limits, "command": command}
    found = compare([instance], methods(objective, len(instance.jobs), stretches), ["rigid"], **chosen, **running)
    list_bad(rows, found.folder)
    return found


# ---------------------------------------------------------------- simulations as logs

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Held(NamedTuple):
    """A period in which a job held the same GPUs; whether it is the job's last one, and whether the job completed."""

    job: int
    start_s: float
    end_s: float
    gpus: tuple[tuple[str, int], ...]
    servers: tuple[str, ...]
    last: bool = False
    completed: bool = False


def held(trace: Trace) -> Iterator[Held]:
    """Yield the periods of all jobs, job by job; consecutive rounds with the same GPUs form one period."""
    work, servers = trace.workload, trace.servers
    order = np.lexsort((trace.allocation[:, 2], trace.allocation[:, 0], trace.allocation[:, 1]))
    for job, entries in groupby(trace.allocation[order].tolist(), key=itemgetter(1)):
        periods: list[Held] = []
        for row, cells in groupby(entries, key=itemgetter(0)):
            gpus, places = Counter[str](), []
            for _, _, server, number in cells:
                gpus[work.gpu_types[servers.gpu_type[server]]] += number
                places.append(servers.names[server])
            start = float(trace.start_s[row])
            end = float(np.fmin(start + trace.rules.round_s, trace.completion_s[job]))
            period = Held(job, start, end, tuple(sorted(gpus.items())), tuple(places))
            if periods and periods[-1][3:] == period[3:] and abs(periods[-1].end_s - start) < 1e-6:
                period = periods.pop()._replace(end_s=end)
            periods.append(period)
        yield from periods[:-1]
        yield periods[-1]._replace(last=True, completed=bool(np.isfinite(trace.completion_s[job])))


def sacct(trace: Trace) -> str:
    """Return a history as ``sacct -P`` prints it."""
    lines = ["JobID|JobName|User|Submit|Start|End|State|NNodes|AllocTRES|NodeList"]
    for run in held(trace):
        name = clean(trace.workload.ids[run.job], 100).replace("|", "_")
        user = clean(trace.workload.tenants[trace.workload.tenant[run.job]], 100).replace("|", "_")
        seconds = (float(trace.workload.arrival_s[run.job]), run.start_s, run.end_s)
        dates = [EPOCH + timedelta(microseconds=round(time * 1e6)) for time in seconds]
        times = [f"{date:%Y-%m-%dT%H:%M:%S.%f}" for date in dates]
        gpus = ",".join(f"gres/gpu:{clean(kind, 60).replace(',', '_')}={number}" for kind, number in run.gpus)
        state = "COMPLETED" if run.completed else "PREEMPTED"
        hosts = dict.fromkeys(clean(host, 60).replace("|", "_") for host in run.servers)
        fields = [str(run.job + 1), name, user, *times, state, str(len(hosts)), gpus, ",".join(hosts)]
        lines.append("|".join(fields))
    return "\n".join(lines) + "\n"


def swf(trace: Trace) -> str:
    """Return a history in the Standard Workload Format; a partition is a GPU type, or a set of types."""
    lines, types, runs = [], [], list(held(trace))
    users = {name: i + 1 for i, name in enumerate(trace.workload.tenants)}
    several = {run.job for run in runs if not run.last}
    for run in runs:
        kinds = "+".join(kind for kind, _ in run.gpus)
        if kinds not in types:
            types.append(kinds)
        number = sum(count for _, count in run.gpus)
        submit = round(float(trace.workload.arrival_s[run.job]), 6)
        wait, lasted = round(run.start_s - submit, 6), round(round(run.end_s, 6) - round(run.start_s, 6), 6)
        whole = 1 if run.completed else 0
        status = whole if run.job not in several else 2 if not run.last else 3 if run.completed else 4
        user = users[trace.workload.tenants[trace.workload.tenant[run.job]]]
        numbers = (run.job + 1, submit, wait, lasted, number, -1, -1, number, -1, -1, status, user, -1, -1, -1)
        lines.append(" ".join(f"{value:.15g}" for value in (*numbers, types.index(kinds) + 1, -1, -1)))
    header = ["; Version: 2.2", f"; UnixStartTime: {EPOCH.timestamp():.0f}"]
    header += [f"; Partition: {i + 1} {clean(name, 60)}" for i, name in enumerate(types)]
    return "\n".join([*header, *lines]) + "\n"


WRITERS: Mapping[str, Callable[[Trace], str]] = {"sacct.txt": sacct, "swf": swf}


def save(simulation: Simulation, folder: Path) -> int:
    """Write the histories of a simulation's last instance into a folder, in each format; return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    for policy, trace in simulation.traces.items():
        name = "".join(c if c.isalnum() or c in "._-=" else "_" for c in policy)
        for suffix, writer in WRITERS.items():
            write_atomically(folder / f"{name}.{suffix}", writer(trace).encode())
    return len(simulation.traces)
