"""Decisions in files, for other programs: ``harness compare --decisions`` writes them, ``harness verify`` reads them.

A file is CSV with a header, or JSON, ``{"problem": ID, "rows": [{column: value, …}, …]}``. Both have the same columns,
in any order; times are seconds since the start of the instance, at boundaries of the problem's slots.

Gangs (``hadar.*``, ``gavel.makespan``): ``job,start,end,server,gpus``, one line per job, server and period in which the
job holds this number of GPUs; a column ``type`` instead of ``server`` names a GPU type, whose servers are then filled
in order. Rounds (``synergy.*``): ``job,start,end,server,gpus,cpus,memory_gb``, the same with the job's CPUs and memory;
a problem of one round uses the first slot, and if all servers of a GPU type are one machine, the server is the type.
Moldable jobs (``admission.*``, ``zhou.*``): ``job,start,end,server,worker_type,workers,ps_type,ps``, one line per
uninterrupted run and server; in a ring, ``ps_type`` is empty and ``ps`` is 0. Shares (``oef.*``):
``tenant,type,devices``; missing pairs are 0. Rigid jobs (``rigid.*``): ``job,start,end``, one line per uninterrupted
run; if a job may choose among pools, ``type`` names its pool. A job that does not appear is rejected; a file without
lines rejects all.

A_online's windows, a placer's rounds and a policy's picks are not in a file: they describe how a decision was found.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedgap.harness.check.rules import Rows, refuse
from schedgap.harness.check.synergy import SUPER
from schedgap.harness.studies.compare.row import Comparison
from schedgap.instances import rigid
from schedgap.instances.arrays import Array, Bools, Ints, members
from schedgap.instances.canonical import read_mapping, shown, write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.table import TraceColumn, convert, header_of, parse_headed, read_text
from schedgap.instances.moldable import Moldable, Runs
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.views import hadar, oef, synergy, zhou
from schedgap.instances.workload import GangView

MAX_CELLS = 20_000_000
"""Largest number of pairs of a line and a slot in a schedule of gangs; they take 32 bytes each."""

ON_BORDER = 1e-9
"""Relative tolerance for a time to be at a boundary of slots."""

_job = TraceColumn("job", "text", "the id of a job")
_start = TraceColumn("start", "number", "seconds since the start of the instance, 0 or more")
_end = TraceColumn("end", "number", "seconds since the start of the instance, after the start")
_server = TraceColumn("server", "text", "the name of a server (harness show)")
_count = "a whole number, {} or more"
GANG = (_job, _start, _end, _server, TraceColumn("gpus", "whole", _count.format(1), low=1))
BY_TYPE = (*GANG[:3], TraceColumn("type", "text", "a GPU type of the cluster"), GANG[-1])
ROUNDS = (
    *GANG[:-1],
    TraceColumn("gpus", "number", "a number of GPUs, more than 0"),
    TraceColumn("cpus", "number", "a number of CPUs, 0 or more"),
    TraceColumn("memory_gb", "number", "gigabytes, 0 or more"),
)
MOLDABLE = (
    *(_job, _start, _end, _server),
    TraceColumn("worker_type", "text", "a worker type of the instance"),
    TraceColumn("workers", "whole", _count.format(0)),
    TraceColumn("ps_type", "text", "a type of parameter servers, empty in a ring", blank=True),
    TraceColumn("ps", "whole", _count.format(0)),
)
RIGID = (
    _job,
    _start,
    TraceColumn("end", "number", "seconds since the start of the instance, no earlier than the start"),
)
IN_POOL = (*RIGID, TraceColumn("type", "text", "a GPU type, or pool, of the cluster"))
SHARES = (
    TraceColumn("tenant", "text", "the id of a tenant"),
    TraceColumn("type", "text", "a GPU type of the cluster"),
    TraceColumn("devices", "number", "a number of devices, 0 or more"),
)


@dataclass(frozen=True)
class Lines:
    """The lines of a file as a table of converted columns; its index has the numbers of the lines or rows."""

    path: Path
    at: str
    frame: pd.DataFrame

    def where(self, row: int) -> str:
        """Return a row's location in the file, such as ``line 3``."""
        return f"{self.at} {self.frame.index[row]}"

    def refuse(self, wrong: Bools, field: str, right: str, before: Ints | None = None) -> None:
        """Raise `UsageError` for the first `wrong` line of a field; ``{before}`` in `right` is the line in `before`."""
        if wrong.any():
            row = int(wrong.argmax())
            other = "" if before is None else self.where(int(before[row]))
            value = shown(self.frame[field].iloc[row])
            raise UsageError(f"{self.path}: {self.where(row)}: {field} = {value}: {right.format(before=other)}")

    def whole(self, field: str) -> Ints:
        """Return a field as integers."""
        return self.frame[field].to_numpy().astype(np.int64)

    def indices(self, field: str, names: Sequence[str]) -> Ints:
        """Return each line's index into `names`; raise `UsageError` for an unknown name."""
        indices = pd.Index(names).get_indexer(pd.Index(self.frame[field]))
        if (indices < 0).any():
            row = int((indices < 0).argmax())
            message = unknown(field.replace("_", " "), self.frame[field].iloc[row], names)
            raise UsageError(f"{self.path}: {self.where(row)}: {field}: {message}")
        return indices.astype(np.int64)

    def borders(self, field: str, slot_s: float) -> Ints:
        """Return the slots that begin at these times; raise `UsageError` for the first time within a slot."""
        slots = self.frame[field].to_numpy(float) / slot_s
        nearest = np.round(slots)
        off = np.abs(slots - nearest) > ON_BORDER * np.maximum(nearest, 1)
        more = f" ({off.sum()} such times in this column)" if off.sum() > 1 else ""
        self.refuse(off, field, f"not on a border of slots, which are {slot_s:g} s long{more}")
        return nearest.astype(np.int64)

    def times(self, slot_s: float, last: int | None = None) -> tuple[Ints, Ints]:
        """Return each line's first slot and the slot after its last one, from 0; `last` is the end of the horizon."""
        start, end = self.borders("start", slot_s), self.borders("end", slot_s)
        self.refuse(end <= start, "end", "a time after the start")
        if last is not None:
            self.refuse(end > last, "end", f"the horizon ends at {last * slot_s:.15g} s")
        return start, end

    def once(self, field: str, what: str, *keys: Ints) -> None:
        """Raise `UsageError` for the first line that has the same keys as an earlier one."""
        table = np.stack(keys, axis=1)
        _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
        before = first[group.reshape(-1)]
        self.refuse(before < np.arange(len(table)), field, f"{what} as in {{before}}", before)


def _distinct(names: Sequence[str]) -> list[str]:
    """Make names unique: virtual tenants of one model with several speedups have the same label."""
    labels = pd.Series(names, dtype=object)
    number = labels.groupby(labels).cumcount()
    return [f"{name}#{i + 1}" if i else name for name, i in zip(names, number, strict=True)]


def _named(names: Sequence[str], indices: Ints) -> list[str]:
    return [names[i] for i in indices.tolist()]


def _numbers(values: Ints | Array, unit: float = 1.0) -> list[float]:
    return [int(value) if value == int(value) else value for value in (values * unit).tolist()]


# ---------------------------------------------------------------- gangs


def _gangs(view: hadar.HadarView, decision: hadar.HadarSchedule, problem: str) -> list[Sequence[Any]]:
    return _lasting(view, decision.slot, decision.job, decision.server, view.servers.names, decision.gpus)


def _lasting(
    view: GangView, slots: Ints, jobs: Ints, servers: Ints, names: Sequence[str], *amounts: Array | Ints
) -> list[Sequence[Any]]:
    """Return the columns of the file; consecutive slots with the same amounts on a server form one line."""
    order = np.lexsort((slots, servers, jobs))
    slot, job, server = (np.asarray(array)[order] for array in (slots, jobs, servers))
    held = [np.asarray(amount, float)[order] for amount in amounts]
    new = np.ones(job.size, bool)
    same = [column[1:] == column[:-1] for column in (job, server, *held)]
    new[1:] = ~(np.logical_and.reduce(same) & (slot[1:] == slot[:-1] + 1))
    first = np.flatnonzero(new)
    last = np.append(first[1:], job.size)[: first.size] - 1
    return [
        _named(_distinct(view.workload.ids), job[first]),
        _numbers(slot[first], view.slot_s),
        _numbers(slot[last] + 1, view.slot_s),
        _named(_distinct(names), server[first]),
        *(_numbers(amount[first]) for amount in held),
    ]


def _schedule(view: hadar.HadarView, lines: Lines, problem: str) -> hadar.HadarSchedule:
    """Return the schedule in a file; GPUs by type are placed onto servers, unless a type has too few."""
    field = "server" if "server" in lines.frame else "type"
    names = view.servers.names if field == "server" else view.workload.gpu_types
    job, place = lines.indices("job", _distinct(view.workload.ids)), lines.indices(field, _distinct(names))
    gpus = lines.whole("gpus")
    row, slot = _cells(lines, field, job, place, *lines.times(view.slot_s, view.slots))
    if field == "server":
        return hadar.HadarSchedule(job[row], slot, place[row], gpus[row])
    held = Rows({"place": names.__getitem__}, slot=slot, place=place[row]).by("slot", "place")
    used, there = held.total(gpus[row]), view.capacity[held.place]
    text = "slot {slot}: {used} GPUs of type {place} given out, {there} available{more}"
    refuse(held.broken(used > there, text, " (too many in {count} slots and types)", used=used, there=there))
    return hadar.placed(view, job[row], slot, place[row], gpus[row])


def _cells(lines: Lines, field: str, job: Ints, place: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return a row and a slot for each slot of each line; raise `UsageError` if lines of a job and place overlap."""
    order = np.lexsort((start, place, job))
    overlap, before = np.zeros(job.size, bool), np.zeros(job.size, np.int64)
    same = (job[order][1:] == job[order][:-1]) & (place[order][1:] == place[order][:-1])
    overlap[order[1:]] = same & (start[order][1:] < end[order][:-1])
    before[order[1:]] = order[:-1]
    lines.refuse(overlap, "start", f"overlaps with {{before}}, of the same job and {field}", before)
    size = end - start
    if size.sum() > MAX_CELLS:
        raise UsageError(f"{lines.path}: {size.sum()} pairs of a line and a slot, at most {MAX_CELLS} are allowed")
    row, after = members(size)
    return row, start[row] + after


def _machines(view: synergy.SynergyView, problem: str) -> Sequence[str]:
    return view.workload.gpu_types if problem in SUPER else view.servers.names


def _rounds(view: synergy.SynergyView, decision: synergy.SynergySchedule, problem: str) -> list[Sequence[Any]]:
    entries = decision.round, decision.job, decision.server
    return _lasting(view, *entries, _machines(view, problem), decision.gpus, decision.cpus, decision.memory_gb)


def _run(view: synergy.SynergyView, lines: Lines, problem: str) -> synergy.SynergySchedule:
    job = lines.indices("job", _distinct(view.workload.ids))
    place = lines.indices("server", _distinct(_machines(view, problem)))
    row, slot = _cells(lines, "server", job, place, *lines.times(view.slot_s))
    gpus, cpus, memory_gb = (lines.frame[name].to_numpy(float)[row] for name in ("gpus", "cpus", "memory_gb"))
    nobody = np.empty(0, np.int64)
    return synergy.SynergySchedule(slot, job[row], place[row], gpus, cpus, memory_gb, nobody, nobody)


# ---------------------------------------------------------------- moldable jobs


def _moldable(view: Any, problem: str) -> tuple[Moldable, int]:
    """Return the moldable jobs and machines of a problem, and the number of the slot that begins at time 0."""
    return (view.architectures[problem.split(".")[1]], 1) if isinstance(view, zhou.ZhouView) else (view, 0)


def _runs(view: Any, decision: Runs, problem: str) -> list[Sequence[Any]]:
    of, first = _moldable(view, problem)
    run, start = decision.run, decision.start - first
    return [
        _named(_distinct(of.ids), decision.job[run]),
        _numbers(start[run], view.slot_s),
        _numbers((start + decision.slots)[run], view.slot_s),
        _named(_distinct(of.machines.names), decision.server),
        _named(of.machines.worker_types, decision.worker_type[run]),
        decision.workers.tolist(),
        _named([*of.machines.ps_types, ""], decision.ps_type[run]),  # rings have PS type −1, the last name
        decision.ps.tolist(),
    ]


def _plan(view: Any, lines: Lines, problem: str) -> Runs:
    """Return the runs in a file; lines with the same job, times and types form one run."""
    of, first = _moldable(view, problem)
    job, server = lines.indices("job", _distinct(of.ids)), lines.indices("server", _distinct(of.machines.names))
    worker, (start, end) = lines.indices("worker_type", of.machines.worker_types), lines.times(view.slot_s)
    ring = not of.machines.ps_types
    ps = lines.indices("ps_type", [""] if ring else of.machines.ps_types) - ring
    keys, run = np.unique(np.stack((job, start, end, worker, ps), axis=1), axis=0, return_inverse=True)
    run = run.reshape(-1)
    lines.once("server", "the same job, time and server", run, server)
    kind = zhou.ZhouSchedule if isinstance(view, zhou.ZhouView) else Runs
    columns = keys[:, 0], keys[:, 1] + first, keys[:, 2] - keys[:, 1], keys[:, 3], keys[:, 4]
    return kind(*columns, run, server, lines.whole("workers"), lines.whole("ps"))


# ---------------------------------------------------------------- shares


def _shares(view: oef.OefView, decision: oef.Allocation, problem: str) -> list[Sequence[Any]]:
    devices: Array = np.asarray(decision.devices, float)
    tenant, kind = np.nonzero(devices)
    return [_named(_distinct(view.labels), tenant), _named(view.gpu_types, kind), devices[tenant, kind].tolist()]


def _allocation(view: oef.OefView, lines: Lines, problem: str) -> oef.Allocation:
    tenant, kind = lines.indices("tenant", _distinct(view.labels)), lines.indices("type", view.gpu_types)
    lines.once("tenant", "the same tenant and type", tenant, kind)
    devices = np.zeros_like(view.speedups)
    devices[tenant, kind] = lines.frame["devices"].to_numpy(float)
    return oef.Allocation(devices)


# ---------------------------------------------------------------- rigid jobs


def _intervals(view: rigid.RigidView, decision: rigid.RigidSchedule, problem: str) -> list[Sequence[Any]]:
    times = (_numbers(ticks, view.tick_s) for ticks in (decision.start, decision.end))
    pools = [] if view.moves is None else [_named(view.pools, decision.pool)]
    return [_named(_distinct([job.id for job in view.instance.jobs]), decision.job), *times, *pools]


def _held(view: rigid.RigidView, lines: Lines, problem: str) -> rigid.RigidSchedule:
    job = lines.indices("job", _distinct([job.id for job in view.instance.jobs]))
    start, end = lines.borders("start", view.tick_s), lines.borders("end", view.tick_s)
    lines.refuse(end < start, "end", "a time no earlier than the start")
    pool = lines.indices("type", view.pools) if "type" in lines.frame else view.pool[job]
    return rigid.RigidSchedule(job, start, end, pool)


# ---------------------------------------------------------------- files


@dataclass(frozen=True)
class Form:
    """The file format of a paper's decisions: alternative sets of columns, of which the first that fits is written."""

    columns: tuple[tuple[TraceColumn, ...], ...]
    written: Callable[[Any, Any, str], list[Sequence[Any]]]
    read: Callable[[Any, Lines, str], Any]


_GANGS, _MOLDABLE = Form((GANG, BY_TYPE), _gangs, _schedule), Form((MOLDABLE,), _runs, _plan)
FORMS = {
    "admission": _MOLDABLE,
    "gavel": _GANGS,
    "hadar": _GANGS,
    "oef": Form((SHARES,), _shares, _allocation),
    "rigid": Form((RIGID, IN_POOL), _intervals, _held),
    "synergy": Form((ROUNDS,), _rounds, _run),
    "zhou": _MOLDABLE,
}
"""The file format of each paper's decisions, for papers that have one."""


def form(paper: str) -> Form:
    """Return the file format of a paper's decisions; raise `UsageError` if there is none."""
    if paper not in FORMS:
        raise UsageError(f"decisions of {paper} have no file format; those of {', '.join(FORMS)} have one")
    return FORMS[paper]


def read(path: Path, view: Any, problem: str) -> Any:
    """Return the decision in a file; raise `UsageError` on its first wrong line, `RefusedError` if GPUs are too few."""
    file_format = form(problem.partition(".")[0])
    if path.suffix.lower() == ".json":
        return file_format.read(view, Lines(path, "row", _from_json(path, file_format, problem)), problem)
    if path.suffix.lower() != ".csv":
        raise UsageError(f"{path}: a file of decisions ends in .csv or .json")
    text = read_text(path)
    columns = _columns(f"{path}: line 1", header_of(path, text, ","), file_format.columns)
    return file_format.read(view, Lines(path, "line", parse_headed(FileRows(path), text, columns, least=0)), problem)


def _columns(
    where: str, names: Sequence[str], alternatives: Sequence[tuple[TraceColumn, ...]]
) -> tuple[TraceColumn, ...]:
    """Return the alternative with these column names, in any order; raise `UsageError` if there is none."""
    for columns in alternatives:
        if sorted(names) == sorted(column.name for column in columns):
            return columns
    wanted = ", or ".join(",".join(column.name for column in columns) for columns in alternatives)
    raise UsageError(f"{where}: columns {shown(','.join(names))}: expected {wanted}")


def _from_json(path: Path, file_format: Form, problem: str) -> pd.DataFrame:
    content = read_mapping(path)
    if content.get("problem", problem) != problem:
        raise UsageError(f"{path}: problem = {shown(content['problem'])}: the file is read as {problem}")
    rows = content.get("rows")
    if not isinstance(rows, list):
        raise UsageError(f"{path}: rows = {shown(rows)}: a list of objects")
    alternatives = file_format.columns
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UsageError(f"{path}: row {number}: {shown(row)}: an object with fields")
        alternatives = (_columns(f"{path}: row {number}", list(row), alternatives),)
    columns = alternatives[0]
    index = np.arange(1, len(rows) + 1)
    raw = {c.name: pd.Series([_text(row[c.name]) for row in rows], index=index, dtype=object) for c in columns}
    rows = FileRows(path, at="row")
    return pd.DataFrame({c.name: convert(rows, raw[c.name], c) for c in columns})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def save(comparison: Comparison, folder: Path) -> tuple[int, list[str]]:
    """Write every decision of a comparison as CSV and JSON; return their number, and the papers without a format.

    Decisions that their checker finds malformed are left out: their indices may not refer to any job or server.
    """
    rows = [row for row in comparison.rows if row.objective is not None and row.name in comparison.decisions]
    seeds = {row.seed for row in rows}
    several = len(comparison.instances) > 1
    for row in (writable := [row for row in rows if row.paper in FORMS]):
        view = PAPERS.get(row.paper).view(comparison.instances[row.fingerprint])
        parts = [row.method, row.fingerprint[:8] * several, f"seed{row.seed}" * (len(seeds) > 1)]
        name = re.sub(r"[^A-Za-z0-9_.=-]", "_", "-".join(filter(None, parts)))
        for suffix, content in _contents(view, comparison.decisions[row.name], row.problem).items():
            write_atomically(folder / f"{name}.{suffix}", content.encode())
    return len(writable), sorted({row.paper for row in rows} - set(FORMS))


def _contents(view: Any, decision: Any, problem: str) -> dict[str, str]:
    """Return the contents of a decision's files by suffix."""
    file_format = form(problem.partition(".")[0])
    written = file_format.written(view, decision, problem)
    names = next([column.name for column in columns] for columns in file_format.columns if len(columns) == len(written))
    rows = list(zip(*written, strict=True))
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([names, *rows])
    lines = ",\n".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows)
    return {"csv": table.getvalue(), "json": f'{{"problem": {json.dumps(problem)}, "rows": [\n{lines}\n]}}\n'}
