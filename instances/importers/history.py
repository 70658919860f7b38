"""Logs of executed jobs: the output of readers, its checks, and its conversion to an instance.

A job runs on its pool (a GPU type, or a partition) from its start to its end. Rules:

- **Jobs**: several lines with one id are one job that was interrupted. A part that held other GPUs than the previous
  part is a separate job (``id~2``), released when the previous part ends. A job that starts before its submission
  counts as submitted at its start.
- **Cluster**: the GPUs of each pool from the user, a node list, or the log's header; otherwise the largest number in
  use at once. If a log uses more GPUs than there are, a note gives the time, and the log's peak counts.
- **Servers**: if the log says on which servers a job ran, and a node list names these, each server is checked, too. If
  the log does not divide a gang among its servers, the gang holds on each server the GPUs for which the others have no
  room, and at least one.
- **Other types**: a job may move to another type if the log has its duration there (``duration:TYPE``).
- **Weights**: the log's, or the GPUs of the gang.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedgap.instances.arrays import Array
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers.clusters import LARGEST_HOST, held_gpus, instance_of, left_out_notes, node_list
from schedgap.instances.importers.registry import MAX_DURATION_S, MAX_GANG, Options
from schedgap.instances.importers.table import CONTROL, NUMBER, refuse, seconds
from schedgap.instances.rigid import steps
from schedgap.instances.schema import Cluster, GpuType, Instance, ServerGroup, limits
from schedgap.instances.schema.columns import ELSEWHERE as DURATIONS
from schedgap.instances.schema.columns import GPU_TYPE, HOSTS, PARTITION, REQUESTED, RUNS, Column
from schedgap.instances.text import counted

UNKNOWN = {"", "Unknown", "None", "N/A", "NaT", "null"}
"""Values that stand for an unknown time in logs."""

NEVER_STARTED = "they never started"
STILL_RUNNING = "they were still running when the log was taken, or their end is not known"

ELSEWHERE = "duration:"
"""Prefix of columns with the durations of jobs on another type; the name of the type follows."""

TEXTS = dict.fromkeys(("type", "partition", "user", "status"), "")
OPTIONAL: Mapping[str, Any] = {**TEXTS, "requested": np.nan, "weight": np.nan}
"""Columns that a log may lack, with their defaults."""


@dataclass(frozen=True)
class Log:
    """A log as read, with one row per run of a job, indexed by line number.

    Attributes
    ----------
    frame
        ``id``, ``submit``, ``start``, ``end`` (seconds), ``gpus``; any columns of :data:`OPTIONAL`, ``hosts`` (GPUs by
        server name, 0 if the log does not say how many), and ``duration:TYPE`` (seconds on another type, NaN if the job
        cannot run there). A log that records only durations has ``duration`` in place of ``start`` and ``end``.
    left_out, notes
        Number of lines left out by reason; notes on the reader's decisions.
    unit
        Unit of a gang (``"GPU"``), also the name of a pool that has none.
    capacity, capacity_from
        GPUs of each pool, or of the only one (``""``), according to the log itself, and where the log states them.
    dates
        Whether times count from 1970.
    """

    format: str
    path: Path
    frame: pd.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: str = "GPU"
    capacity: Mapping[str, int] | None = None
    capacity_from: str = ""
    dates: bool = True

    def moment(self, time: float) -> str:
        """Return a time for messages: a date and time, or seconds."""
        return str(pd.Timestamp(round(time, 6), unit="s"))[:19] if self.dates else f"{time:.15g} s"


def times(path: Path, raw: pd.Series, options: Options) -> pd.Series:
    """Return times as seconds (since 1970 if they are dates), NaN where they are unknown."""
    empty = raw.isin(UNKNOWN)
    if options.time_format:
        try:
            dates = pd.to_datetime(raw.where(~empty), format=options.time_format, errors="coerce", utc=True)
        except ValueError as error:
            raise UsageError(f"--time-format {options.time_format}: {error}") from None
        values: pd.Series[float] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        right = f"a time of the form {options.time_format}"
    elif raw[~empty].map(lambda text: NUMBER.fullmatch(text) is not None).all():
        values, right = pd.to_numeric(raw.where(~empty), errors="coerce"), "seconds"
    else:
        right = "a date such as 2026-03-02T08:00:05, or seconds; for other forms, set --time-format"
        values = seconds(raw)
    refuse(path, (values.isna() & ~empty) | (values < 0) | (values > limits.MAX_HORIZON_S), raw, right)
    return values.astype(float)


def durations(path: Path, raw: pd.Series) -> pd.Series:
    """Return durations in seconds from plain numbers or ``[d-]h:mm:ss``, NaN where they are unknown or unlimited."""
    empty = raw.isin(UNKNOWN | {"UNLIMITED", "Partition_Limit", "INVALID"})
    plain = pd.to_numeric(raw.where(~empty), errors="coerce")
    parts = raw.str.extract(r"^(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d{1,9})?))?$")
    clock = parts.astype(float).fillna({"d": 0, "s": 0}) @ np.array([86400, 3600, 60, 1])
    values: pd.Series = plain.fillna(clock)
    right = f"a duration in seconds or as h:mm:ss, 0 to {MAX_DURATION_S:g} s"
    refuse(path, (values.isna() & ~empty) | (values < 0) | (values > MAX_DURATION_S), raw, right)
    return values


def to_utc(log: Log, options: Options) -> tuple[pd.DataFrame, float]:
    """Return the log with times converted from the user's zone to UTC, and the zone's offset at the first line."""
    frame, names = log.frame, [name for name in ("submit", "start", "end") if name in log.frame]
    if options.timezone is None:
        return frame, 0.0
    offset = 0.0
    for name in names:
        wall = pd.to_datetime(frame[name], unit="s")
        try:
            utc = wall.dt.tz_localize(options.timezone, ambiguous=False, nonexistent="shift_forward")
        except (KeyError, ValueError, OSError):
            raise UsageError(f"--timezone {options.timezone}: no such zone; write for example Europe/Berlin") from None
        moved = (utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        offset = float((frame[name] - moved).iloc[0]) if name == "submit" else offset
        frame = frame.assign(**{name: moved})
    return frame, offset


def to_instance(log: Log, options: Options) -> Instance:
    """Return the instance of a log, with a note on every filling.

    It raises `InstanceError` if a line is invalid or nothing ran, and `UsageError` if an option does not suit this log.
    """
    frame, offset = to_utc(log, options)
    derived = left_out_notes(log.left_out, len(log.frame), "line")
    if frame.empty:
        raise InstanceError(f"{log.path}: no job ran: {'; '.join(derived) or 'the log is empty'}")
    derived += log.notes
    frame = _jobs(log, _checked(log, frame, derived), derived)
    ids, limit = frame["id"].drop_duplicates(), min(options.max_jobs or limits.MAX_ITEMS, limits.MAX_ITEMS)
    if len(ids) > limit:
        derived.append(f"only the first {limit} of {counted(len(ids), 'job')} by submission")
    frame = frame[frame["id"].isin(ids.iloc[:limit])].copy()
    frame["pool"] = _pools(log, frame["type"], frame, options)
    nodes = None if options.nodes is None else node_list(Path(options.nodes))
    capacity = _capacity(log, frame, options, nodes, derived)
    frame["elsewhere"] = pd.Series(_elsewhere(log, frame, options, capacity, derived), frame.index)
    servers = _servers(log, frame, nodes, derived) if "hosts" in frame else {}
    origin = float(frame["submit"].min())
    if frame["weight"].isna().any():
        frame["weight"] = frame["weight"].fillna(frame["gpus"])
        derived.append(f"the weight of a job is its number of {log.unit}s: the log has no weights")
    name, users = Path(log.path.name.removesuffix(".gz")).stem, filter(None, frame["user"])
    began = origin + offset if log.dates else None
    jobs = _columns(frame, origin)
    groups = [ServerGroup(name=n, count=1, gpu_type=pool, gpus=gpus) for n, (pool, gpus) in servers.items()]
    for pool, total in capacity.items():
        number = total - sum(gpus for kind, gpus in servers.values() if kind == pool)
        if number > 0:  # GPUs on no known server: one host, or several equal ones if that would be too large
            hosts = next(hosts for hosts in range(-(-number // LARGEST_HOST), number + 1) if number % hosts == 0)
            groups.append(ServerGroup(name=pool, count=hosts, gpu_type=pool, gpus=number // hosts))
    cluster = Cluster(gpu_types=tuple(GpuType(name=pool) for pool in capacity), servers=tuple(groups))
    about: dict[str, Any] = {"cluster": cluster, "began_s": began}
    return instance_of(log.format, log.path, name, options, derived, users, jobs, **about)


def _checked(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return the lines with all columns; raise `InstanceError` on an invalid id, gang or time."""
    frame = frame.assign(**{name: value for name, value in OPTIONAL.items() if name not in frame})
    refuse(log.path, frame["submit"].isna(), frame["submit"], "a time; every job needs a submission time")
    gangs = f"a whole number of {log.unit}s, 1 to {MAX_GANG}"
    refuse(log.path, ~frame["gpus"].between(1, MAX_GANG) | (frame["gpus"] % 1 != 0), frame["gpus"], gangs)
    right = "the id of a job: text without control characters, at most 190 long"
    names = frame["id"].str
    refuse(log.path, names.contains(CONTROL) | ~names.len().between(1, 190), frame["id"], right)
    if "start" not in frame:
        return frame.assign(start=np.nan, end=np.nan)
    wrong = (frame["end"] < frame["start"]) | (frame["end"] - frame["start"] > MAX_DURATION_S)
    right = f"after the start, by at most {MAX_DURATION_S:g} s (local times with daylight saving need --timezone)"
    if wrong.any():
        refuse(log.path, wrong, frame["end"].map(log.moment), right)
    early = frame["start"] < frame["submit"]
    if early.any():
        worst = float((frame["submit"] - frame["start"]).max())
        note = "started before their submission (by up to {:g} s): they count as submitted at their start"
        derived.append(f"{counted(int(early.sum()), 'job')} {note.format(worst)}")
        frame = frame.assign(submit=np.fmin(frame["submit"], frame["start"]))
    return frame.assign(duration=frame["end"] - frame["start"])


def _jobs(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return the lines in the order of submission, with new ids for parts of jobs that count as separate jobs."""
    twice = frame["id"].duplicated(keep=False)
    if twice.any():
        again = frame[twice].sort_values(["id", "start"], kind="stable")
        same = again["id"] == again["id"].shift()
        before = again["end"].shift()
        overlap = same & ~(again["start"] >= before)
        right = "already used in a line whose run overlaps this one; a job runs once at a time"
        refuse(log.path, overlap, again["id"], right)
        changed = same & ((again["gpus"] != again["gpus"].shift()) | (again["type"] != again["type"].shift()))
        part = changed.groupby(again["id"]).cumsum()
        submit = again.groupby("id")["submit"].transform("min").where(part == 0)
        submit = submit.fillna(before.where(changed)).groupby([again["id"], part]).transform("first")
        again = again.assign(submit=submit, id=again["id"].where(part == 0, again["id"] + "~" + (part + 1).astype(str)))
        refuse(log.path, again["id"].isin(frame["id"][~twice]), again["id"], "already the id of another job")
        if changed.any():
            parts = counted(int(changed.sum()), "part")
            derived.append(f"{parts} of jobs on other {log.unit}s than the part before: separate jobs")
        frame = pd.concat([frame[~twice], again])
    return frame.sort_values(["submit", "start"], kind="stable")


def _pools(log: Log, types: pd.Series, frame: pd.DataFrame, options: Options) -> pd.Series:
    """Return the pool of each line if it runs on `types`: the type, with the partition if partitions are pools."""
    types = types.where(types != "", log.unit)
    return types + "@" + frame["partition"].where(frame["partition"] != "", "-") if options.by_partition else types


def _capacity(
    log: Log, frame: pd.DataFrame, options: Options, nodes: pd.DataFrame | None, derived: list[str]
) -> dict[str, int]:
    """Return the GPUs of each pool that runs jobs, and note their source and whether the log exceeds them.

    If jobs may move, pools that the user names but that run nothing are included, too.
    """
    stated, source = log.capacity, log.capacity_from
    if options.gpus is not None:
        stated, source = options.gpus, "as asked for"
    elif nodes is not None:
        totals = nodes.groupby("type")["gpus"].sum()
        stated = {str(name): int(total) for name, total in totals.items() if total}
        source = f"node list {options.nodes}"
    pools = list(dict.fromkeys(frame["pool"]))
    if stated is not None and pools == [log.unit]:
        stated = {"": sum(stated.values())}
    if stated is not None and "" in stated and len(pools) > 1:
        raise UsageError(f"gpus: the log has several pools; write {','.join(f'{pool}=…' for pool in pools[:5])}")
    if options.gpus is not None and not set(options.gpus) & {"", *pools}:
        hint = "; write their number alone" if pools == [log.unit] else ""
        raise UsageError(f"gpus: the log has pools {', '.join(pools[:8])}, but none of {', '.join(options.gpus)}{hint}")
    capacity = {}
    for pool in pools:
        lines = frame[frame["pool"] == pool]
        room = stated.get(pool, stated.get("", 0)) if stated else 0
        peak, when, largest = _peak(lines, room)
        if room == 0:
            at = f", at {log.moment(when)}" if peak else ""
            derived.append(f"{peak or largest} {pool}: the most that the log has in use at once{at}")
        elif peak > room:
            derived.append(
                f"{peak} {pool} in use where there are {room} ({source}), first at {log.moment(when)}:"
                f" {peak}, the peak, counts"
            )
        else:
            derived.append(f"{room} {pool}: {source}; the log uses up to {peak}")
        capacity[pool] = max(peak, room, largest)
    further = stated if stated and frame.columns.str.startswith(ELSEWHERE).any() else {}
    return capacity | {pool: room for pool, room in further.items() if pool and pool not in capacity}


def _elsewhere(
    log: Log, frame: pd.DataFrame, options: Options, capacity: Mapping[str, int], derived: list[str]
) -> list[dict[str, float]]:
    """Return, for each line, the seconds that its job would take in other pools of the cluster."""
    durations: list[dict[str, float]] = [{} for _ in range(len(frame))]
    for name in frame.columns[frame.columns.str.startswith(ELSEWHERE)]:
        pools = _pools(log, pd.Series(name.removeprefix(ELSEWHERE), frame.index), frame, options)
        exists = pools.isin(list(capacity))
        if not exists.all():
            lines, pool = counted(int((~exists).sum()), "line"), pools[~exists].iloc[0]
            derived.append(
                f"{name} of {lines} left out: nothing ran on {pool}, and its size is not known (give it with --gpus)"
            )
        for row, pool, own, duration in zip(durations, pools, frame["pool"], frame[name].where(exists), strict=True):
            if pool != own and not isnan(duration):
                row[pool] = float(duration)
    return durations


def _servers(
    log: Log, frame: pd.DataFrame, nodes: pd.DataFrame | None, derived: list[str]
) -> dict[str, tuple[str, int]]:
    """Return the pool and GPUs of each server of a node list; set ``hosts`` to the GPUs that jobs certainly held."""
    rooms: dict[str, tuple[str, int]] = {}
    if nodes is not None:  # a server without a type belongs to the only pool
        pools = list(dict.fromkeys(frame["pool"]))
        kinds = nodes["type"].where(nodes["type"].isin(pools) | (len(pools) > 1), pools[0])
        named = zip(nodes["server"], kinds, nodes["gpus"].astype(int), strict=True)
        rooms = {name: (kind, gpus) for name, kind, gpus in named if name and gpus and kind in pools}
    lines = zip(frame["gpus"], frame["pool"], frame["hosts"], strict=True)
    frame["hosts"] = pd.Series([held_gpus(int(gpus), pool, on, rooms) for gpus, pool, on in lines], frame.index)
    if not rooms:
        return rooms
    rows = zip(frame["hosts"], frame["start"], frame["end"], strict=True)
    held = [(name, start, end, gpus) for on, start, end in rows for name, gpus in on.items() if name in rooms]
    exceeded = []
    for server, group in pd.DataFrame(held, columns=["server", "start", "end", "gpus"]).groupby("server"):
        pool, room = rooms[str(server)]
        peak, when, _ = _peak(group, room)
        if peak > room:
            rooms[str(server)] = pool, peak
            exceeded.append(f"{peak} {pool} in use on {server}, which has {room}, first at {log.moment(when)}")
    derived.append(f"{len({row[0] for row in held})} of {counted(len(rooms), 'server')} are checked one by one")
    if exceeded:
        others = f" (and more than there are on {len(exceeded) - 1} others)" if len(exceeded) > 1 else ""
        derived.append(f"{exceeded[0]}{others}: the peak counts")
    return rooms


def _peak(lines: pd.DataFrame, room: int) -> tuple[int, float, int]:
    """Return the most GPUs in use at once, the first time with so many (or more than `room`), and the largest gang."""
    ran = lines[lines["start"].notna() & (lines["end"] > lines["start"])]
    largest = int(lines["gpus"].max())
    if ran.empty:
        return 0, 0.0, largest
    gpus = ran["gpus"].to_numpy(np.int64)
    at, used = steps(np.concatenate([ran["start"], ran["end"]]), np.concatenate([gpus, -gpus]))
    peak = int(used.max())
    first = int((used > (room if room and peak > room else peak - 1)).argmax())
    return peak, float(at[first]), largest


def _columns(frame: pd.DataFrame, origin: float) -> dict[str, Column]:
    """Return the jobs as columns of a :class:`JobTable`, with times counted from `origin`."""
    job, _ = pd.factorize(frame["id"])
    first = ~frame["id"].duplicated().to_numpy()
    whole, size = frame[first], int(first.sum())
    start, end = _since(frame["start"], origin), _since(frame["end"], origin)
    ran = np.flatnonzero(~np.isnan(start))
    counts = np.bincount(job[ran], minlength=size)
    lasted = np.bincount(job, frame["duration"].fillna(0.0), size)
    busy = np.bincount(job[ran], end[ran] - start[ran], size).astype(float)
    others = whole["elsewhere"].tolist() if "elsewhere" in whole else [{}] * size
    columns: dict[str, Column] = {
        "id": whole["id"].tolist(),
        "tenant": _named(whole["user"]),
        "submit_s": _since(whole["submit"], origin),
        "gpus": whole["gpus"].to_numpy().astype(np.int64),
        "epochs": np.maximum(np.rint(whole["gpus"].to_numpy(float) * lasted), 1).astype(np.int64),
        "weight": whole["weight"].to_numpy(float),
        "duration_s": np.where(counts > 0, _rounded(busy), lasted),
        "status": _named(whole["status"]),
        GPU_TYPE: _named(whole["pool"]),
        PARTITION: _named(whole["partition"]),
        REQUESTED: [None if isnan(time) else float(time) for time in whole["requested"].tolist()],
        DURATIONS: [other or None for other in others],
        RUNS: np.stack([start, end], axis=1)[:, None],
    }
    own = {pool: {pool: 1.0} for pool in dict.fromkeys(columns[GPU_TYPE])}
    columns["rates"] = [
        own[pool] | {name: time / seconds for name, seconds in other.items() if seconds} if other else own[pool]
        for pool, time, other in zip(columns[GPU_TYPE], lasted.tolist(), others, strict=True)
    ]
    if not (counts == 1).all() or len(ran) < len(frame):
        runs: list[list[list[float]]] = [[] for _ in range(size)]
        for at, begin, until in zip(job[ran].tolist(), start[ran].tolist(), end[ran].tolist(), strict=True):
            runs[at].append([begin, until])
        columns[RUNS] = runs
    if "hosts" in frame:
        places: list[list[dict[str, int]]] = [[] for _ in range(size)]
        for at, on in zip(job.tolist(), frame["hosts"], strict=True):
            places[at].append(on)
        columns[HOSTS] = [on if any(on) and count else None for on, count in zip(places, counts, strict=True)]
    return {name: column for name, column in columns.items() if not _empty(column)}


def _empty(column: Column) -> bool:
    return not isinstance(column, np.ndarray) and not any(value is not None for value in column)


def _named(texts: pd.Series) -> list[str | None]:
    """Return texts, ``None`` where they are empty; equal texts are one object."""
    codes, names = pd.factorize(texts)
    shared = [name or None for name in names]
    return [shared[code] for code in codes.tolist()]


def _rounded(seconds: Array) -> Array:
    """Return seconds rounded to microseconds, correctly."""
    return np.where(seconds == np.rint(seconds), seconds, [round(second, 6) for second in seconds.tolist()])


def _since(values: pd.Series, origin: float) -> Array:
    """Return seconds after the origin, rounded to microseconds, since the subtraction adds noise below that."""
    return np.asarray(np.round(values.to_numpy(float) - origin, 6))
