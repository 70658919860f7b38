"""Logs of executed jobs: the output of readers, its checks, and its conversion to an instance.

A job runs on its pool (a GPU type, or a partition) from its start to its end. Rules:

- **Rows**: those that cannot be read or are impossible are bad: left out, counted and listed
  (:class:`~schedgap.instances.importers.rows.FileRows`). Rows that repeat another one are left out, too.
- **Times** without a zone are those of the option `timezone`, by default UTC. Where a clock shows a time twice, the
  reading counts by which submission, start and end are in order and as far apart as the log says (:func:`clocks`).
- **Jobs**: several lines with one id are one job that was interrupted; if their runs overlap, they are bad. A part that
  held other GPUs than the previous part is a separate job (``id~2``), released when the previous part ends; so is a
  line that was submitted after the previous one had ended, since systems use their numbers again. A job that starts
  before its submission counts as submitted at its start.
- **Jobs without an end** are left out and counted: what is said is about those that ended.
- **Cluster**: the GPUs of each pool from the user, a node list, or the log's header; otherwise the largest number in
  use at once. If a log uses more GPUs than there are, a note gives the time, and the log's peak counts.
- **Servers**: if the log says on which servers a job ran, and a node list names these, each server is checked, too. If
  the log does not divide a gang among its servers, the gang holds on each server the GPUs for which the others have no
  room, and at least one.
- **Other types**: a job may move to another type if the log has its duration there (``duration:TYPE``).
- **Weights**: the log's, or the GPUs of the gang.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from schedgap.instances.arrays import Array
from schedgap.instances.canonical import shown
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers.clusters import LARGEST_HOST, held_gpus, instance_of, node_list
from schedgap.instances.importers.registry import MAX_DURATION_S, MAX_GANG, Options
from schedgap.instances.importers.rows import REPEATED, FileRows
from schedgap.instances.importers.table import CONTROL, seconds
from schedgap.instances.rigid import steps
from schedgap.instances.schema import Cluster, GpuType, Instance, ServerGroup, limits
from schedgap.instances.schema.columns import ELSEWHERE as DURATIONS
from schedgap.instances.schema.columns import GPU_TYPE, HOSTS, PARTITION, REQUESTED, RUNS, Column
from schedgap.instances.text import amount, counted

UNKNOWN = {"", "Unknown", "None", "N/A", "NaT", "null", "NULL", "nan", "NaN", "<none>", "<unknown>", "(null)", "-"}
"""Values that stand for an unknown time in logs."""

SINCE_1970_S = 1e8
"""A column with mostly larger numbers has dates as seconds since 1970."""

MILLISECONDS = 1e11
"""A column with mostly larger numbers has dates as milliseconds since 1970."""

NO_DATE_S, YEAR_1_S = 14 * 3600, -62_135_596_800
"""Dates within so many hours of 1970 in some time zone, and the first of the year 1, stand for unknown ones."""

ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
"""The zone at the end of a date."""

UNFINISHED = {"running", "r", "pending", "suspended", "resizing", "completing"}
"""Statuses of jobs that have not ended, in lower case."""

NEVER_STARTED = "they never started"
NEEDED = "a time; every job needs a submission time"
STILL_RUNNING = "they were still running when the log was taken, or their end is not known"

ELSEWHERE = "duration:"
"""Prefix of columns with the durations of jobs on another type; the name of the type follows."""

RUN = ("id", "submit", "start", "end", "gpus", "type")
"""Columns by which two lines are the same run of a job."""

TEXTS = dict.fromkeys(("type", "partition", "user", "status"), "")
OPTIONAL: Mapping[str, Any] = {**TEXTS, "requested": np.nan, "weight": np.nan, "suspended": 0.0}
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
    rows
        The fates of the file's rows.
    notes
        Notes on the reader's decisions.
    unit
        Unit of a gang (``"GPU"``), also the name of a pool that has none.
    capacity, capacity_from
        GPUs of each pool, or of the only one (``""``), according to the log itself, and where the log states them.
    dates
        Whether times count from 1970.
    wall
        Whether times are those of a clock on the wall there, and the option `timezone` does not move them.
    zone
        Time zone in which messages show times; by default UTC.
    """

    format: str
    rows: FileRows
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    unit: str = "GPU"
    capacity: Mapping[str, int] | None = None
    capacity_from: str = ""
    dates: bool = True
    wall: bool = False
    zone: ZoneInfo | None = None

    def moment(self, time: float) -> str:
        """Return a time for messages: a date and time, or seconds."""
        if not self.dates:
            return f"{time:.15g} s"
        return f"{datetime.fromtimestamp(round(time, 6), self.zone or UTC):%Y-%m-%d %H:%M:%S}"


def times(rows: FileRows, raw: pd.Series, options: Options) -> tuple[pd.Series, pd.Series]:
    """Return times as seconds (since 1970 if they are dates), NaN where they are unknown, and which name no zone.

    Rows with a value that is no time are bad. A column holds seconds if most of its values are numbers, milliseconds if
    most of these are larger than :data:`MILLISECONDS`. Among dates, those at the begin of time are unknown.
    """
    empty = raw.isin(UNKNOWN)
    if options.time_format:
        try:
            dates = pd.to_datetime(raw.where(~empty), format=options.time_format, errors="coerce", utc=True)
        except ValueError as error:
            raise UsageError(f"--time-format {options.time_format}: {error}") from None
        values: pd.Series = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
        local = pd.Series("%z" not in options.time_format, raw.index)
        right = f"a time of the form {options.time_format}"
    elif (numbers := _numbers(raw, empty)) is not None:
        values, local, right = numbers, pd.Series(False, raw.index), "seconds"
    else:
        values = seconds(raw)
        local = ~raw.str.contains(ZONE) if options.timezone else pd.Series(True, raw.index)
        right = "a date such as 2026-03-02T08:00:05, or seconds; for other forms, set --time-format"
    if _mostly(values, SINCE_1970_S):
        none = (values.abs() <= NO_DATE_S) | (values == YEAR_1_S)
        values, empty = values.mask(none), empty | none
    rows.refuse((values.isna() & ~empty) | (values < 0) | (values > limits.MAX_HORIZON_S), raw, right)
    return values.astype(float), local


def _numbers(raw: pd.Series, empty: pd.Series) -> pd.Series | None:
    """Return a column as numbers if most of its values are some, else ``None``."""
    if 2 * int(raw.str.contains("-", regex=False).sum()) > len(raw):  # quicker to see than that these are no numbers
        return None
    numbers: pd.Series = pd.to_numeric(raw.where(~empty), errors="coerce")
    if 2 * int((numbers >= 0).sum()) <= int((~empty).sum()):
        return None
    return numbers / 1000 if _mostly(numbers, MILLISECONDS) else numbers


def _mostly(values: pd.Series, low: float) -> bool:
    """Return whether most of the known values are larger than `low`."""
    return 2 * int((values > low).sum()) > int(values.notna().sum())


def clocks(
    rows: FileRows,
    raw: Mapping[str, pd.Series],
    options: Options,
    notes: list[str],
    lasted: pd.Series | None = None,
) -> pd.DataFrame:
    """Return the times of runs as seconds, and note how local times were read; impossible runs are bad.

    Times without a zone are those of the option `timezone`, by default UTC. Where a clock shows a time twice (the end
    of daylight saving), the reading counts by which submission, start and end are in order and the run lasts as long
    as the log says; where that leaves several, the earliest. A time that a clock skips is read in the same way if that
    leaves one reading. Other rows are bad.

    Parameters
    ----------
    rows, options, notes
        The file's rows, which are left out if they are bad; options of the import; notes, to which this adds its own.
    raw
        Texts of ``submit``, ``start`` and ``end``, as far as the log has them, and of other times.
    lasted
        Seconds between start and end according to the log, NaN if it does not say.
    """
    read = {name: times(rows, column, options) for name, column in raw.items()}
    found = pd.DataFrame({name: values for name, (values, _) in read.items()})
    if options.timezone is not None:
        zone, twice = zone_of(options.timezone), {}
        for name, (values, local) in read.items():
            wall = pd.to_datetime(values, unit="s").where(local)
            utc = wall.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
            moved = (utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
            twice[name] = local & values.notna() & moved.isna()
            found[name] = moved.where(local & ~twice[name], values)
        odd = pd.DataFrame(twice)
        if odd.to_numpy().any():
            lines = odd.index[odd.any(axis=1)]
            due = pd.Series(np.nan, lines) if lasted is None else lasted.reindex(lines)
            found.loc[lines] = unfolded(rows, raw, found.loc[lines], odd.loc[lines], due, zone, notes)
    if {"start", "end"} <= set(raw):
        start, end = raw["start"], raw["end"]
        early = (found["end"] < found["start"]).to_numpy()
        if early.any():
            why = f"before {start.name} = " + start[early].map(shown)
            if options.timezone is None:  # perhaps a clock was set back by an hour
                close = (found["start"] - found["end"])[early] <= 3600
                why = why.where(~close | ~read["end"][1][early], why + "; local times need --timezone")
            rows.refuse(early[early], end[early], why, f"{end.name} is before {start.name}")
    return found


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone, or raise `UsageError` if there is none of this name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"--timezone {name}: no such zone; write for example Europe/Berlin") from None


def unfolded(
    rows: FileRows,
    raw: Mapping[str, pd.Series],
    found: pd.DataFrame,
    twice: pd.DataFrame,
    lasted: pd.Series,
    zone: ZoneInfo,
    notes: list[str],
) -> pd.DataFrame:
    """Return the times of rows with a local time that a clock shows twice or never; rows without a reading are bad.

    `found` has the local times where `twice` holds, and the others as seconds since 1970. See :func:`clocks`.
    """
    ordered = [name for name in ("submit", "start", "end") if name in raw]
    texts, tell = pd.DataFrame(raw).reindex(found.index), {name: column.name for name, column in raw.items()}
    several, told, chosen = 0, {}, {}
    rows_of = zip(
        found.index.tolist(), found.to_dict("records"), twice.to_dict("records"), lasted.tolist(), strict=True
    )
    for line, local, is_odd, due in rows_of:
        readings, exists = {str(name): [float(time)] for name, time in local.items()}, True
        for name in [name for name in readings if is_odd[name]]:
            wall = datetime(1970, 1, 1) + timedelta(seconds=readings[name][0])
            both = [wall.replace(tzinfo=zone, fold=fold).astimezone(UTC).timestamp() for fold in (0, 1)]
            readings[name], exists = sorted(both), exists and both[0] < both[1]
        fitting = [way for way in product(*(readings[name] for name in ordered)) if _in_order(way, ordered, due)]
        if not fitting or (not exists and (len(fitting) > 1 or isnan(due))):
            said = ", ".join(f"{tell[name]} = {shown(texts[name].loc[line])}" for name in ordered)
            why = "no reading has them in order" if exists else "a clock skips one of these"
            told[line] = f"{said}: {why}{'' if isnan(due) else f', {due:g} s apart'} ({zone.key})"
            continue
        several += len(fitting) > 1
        best = dict(zip(ordered, min(fitting), strict=True))
        for name, times in readings.items():  # others, such as the time of eligibility, follow the submission
            later = [time for time in times if time >= best.get("submit", 0.0)]
            best.setdefault(name, (later or times)[0])
        chosen[line] = [best[name] for name in readings]
    rows.spoil(told, f"their local times are impossible in {zone.key}")
    if several:
        notes.append(
            f"{counted(several, 'line')} with a time that {zone.key} has twice, in order both ways: the earlier counts"
        )
    return pd.DataFrame(list(chosen.values()), list(chosen), columns=list(found.columns), dtype=float).reindex(
        found.index
    )


def _in_order(way: tuple[float, ...], names: list[str], lasted: float) -> bool:
    """Return whether times do not decrease, and start and end are `lasted` seconds apart if that is known."""
    known = [time for time in way if not isnan(time)]
    at = dict(zip(names, way, strict=True))
    apart = at.get("end", np.nan) - at.get("start", np.nan)
    return known == sorted(known) and not abs(apart - lasted) > 1


def durations(rows: FileRows, raw: pd.Series, needed: bool = True) -> pd.Series:
    """Return durations in seconds from plain numbers or ``[d-]h:mm:ss``, NaN where they are unknown or unlimited.

    Rows with a value that is no duration are bad, or, if it is not `needed`, have an unknown one.
    """
    empty = raw.isin(UNKNOWN | {"UNLIMITED", "Partition_Limit", "INVALID"})
    values: pd.Series = pd.to_numeric(raw.where(~empty), errors="coerce").astype(float)
    if (clock := values.isna() & ~empty).any():
        parts = raw[clock].str.extract(
            r"^(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d{1,9})?))?$"
        )
        values[clock] = parts.astype(float).fillna({"d": 0, "s": 0}) @ np.array([86400, 3600, 60, 1])
    right = f"a duration in seconds or as h:mm:ss, 0 to {MAX_DURATION_S:g} s"
    wrong = (values.isna() & ~empty) | (values < 0) | (values > MAX_DURATION_S)
    if needed:
        rows.refuse(wrong, raw, right)
    return values.mask(wrong)


def to_instance(log: Log, options: Options) -> Instance:
    """Return the instance of a log, with a note on every filling.

    It raises `InstanceError` if a line is invalid or nothing ran, and `UsageError` if an option does not suit this log.
    """
    notes: list[str] = []
    if options.timezone and log.wall:
        notes.append("times are those of a clock there: --timezone does not move them")
    elif options.timezone:
        log = replace(log, zone=zone_of(options.timezone))
    frame = _jobs(log, _checked(log, log.rows.kept(log.frame), notes), notes)
    log.rows.check()
    derived = [*log.rows.notes(), *log.notes]
    if frame.empty:
        raise InstanceError(f"{log.rows.path}: no job ran: {'; '.join(derived) or 'the log is empty'}")
    derived += [*_censored(log, frame), *notes]
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
    path = log.rows.path
    name, users = Path(path.name.removesuffix(".gz")).stem, filter(None, frame["user"])
    began = origin if log.dates else None
    if log.dates and log.zone:
        shift = datetime.fromtimestamp(origin, log.zone).utcoffset()
        began = origin + shift.total_seconds() if shift else origin
    jobs = _columns(_interrupted(frame), origin)
    groups = [ServerGroup(name=n, count=1, gpu_type=pool, gpus=gpus) for n, (pool, gpus) in servers.items()]
    for pool, total in capacity.items():
        number = total - sum(gpus for kind, gpus in servers.values() if kind == pool)
        if number > 0:  # GPUs on no known server: one host, or several equal ones if that would be too large
            hosts = next(hosts for hosts in range(-(-number // LARGEST_HOST), number + 1) if number % hosts == 0)
            groups.append(ServerGroup(name=pool, count=hosts, gpu_type=pool, gpus=number // hosts))
    cluster = Cluster(gpu_types=tuple(GpuType(name=pool) for pool in capacity), servers=tuple(groups))
    about: dict[str, Any] = {"cluster": cluster, "began_s": began}
    return instance_of(log.format, path, name, options, derived, users, jobs, **about)


def _censored(log: Log, frame: pd.DataFrame) -> list[str]:
    """Return notes on jobs whose end the log does not have, or perhaps not."""
    notes = []
    if running := log.rows.left_out.get(STILL_RUNNING):
        others = counted(running, "other")
        notes.append(f"all is about the jobs that ended; {log.unit}s that the {others} held count as free")
    if on := int(frame["status"].str.lower().isin(UNFINISHED).sum()):
        notes.append(f"{counted(on, 'line')} with an end, but a status such as Running: that end counts")
    return notes


def _checked(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return the lines with all columns; those with an invalid id, gang or time are bad."""
    rows = log.rows
    frame = frame.assign(**{name: value for name, value in OPTIONAL.items() if name not in frame})
    frame = frame.assign(**{name: named(frame[name]) for name in TEXTS})
    rows.refuse(frame["submit"].isna(), frame["submit"], NEEDED)
    gangs = f"a whole number of {log.unit}s, 1 to {MAX_GANG}"
    rows.refuse(~frame["gpus"].between(1, MAX_GANG) | (frame["gpus"] % 1 != 0), frame["gpus"], gangs)
    right = "the id of a job: text without control characters, at most 190 long"
    names = frame["id"].str
    rows.refuse(names.contains(CONTROL) | ~names.len().between(1, 190), frame["id"], right)
    if "start" not in frame:
        return rows.kept(frame.assign(start=np.nan, end=np.nan))
    frame = rows.kept(frame)
    frame = frame.assign(duration=frame["end"] - frame["start"] - frame["suspended"])
    long = frame[(frame["duration"] < 0) | (frame["end"] - frame["start"] > MAX_DURATION_S)]
    if len(long):
        why = "after the start at " + long["start"].map(log.moment) + f", by 0 to {MAX_DURATION_S:g} s"
        rows.refuse(
            [True] * len(long), long["end"].map(log.moment), why, "their end is not after their start, or too late"
        )
        frame = rows.kept(frame)
    early = frame["start"] < frame["submit"]
    if early.any():
        worst = float((frame["submit"] - frame["start"]).max())
        jobs = counted(int(early.sum()), "job")
        derived.append(f"{jobs} with a start before the submission (by up to {worst:g} s): submitted at the start")
        frame = frame.assign(submit=np.fmin(frame["submit"], frame["start"]))
    return frame


def named(texts: pd.Series) -> pd.Series:
    """Return names as an instance may have them: without control characters, at most 200 characters long."""
    codes, names = pd.factorize(texts)
    clean = [CONTROL.sub("_", str(name))[:200] for name in names]
    return texts if clean == list(names) else pd.Series([clean[code] for code in codes], texts.index, dtype=object)


def once(rows: FileRows, frame: pd.DataFrame, called: str = "id") -> pd.DataFrame:
    """Return the runs of jobs without those that another line has, too; runs of one job that overlap are bad.

    `called` is the name of the column of ids in the file.
    """
    twice = frame["id"].duplicated(keep=False)
    if not twice.any():
        return frame
    again = frame[twice]
    same = again.duplicated([name for name in RUN if name in again])
    again = rows.leave(again, {REPEATED: same}).sort_values(["id", "start"], kind="stable")
    overlap = (again["id"] == again["id"].shift()) & ~(again["start"] >= again["end"].shift())
    wrong = again["id"].isin(again.loc[overlap, "id"])
    right = "several lines with this id, whose runs overlap; a job runs once at a time"
    rows.refuse(wrong, again["id"].rename(called), right, "runs of one job overlap")
    return rows.kept(frame)


def _jobs(log: Log, frame: pd.DataFrame, derived: list[str]) -> pd.DataFrame:
    """Return the lines in the order of submission, with new ids for parts of jobs that count as separate jobs."""
    frame = once(log.rows, frame)
    twice = frame["id"].duplicated(keep=False)
    if twice.any():
        again = frame[twice].sort_values(["id", "start"], kind="stable")
        same = again["id"] == again["id"].shift()
        before = again["end"].shift()
        changed = same & ((again["gpus"] != again["gpus"].shift()) | (again["type"] != again["type"].shift()))
        later = same & (again["submit"] > before)  # numbers of jobs begin again
        changed |= later
        part = changed.groupby(again["id"]).cumsum()
        submit = again.groupby(["id", part])["submit"].transform("min").where(part == 0)
        submit = (
            submit.fillna(before.where(before > again["submit"], again["submit"]).where(changed))
            .groupby([again["id"], part])
            .transform("first")
        )
        again = again.assign(submit=submit, id=again["id"].where(part == 0, again["id"] + "~" + (part + 1).astype(str)))
        log.rows.refuse(again["id"].isin(frame["id"][~twice]), again["id"], "already the id of another job")
        if later.any():
            derived.append(
                f"{counted(int(later.sum()), 'line')} with the id of a job that had ended before: other jobs"
            )
        if (changed & ~later).any():
            parts = counted(int((changed & ~later).sum()), "part")
            derived.append(f"{parts} of jobs on other {log.unit}s than the part before: separate jobs")
        frame = log.rows.kept(pd.concat([frame[~twice], again]))
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
            most = "the most that the log has in use at once" if peak else "the largest job, since no times are known"
            derived.append(f"{amount(peak or largest, pool)}: {most}{at}")
        elif peak > room:
            derived.append(
                f"{amount(peak, pool)} in use where there are {room} ({source}), first at {log.moment(when)}:"
                f" {peak}, the peak, counts"
            )
        else:
            used = f"the log uses up to {peak} at once" if peak else "the log does not say when jobs ran"
            derived.append(f"{amount(room, pool)}: {source}; {used}")
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
            exceeded.append(f"{amount(peak, pool)} in use on {server}, which has {room}, first at {log.moment(when)}")
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


def _interrupted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines, with two for a run in which its job was suspended: in the middle, since the log has no time."""
    away = frame["suspended"].to_numpy(float)
    if not away.any():
        return frame
    place = np.repeat(np.arange(len(frame)), 1 + (away > 0))
    second = np.concatenate([[False], place[1:] == place[:-1]])
    first = np.concatenate([second[1:], [False]])
    twice = frame.iloc[place]
    half = (twice["duration"] / 2).round()  # whole seconds stay whole
    parts = {"end": twice["start"] + half, "start": twice["end"] - (twice["duration"] - half)}
    twice = twice.assign(
        end=twice["end"].where(~first, parts["end"]), start=twice["start"].where(~second, parts["start"])
    )
    return twice.assign(duration=(twice["end"] - twice["start"]).where(first | second, twice["duration"]))


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
