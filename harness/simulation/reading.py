"""Read the results folder of a simulation back: rows, bounds and histories, each history checked again."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.simulation.bounds import Bound
from harness.simulation.compared import compared
from harness.simulation.result import Simulation
from harness.simulation.rows import FIELDS, SimulationRow
from harness.simulation.saving import HISTORY, history_name
from harness.simulation.sensitive import rounds
from harness.simulation.task import SimulationResult
from harness.store import DAMAGE, SCHEMA_VERSION, SIMULATION
from harness.verify.history import check
from heuristics.simulator import POLICIES, Rules, Trace, servers, workload
from instances.canonical import read
from instances.errors import UsageError
from instances.schema import Instance

WIDTHS = {"allocation": 4, "progress": 3, "offered": 2}
"""Columns of the histories' tables, which may have no rows."""

WHOLE = frozenset({"stragglers", "restarts", "waiting", *WIDTHS})
"""Parts of a history that are whole numbers."""


def is_simulation(folder: Path) -> bool:
    """Return whether a folder says that it is of a simulation."""
    try:
        return bool(json.loads((folder / "run.json").read_bytes()).get("kind") == SIMULATION)
    except DAMAGE:
        return False


def read_simulation(folder: Path) -> Simulation:
    """Read the results of ``harness simulate``, also of one that was killed.

    Raises
    ------
    UsageError
        If the folder is not one of a simulation, is of another version, or its files are damaged.
    """
    if not is_simulation(folder):
        raise UsageError(f"{folder}: not a results folder of harness simulate")
    try:
        return _read(folder)
    except DAMAGE as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"{folder}: damaged results: {what}") from error


def _read(folder: Path) -> Simulation:
    meta = json.loads((folder / "run.json").read_bytes())
    if meta["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"written in version {meta['schema_version']}, this program reads {SCHEMA_VERSION}")
    instances = {name: read(folder / "instances" / f"{name}.json") for name in meta["order"]}
    by_key, bounds = journal(folder)
    rows = [by_key[key] for key in meta["plan"] if key in by_key]
    found = {(bound.fingerprint, bound.model): bound for bound in bounds.values() if bound.key in meta["bound_plan"]}
    last = list(instances)[-1]
    histories = {
        row.policy: history(folder, row, instances[last])
        for row in rows
        if row.fingerprint == last and row.verified is not None
    }
    return Simulation(
        rows=compared(rows, list(instances.values()), found),
        traces={policy: trace for policy, trace in histories.items() if trace is not None},
        rounds={p: rounds(instances[last], t) for p, t in histories.items() if t is not None and t.rules.sensitive},
        folder=folder,
        interrupted=bool(meta["interrupted"]),
        meta=meta,
        instances=instances,
        bounds=list(found.values()),
    )


def journal(folder: Path) -> tuple[dict[str, SimulationRow], dict[str, Bound]]:
    """Return rows and bounds by key, the last one of each; a line torn by a kill is left out."""
    rows: dict[str, SimulationRow] = {}
    bounds: dict[str, Bound] = {}
    for line in (folder / "rows.jsonl").read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "bound" in entry:
            bound = Bound(**entry["bound"])
            bounds[bound.key] = bound
        else:
            row = _row(entry)
            rows[row.key] = row
    return rows, bounds


def _row(fields: Mapping[str, Any]) -> SimulationRow:
    known = {name: value for name, value in fields.items() if name in FIELDS}
    return SimulationRow(**{**known, "violations": tuple(known["violations"]), "published": tuple(known["published"])})


def kept(folder: Path, keys: Sequence[str], instances: Mapping[str, Instance]) -> list[SimulationResult]:
    """Return the finished policies of an earlier run that tasks of these keys would repeat.

    A policy that failed or is WRONG, or whose history is gone, damaged or refuted, is not among them.
    """
    found = []
    rows, _ = journal(folder)
    for key in keys:
        row = rows.get(key)
        if row is None or not row.ok or row.status == "skipped":
            continue
        try:
            trace = history(folder, row, instances[row.fingerprint])
        except DAMAGE:
            continue
        if trace is not None:
            worth = rounds(instances[row.fingerprint], trace) if trace.rules.sensitive else None
            found.append(SimulationResult(row, trace, worth))
    return found


def history(folder: Path, row: SimulationRow, instance: Instance) -> Trace | None:
    """Return a row's history; ``None`` where the row is WRONG, so that nothing unverified is drawn.

    Raises
    ------
    ValueError
        If the checker refutes a history whose row says that it was confirmed.
    """
    if row.verified is not True:
        return None
    parts = json.loads(gzip.decompress((folder / "schedules" / history_name(row)).read_bytes()))
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
        raise ValueError(f"{history_name(row)} is not the history that was confirmed: {violations[0]}")
    return trace


def _array(name: str, values: Any) -> Any:
    """Return a part of a history as it was; absent times are NaN."""
    array = np.array(values, np.int64 if name in WHOLE else float)
    return array.reshape(-1, WIDTHS[name]) if name in WIDTHS else array
