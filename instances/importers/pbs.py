"""Accounting of PBS: Torque, PBS Professional and OpenPBS (``server_priv/accounting/20260302``; days may be joined).

A line is a record: ``03/02/2026 08:10:04;E;123.server;user=ann queue=gpu ctime=… qtime=… etime=… start=… end=…``. Types
that are read:

- E (ended) and R (put back into the queue) end a run, from ``start=`` to ``end=``. After R, it is another job
  (``123#2``), released when the previous attempt has ended
- S and T (started, restarted from a checkpoint) begin a run, z (suspended) and C (checkpointed and held) interrupt it,
  r (resumed) continues it. A suspension that keeps the GPUs (``resources_released=`` without them) is none
- records of other types, of reservations, licences and whole arrays (``123[]``), and of jobs that did not start or
  end in the file, are left out and counted

Fields:

- times: ``ctime=`` (submission), ``start=``, ``end=`` in seconds since 1970. A job is released at ``etime=`` (eligible)
  if that is later than its submission. Records without such times (z, r, Torque's R) have the local time of the line;
  the zone is that of the job starts before them
- GPUs: those of ``exec_vnode=`` (``ngpus``, by server), else ``Resource_List.ngpus``, ``.select=2:ncpus=8:ngpus=4``,
  Torque's ``.nodes=2:ppn=8:gpus=2``, or ``.gpus``; in a log without any, jobs are counted by CPUs (slots) or nodes
  (option `resource`). GPU type: ``gpu_type=`` or ``gpu_model=`` of the request, if the site has them
- ``Resource_List.walltime``: requested time; ``queue=``: the partition; ``Exit_status=``: the status
- jobs are named without the server, unless there are several; an id that is used again is told apart, ``123(2)``
- a job that gives back nodes before its end (s, u, c, e) counts as holding them

A year may be too large for one file: if nobody is suspended, the ends suffice (``grep ';[ER];'``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schedgap.instances.importers import history
from schedgap.instances.importers.accounting import (
    SUSPENDED,
    Holding,
    attempts,
    by_resource,
    check_records,
    distinct,
    limit_s,
    released,
)
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.rows import REPEATED, FileRows
from schedgap.instances.importers.table import lines_of, read_text
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;([A-Za-z]);([^;]*);?(.*)", re.DOTALL)
QUOTED = r'"[^"]*"'
TIMES = ("ctime", "etime", "start", "end")
PAIR = re.compile(r'(?:^|\s)([A-Za-z_.]+)=("[^"]*"|\S*)')
HOST = re.compile(r"(?:^|\+)([^/+]+)")
VNODE = re.compile(r"[(+]([^():+]+):([^()+]*)")
INDEXED = re.compile(r"\[\d+\]$")
GPUS = re.compile(r"(?:^|:)(?:n?gpus?|naccelerators)=(\d{1,6})")
CPUS = re.compile(r"(?:^|:)(?:ncpus|ppn)=(\d{1,6})")
TYPE = re.compile(r"\b(?:gpu_?type|gpu_?model)=([\w.-]+)")
TYPES = ("gpu_type", "gputype", "gpu_model", "gpumodel")
NUMBERS = ("ngpus", "gpus", "gpu", "ncpus", "nodect")
ABOUT = ("held", "user", "partition", "requested", "status")


BEGIN, END, GOES_ON = "STr", "ERzC", "zC"
"""Types of records that begin a run, that end one, and after which the same job continues."""

JOBS = "QSTERzrCDAMsuceaPp"
"""Types of records about jobs."""

OTHERS = "they are about reservations, licences, and the like"
ARRAYS = "they are about whole arrays, whose jobs have records of their own"
NOT_STARTED = "they are about jobs that never started, or not in this file"
FURTHER = "they are further records of the same jobs (queued, started, deleted, …)"
IDLE = "their jobs ended while they were suspended"
IN_PLACE = "they are suspensions and resumptions of jobs that keep their GPUs meanwhile"
WANTED = "a record is MM/DD/YYYY hh:mm:ss;TYPE;JOB;user=… ctime=… start=… end=…"


def recognise(line: str) -> int:
    """Return 4 if a line is a record, else 0."""
    return 4 * (RECORD.fullmatch(line.strip()) is not None)


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(rows.path, log=True)
    check_records(rows.path, text, "pbs", recognise, WANTED)
    return history.to_instance(log_of(rows, records(rows, text), options), options)


def records(rows: FileRows, text: str) -> pd.DataFrame:
    """Return ``when`` (local time in seconds), ``kind``, ``job`` and ``text`` of each record, by line number."""
    lines = lines_of(text)
    at = np.array([place for place, line in enumerate(lines) if line.strip()], np.int64)
    rows.begin(at + 1, lambda number: lines[number - 1])
    whole = pd.Series([lines[place].strip() for place in at], at + 1, dtype=object)
    whole = rows.leave(whole.to_frame("record"), {REPEATED: whole.duplicated()})["record"]
    frame = whole.str.extract(RECORD).set_axis(["when", "kind", "job", "text"], axis=1)
    rows.refuse(frame["kind"].isna(), whole, WANTED, "they are no records")
    frame = rows.kept(frame)
    when = pd.to_datetime(frame["when"], format="%m/%d/%Y %H:%M:%S", errors="coerce")
    rows.refuse(when.isna(), frame["when"], "a date MM/DD/YYYY hh:mm:ss")
    return rows.kept(frame.assign(when=(when - pd.Timestamp(0).as_unit("us")) / pd.Timedelta(seconds=1)))


def log_of(rows: FileRows, lines: pd.DataFrame, options: Options) -> history.Log:
    """Return the log in the records of a file."""
    notes: list[str] = []
    lines = lines.assign(job=names_of(lines["job"]))
    others = ~lines["kind"].isin(list(JOBS)) | (lines["job"] == "")
    lines = rows.leave(lines, {OTHERS: others, ARRAYS: lines["job"].str.contains("[]", regex=False)})
    runs = runs_of(rows, timed(lines))
    told = pd.DataFrame([about(text) for text in runs["text"]], runs.index, columns=ABOUT)
    frame, unit = by_resource(told.pop("held"), runs.index, options.resource, notes)
    early = lines.loc[lines["kind"].isin(list("suc")), "job"].nunique()
    if early:
        notes.append(f"{counted(early, 'job')} gave back nodes before their end: they count as holding them until then")
    ended = told["status"].where(runs["kind"] == "E", runs["kind"].map({"R": "REQUEUED"}).fillna(SUSPENDED))
    frame = frame.assign(
        id=distinct(runs["job"], runs["ctime"], notes),
        submit=released(runs["ctime"], runs["etime"], runs["start"], notes),
        start=runs["start"],
        end=runs["end"],
        **told.assign(status=ended),
    )
    frame = rows.leave(frame, {NO_GPU.replace("GPUs", f"{unit}s"): frame["gpus"] == 0})
    return history.Log("pbs", rows, attempts(rows, frame, notes), tuple(notes), unit)


def names_of(jobs: pd.Series) -> pd.Series:
    """Return the ids of jobs without the name of the server, if all are of one server."""
    parts = jobs.str.partition(".")
    return jobs if len(set(parts[2]) - {""}) > 1 else parts[0]


def timed(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the records with ``ctime``, ``etime``, ``start``, ``end`` (NaN if absent), and ``at``, all since 1970."""
    plain = pc.replace_substring_regex(pa.array(lines["text"], pa.large_string()), QUOTED, "")
    found = {name: pc.extract_regex(plain, rf"(?:^|\s){name}=(?P<at>\d{{1,11}})") for name in TIMES}
    at = {name: pc.struct_field(one, "at").cast(pa.float64()).to_pandas().to_numpy() for name, one in found.items()}
    times = pd.DataFrame(at, lines.index)
    times = times.where(times > 0)
    own = times["start"].where(lines["kind"] == "S").fillna(times["end"])
    zone = ((lines["when"] - own) / 900).round() * 900  # a record is written within minutes
    return lines.assign(**times, at=own.fillna(lines["when"] - zone.ffill().bfill().fillna(0)))


def runs_of(rows: FileRows, lines: pd.DataFrame) -> pd.DataFrame:
    """Return the records that end runs, with ``start`` and ``end`` of these, and what other records say of the job."""
    lines = lines.assign(number=lines.index).sort_values(["job", "at", "number"], kind="stable").set_index("number")
    lines = rows.leave(lines, {IN_PLACE: in_place(lines)})
    plain = (lines["kind"] == "C") & (lines["text"] == "Checkpointed")  # such a job runs on
    begins, ends = lines["kind"].isin(list(BEGIN)), lines["kind"].isin(list(END)) & ~plain
    cut = lines["kind"].eq("E") & lines[["ctime", "start", "end"]].isna().any(axis=1)
    rows.refuse(cut, lines["text"], "ctime=, start= and end= of a job", "they are ends of jobs without all their times")
    lines = rows.kept(lines)
    begins, ends = begins.reindex(lines.index), ends.reindex(lines.index)
    of = lines["job"]
    began = lines["start"].where(lines["kind"] != "r").fillna(lines["at"]).where(begins).groupby(of).ffill()
    later = lines["start"].groupby(of).bfill()  # of a run whose start is not in the file
    start = np.fmax(began.fillna(later.where(later <= lines["at"])), lines["start"].where(ends))
    told = lines["text"].where(lines["text"].str.contains(r"Resource_List\.|exec_"))
    known = lines[["ctime", "etime"]].assign(text=told).groupby(of)
    lines = lines.assign(**known.ffill().groupby(of).bfill(), start=start, end=lines["end"].fillna(lines["at"]))
    stopped = ends & lines["kind"].isin(list(GOES_ON))
    idle = ends & (start <= lines["end"].where(stopped).groupby(of).ffill().groupby(of).shift())
    unknown = ends & lines[["start", "ctime", "text"]].isna().any(axis=1)
    followed = ends[::-1].groupby(of[::-1]).cummax()[::-1]
    reasons = {
        IDLE: idle,
        NOT_STARTED: ~(begins | (ends & ~unknown)).groupby(of).transform("any") | unknown,
        history.STILL_RUNNING: begins & ~followed,
        FURTHER: ~ends,
    }
    return rows.leave(lines, reasons)


def in_place(lines: pd.DataFrame) -> pd.Series:
    """Return which records are suspensions, and resumptions after these, of jobs that keep their GPUs meanwhile."""
    given = lines["text"].where(lines["kind"] == "z").str.extract(r"resources_released=(\S*)")[0]
    if given.isna().all():
        return pd.Series(False, lines.index)
    keeps = given.map(lambda text: isinstance(text, str) and not GPUS.search(text)).where(lines["kind"] == "z")
    has = lines["text"].map(lambda text: GPUS.search(text) is not None).groupby(lines["job"]).transform("any")
    return lines["kind"].isin(["z", "r"]) & keeps.groupby(lines["job"]).ffill().eq(True) & has


def about(text: str) -> tuple[Holding, str, str, float, str]:
    """Return what a record says of a run: what it holds, user, queue, requested seconds, and status."""
    fields = dict(PAIR.findall(text))
    code = fields.get("Exit_status", "")
    status = {"": "", "0": "COMPLETED"}.get(code, f"exit {code}")
    limit = limit_s(fields.get("Resource_List.walltime", ""))
    return holding(fields), fields.get("user", ""), fields.get("queue", ""), limit, status


def holding(fields: Mapping[str, str]) -> Holding:
    """Return what a run holds: what it was given, or else what it asked for."""
    on = dict.fromkeys(HOST.findall(fields.get("exec_host", "")), 0)
    placed = dict.fromkeys(on, 0)
    gpus = cpus = 0
    for name, resources in VNODE.findall(fields.get("exec_vnode", "")):
        there, host = amount(GPUS, resources), INDEXED.sub("", name)
        gpus, cpus = gpus + there, cpus + amount(CPUS, resources)
        placed[host] = placed.get(host, 0) + there
    if gpus:
        on = {host: there for host, there in placed.items() if there}
    asked = {name: fields.get(f"Resource_List.{name}", "") for name in ("select", "nodes", *NUMBERS, *TYPES)}
    nodes = asked["nodes"] or asked["nodect"] * (":" in asked["nodect"])  # some sites write the request there
    chunks = [chunk.partition(":") for chunk in (asked["select"] or nodes).split("+")]
    parts = [(int(head) if head.isdigit() else 1, f"{head}:{rest}") for head, _, rest in chunks]
    gpus = gpus or number(asked["ngpus"]) or number(asked["gpus"]) or number(asked["gpu"])
    gpus = gpus or sum(times * amount(GPUS, part) for times, part in parts)
    cpus = cpus or number(fields.get("total_execution_slots", "")) or (0 if nodes else number(asked["ncpus"]))
    cpus = cpus or sum(times * max(1, amount(CPUS, part)) for times, part in parts)
    types = {*TYPE.findall(f"{asked['select']} {nodes}")} or {asked[name] for name in TYPES}
    held = {"gpus": gpus, "cpus": cpus, "nodes": len(placed) or number(asked["nodect"])}
    return held, "+".join(sorted(types - {""})), on


def amount(pattern: re.Pattern[str], resources: str) -> int:
    """Return the amount of a resource in a list such as ``ncpus=8:ngpus=2``."""
    return sum(int(found) for found in pattern.findall(resources))


def number(text: str) -> int:
    """Return a whole number, or 0 if the text is none."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
