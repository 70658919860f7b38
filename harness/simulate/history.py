"""Histories of simulations as files, each checked again when it is read."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from schedgap.harness.engine.codec import unpacked
from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.simulate.row import Rounds, SimulationRow
from schedgap.harness.text import plain
from schedgap.harness.verify.history import check
from schedgap.harness.verify.rounds_bound import most_progress
from schedgap.harness.verify.sensitive import SLACK, Pooled, Speeds
from schedgap.heuristics.simulator import POLICIES, Rules, Trace, servers, workload
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance

HISTORY = (
    *("start_s", "decision_s", "stragglers", "restarts", "waiting", "completion_s", "first_start_s"),
    *("allocation", "progress", "iterations", "busy_s", "speed", "cpus", "memory_gb", "offered", "unfinished"),
)
"""Attributes of :class:`~schedgap.heuristics.simulator.Trace` that are saved, beside its rules."""

WIDTHS = {"allocation": 4, "progress": 3, "offered": 2}
"""Columns of the histories' tables, which may have no rows."""

WHOLE = frozenset({"stragglers", "restarts", "waiting", *WIDTHS})
"""Parts of a history that are whole numbers."""


def history_file(row: SimulationRow) -> str:
    """Return the file of a row's history, inside the results folder."""
    return f"schedules/{re.sub(r'[^a-z0-9_.?&=-]', '_', row.policy)}-{row.fingerprint[:12]}-{row.seed}.json.gz"


def history_content(trace: Trace) -> dict[str, Any]:
    """Return a history as plain data; absent times are ``None``."""
    parts = {name: getattr(trace, name) for name in HISTORY}
    jobs = {"jobs": list(trace.workload.ids), "servers": list(trace.servers.names)}
    found: dict[str, Any] = plain({"rules": vars(trace.rules), **jobs, **parts})
    return found


def read_history(path: Path, row: SimulationRow, instance: Instance) -> tuple[Trace, Rounds | None]:
    """Return a row's history, and what its rounds are worth where policies give out CPUs and memory.

    Raises
    ------
    ValueError
        If the checker refutes a history whose row says that it was confirmed.
    """
    with damage_explained(path):
        parts = unpacked(path)
        rules = POLICIES.get(row.policy).rules(
            Rules(
                row.round_s,
                row.restart_s,
                row.spread_factor,
                math.inf if row.until_s is None else row.until_s,
                profiling_s=row.profiling_s,
            )
        )
        arrays = {name: _array(name, parts[name]) for name in HISTORY if name != "unfinished"}
        trace = Trace(workload(instance), servers(instance), rules, **arrays, unfinished=tuple(parts["unfinished"]))
        if violations := check(instance, trace, rules).violations:
            raise ValueError(f"{path.name} is not the history that was confirmed: {violations[0]}")
        return trace, rounds(instance, trace) if rules.sensitive else None


def _array(name: str, values: Any) -> Any:
    """Return a part of a history as it was; absent times are NaN."""
    array = np.array(values, np.int64 if name in WHOLE else float)
    return array.reshape(-1, WIDTHS[name]) if name in WIDTHS else array


def rounds(instance: Instance, trace: Trace) -> Rounds:
    """Return what the rounds of a history are worth."""
    work, cluster = trace.workload, trace.servers
    speeds = Speeds(instance, work, cluster)
    pooled = Pooled(speeds)
    row, job, _ = trace.progress.T
    gpu_type = _types(trace)
    rate = trace.speed * work.gpus[job] * work.rates[job, gpu_type]
    picked, who = trace.offered.T
    most = most_progress(speeds, pooled, picked, who, trace.rounds, pooled.weight) if trace.rounds else np.zeros(0)
    needed = _fewest_cpus(speeds, job, gpu_type, trace.held, rate)
    return Rounds(
        progress=np.bincount(row, pooled.weight[job] * rate, trace.rounds).astype(float),
        most=np.where(np.isin(np.arange(trace.rounds), picked), most, np.nan),
        cpus_needed=trace.used(needed, float(cluster.cpus.sum())),
    )


def _types(trace: Trace) -> Ints:
    """Return the GPU type of each row of `progress`; gangs keep to one."""
    found = np.zeros(len(trace.progress), np.int64)
    found[trace.entry_of] = trace.servers.gpu_type[trace.allocation[:, 2]]
    return found


def _fewest_cpus(speeds: Speeds, job: Ints, gpu_type: Ints, held: Array, rate: Array) -> Array:
    """Return ``(x,)`` the fewest CPUs at which gangs with this memory have these rates."""
    different, which = np.unique(
        np.column_stack((speeds.classes.of[job], gpu_type, held, rate)), axis=0, return_inverse=True
    )
    fewest = different[:, 2].copy()
    of = different[:, 0].astype(np.int64)
    for k in np.unique(of).tolist():
        here = np.flatnonzero(of == k)
        first = int(speeds.classes.first[k])
        levels = speeds.levels(first)[0]
        x = here.size * levels.size
        found = speeds.rate(
            np.full(x, first),
            np.repeat(different[here, 1].astype(np.int64), levels.size),
            np.tile(levels, here.size),
            np.repeat(different[here, 3], levels.size),
        ).reshape(here.size, -1)
        # Servers give CPUs in proportion to GPUs; what rounding takes from a level is no slower job.
        enough = found >= different[here, 4][:, None] * (1 - SLACK)
        fewest[here] = np.where(enough.any(axis=1), levels[enough.argmax(axis=1)], fewest[here])
    return np.asarray(np.minimum(fewest, different[:, 2])[which.ravel()])
