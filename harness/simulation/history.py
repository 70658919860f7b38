"""Histories of simulations as files, each checked again when it is read."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.simulation.sensitive import Rounds, rounds
from schedgap.harness.text import plain
from schedgap.harness.verify.history import check
from schedgap.heuristics.simulator import POLICIES, Rules, Trace, servers, workload
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
        parts = json.loads(gzip.decompress(path.read_bytes()))
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
