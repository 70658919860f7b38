"""The Standard Workload Format of the Parallel Workloads Archive, version 2 (``.swf``, also ``.swf.gz``).

Each line has eighteen numbers, −1 for unknown ones; lines that begin with ``;`` are header directives.

- processors: the allocated ones, or the requested ones if these are unknown; a pool consists of processors (MaxProcs,
  or MaxNodes if there is no MaxProcs, gives their number)
- a job starts at submit + wait and runs for its run time; jobs of unknown wait are left out, unless all waits are
  unknown: then the log has no history, only a workload
- lines with status 2 (continued), 3 and 4 (last part, completed or failed) are the runs of a job; its summary line is
  then left out
- requested time, user, and queue (or partition, if there are several) are kept; dependencies (preceding job) are not
- with UnixStartTime, times are dates; in joined logs, that of the header above a line counts
"""

from __future__ import annotations

import re

import pandas as pd

from schedgap.instances import canonical
from schedgap.instances.importers.history import Log, to_instance
from schedgap.instances.importers.registry import Options
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.table import check_format, check_unique, decoded, framed, lines_of, single, unpacked
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

FIELDS = (
    *("job", "submit", "wait", "run", "processors", "cpu", "memory", "requested_processors", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think"),
)
DIRECTIVE = re.compile(r"^;\s*([A-Za-z]+):\s*(\S.*?)\s*$", re.MULTILINE)
PARTITION = re.compile(r"^;\s*Partition:\s*(\d{1,6})\s+(\S.*?)\s*$", re.MULTILINE)
RUNS = (2, 3, 4)
"""Statuses of lines that are parts of jobs."""


def recognise(line: str) -> int:
    """Return 18 if the first line is a directive or has 18 numbers, else 0."""
    if DIRECTIVE.match(line) or line.startswith(";"):
        return len(FIELDS)
    fields = line.split()
    return len(fields) * (len(fields) == len(FIELDS) and all(re.fullmatch(r"-?\d+(\.\d+)?", f) for f in fields))


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log, gzipped or not (see :func:`schedgap.instances.importers.import_trace`)."""
    path = rows.path
    content = unpacked(path, canonical.read_bytes(path)).replace(b"\x00", b"")
    # Names in the archive's headers are in various encodings.
    text = decoded(path, content, "latin-1", "lines of 18 numbers")
    check_format(path, text, "swf", "a line has 18 numbers, a header begins with ;")
    return to_instance(log_of(rows, text, options), options)


def table(rows: FileRows, text: str) -> pd.DataFrame:
    """Return the fields of each line as numbers, indexed by line number."""
    lines = ["" if line.lstrip().startswith(";") else line for line in lines_of(text)]
    places = {name: at for at, name in enumerate(FIELDS)}
    raw = framed(rows, lines, places, None, single(None, len(FIELDS)), headed=False, unique=True)
    right = "a number, 0 or more, or -1 if it is not known"
    for name in FIELDS:
        good = pd.to_numeric(raw[name], errors="coerce").astype(float)
        rows.refuse(~((good >= -1) & (good <= 1e13)), raw[name], right)
        raw[name] = good
    return rows.kept(raw)


def log_of(rows: FileRows, text: str, options: Options) -> Log:
    """Return the log in `text`."""
    header = dict(DIRECTIVE.findall(text))
    notes: list[str] = []
    lines = without_summaries(rows, table(rows, text))
    requested = (lines["processors"] <= 0) & (lines["requested_processors"] > 0)
    if requested.any():
        notes.append(
            f"{counted(int(requested.sum()), 'job')} hold the processors they requested: the log has no allocation"
        )
    held = lines["processors"].where(~requested, lines["requested_processors"])
    cancelled = (lines["status"] == 5) & (lines["run"] <= 0)
    reasons = {
        "their submission is not known": lines["submit"] < 0,
        "they were cancelled before they started": cancelled,
        "their run time is not known": lines["run"] < 0,
        "their number of processors is not known": held <= 0,
    }
    waited = lines["wait"] >= 0
    if waited.any():
        reasons["their wait is not known"] = ~waited
    else:
        notes.append("the log has no waiting times, so that only its workload is known, not how it ran")
    lines = rows.leave(lines, reasons)
    start = (lines["submit"] + lines["wait"]).where(lines["wait"] >= 0)
    epoch = epochs(text, lines.index)
    several = len(set(lines["partition"]) - {-1.0}) > 1
    named = {float(n): name for n, name in PARTITION.findall(text)}
    place = lines["partition" if several else "queue"]
    frame = pd.DataFrame(
        {
            "id": lines["job"].map("{:.0f}".format),
            "submit": lines["submit"] + epoch,
            "start": start + epoch,
            "end": start + lines["run"] + epoch,
            "duration": lines["run"],
            "gpus": held.reindex(lines.index),
            "status": lines["status"].map({0: "FAILED", 1: "COMPLETED", 3: "COMPLETED", 4: "FAILED", 5: "CANCELLED"}),
            "user": lines["user"].map(lambda n: f"user {n:.0f}" if n >= 0 else ""),
            "partition": place.map(
                lambda n: "" if n < 0 else named.get(n, f"partition {n:.0f}") if several else f"queue {n:.0f}"
            ),
            "requested": lines["requested_time"].where(lines["requested_time"] > 0),
        }
    ).fillna({"status": ""})
    if not waited.any():
        frame = frame.drop(columns=["start", "end"])
    sizes = {name: int(header[name]) for name in ("MaxProcs", "MaxNodes") if header.get(name, "").isdigit()}
    name = next((name for name, number in sizes.items() if number > 0), None)
    capacity = {"": sizes[name]} if name and not options.by_partition else None
    return Log(
        "swf", rows, frame, tuple(notes), "processor", capacity, f"{name} of the header", bool((epoch > 0).all())
    )


def epochs(text: str, index: pd.Index) -> pd.Series:
    """Return the UnixStartTime above each line, else the first, 0 if there is none; joined logs have several."""
    found: dict[int, float] = {}
    if "UnixStartTime" in text:
        stated = ((number, DIRECTIVE.match(line)) for number, line in enumerate(lines_of(text), 1) if line[:1] == ";")
        found = {
            number: float(directive[2])
            for number, directive in stated
            if directive and directive[1] == "UnixStartTime" and re.fullmatch(r"\d{1,11}", directive[2])
        }
    above = pd.Series(found, dtype=float).reindex(index.union(list(found))).ffill().bfill()
    return above.reindex(index).fillna(0.0)


def without_summaries(rows: FileRows, lines: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each run, without the summary lines of jobs that have parts."""
    part = lines["status"].isin(RUNS)
    once = lines[~part]
    check_unique(rows, once["job"].map("{:.0f}".format))
    once = rows.kept(once)
    if not part.any():
        return once
    parts = lines[part]
    summed = once["job"].isin(parts["job"])
    # Of the standard's parts, only the first has a submission; other logs give each part one, at the end of the part
    # before. A wait counts from the submission or, without one, from the end of the part before.
    told = parts["submit"].where(parts["submit"] >= 0)
    wait = parts["wait"].where(parts["wait"] >= 0)
    since = [parts["job"], told.notna().groupby(parts["job"]).cumsum()]
    took = (wait + parts["run"]).groupby(since).cumsum() - parts["run"]
    submit = told.groupby(parts["job"]).transform("min")
    began = told.groupby(since).transform("first").fillna(submit) + took
    alone = rows.leave(once, {"they sum up parts that have their own lines": summed})
    split = parts.assign(submit=submit.fillna(-1), wait=began - submit)
    return pd.concat([alone, split]).fillna({"wait": -1}).sort_index()
