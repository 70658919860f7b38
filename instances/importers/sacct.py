"""Slurm's accounting: ``sacct -P`` (``--parsable2``; any delimiter, any set of columns), or ``sacct --json``.

Required are JobID (or JobIDRaw), Submit, Start, End, and one of AllocTRES, ReqTRES, AllocGRES, ReqGRES, NCPUS,
AllocCPUS, NNodes, AllocNodes.

- GPUs: ``gres/gpu:type=n`` of AllocTRES, else of ReqTRES; in older logs ``gpu:type:n`` of AllocGRES, else of ReqGRES
  (which is per node); in a log without any, jobs are counted by CPUs or nodes (option `resource`)
- steps (``123.batch``) and jobs that never started, still run or hold nothing are left out and counted; so are lines
  that repeat another one (of overlapping dumps), and those that show a run before its end, which another line has
- array tasks (``123_4``) are jobs
- parts of a heterogeneous job (``123+0``, ``123+1``) that run on the same GPUs from the same start to the same end are
  one gang; others are jobs of their own, which need not start together in other schedules
- a second line with the same id is a requeue: another job (``123#2``), released when the first has ended; after
  PREEMPTED, it is the same job, which continues. Lines of one id whose runs overlap are bad
- release: Eligible if it is known and later than Submit, since a job cannot start before
- Suspended: the job was interrupted for that long. When is not known: in the middle of its run
- requested time: TimelimitRaw (minutes) or Timelimit
- times have no zone: they count as UTC unless the option `timezone` names one; then the reading of a time that the
  clock shows twice is the one by which Submit, Start and End are in order and Elapsed (or ElapsedRaw) apart. Times in
  JSON are UTC
- free text (names, SubmitLine, …) may hold the delimiter and line breaks: the fields around it are found from both
  ends, or by their form
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from schedgap.instances.canonical import one_line, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history
from schedgap.instances.importers.accounting import UNITS, on_the_only_type, released, requeued
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.rows import REPEATED, FileRows
from schedgap.instances.importers.table import (
    ISO_DATE,
    LONGEST,
    Mend,
    Mended,
    check_format,
    first_line,
    framed,
    lines_of,
    odd_ones,
    read_text,
    unequal,
)
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

FREE = ("JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine", "Extra", "Reason")
"""Columns with free text of users."""

COUNTS = {"gpus": (), "cpus": ("NCPUS", "AllocCPUS", "ReqCPUS"), "nodes": ("NNodes", "AllocNodes", "ReqNodes")}
"""Resources by which jobs may be counted, and the columns that state them in addition to the TRES."""

TRES = {"cpus": re.compile(r"(?:^|,)cpu=(\d+)"), "nodes": re.compile(r"(?:^|,)node=(\d+)")}
GPUS = re.compile(r"(?:^|,)gres/gpu(?::([^=,]+))?=(\d+)")
UNCOUNTED = re.compile(r"gres/gpu(?::[^=,]+)?=(?!\d+(?:,|$))")
"""GPUs whose number is no whole number."""
GRES = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::([^:,(]+))?(?::(\d+))?(?=[,(]|$)")
HET = re.compile(r"\+\d+$")
JOB = re.compile(r"\d+(_(\d+|\[.*\]))?(\+\d+)?(\.\S+)?")
DATE = re.compile("|".join([*map(re.escape, history.UNKNOWN), ISO_DATE.pattern, r"\d+"]))
FORMS = {
    **dict.fromkeys(("JobID", "JobIDRaw"), JOB),
    "Submit": re.compile(rf"{ISO_DATE.pattern}|\d+"),
    **dict.fromkeys(("Eligible", "Start", "End"), DATE),
    **dict.fromkeys(("NNodes", "NCPUS", "ElapsedRaw", "TimelimitRaw", "AllocCPUS", "AllocNodes"), re.compile(r"\d*")),
    **dict.fromkeys(("AllocTRES", "ReqTRES"), re.compile("(.*=.*)?")),
    "ExitCode": re.compile(r"(\d+:\d+)?"),
}
"""Patterns of the columns whose form is known."""

CLOCKS = {"Submit": "submit", "Eligible": "eligible", "Start": "start", "End": "end"}
"""Columns with times, and their names in :func:`schedgap.instances.importers.history.clocks`."""

TIMES = {"Submit": "submission", "Eligible": "eligible", "Start": "start", "End": "end"}
TRESS = {"AllocTRES": "allocated", "ReqTRES": "requested"}
"""Columns of times and resources, and their names in ``sacct --json``."""

PARTS_S = {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
USED = {
    *("JobID", "JobIDRaw", "User", "Partition", "State", "NodeList", "Timelimit", "TimelimitRaw", "Elapsed"),
    *(
        "ElapsedRaw",
        "Suspended",
        "AllocTRES",
        "ReqTRES",
        "AllocGRES",
        "ReqGRES",
        *CLOCKS,
        *itertools.chain(*COUNTS.values()),
    ),
}
"""Columns that are read."""

OTHER = "other"
"""Type of GPUs that a job holds beside those whose type the log states."""

UNIT_SEPARATOR = "\x1f"
HOSTS = re.compile(r"([^,\[\]]*)(?:\[([\d,-]+)\])?([^,\[\]]*)(?:,|$)")
WANTED = "the header of sacct -P has JobID, Submit, Start, End and AllocTRES, ReqTRES, NCPUS or NNodes"
MOST_HOSTS = 10_000
MOST_WAYS = 1000
"""Most ways to join fields that are tried."""


OLDER = "they show a run before its end, which another line has"
PARTS = "they are parts of heterogeneous jobs, and counted in the line of the first part"


def recognise(line: str) -> int:
    """Return how many columns a header of Slurm has; 1 for a JSON object, 0 for other lines."""
    names = set(re.split(r"[^A-Za-z%0-9]+", line))
    header = names & {"JobID", "JobIDRaw"} and {"Submit", "Start"} <= names
    return len(names) if header else int(line.lstrip().startswith("{"))


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(rows.path, log=True)
    check_format(rows.path, text, "sacct", WANTED)
    lines = from_json(rows, text) if text.lstrip().startswith("{") else table(rows, text)
    return history.to_instance(log_of(rows, lines, options), options)


# ---------------------------------------------------------------- lines


def table(rows: FileRows, text: str) -> pd.DataFrame:
    """Return the columns as text, indexed by line number."""
    head = first_line(text)
    found = re.match(r"[A-Za-z%0-9]+(.)", head)
    if found is None or not found[1].strip(" "):
        raise InstanceError(f"{rows.path}: line 1: the columns have fixed widths; print the log with sacct -P")
    delimiter = found[1]
    if not delimiter.isascii():  # lines are read by one-byte delimiters
        text, head, delimiter = (
            text.replace(delimiter, UNIT_SEPARATOR),
            head.replace(delimiter, UNIT_SEPARATOR),
            UNIT_SEPARATOR,
        )
    header = head.split(delimiter)
    for name in ("Submit", "Start", "End"):
        if name not in header:
            raise InstanceError(f"{rows.path}: line 1: no column {name}: {WANTED}")
    places = {name: at for at, name in enumerate(header) if name in USED}
    frame = framed(rows, lines_of(text), places, delimiter, broken(header, delimiter), unique=True)
    if delimiter != found[1]:
        read = rows.content
        rows.content = lambda number: read(number).replace(delimiter, found[1])
    return frame


def broken(header: Sequence[str], delimiter: str) -> Mend:
    """Return the reader of lines with too many or too few fields: free text holds delimiters or line breaks."""
    free = next((at for at, name in enumerate(header) if name in FREE), len(header))
    formed = {at: FORMS[name] for at, name in enumerate(header[:free]) if name in FORMS}

    def begins(line: str) -> bool:
        """Whether a line has the fields that stand before the first free text, each in its form."""
        fields = line.split(delimiter, max(formed, default=0) + 1)
        enough = len(fields) > max(formed, default=0) + (len(header) > 1)
        return enough and all(form.fullmatch(fields[at]) for at, form in formed.items())

    def mend(lines: Sequence[str], at: Sequence[int]) -> Mended:
        found = Mended()
        odd = odd_ones(lines, at, delimiter, len(header))
        before = dict(zip(at[1:], at, strict=False)) if odd else {}
        first: dict[int, int] = {}  # where the row of each odd line begins
        for place in odd:
            previous = before.get(place)
            start = first.get(previous, previous) if previous is not None else None
            whole = formed and begins(lines[place])
            if whole or start is None or place - start > LONGEST or not formed or not unfinished(lines[start:place]):
                first[place] = place
            else:
                first[place] = start
                found.last[start] = place
        for start in sorted(set(first.values())):
            fields = "\n".join(lines[start : found.last.get(start, start) + 1]).split(delimiter)
            row = fields if len(fields) == len(header) else rejoined(header, fields, delimiter)
            if row is not None:
                found.fields[start] = row
                continue
            cut = len(fields) < len(header)
            why = "the line is cut off" if cut else "free text holds the delimiter in more than one possible column"
            found.problems[start] = f"{unequal(len(fields), len(header))}: {why}"
        return found

    def unfinished(lines: Sequence[str]) -> bool:
        """Whether a row may continue after `lines`: its last column is free, or they are not all fields of a row."""
        fields = "\n".join(lines).split(delimiter)
        whole = len(fields) == len(header) or rejoined(header, fields, delimiter) is not None
        return header[-1] in FREE or not whole

    return mend


def rejoined(header: Sequence[str], fields: Sequence[str], delimiter: str) -> list[str] | None:
    """Join fields of a line that has too many in the only way in which all columns have their form, if there is one."""
    extra = len(fields) - len(header)
    free = [at for at, name in enumerate(header) if name in FREE]
    if extra < 1 or not free or math.comb(extra + len(free) - 1, extra) > MOST_WAYS:
        return None
    rows = {}
    for way in itertools.combinations_with_replacement(free, extra):
        row, at = [], 0
        for place in range(len(header)):
            width = 1 + way.count(place)
            row.append(delimiter.join(fields[at : at + width]))
            at += width
        named = list(zip(header, row, strict=True))
        if all(FORMS[name].fullmatch(value) for name, value in named if name in FORMS):
            rows[tuple(value for name, value in named if name not in FREE)] = row
    return next(iter(rows.values())) if len(rows) == 1 else None


# ---------------------------------------------------------------- JSON


def from_json(rows: FileRows, text: str) -> pd.DataFrame:
    """Return the columns of ``sacct --json`` as ``sacct -P`` prints them, indexed by the number of the job."""
    jobs: list[Any] = []
    at, decoder = 0, json.JSONDecoder()
    while begins := re.compile(r"\S").search(text, at):  # one object for each call of sacct
        try:
            log, at = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError) as error:
            raise InstanceError(f"{rows.path}: not valid JSON: {one_line(error)}") from None
        more = log.get("jobs") if isinstance(log, dict) else None
        if not isinstance(more, list) or not (jobs := jobs + more):
            raise InstanceError(f"{rows.path}: jobs = {shown(more)}: the jobs that sacct --json prints, one or more")
    rows.at = "record"
    rows.begin(range(1, len(jobs) + 1), lambda number: json.dumps(jobs[number - 1]))
    lines, told = {}, {}
    for number, job in enumerate(jobs, 1):
        try:
            lines[number] = line_of(job)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told[number] = f"{type(error).__name__}: {one_line(error)}"
    rows.spoil(told, "their fields are not those of a job")
    columns = (
        "JobID",
        "User",
        "Partition",
        *TIMES,
        "ElapsedRaw",
        "Suspended",
        "TimelimitRaw",
        "State",
        *TRESS,
        "NodeList",
    )
    frame = pd.DataFrame(list(lines.values()), index=list(lines), columns=list(columns), dtype=object)
    whole = pd.Series({number: json.dumps(jobs[number - 1], sort_keys=True) for number in lines}, dtype=object)
    return rows.leave(frame, {REPEATED: whole.duplicated()})


def line_of(job: Mapping[str, Any]) -> list[str]:
    """Return the columns of a job in ``sacct --json``; versions of Slurm differ in how they write numbers."""
    clock, state = job["time"], job["state"]
    state = state.get("current", "") if isinstance(state, dict) else state
    array, het = job.get("array") or {}, job.get("het") or {}
    name, task, part = (number(value) for value in (job["job_id"], array.get("task_id"), het.get("job_offset")))
    if number(array.get("job_id")) and task is not None:
        id = f"{number(array.get('job_id')):.0f}_{task:.0f}"
    elif number(het.get("job_id")) and part is not None:
        id = f"{number(het.get('job_id')):.0f}+{part:.0f}"
    else:
        id = f"{name:.0f}"
    limit = number(clock.get("limit"))
    away = clock.get("suspended")
    away_s = sum(unit * (number(away.get(key)) or 0) for key, unit in PARTS_S.items()) if isinstance(away, dict) else 0
    return [
        id,
        str(job.get("user") or (job.get("association") or {}).get("user") or ""),
        str(job.get("partition") or ""),
        *(f"{moment:.15g}" if (moment := number(clock.get(key))) else "" for key in TIMES.values()),
        f"{number(clock.get('elapsed')) or 0:.15g}",
        f"{away_s or number(away) or 0:.15g}",
        "" if limit is None else f"{limit:.15g}",
        str(state[0] if isinstance(state, list) and state else state or ""),
        *(tres_of((job.get("tres") or {}).get(key)) for key in TRESS.values()),
        str(job.get("nodes") or ""),
    ]


def number(value: Any) -> float | None:
    """Return a number of ``sacct --json``: plain, or ``{"set": true, "infinite": false, "number": 5}``."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return None if value is None or value == "" else float(value)


def tres_of(entries: Sequence[Mapping[str, Any]] | None) -> str:
    """Return a list of resources as ``sacct -P`` prints it: ``cpu=8,gres/gpu:v100=4``."""
    named = ((one["type"], one.get("name"), number(one.get("count"))) for one in entries or ())
    return ",".join(f"{kind}{f'/{name}' if name else ''}={count or 0:.15g}" for kind, name, count in named)


# ---------------------------------------------------------------- jobs


def log_of(rows: FileRows, lines: pd.DataFrame, options: Options) -> history.Log:
    """Return the log in the lines of an account."""
    ids = lines["JobID" if "JobID" in lines else "JobIDRaw"].rename("JobID")
    lines = lines.assign(JobID=ids)
    lines = rows.leave(lines, {"they are steps of jobs": ids.str.contains(".", regex=False)})
    rows.refuse(~lines["JobID"].str.fullmatch(JOB), lines["JobID"], "a job id such as 123 or 123_4")
    lines = rows.kept(lines)
    notes: list[str] = []
    lines = timed(rows, lines, options, notes)
    place = lines["NodeList"] if "NodeList" in lines else pd.Series("", lines.index)
    never = lines["start"].isna() | (place == "None assigned")
    lines = rows.leave(
        lines,
        {
            OLDER: older(rows.kept(lines), never),
            history.NEVER_STARTED: never,
            history.STILL_RUNNING: lines["end"].isna(),
        },
    )
    rows.refuse(lines["submit"].isna(), lines["Submit"], history.NEEDED)
    lines = rows.kept(lines)
    held, types, unit = resources(rows, lines, options, notes)
    lines = rows.leave(lines, {NO_GPU.replace("GPUs", f"{unit}s"): held == 0})
    frame = pd.DataFrame(
        {
            "id": lines["JobID"],
            "submit": lines["submit"],
            "start": lines["start"],
            "end": lines["end"],
            "gpus": held.reindex(lines.index),
            "type": types.reindex(lines.index),
            "status": lines["State"].str.split(" ").str[0] if "State" in lines else "",
            "user": lines.get("User", ""),
            "partition": lines.get("Partition", ""),
            "requested": np.nan,
            "suspended": lines["away"],
        }
    )
    if "NodeList" in lines:
        frame["hosts"] = lines["NodeList"].map(lambda text: dict.fromkeys(hosts(text), 0))
    if "TimelimitRaw" in lines:
        frame["requested"] = history.durations(rows, lines["TimelimitRaw"]) * 60
    elif "Timelimit" in lines:
        frame["requested"] = history.durations(rows, lines["Timelimit"])
    if "eligible" in lines:  # a job may not start before it is eligible; where that is not known, the submission stands
        frame["submit"] = released(frame["submit"], lines["eligible"], frame["start"], notes)
    if interrupted := int((frame["suspended"] > 0).sum()):
        where = "interrupted for as long in the middle of the run, since the log does not say when"
        notes.append(f"{counted(interrupted, 'job')} suspended: {where}; bounds hold wherever it was")
    frame = requeued(together(rows, history.once(rows, rows.kept(frame), "JobID"), options, notes), notes)
    dates = (
        rows.at == "record"
        or not lines["Submit"].str.isdigit().all()
        or bool((frame["submit"].dropna() > history.SINCE_1970_S).all())
    )
    notes += ["times without a zone count as UTC"] if options.timezone is None and dates and rows.at == "line" else []
    return history.Log("sacct", rows, frame, tuple(notes), unit, dates=dates)


def timed(rows: FileRows, lines: pd.DataFrame, options: Options, notes: list[str]) -> pd.DataFrame:
    """Return the lines with their times in seconds, as `submit`, `start`, `end`, and how long they were `away`."""
    away = (
        history.durations(rows, lines["Suspended"]).fillna(0) if "Suspended" in lines else pd.Series(0.0, lines.index)
    )
    elapsed = [lines[name] for name in ("ElapsedRaw", "Elapsed") if name in lines]
    lasted = history.durations(rows, elapsed[0], needed=False) if elapsed else None
    known = {name: lines[column] for column, name in CLOCKS.items() if column in lines}
    time = history.clocks(rows, known, options, notes, None if lasted is None else lasted + away)
    if lasted is not None and options.timezone is None:
        shift = (time["end"] - time["start"] - lasted - away).abs()
        if moved := int(shift.between(3599, 3601).sum()):
            notes.append(f"{counted(moved, 'line')} with End − Start an hour off Elapsed: local times need --timezone")
    return lines.assign(**time, away=away)


def older(lines: pd.DataFrame, never: pd.Series) -> pd.Series:
    """Return which lines show a run that had not begun or ended, while another line shows how it ended."""
    over = lines["start"].notna() & lines["end"].notna() & ~never.reindex(lines.index)
    if over.all():
        return ~over
    by = ["JobID", "submit"]
    ended = lines[over].drop_duplicates(by).set_index(by).index
    same = pd.Series(pd.MultiIndex.from_frame(lines[by]).isin(ended), lines.index)
    by = [*by, "start"]
    started = pd.Series(
        pd.MultiIndex.from_frame(lines[by]).isin(pd.MultiIndex.from_frame(lines.loc[over, by])), lines.index
    )
    return ~over & (started | (same & lines["start"].isna()))


def together(rows: FileRows, frame: pd.DataFrame, options: Options, notes: list[str]) -> pd.DataFrame:
    """Return the lines with one gang for each heterogeneous job whose parts ran on the same GPUs at the same time."""
    part = frame["id"].str.contains(HET)
    if not part.any():
        return frame
    parts = frame[part]
    parts = parts.assign(base=parts["id"].str.replace(HET, "", regex=True))
    alike = ["base", "submit", "start", "end", "type", *(["partition"] if options.by_partition else [])]
    run = parts.groupby(["base", "start"])["id"].transform("size")
    equal = parts.groupby(alike)["id"].transform("size") == run
    whole, apart = parts[equal], parts[~equal]
    first = ~whole.duplicated(["base", "start"])
    sums = whole.groupby(["base", "start"])["gpus"].transform("sum")
    gangs = whole.assign(id=whole["base"], gpus=sums)
    if "hosts" in whole:
        on: dict[Any, dict[str, int]] = {}
        keys = list(zip(whole["base"], whole["start"], strict=True))
        for key, own in zip(keys, whole["hosts"], strict=True):
            on.setdefault(key, {}).update(own)
        held: list[Any] = [on[key] for key in keys]
        gangs = gangs.assign(hosts=pd.Series(held, gangs.index, dtype=object))
    gangs = rows.leave(gangs, {PARTS: ~first})
    if len(gangs):
        notes.append(f"{counted(len(gangs), 'heterogeneous job')}: one gang of all parts, which ran on the same GPUs")
    if len(apart):
        jobs = counted(apart["base"].nunique(), "heterogeneous job")
        notes.append(
            f"{counted(len(apart), 'part')} of {jobs} on different GPUs, or with different times: jobs of their own; "
            "bounds hold, since they do not ask that parts start together, and means are over parts"
        )
    return pd.concat([frame[~part], gangs.drop(columns="base"), apart.drop(columns="base")]).sort_index()


def resources(
    rows: FileRows, lines: pd.DataFrame, options: Options, notes: list[str]
) -> tuple[pd.Series, pd.Series, str]:
    """Return what each line holds of the resource by which jobs are counted: amounts, GPU types, and the unit."""
    tres = lines["AllocTRES"] if "AllocTRES" in lines else pd.Series("", lines.index)
    if "ReqTRES" in lines:
        tres = tres.where(tres != "", lines["ReqTRES"])
    nodes = next((lines[name] for name in COUNTS["nodes"] if name in lines), None)
    for name in [name for name in ("AllocGRES", "ReqGRES") if name in lines]:  # of older versions of Slurm
        lacks = lines[name].str.contains("gpu", regex=False) & ~tres.str.contains("gres/gpu", regex=False)
        times = nodes[lacks] if nodes is not None and name == "ReqGRES" else ["1"] * int(lacks.sum())
        held = [
            gres(text, int(number) if number.isdigit() else 1)
            for text, number in zip(lines[name][lacks], times, strict=True)
        ]
        tres = tres.mask(lacks, pd.Series(held, lines.index[lacks], dtype=object))
    gpus = [_gpus(text) for text in tres]
    resource = options.resource or ("gpus" if any(number > 0 for number, _ in gpus) else "")
    numbers = pd.Series([number for number, _ in gpus], lines.index)
    types = pd.Series([name for _, name in gpus], lines.index, dtype=object)
    rows.refuse(numbers < 0, tres.rename("AllocTRES"), "GPUs as gres/gpu=4 or gres/gpu:a100=4")
    if resource == "gpus" or lines.empty:
        return numbers, on_the_only_type(types, numbers > 0, notes), UNITS["gpus"]
    for name in [resource] if resource else ["cpus", "nodes"]:
        column = next((column for column in COUNTS[name] if column in lines), None)
        amounts = tres.str.extract(TRES[name])[0].astype(float)
        if column:
            stated = pd.to_numeric(lines[column], errors="coerce")
            rows.refuse(stated.isna() & amounts.isna(), lines[column], f"a number of {name}")
            amounts = amounts.fillna(stated)
        if amounts.notna().any():
            notes.append(f"jobs are counted by {name}" + ("" if resource else ": the log has no GPUs"))
            return amounts.fillna(0), pd.Series("", lines.index), UNITS[name]
    rows.check()
    needed = "print AllocTRES, ReqTRES, NCPUS or NNodes with sacct --format"
    raise InstanceError(f"{rows.path}: line 1: no column gives the resources of jobs; {needed}")


@lru_cache(maxsize=10_000)
def gres(text: str, nodes: int) -> str:
    """Return the GPUs in a list of generic resources (``gpu:tesla:2``), on `nodes` nodes each, as a TRES string."""
    entries = []
    for kind, count in GRES.findall(text):
        plain = kind.isdigit() and not count  # gpu:4
        amount = int(kind if plain else count or 1) * nodes
        entries.append(f"gres/gpu{f':{kind}' if kind and not plain else ''}={amount}")
    return ",".join(entries)


@lru_cache(maxsize=10_000)
def _gpus(tres: str) -> tuple[int, str]:
    """Return the number of GPUs in a TRES string, and their type; a mix of types counts as a type (``a100+v100``).

    The number is -1 if it cannot be read.
    """
    if UNCOUNTED.search(tres):
        return -1, ""
    entries = GPUS.findall(tres)
    typed = [(name, int(number)) for name, number in entries if name and int(number)]
    total, named = sum(int(number) for name, number in entries if not name), sum(number for _, number in typed)
    rest = [OTHER] if typed and total > named else []  # Slurm may account only some types
    return max(total, named), "+".join(sorted({name for name, _ in typed}) + rest)


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
