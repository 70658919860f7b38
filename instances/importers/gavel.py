"""Gavel's traces (stanford-futuredata/gavel) and its throughput table.

One job per line, tab-separated, no header; seven columns (old) or ten (new). Fields may end in spaces.

- old: job type, command, steps argument, needs data dir, total steps, arrival (s), scale factor
- new: job type, command, working dir, steps argument, needs data dir, total steps, scale factor, priority
  weight, SLO, arrival (s)

The scale factor is the number of GPUs; the SLO is a multiple of the job's own duration, negative for none. A
job type is ``ResNet-50 (batch size 64)``. Commands are never looked at.

The table is JSON: worker type → ``('job type', scale factor)`` → ``"null"`` → iterations/s of the WHOLE job
alone on its GPUs, all on few servers; the other keys (packed with another job) and the worker types
``*_unconsolidated`` (spread over servers) are not used. The rate of one GPU is the whole job's divided by the
scale factor.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from schedgap.instances.canonical import read_bytes
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.clusters import chip, count
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, NO_GPU, ImporterSpec, Options, Trace, TraceJob
from schedgap.instances.importers.table import (
    CONTROL,
    LARGEST,
    check_format,
    columns_of,
    first_line,
    jobs_of,
    parse,
    read_text,
    shown,
    sifted,
)
from schedgap.instances.schema import Instance

COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "job type": {"kind": "text", "right": "a job type such as 'ResNet-50 (batch size 64)'", "field": "model"},
    "total steps": {"kind": "work", "field": "iterations"},
    "scale factor": {"kind": "gang", "field": "gpus"},
    "priority weight": {"kind": "number", "right": "a weight, 0 or more", "field": "weight"},
    "SLO": {
        "kind": "number",
        "right": "a multiple of the job's duration, or a negative number for none",
        "low": -LARGEST,
        "field": "slo",
    },
    "arrival": {"kind": "arrival", "field": "submit_s"},
}
PLACES = {7: (0, 4, 6, -1, -1, 5), 10: (0, 5, 6, 7, 8, 9)}
"""Where they are in lines of so many fields, -1 for nowhere."""

KEY = re.compile(r"\('([^']{1,200})', ([1-9]\d{0,5})\)")
SPREAD = "_unconsolidated"

Table = Mapping[str, Mapping[tuple[str, int], float]]
"""GPU type → (job type, scale factor) → iterations/s of the whole job."""


def recognise(line: str) -> int:
    """Return 7 or 10 for a first line of that many tab-separated fields."""
    fields = line.count("\t") + 1
    return fields if fields in PLACES else 0


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a Gavel trace (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(path)
    check_format(path, text, "gavel", "a line has 7 or 10 tab-separated fields")
    width = recognise(first_line(text))
    places = zip(COLUMNS.items(), PLACES[width], strict=True)
    columns = columns_of({name: {**facts, "at": at} for (name, facts), at in places})
    frame = parse(path, text, columns, width=width, delimiter="\t")
    frame = frame.rename(columns={column.name: column.field for column in columns})
    table = read_table(Path(options.throughputs)) if options.throughputs else {}
    asked = pd.Series(list(zip(frame["model"], frame["gpus"], strict=True)), index=frame.index)
    known = {(kind, gpus): rates(kind, int(gpus), table) for kind, gpus in set(asked)}
    frame["id"] = range(len(frame))
    frame["tenant"] = [kind.split(" (")[0] for kind in frame["model"]]
    frame["rates"] = asked.map(known.__getitem__)
    if "slo" in frame:
        frame["slo"] = frame["slo"].where(frame["slo"] > 0)
    kept, left_out = sifted(frame, {NO_GPU: frame["gpus"] == 0})
    jobs = jobs_of(kept)
    notes = told(jobs, table, Path(options.throughputs).name) if options.throughputs else []
    return to_instance(Trace("gavel", path, jobs, left_out, tuple(notes), tenants="job types"), options)


def rates(kind: str, gpus: int, table: Table) -> dict[str, float]:
    """Return iterations/s of one GPU of each type; a missing scale factor takes the largest smaller one's."""
    found = {}
    for gpu, whole in table.items():
        scale = max((s for k, s in whole if k == kind and s <= gpus), default=None)
        if scale is not None:
            found[gpu] = whole[kind, scale] / scale
    return found if any(found.values()) else {}


def told(jobs: list[TraceJob], table: Table, name: str) -> list[str]:
    """Say how many jobs have rates from the table, and for how many it lacks the scale factor."""
    recorded = [job for job in jobs if job.rates]
    exact = sum(all((job.model, job.gpus) in whole for whole in table.values()) for job in recorded)
    notes = [f"rates of {count(len(recorded))} from {name}: whole job's / scale factor"]
    if exact < len(recorded):
        n = count(len(recorded) - exact)
        notes.append(f"{name} lacks the scale factor of {n}: rate of one GPU as at its largest smaller scale factor")
    return notes


def read_table(path: Path) -> Table:
    """Read Gavel's throughput JSON.

    Raises
    ------
    InstanceError
        If it is not of the form described at the head of this module.
    """
    try:
        data = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{path}: not valid JSON: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(data, dict) or not data:
        raise InstanceError(f"{path}: a throughput table is an object: GPU type → job type → rates")
    strange = next((gpu for gpu in data if not 0 < len(gpu) <= 200 or CONTROL.search(gpu)), None)
    if strange is not None:
        raise InstanceError(f"{path}: {shown(strange)}: the name of a GPU type, e.g. v100")
    table = {chip(g): whole_rates(path, g, kinds) for g, kinds in data.items() if not g.endswith(SPREAD)}
    if not table:
        raise InstanceError(f"{path}: only rates spread over servers (*{SPREAD}): give those of v100, …")
    return table


def whole_rates(path: Path, gpu: str, kinds: object) -> dict[tuple[str, int], float]:
    """Return the rates of all job types on one GPU type."""
    if not isinstance(kinds, dict) or not kinds:
        raise InstanceError(f"{path}: {shown(gpu)}: an object: ('job type', scale factor) → rates")
    found = {}
    for key, entry in kinds.items():
        match = KEY.fullmatch(key)
        if match is None:
            raise InstanceError(f"{path}: {shown(gpu)}: {shown(key)}: a key is written ('job type', scale factor)")
        rate = entry.get("null") if isinstance(entry, dict) else None
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= LARGEST or math.isnan(rate):
            where = f"{shown(gpu)}: {shown(key)}: null = {shown(rate)}"
            raise InstanceError(f"{path}: {where}: iterations per second of the whole job, 0 or more")
        found[match[1], int(match[2])] = float(rate)
    return found


IMPORTERS.register(
    ImporterSpec(
        id="gavel",
        title="Gavel trace",
        layout=__doc__,
        source="stanford-futuredata/gavel (Narayanan et al., OSDI 2020), or a trace of that form",
        licence="MIT; Philly arrivals among them: CC BY 4.0 (msr-fiddle/philly-traces)",
        read=read,
        recognise=recognise,
    )
)
