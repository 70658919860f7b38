"""The Standard Workload Format of the Parallel Workloads Archive, version 2 (``.swf``, also ``.swf.gz``).

Eighteen numbers in a line, −1 for what is not known; lines that begin with ``;`` are a header of directives.

- processors: allocated ones, or requested ones where these are not known; they are what a pool consists of (MaxProcs,
  or MaxNodes where there is no MaxProcs, says how many there are)
- a job starts at submit + wait and runs for its run time; one whose wait is not known is left out, unless no wait is
  known at all: then the log has no history, only a workload
- status 2 is a part that is continued, 3 and 4 the last part of a job (completed, failed): its runs; the line that sums
  the job up then gives its submission
- requested time, user, queue (or partition, where there are several) are kept; dependencies (preceding job) are not
- UnixStartTime makes times dates
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import pandas as pd

from schedgap.instances import canonical
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.clusters import count
from schedgap.instances.importers.history import Log, to_instance
from schedgap.instances.importers.registry import Options
from schedgap.instances.importers.table import check_format, decoded, framed, refuse, sifted
from schedgap.instances.schema import Instance

FIELDS = (
    *("job", "submit", "wait", "run", "processors", "cpu", "memory", "requested_processors", "requested_time"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding", "think"),
)
DIRECTIVE = re.compile(r"^;\s*([A-Za-z]+):\s*(\S.*?)\s*$", re.MULTILINE)
PARTITION = re.compile(r"^;\s*Partition:\s*(\d{1,6})\s+(\S.*?)\s*$", re.MULTILINE)
RUNS = (2, 3, 4)
"""Statuses of lines that are parts of a job."""


def recognise(line: str) -> int:
    """Return how many fields a first line has, 0 where it is neither a directive nor 18 numbers."""
    if DIRECTIVE.match(line) or line.startswith(";"):
        return len(FIELDS)
    fields = line.split()
    return len(fields) * (len(fields) == len(FIELDS) and all(re.fullmatch(r"-?\d+(\.\d+)?", f) for f in fields))


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a log, gzipped or not (see :func:`schedgap.instances.importers.import_trace`)."""
    content = canonical.read_bytes(path)
    if content[:2] == b"\x1f\x8b":
        most = canonical.MAX_FILE_MB * 1_000_000
        try:
            with gzip.open(path) as file:
                content = file.read(most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InstanceError(f"{path}: cannot be unpacked: {error}") from None
        if len(content) > most:
            raise InstanceError(f"{path}: unpacks to more than the limit of {canonical.MAX_FILE_MB} MB")
    # Names in headers of the archive come in any encoding.
    text = decoded(path, content, "latin-1", "lines of 18 numbers")
    check_format(path, text, "swf", "a line has 18 numbers, a header begins with ;")
    return to_instance(log_of(path, text, options), options)


def table(path: Path, text: str) -> pd.DataFrame:
    """Return the numbers of each line by field."""
    lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
    jobs = ((number, fields) for number, fields in lines if fields and not fields[0].startswith(";"))
    raw = framed(path, jobs, {name: at for at, name in enumerate(FIELDS)}, len(FIELDS))
    for name in FIELDS:
        good = pd.to_numeric(raw[name], errors="coerce")
        refuse(path, ~(good >= -1) | ~(good <= 1e13), raw[name], "a number, 0 or more, or -1 for what is not known")
        raw[name] = good.astype(float)
    return raw


def log_of(path: Path, text: str, options: Options) -> Log:
    """Return what ran by the lines of a log."""
    header = dict(DIRECTIVE.findall(text))
    notes: list[str] = []
    lines, left_out = whole(path, table(path, text))
    asked = (lines["processors"] <= 0) & (lines["requested_processors"] > 0)
    if asked.any():
        notes.append(f"{count(int(asked.sum()))} hold the processors that they asked for: the log does not say more")
    held = lines["processors"].where(~asked, lines["requested_processors"])
    cancelled = (lines["status"] == 5) & (lines["run"] <= 0)
    reasons = {
        "they were cancelled before they started": cancelled,
        "their run time is not known": lines["run"] < 0,
        "nobody knows how many processors they held": held <= 0,
    }
    waited = lines["wait"] >= 0
    if waited.any():
        reasons["their wait is not known"] = ~waited
    else:
        notes.append("the log knows no wait: it has a workload, and no history to judge")
    lines, unknown = sifted(lines, reasons)
    start = (lines["submit"] + lines["wait"]).where(lines["wait"] >= 0)
    epoch = float(header["UnixStartTime"]) if re.fullmatch(r"\d{1,11}", header.get("UnixStartTime", "")) else 0.0
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
    left_out |= unknown
    return Log("swf", path, frame, left_out, tuple(notes), "processor", capacity, f"{name} of the header", epoch > 0)


def whole(path: Path, lines: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a line for each time that a job ran, parts without the line that sums them up; and how many are out."""
    part = lines["status"].isin(RUNS)
    once = lines[~part]
    refuse(
        path, once["job"].duplicated(), once["job"], "already used in a line before; each job has one that sums it up"
    )
    if not part.any():
        return lines, {}
    parts = lines[part]
    summed = once["job"].isin(parts["job"])
    submit = parts.groupby("job")["submit"].transform("min")
    # A later part is submitted when the one before has ended; its wait counts from there.
    alone, left_out = sifted(once, {"they sum up parts that have lines of their own": summed})
    began = parts["submit"] + parts["wait"].where(parts["wait"] >= 0)
    split = parts.assign(submit=submit, wait=began - submit)
    return pd.concat([alone, split]).fillna({"wait": -1}).sort_index(), left_out
