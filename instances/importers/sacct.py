"""Slurm's accounting as printed by ``sacct -P`` (``--parsable2``; any delimiter), with any set of columns.

Required are JobID (or JobIDRaw), Submit, Start, End, and one of AllocTRES, ReqTRES, NCPUS, AllocCPUS, NNodes,
AllocNodes.

- GPUs: ``gres/gpu:type=n`` of AllocTRES, else of ReqTRES; in a log without any, jobs are counted by CPUs or nodes
  (option `resource`)
- steps (``123.batch``) and jobs that never started, still run or hold nothing are left out and counted
- array tasks (``123_4``) and parts of heterogeneous jobs (``123+1``) are jobs
- a second line with the same id is a requeue: another job (``123#2``), released when the first has ended; after
  PREEMPTED, it is the same job, which continues
- release: Eligible if it is later than Submit, since a job cannot start before
- requested time: TimelimitRaw (minutes) or Timelimit
- times have no zone: they count as UTC unless the option `timezone` names one
- a name that contains the delimiter is put together again if the other columns leave only one way to do so
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.table import ISO_DATE, check_format, first_line, framed, read_text, refuse, sifted
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

FREE = ("JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine", "Extra", "Reason")
"""Columns with free text of users."""

COUNTS = {"gpus": (), "cpus": ("NCPUS", "AllocCPUS", "ReqCPUS"), "nodes": ("NNodes", "AllocNodes", "ReqNodes")}
"""Resources by which jobs may be counted, and the columns that state them in addition to the TRES."""

UNITS = {"gpus": "GPU", "cpus": "CPU", "nodes": "node"}
TRES = {"cpus": re.compile(r"(?:^|,)cpu=(\d+)"), "nodes": re.compile(r"(?:^|,)node=(\d+)")}
GPUS = re.compile(r"(?:^|,)gres/gpu(?::([^=,]+))?=(\d+)")
JOB = re.compile(r"\d+(_(\d+|\[.*\]))?(\+\d+)?(\.\S+)?")
DATE = re.compile("|".join([*map(re.escape, history.UNKNOWN), ISO_DATE.pattern, r"\d+"]))
FORMS = {
    **dict.fromkeys(("JobID", "JobIDRaw"), JOB),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), DATE),
    **dict.fromkeys(("NNodes", "NCPUS", "ElapsedRaw", "TimelimitRaw", "AllocCPUS", "AllocNodes"), re.compile(r"\d*")),
    **dict.fromkeys(("AllocTRES", "ReqTRES"), re.compile("(.*=.*)?", re.DOTALL)),
    "ExitCode": re.compile(r"(\d+:\d+)?"),
}
"""Patterns of the columns whose form is known."""

HOSTS = re.compile(r"([^,\[\]]*)(?:\[([\d,-]+)\])?([^,\[\]]*)(?:,|$)")
WANTED = "the header of sacct -P has JobID, Submit, Start, End and AllocTRES, ReqTRES, NCPUS or NNodes"
MOST_HOSTS = 10_000
MOST_WAYS = 1000
"""Most ways to join fields that are tried."""


def recognise(line: str) -> int:
    """Return how many of Slurm's columns a header has; 0 if it is not a header of ``sacct``."""
    names = set(re.split(r"[^A-Za-z%0-9]+", line))
    known = {"JobID", "JobIDRaw", "Submit", "Start", "End", "State", "NodeList", "AllocTRES", "ReqTRES", *FREE}
    return len(names & known) if names & {"JobID", "JobIDRaw"} and {"Submit", "Start"} <= names else 0


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a log (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(path)
    check_format(path, text, "sacct", WANTED)
    return history.to_instance(log_of(path, table(path, text), options), options)


def table(path: Path, text: str) -> pd.DataFrame:
    """Return the columns as text, indexed by line number; names that contain the delimiter are put together again."""
    head = first_line(text)
    delimiter = re.match(r"[A-Za-z%0-9]+(.)", head)
    header = head.split(delimiter[1]) if delimiter else [head]
    if delimiter is None or not delimiter[1].strip(" "):
        raise InstanceError(f"{path}: line 1: the columns have fixed widths; print the log with sacct -P")
    for name in ("Submit", "Start", "End"):
        if name not in header:
            raise InstanceError(f"{path}: line 1: no column {name}: {WANTED}")
    numbered = enumerate(text.splitlines(), 1)
    lines = ((number, line.split(delimiter[1])) for number, line in numbered if line.strip() and line != head)
    whole = ((n, line if len(line) == len(header) else rejoined(path, n, header, line)) for n, line in lines)
    return framed(path, whole, {name: at for at, name in enumerate(header)}, len(header))


def rejoined(path: Path, number: int, header: Sequence[str], fields: list[str]) -> list[str]:
    """Join fields of a line that has too many in the only way in which all columns have their form, or raise."""
    extra = len(fields) - len(header)
    free = [at for at, name in enumerate(header) if name in FREE]
    rows = {}
    ways = itertools.combinations_with_replacement(free, extra) if 0 < extra <= 8 else iter(())
    for way in itertools.islice(ways, MOST_WAYS):
        row, at = [], 0
        for place in range(len(header)):
            width = 1 + way.count(place)
            row.append("|".join(fields[at : at + width]))
            at += width
        named = list(zip(header, row, strict=True))
        if all(FORMS[name].fullmatch(value) for name, value in named if name in FORMS):
            rows[tuple(value for name, value in named if name not in FREE)] = row
    if len(rows) != 1:
        why = "the line is cut off"
        if extra > 0:
            why = "some name contains the delimiter; print the log with sacct -P --delimiter=$'\\t'"
        raise InstanceError(f"{path}: line {number}: {len(fields)} fields instead of {len(header)}: {why}")
    return next(iter(rows.values()))


def log_of(path: Path, lines: pd.DataFrame, options: Options) -> history.Log:
    """Return the log in the lines of an account."""
    ids = lines["JobID" if "JobID" in lines else "JobIDRaw"].rename("JobID")
    steps = {"they are steps of jobs": ids.str.contains(".", regex=False)}
    lines, left_out = sifted(lines.assign(JobID=ids), steps)
    invalid = lines["JobID"].map(lambda text: JOB.fullmatch(text) is None)
    refuse(path, invalid, lines["JobID"], "a job id such as 123 or 123_4")
    start, end = history.times(path, lines["Start"], options), history.times(path, lines["End"], options)
    place = lines["NodeList"] if "NodeList" in lines else pd.Series("", lines.index)
    never = start.isna() | (place == "None assigned")
    lines, unfinished = sifted(lines, {history.NEVER_STARTED: never, history.STILL_RUNNING: end.isna()})
    notes: list[str] = []
    held, types, unit = resources(path, lines, options, notes)
    lines, empty = sifted(lines, {NO_GPU.replace("GPUs", f"{unit}s"): held == 0})
    left_out |= unfinished | empty
    frame = pd.DataFrame(
        {
            "id": lines["JobID"],
            "submit": history.times(path, lines["Submit"], options),
            "start": start.reindex(lines.index),
            "end": end.reindex(lines.index),
            "gpus": held.reindex(lines.index),
            "type": types.reindex(lines.index),
            "status": lines["State"].str.split(" ").str[0] if "State" in lines else "",
            "user": lines.get("User", ""),
            "partition": lines.get("Partition", ""),
            "requested": np.nan,
        }
    )
    if "NodeList" in lines:
        frame["hosts"] = lines["NodeList"].map(lambda text: dict.fromkeys(hosts(text), 0))
    if "TimelimitRaw" in lines:
        frame["requested"] = history.durations(path, lines["TimelimitRaw"]) * 60
    elif "Timelimit" in lines:
        frame["requested"] = history.durations(path, lines["Timelimit"])
    if "Eligible" in lines:  # a job may not start before it is eligible
        eligible = np.fmin(history.times(path, lines["Eligible"], options), frame["start"])
        later = eligible > frame["submit"]
        if later.any():
            note = "became eligible after their submission: they count as submitted then"
            notes.append(f"{counted(int(later.sum()), 'job')} {note}")
        frame["submit"] = frame["submit"].where(~later, eligible)
    frame = requeued(frame, notes)
    dates = not lines["Submit"].str.isdigit().all() or bool((frame["submit"] > 1e8).all())
    notes += ["times without a zone count as UTC"] if options.timezone is None and dates else []
    return history.Log("sacct", path, frame, left_out, tuple(notes), unit, dates=dates)


def resources(path: Path, lines: pd.DataFrame, options: Options, notes: list[str]) -> tuple[pd.Series, pd.Series, str]:
    """Return what each line holds of the resource by which jobs are counted: amounts, GPU types, and the unit."""
    tres = lines["AllocTRES"] if "AllocTRES" in lines else pd.Series("", lines.index)
    if "ReqTRES" in lines:
        tres = tres.where(tres != "", lines["ReqTRES"])
    gpus = [_gpus(text) for text in tres]
    resource = options.resource or ("gpus" if any(number for number, _ in gpus) else "")
    numbers = pd.Series([number for number, _ in gpus], lines.index)
    types = pd.Series([name for _, name in gpus], lines.index, dtype=object)
    if resource == "gpus":
        named = set(types) - {""}
        untyped = (types == "") & (numbers > 0)
        if len(named) == 1 and untyped.any():
            (only,) = named
            notes.append(f"{counted(int(untyped.sum()), 'job')} without a GPU type run on {only}, the only one")
            types = types.where(~untyped, only)
        return numbers, types, "GPU"
    for name in [resource] if resource else ["cpus", "nodes"]:
        column = next((column for column in COUNTS[name] if column in lines), None)
        amounts = tres.str.extract(TRES[name])[0].astype(float)
        if column:
            stated = pd.to_numeric(lines[column], errors="coerce")
            refuse(path, stated.isna() & amounts.isna(), lines[column], f"a number of {name}")
            amounts = amounts.fillna(stated)
        if amounts.notna().any():
            notes.append(f"jobs are counted by {name}" + ("" if resource else ": the log has no GPUs"))
            return amounts.fillna(0), pd.Series("", lines.index), UNITS[name]
    needed = "print AllocTRES, ReqTRES, NCPUS or NNodes with sacct --format"
    raise InstanceError(f"{path}: line 1: no column gives the resources of jobs; {needed}")


@lru_cache(maxsize=10_000)
def _gpus(tres: str) -> tuple[int, str]:
    """Return the number of GPUs in a TRES string, and their type; a mix of types counts as a type (``a100+v100``)."""
    entries = GPUS.findall(tres)
    typed = [(name, int(number)) for name, number in entries if name and int(number)]
    if typed:
        return sum(number for _, number in typed), "+".join(sorted({name for name, _ in typed}))
    return sum(int(number) for _, number in entries), ""


def requeued(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the lines with a new id for each requeue of a job, except after a preemption or suspension."""
    frame = frame.sort_values("start", kind="stable")
    again = frame.groupby("id")
    before, ended = again["status"].shift(), again["end"].shift()
    fresh = before.notna() & ~before.isin(["PREEMPTED", "SUSPENDED"])
    if not fresh.any():
        return frame.sort_index()
    attempt = fresh.groupby(frame["id"]).cumsum()
    notes.append(f"{counted(int(fresh.sum()), 'requeue')}: separate jobs, released when the previous attempt has ended")
    submit = frame["submit"].where(~fresh, np.fmax(frame["submit"], ended))
    return frame.assign(
        id=frame["id"].where(attempt == 0, frame["id"] + "#" + (attempt + 1).astype(str)), submit=submit
    ).sort_index()


@lru_cache(maxsize=100_000)
def hosts(text: str) -> tuple[str, ...]:
    """Return the names in a node list such as ``g[002-003],c1``; none if it is malformed or too long."""
    names: list[str] = []
    for before, inside, after in HOSTS.findall(text):
        names += [f"{before}{number}{after}" for number in _numbers(inside)] if inside else [before][: bool(before)]
        if len(names) > MOST_HOSTS:
            return ()
    return tuple(dict.fromkeys(names))


def _numbers(inside: str) -> Iterator[str]:
    for part in inside.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        for number in range(int(first), min(int(last or first), int(first) + MOST_HOSTS) + 1):
            yield f"{number:0{len(first)}d}"
