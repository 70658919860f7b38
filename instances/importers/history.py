"""Logs of what really ran: what readers hand over, how it is checked, and the instance it becomes.

A job runs on its pool (a GPU type, or a partition) from its start to its end. Rules:

- **Jobs**: several lines of one id are one job that was interrupted. A part that held other GPUs than the one before
  is a job of its own (``id~2``), which is there when the one before ends. A job that starts before it was submitted
  counts as submitted then.
- **Cluster**: the GPUs of each pool that the user names, or a node list, or the log's header; otherwise the most that
  the log has in use at once. Where a log uses more than there are, the moment is told, and its own peak counts.
- **Servers**: where the log says on which servers a job ran, and a node list names these, each is checked as well. A
  gang whose GPUs the log does not divide holds on a server what the others cannot have, and one GPU at least.
- **Other types**: where the log says how long a job would run on another type (``duration:TYPE``), it may move there.
- **Weights**: the log's, or the GPUs of the gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers.clusters import LARGEST_HOST, count, instance_of, node_list, sure, told_left_out
from schedgap.instances.importers.registry import MAX_DURATION_S, MAX_GANG, Options
from schedgap.instances.importers.table import CONTROL, NUMBER, refuse, seconds
from schedgap.instances.rigid import steps
from schedgap.instances.schema import Cluster, GpuType, History, Instance, Job, ServerGroup, limits

UNKNOWN = {"", "Unknown", "None", "N/A", "NaT", "null"}
"""How logs write a time that they do not know."""

NEVER_STARTED = "they never started"
STILL_RUNNING = "they still ran when the log was taken, or nobody knows when they ended"

ELSEWHERE = "duration:"
"""How columns begin that say how long jobs would run on another type, whose name follows."""

OPTIONAL: Mapping[str, Any] = {"type": "", "partition": "", "user": "", "requested": np.nan, "weight": np.nan}
"""Columns that a log may lack, and what stands for them."""


@dataclass(frozen=True)
class Log:
    """A log as read: a row for each time that a job ran; the index is the line.

    Attributes
    ----------
    frame
        ``id``, ``submit``, ``start``, ``end`` (seconds), ``gpus``; of :data:`OPTIONAL` what there is, ``status``,
        ``hosts`` (GPUs by the name of a server, 0 where the log does not say how many), and ``duration:TYPE`` (seconds
        on another type, NaN where it cannot run). Start and end are missing where the log knows durations alone
        (``duration``).
    left_out, notes
        Reason and number of lines left out; what the reader decided.
    unit
        What a gang holds (``"GPU"``), the name of a pool without one.
    capacity, capacity_from
        GPUs of each pool, or of the only one (``""``), by the log itself, and where it says so.
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
        """Return a time as people write it."""
        return str(pd.Timestamp(round(time, 6), unit="s"))[:19] if self.dates else f"{time:.15g} s"


def times(path: Path, raw: pd.Series, options: Options) -> pd.Series:
    """Return times as seconds (since 1970, where they are dates), NaN where they are not known."""
    empty = raw.isin(UNKNOWN)
    if options.time_format:
        dates = pd.to_datetime(raw.where(~empty), format=options.time_format, errors="coerce", utc=True)
        found: pd.Series[float] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        right = f"a time such as {options.time_format}"
    elif raw[~empty].map(lambda text: NUMBER.fullmatch(text) is not None).all():
        found, right = pd.to_numeric(raw.where(~empty), errors="coerce"), "seconds"
    else:
        found, right = seconds(raw), "a date such as 2026-03-02T08:00:05, seconds, or what --time-format says"
    refuse(path, (found.isna() & ~empty) | (found < 0) | (found > limits.MAX_HORIZON_S), raw, right)
    return found.astype(float)


def durations(path: Path, raw: pd.Series) -> pd.Series:
    """Return durations in seconds: plain numbers or ``[d-]h:mm:ss``, NaN where they are not known or unlimited."""
    empty = raw.isin(UNKNOWN | {"UNLIMITED", "Partition_Limit", "INVALID"})
    plain = pd.to_numeric(raw.where(~empty), errors="coerce")
    parts = raw.str.extract(r"^(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d{1,9})?))?$")
    clock = parts.astype(float).fillna({"d": 0, "s": 0}) @ np.array([86400, 3600, 60, 1])
    found: pd.Series = plain.fillna(clock)
    right = f"a duration in seconds or as h:mm:ss, 0 to {MAX_DURATION_S:g} s"
    refuse(path, (found.isna() & ~empty) | (found < 0) | (found > MAX_DURATION_S), raw, right)
    return found


def zoned(log: Log, options: Options) -> tuple[pd.DataFrame, float]:
    """Return the lines with times of the user's zone as UTC, and by how much the wall there is ahead at first."""
    frame, names = log.frame, [name for name in ("submit", "start", "end") if name in log.frame]
    if options.timezone is None:
        return frame, 0.0
    ahead = 0.0
    for name in names:
        wall = pd.to_datetime(frame[name], unit="s")
        try:
            utc = wall.dt.tz_localize(options.timezone, ambiguous=False, nonexistent="shift_forward")
        except (KeyError, ValueError, OSError):
            raise UsageError(f"--timezone {options.timezone}: no such zone; one is Europe/Berlin") from None
        moved = (utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        ahead = float((frame[name] - moved).iloc[0]) if name == "submit" else ahead
        frame = frame.assign(**{name: moved})
    return frame, ahead


def to_instance(log: Log, options: Options) -> Instance:
    """Return the instance of a log, with every filling recorded.

    It raises `InstanceError` if a line is wrong, or nothing ran, and `UsageError` if an option makes no sense for this
    log.
    """
    frame, ahead = zoned(log, options)
    derived = told_left_out(log.left_out, len(log.frame), "line")
    if frame.empty:
        raise InstanceError(f"{log.path}: no job ran: {'; '.join(derived) or 'the log is empty'}")
    derived += log.notes
    frame = _jobs(log, _checked(log, frame, derived), derived)
    ids, most = frame["id"].drop_duplicates(), min(options.max_jobs or limits.MAX_ITEMS, limits.MAX_ITEMS)
    if len(ids) > most:
        derived.append(f"only the first {most} of {count(len(ids))} by submission")
    frame = frame[frame["id"].isin(ids.iloc[:most])].copy()
    frame["pool"] = _pools(log, frame["type"], frame, options)
    nodes = None if options.nodes is None else node_list(Path(options.nodes))
    capacity = _capacity(log, frame, options, nodes, derived)
    frame["elsewhere"] = pd.Series(_elsewhere(log, frame, options, capacity, derived), frame.index)
    servers = _servers(log, frame, nodes, derived) if "hosts" in frame else {}
    origin = float(frame["submit"].min())
    if frame["weight"].isna().any():
        frame["weight"] = frame["weight"].fillna(frame["gpus"])
        derived.append(f"weights of jobs are their {log.unit}s: the log has none")
    name, users, began = log.path.name.split(".")[0], filter(None, frame["user"]), origin + ahead if log.dates else None
    jobs = _instance_jobs(frame, origin)
    groups = [ServerGroup(name=n, count=1, gpu_type=pool, gpus=gpus) for n, (pool, gpus) in servers.items()]
    for pool, total in capacity.items():
        number = total - sum(gpus for kind, gpus in servers.values() if kind == pool)
        if number > 0:  # what no known server has: one host, or several alike if that is too large
            hosts = next(hosts for hosts in range(-(-number // LARGEST_HOST), number + 1) if number % hosts == 0)
            groups.append(ServerGroup(name=pool, count=hosts, gpu_type=pool, gpus=number // hosts))
    cluster = Cluster(gpu_types=tuple(GpuType(name=pool) for pool in capacity), servers=tuple(groups))
    about: dict[str, Any] = {"cluster": cluster, "began_s": began}
    return instance_of(log.format, log.path, name, options, derived, users, jobs, **about)


def _checked(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return lines with all columns, whose times make sense."""
    frame = frame.assign(**{name: value for name, value in OPTIONAL.items() if name not in frame})
    refuse(log.path, frame["submit"].isna(), frame["submit"], "a time: every job was submitted")
    gangs = f"a whole number of {log.unit}s, 1 to {MAX_GANG}"
    refuse(log.path, ~frame["gpus"].between(1, MAX_GANG) | (frame["gpus"] % 1 != 0), frame["gpus"], gangs)
    right = "the id of a job: text without control characters, at most 190 long"
    names = frame["id"].str
    refuse(log.path, names.contains(CONTROL) | ~names.len().between(1, 190), frame["id"], right)
    if "start" not in frame:
        return frame.assign(start=np.nan, end=np.nan)
    wrong = (frame["end"] < frame["start"]) | (frame["end"] - frame["start"] > MAX_DURATION_S)
    right = f"after its start, by up to {MAX_DURATION_S:g} s (times of a zone with summer time need --timezone)"
    if wrong.any():
        refuse(log.path, wrong, frame["end"].map(log.moment), right)
    early = frame["start"] < frame["submit"]
    if early.any():
        worst = float((frame["submit"] - frame["start"]).max())
        told = f"{count(int(early.sum()))} started before their submission (by up to {worst:g} s): submitted then"
        derived.append(told)
        frame = frame.assign(submit=np.fmin(frame["submit"], frame["start"]))
    return frame.assign(duration=frame["end"] - frame["start"])


def _jobs(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return lines in the order of submission; those of one id are runs of one job, or parts that are jobs."""
    twice = frame["id"].duplicated(keep=False)
    if twice.any():
        again = frame[twice].sort_values(["id", "start"], kind="stable")
        same = again["id"] == again["id"].shift()
        before = again["end"].shift()
        overlap = same & ~(again["start"] >= before)
        right = "already used in a line that it overlaps; each job runs once at a time"
        refuse(log.path, overlap, again["id"], right)
        changed = same & ((again["gpus"] != again["gpus"].shift()) | (again["type"] != again["type"].shift()))
        part = changed.groupby(again["id"]).cumsum()
        submit = again.groupby("id")["submit"].transform("min").where(part == 0)
        submit = submit.fillna(before.where(changed)).groupby([again["id"], part]).transform("first")
        again = again.assign(submit=submit, id=again["id"].where(part == 0, again["id"] + "~" + (part + 1).astype(str)))
        refuse(log.path, again["id"].isin(frame["id"][~twice]), again["id"], "already the id of another job")
        if changed.any():
            derived.append(
                f"{count(int(changed.sum()), 'part')} of jobs on other {log.unit}s than before: jobs of their own"
            )
        frame = pd.concat([frame[~twice], again])
    return frame.sort_values(["submit", "start"], kind="stable")


def _pools(log: Log, types: pd.Series, frame: pd.DataFrame, options: Options) -> pd.Series:
    """Return the pool of each line on these types."""
    types = types.where(types != "", log.unit)
    return types + "@" + frame["partition"].where(frame["partition"] != "", "-") if options.by_partition else types


def _capacity(
    log: Log, frame: pd.DataFrame, options: Options, nodes: pd.DataFrame | None, derived: list[str]
) -> dict[str, int]:
    """Return the GPUs of each pool that runs something, and tell where they come from and what contradicts them.

    Further pools are those that the user has named where jobs may be moved.
    """
    known, source = log.capacity, log.capacity_from
    if options.gpus is not None:
        known, source = options.gpus, "as asked for"
    elif nodes is not None:
        totals = nodes.groupby("type")["gpus"].sum()
        known, source = {str(name): int(total) for name, total in totals.items() if total}, f"node list {options.nodes}"
    pools = list(dict.fromkeys(frame["pool"]))
    if known is not None and pools == [log.unit]:
        known = {"": sum(known.values())}
    if known is not None and "" in known and len(pools) > 1:
        raise UsageError(f"GPUs: the log has several pools: write {','.join(f'{pool}=…' for pool in pools[:5])}")
    if known is not None and options.gpus is not None and not set(options.gpus) & {"", *pools}:
        raise UsageError(f"GPUs: the log has pools {', '.join(pools[:8])}, none of {', '.join(known)}")
    found = {}
    for pool in pools:
        mine = frame[frame["pool"] == pool]
        peak, when, most = _peak(mine, known.get(pool, known.get("")) if known else None)
        room = known.get(pool, known.get("", 0)) if known else 0
        if not known or room == 0:
            at = f", at {log.moment(when)}" if peak else ""
            derived.append(f"{peak or most} {pool}: the most that the log has in use at once{at}")
        elif peak > room:
            derived.append(
                f"{peak} {pool} in use where there are {room} ({source}), first at {log.moment(when)}:"
                f" {peak}, the peak, counts"
            )
        else:
            derived.append(f"{room} {pool}: {source}; the log uses up to {peak}")
        found[pool] = max(peak, room, most)
    further = known if known and frame.columns.str.startswith(ELSEWHERE).any() else {}
    return found | {pool: room for pool, room in further.items() if pool and pool not in found}


def _elsewhere(
    log: Log, frame: pd.DataFrame, options: Options, capacity: Mapping[str, int], derived: list[str]
) -> list[dict[str, float]]:
    """Return how long each line's job would run in other pools of the cluster."""
    found: list[dict[str, float]] = [{} for _ in range(len(frame))]
    for name in frame.columns[frame.columns.str.startswith(ELSEWHERE)]:
        pools = _pools(log, pd.Series(name.removeprefix(ELSEWHERE), frame.index), frame, options)
        there = pools.isin(list(capacity))
        if not there.all():
            who, pool = count(int((~there).sum()), "line"), pools[~there].iloc[0]
            derived.append(
                f"{name} of {who} left out: nothing ran on {pool}, and nobody says how many there are (--gpus)"
            )
        for one, pool, own, lasts in zip(found, pools, frame["pool"], frame[name].where(there), strict=True):
            if pool != own and not isnan(lasts):
                one[pool] = lasts
    return found


def _servers(
    log: Log, frame: pd.DataFrame, nodes: pd.DataFrame | None, derived: list[str]
) -> dict[str, tuple[str, int]]:
    """Return pool and GPUs of each server that a node list names, of which lines hold in ``hosts`` what they must."""
    rooms: dict[str, tuple[str, int]] = {}
    if nodes is not None:  # without a type, a server is in the only pool
        pools = list(dict.fromkeys(frame["pool"]))
        kinds = nodes["type"].where(nodes["type"].isin(pools) | (len(pools) > 1), pools[0])
        named = zip(nodes["server"], kinds, nodes["gpus"].astype(int), strict=True)
        rooms = {name: (kind, gpus) for name, kind, gpus in named if name and gpus and kind in pools}
    lines = zip(frame["gpus"], frame["pool"], frame["hosts"], strict=True)
    frame["hosts"] = pd.Series([sure(int(gpus), pool, on, rooms) for gpus, pool, on in lines], frame.index)
    if not rooms:
        return rooms
    rows = zip(frame["hosts"], frame["start"], frame["end"], strict=True)
    held = [(name, start, end, gpus) for on, start, end in rows for name, gpus in on.items() if name in rooms]
    told = []
    for server, mine in pd.DataFrame(held, columns=["server", "start", "end", "gpus"]).groupby("server"):
        pool, room = rooms[str(server)]
        peak, when, _ = _peak(mine, room)
        if peak > room:
            rooms[str(server)] = pool, peak
            told.append(f"{peak} {pool} in use on {server}, which has {room}, first at {log.moment(when)}")
    derived.append(f"{len({row[0] for row in held})} of {count(len(rooms), 'server')} are checked one by one")
    if told:
        derived.append(f"{told[0]}{f' (and so on {len(told) - 1} others)' * (len(told) > 1)}: the peak counts")
    return rooms


def _peak(mine: pd.DataFrame, room: int | None) -> tuple[int, float, int]:
    """Return the most GPUs in use at once, when first there are these or more than `room`, and the largest gang."""
    ran = mine[mine["start"].notna() & (mine["end"] > mine["start"])]
    most = int(mine["gpus"].max())
    if ran.empty:
        return 0, 0.0, most
    gpus = ran["gpus"].to_numpy(np.int64)
    at, used = steps(np.concatenate([ran["start"], ran["end"]]), np.concatenate([gpus, -gpus]))
    peak = int(used.max())
    first = int((used > (room if room and peak > room else peak - 1)).argmax())
    return peak, float(at[first]), most


def _instance_jobs(frame: pd.DataFrame, origin: float) -> Iterator[Job]:
    """Yield the jobs, times from `origin` on."""
    runs: dict[str, list[tuple[tuple[float, float], dict[str, int]]]] = {}
    hosts = frame["hosts"] if "hosts" in frame else pd.Series([{}] * len(frame))
    spans = zip(_since(frame["start"], origin), _since(frame["end"], origin), strict=True)
    for name, run, on in zip(frame["id"], spans, hosts, strict=True):
        runs.setdefault(name, []).append((run, on))
    whole = frame.drop_duplicates("id")
    total = frame.groupby("id", sort=False)["duration"].sum().reindex(whole["id"]).tolist()
    status = whole["status"] if "status" in whole else [""] * len(whole)
    names = ("id", "user", "gpus", "weight", "pool", "partition", "requested", "elsewhere")
    rows = zip(*(whole[name].tolist() for name in names), _since(whole["submit"], origin), total, status, strict=True)
    for name, user, gpus, weight, pool, partition, requested, others, submit, lasted, ended in rows:
        known = [run for run, _ in runs[name] if not isnan(run[0])]
        on = tuple(where for _, where in runs[name])
        history = History(
            gpu_type=pool,
            runs=tuple(known),
            hosts=on if known and any(on) else (),
            partition=partition or None,
            requested_s=None if isnan(requested) else requested,
            durations_s=others,
        )
        yield Job(
            id=name,
            tenant=user or None,
            submit_s=submit,
            gpus=int(gpus),
            epochs=max(1, round(gpus * lasted)),
            weight=weight,
            rates={pool: 1.0} | {other: lasted / seconds for other, seconds in others.items() if seconds},
            duration_s=round(sum(end - start for start, end in known), 6) if known else lasted,
            status=ended or None,
            history=history,
        )


def _since(values: pd.Series, origin: float) -> list[float]:
    """Return seconds after the origin; logs resolve microseconds at best, below that the subtraction leaves noise."""
    found: Array | Ints = np.round(values.to_numpy(float) - origin, 6)
    return [float(value) for value in found]
