"""Any CSV log with a header, by a map of its columns: ``id=job,submit=queued_at,start=begin,end=finish,gpus=n_gpu``.

Required are submit, start (or wait), end (or duration) and gpus (or cpus, cores, nodes, processors). Optional are id
(by default the line number), type, partition, user, requested, weight, status, and server (``g[1-2],c1``). Jobs may
move to another GPU type if a column has their durations there, as in ``duration:V100=v100_s`` (empty if a job cannot
run there). Times are seconds, ISO dates, or of the form that the option `time_format` states; durations are seconds or
``h:mm:ss``. Fields are separated by commas, semicolons or tabs. Lines without a start or an end are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers import history
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.sacct import hosts
from schedgap.instances.importers.table import first_line, framed, header_of, lines_of, quoted, read_text
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

HELD = {"gpus": "GPU", "cpus": "CPU", "cores": "core", "nodes": "node", "processors": "processor"}
"""Columns with the size of a job, and the unit."""

KNOWN = (
    *("id", "submit", "start", "end", "duration", "wait", "type", "partition", "user", "requested", "weight", "status"),
    *("server", *HELD),
)


def read_as(format: str, columns: Mapping[str, str], rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log in `format`, whose columns are mapped by `columns`."""
    lines = table(rows, read_text(rows.path, log=True), columns)
    return history.to_instance(log_of(format, rows, lines, columns, options), options)


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log (see :func:`schedgap.instances.importers.import_trace`).

    It raises `UsageError` if the user's map of columns is incomplete or has an unknown name.
    """
    columns = options.columns or {name: name for name in ("id", "submit", "start", "end", "gpus")}
    for name in columns:
        if name not in KNOWN and not re.fullmatch(f"{history.ELSEWHERE}.+", name):
            raise UsageError(f"--map: {unknown('name', name, KNOWN)}")
    needs = (("submit",), ("start", "wait"), ("end", "duration"), tuple(HELD))
    missing = [" or ".join(need) for need in needs if not any(name in columns for name in need)]
    if missing:
        raise UsageError(f"--map: no column for {', for '.join(missing)}; write e.g. submit=queued_at,start=begin,…")
    held = [name for name in HELD if name in columns]
    if len(held) > 1:
        raise UsageError(f"--map: {' and '.join(held)} all give the size of a job; map only one of them")
    return read_as("csv", columns, rows, options)


def table(rows: FileRows, text: str, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return the mapped columns as text, indexed by line number; if jobs have ids, each line occurs once."""
    delimiter = max(",;\t", key=first_line(text).count)
    header = header_of(rows.path, text, delimiter)
    if absent := [name for name, column in columns.items() if column not in header]:
        problem = f"{absent[0]}: {unknown('column', columns[absent[0]], header)}"
        remedy = f"--map {','.join(f'{name}=…' for name in absent)}; the header has {', '.join(header)}"
        raise InstanceError(f"{rows.path}: line 1: {problem} ({remedy[:300]})")
    places = {name: header.index(column) for name, column in columns.items()}
    return framed(rows, lines_of(text), places, delimiter, quoted(delimiter, len(header)), unique="id" in columns)


def log_of(
    format: str, rows: FileRows, lines: pd.DataFrame, columns: Mapping[str, str], options: Options
) -> history.Log:
    """Return the log in the lines of a table; messages name its columns as the file does.

    A column ``milli`` has the thousandths of its only GPU that a job uses.
    """
    notes: list[str] = []
    said = {name: lines[name].rename(column) for name, column in columns.items()}
    frame = lines.assign(id=lines["id"] if "id" in lines else [f"line {line}" for line in lines.index])
    for name in lines.columns[lines.columns.str.match(f"(duration|wait|requested)$|{history.ELSEWHERE}")]:
        frame[name] = history.durations(rows, said[name])
    known: dict[str, pd.Series] = {name: said[name] for name in ("submit", "start", "end") if name in said}
    frame = frame.assign(**history.clocks(rows, known, options, notes, frame.get("duration")))
    held = next(name for name in HELD if name in lines)
    for name in [name for name in (held, "weight") if name in lines]:
        numbers = pd.to_numeric(said[name], errors="coerce")
        rows.refuse(~((numbers >= 0) & (numbers < np.inf)), said[name], "a number, 0 or more")
        frame[name] = numbers
    part = frame[held] % 1 > 0
    if "milli" in lines:
        part |= (frame[held] == 1) & pd.to_numeric(lines["milli"], errors="coerce").between(1, 999)
    frame["gpus"] = np.ceil(frame[held])
    if "server" in lines:
        frame["hosts"] = lines["server"].map(lambda text: dict.fromkeys(hosts(text), 0))
    if "start" not in lines:
        frame["start"] = frame["submit"] + frame["wait"]
    if "end" not in lines:
        frame["end"] = frame["start"] + frame["duration"]
    reasons = {history.NEVER_STARTED: frame["start"].isna(), history.STILL_RUNNING: frame["end"].isna()}
    frame = rows.leave(frame, reasons | {NO_GPU.replace("GPUs", f"{HELD[held]}s"): frame["gpus"] == 0})
    if shared := int(part.reindex(frame.index).sum()):
        notes.append(f"gangs of {counted(shared, 'job')} rounded up to whole {HELD[held]}s, which no other job shares")
    rows.refuse(frame["submit"].isna(), said["submit"].reindex(frame.index), history.NEEDED)
    dates = bool((frame["submit"].dropna() > history.SINCE_1970_S).all())
    return history.Log(format, rows, frame, tuple(notes), HELD[held], dates=dates)
