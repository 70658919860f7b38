"""Registration of all formats from ``formats.toml``, which describes CSV tables, with extra code for some of them."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedgap.instances.canonical import one_line, read_bytes, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history, kubernetes, lsf, mapped, pbs, philly_json, sacct, swf
from schedgap.instances.importers.clusters import chip
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.mapped import read_as
from schedgap.instances.importers.registry import (
    IMPORTERS,
    MAX_GANG,
    NO_GPU,
    ImportedTrace,
    ImporterSpec,
    Options,
)
from schedgap.instances.importers.rows import FileRows, left_out_notes
from schedgap.instances.importers.table import (
    CONTROL,
    KINDS,
    LARGEST,
    NUMBER,
    Jobs,
    TraceColumn,
    check_format,
    check_run_times,
    check_unique,
    first_line,
    jobs_of,
    parse,
    parse_headed,
    read_text,
    sifted,
)
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted


@dataclass(frozen=True)
class TableLayout:
    """Layout of a table, in addition to its :class:`~schedgap.instances.importers.registry.ImporterSpec`.

    Attributes
    ----------
    header
        Whether the table may have a header.
    places, numbers
        For a table without a header: position of each column (-1 if absent), by the number of fields in a line, and the
        fields that are numbers in the first line.
    form
        Description of the first line for messages; by default, the columns.
    per_s
        Units of time per second, for arrivals and durations.
    about
        Further fields of :class:`~schedgap.instances.importers.registry.ImportedTrace`.
    history
        Map of columns that record how jobs ran (:mod:`~schedgap.instances.importers.mapped`); empty if there are none.
    """

    id: str
    columns: Sequence[TraceColumn]
    header: bool = True
    delimiter: str = ","
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    numbers: Sequence[int] = ()
    form: str = ""
    per_s: float = 1.0
    about: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, str] = field(default_factory=dict)

    def recognise(self, line: str) -> int:
        """Return how many columns of the header `line` has, or how many fields if it is a first line without header."""
        return self.header_in(line) or self.fields_in(line)

    def header_in(self, line: str) -> int:
        """Return how many columns of the header `line` has; 0 if a required column is missing."""
        names = {name.strip() for name in line.split(",")}
        complete = self.header and all(c.name in names or c.optional for c in self.columns)
        return sum(c.name in names for c in self.columns) if complete else 0

    def fields_in(self, line: str) -> int:
        """Return the number of fields of a first line without header; 0 if it does not have the form of this table."""
        fields = line.split(self.delimiter)
        fits = str(len(fields)) in self.places and all(NUMBER.fullmatch(fields[i].strip()) for i in self.numbers)
        return len(fields) if fits else 0

    def read(self, rows: FileRows, options: Options) -> Instance:
        """Return the instance of a trace (see :func:`schedgap.instances.importers.import_trace`)."""
        text = read_text(rows.path)
        check_format(rows.path, text, self.id, self.form or self.lacking(first_line(text)))
        frame = self.table(rows, text)
        named = {c.field: c.name for c in self.columns if c.field and c.name in frame}
        if "id" in named:
            check_unique(rows, frame[named["id"]])
            frame = rows.kept(frame)
        frame = frame.assign(id=rows.positions(frame)).assign(**{key: frame[name] for key, name in named.items()})
        for key in ("submit_s", "duration_s"):
            if key in frame:
                frame[key] /= self.per_s
        jobs, left_out, about = MORE.get(self.id, plain)(rows, frame, options)
        about = {"dated": any(c.field == "submit_s" and c.kind == "date" for c in self.columns), **self.about, **about}
        return to_instance(ImportedTrace(self.id, rows, jobs_of(jobs), left_out, **about), options)

    def table(self, rows: FileRows, text: str) -> pd.DataFrame:
        """Return the columns of a table, with or without a header; rows of formats with ids occur once."""
        first = first_line(text)
        width = 0 if self.header_in(first) else self.fields_in(first)
        unique = any(c.field == "id" or c.name == "job_name" for c in self.columns)
        if not width:
            return parse_headed(rows, text, self.columns, unique=unique)
        places = {at: c for at, c in zip(self.places.get(str(width), ()), self.columns, strict=False) if at >= 0}
        return parse(rows, text, places, width, self.delimiter, unique=unique)

    def lacking(self, line: str) -> str:
        """Return the end of a message: the columns that `line` lacks, and all required columns."""
        required = [c.name for c in self.columns if not c.optional]
        names = {name.strip() for name in line.split(",")}
        missing = ", ".join(name for name in required if name not in names)
        return f"{f'no column {missing}; ' if missing else ''}its columns are {', '.join(required)}"


def plain(rows: FileRows, frame: pd.DataFrame, options: Options) -> Jobs:
    """Return a job for each line; a job without an id is named by its position in the file."""
    reasons = {NO_GPU: frame["gpus"] == 0}
    if "duration_s" in frame:
        reasons["they have no duration"] = frame["duration_s"].isna()
    return rows.leave(frame, reasons), {}, {}


def acme(rows: FileRows, frame: pd.DataFrame, options: Options) -> Jobs:
    """Return a job for each line, which lasts from its start to its end where the line has both."""
    lasted = frame["end_time"] - frame["start_time"]
    lasted = lasted.where(lasted >= 0, frame["duration_s"])
    jobs, left_out, _ = plain(rows, frame.assign(duration_s=lasted, recorded=frame["duration_s"]), options)
    other = int(((jobs["duration_s"] - jobs["recorded"]).abs() > 1).sum())
    note = (
        f"the recorded duration of {counted(other, 'job')} is not end − start (Kalos' includes waiting), which counts"
    )
    return jobs, left_out, {"notes": [note] if other else []}


def openb(rows: FileRows, pods: pd.DataFrame, options: Options) -> Jobs:
    """Return the pods that ran, with the fraction of a GPU that they use."""
    start, end = pods["scheduled_time"], pods["deletion_time"]
    check_run_times(rows, start[pods["gpus"] > 0], end[pods["gpus"] > 0])
    pods = pods.assign(
        duration_s=end - start,
        gpus_used=pods["gpu_milli"].where(pods["gpus"] == 1) / 1000,
        allowed=pods["gpu_spec"].map(lambda spec: tuple(filter(None, spec.split("|")))),
    )
    reasons = {
        NO_GPU: pods["gpus"] == 0,
        "they were never scheduled (Pending)": start.isna(),
        "they have no deletion time": end.isna(),
    }
    ran = rows.leave(pods, reasons)
    sharing = int((ran["gpus_used"] < 1).sum())
    note = f"{counted(sharing, 'job')} use a part of a GPU: they get a whole one, and their work is that of the part"
    return ran, {}, {"notes": [note] if sharing else []}


def pai2020(rows: FileRows, tasks: pd.DataFrame, options: Options) -> Jobs:
    """Return the jobs made up by tasks on GPUs; a job ends with its last task and has that task's status and user."""
    tasks["used"] = tasks["inst_num"].fillna(1) * tasks["plan_gpu"].fillna(0) / 100
    on_gpus = tasks[tasks["used"] > 0]
    check_run_times(rows, on_gpus["start_time"], on_gpus["end_time"])
    needed = on_gpus.groupby("job_name")["used"].transform("sum")
    rows.refuse(needed > MAX_GANG, needed.rename("GPUs of the job"), f"at most {MAX_GANG}")
    tasks, on_gpus = rows.kept(tasks), rows.kept(on_gpus)
    endless = on_gpus["start_time"].isna() | on_gpus["end_time"].isna()
    unfinished = set(on_gpus.loc[endless, "job_name"])
    spoiled = {row.content.partition(",")[0].strip() for row in rows.bad} & set(tasks["job_name"])
    ran = on_gpus[~on_gpus["job_name"].isin(unfinished | spoiled)]
    grouped = ran.groupby("job_name", sort=False)
    jobs = grouped.agg(submit_s=("start_time", "min"), end=("end_time", "max"), used=("used", "sum"))
    jobs = jobs.join(grouped["gpu_type"].first())
    last = ran.sort_values("end_time", kind="stable").groupby("job_name", sort=False).last()
    jobs = jobs.join(last[["status"]]).join(last[["user"]].set_axis(["tenant"], axis=1) if "user" in last else last[[]])
    gpus = np.ceil(jobs["used"])
    part = jobs["used"].where(jobs["used"] < gpus)
    jobs = jobs.assign(id=jobs.index, gpus=gpus, gpus_used=part, duration_s=jobs["end"] - jobs["submit_s"])
    left_out = {
        NO_GPU: len(set(tasks["job_name"]) - set(on_gpus["job_name"]) - spoiled),
        "one of their tasks has no start or no end": len(unfinished),
        "one of their tasks is a bad row": len(spoiled - unfinished),
    }
    note = (
        f"gangs of {counted(part.count(), 'job')} rounded up to whole GPUs; their work is that of the part they ask for"
    )
    about = {"notes": [note] if part.any() else [], "tenants": "users" if "user" in tasks else None}
    return jobs, left_out, about


KEY = re.compile(r"\('([^']{1,200})', ([1-9]\d{0,5})\)")
SPREAD = "_unconsolidated"
MODES = ("static", "accordion", "gns")
"""Modes of Shockwave's jobs: how their batch size changes."""

Table = Mapping[str, Mapping[tuple[str, int], float]]
"""Gavel's throughputs: GPU type → (job type, scale factor) → iterations/s of the whole job running alone."""


def gavel(rows: FileRows, frame: pd.DataFrame, options: Options) -> Jobs:
    """Return the jobs of a trace, with their rates from the throughput table of the options, if any."""
    table = read_table(Path(options.throughputs)) if options.throughputs else {}
    keys = pd.Series(list(zip(frame["model"], frame["gpus"], strict=True)), index=frame.index)
    by_key = {(kind, gpus): rates(kind, int(gpus), table) for kind, gpus in set(keys)}
    jobs = of_job_types(rows, frame.assign(rates=keys.map(by_key.__getitem__)))
    if not options.throughputs:
        return jobs, {}, {}
    name = Path(options.throughputs).name
    recorded = [key for key, rates in zip(keys.reindex(jobs.index), jobs["rates"], strict=True) if rates]
    notes = [f"rates of {counted(len(recorded), 'job')} from {name}: whole job's / scale factor"]
    if inexact := sum(not all(key in whole for whole in table.values()) for key in recorded):
        n = counted(inexact, "job")
        notes.append(f"{name} lacks the scale factor of {n}: rate of one GPU as at its largest smaller scale factor")
    return jobs, {}, {"notes": notes}


def of_job_types(rows: FileRows, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that have GPUs, whose tenants are their job types without the batch size.

    A negative SLO stands for none.
    """
    frame = frame.assign(tenant=frame["model"].str.split(" (", regex=False).str[0])
    if "slo" in frame:
        frame["slo"] = frame["slo"].where(frame["slo"] > 0)
    return rows.leave(frame, {NO_GPU: frame["gpus"] == 0})


def shockwave(rows: FileRows, frame: pd.DataFrame, options: Options) -> Jobs:
    """Return the jobs of a trace, whose batch sizes stay what they are at the beginning."""
    rows.refuse(~frame["mode"].isin(MODES), frame["mode"], "static, accordion or gns")
    jobs = of_job_types(rows, rows.kept(frame))
    changing = int((jobs["mode"] != MODES[0]).sum())
    note = f"the batch size of {counted(changing, 'job')} stays what it is at the beginning; in the trace it changes"
    return jobs, {}, {"notes": [note] if changing else []}


def rates(kind: str, gpus: int, table: Table) -> dict[str, float]:
    """Return iterations/s of one GPU of each type, from the largest scale factor in the table up to `gpus`."""
    per_gpu = {}
    for gpu, whole in table.items():
        scale = max((s for k, s in whole if k == kind and s <= gpus), default=None)
        if scale is not None:
            per_gpu[gpu] = whole[kind, scale] / scale
    return per_gpu if any(per_gpu.values()) else {}


def read_table(path: Path) -> Table:
    """Return Gavel's throughput table from JSON, or raise `InstanceError` if it does not have that form."""
    try:
        data = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{path}: not valid JSON: {one_line(error)}") from error
    if not isinstance(data, dict) or not data:
        raise InstanceError(f"{path}: a throughput table is an object: GPU type → job type → rates")
    invalid = next((gpu for gpu in data if not 0 < len(gpu) <= 200 or CONTROL.search(gpu)), None)
    if invalid is not None:
        raise InstanceError(f"{path}: {shown(invalid)}: not the name of a GPU type such as v100")
    table = {chip(g): whole_rates(path, g, kinds) for g, kinds in data.items() if not g.endswith(SPREAD)}
    if not table:
        raise InstanceError(f"{path}: has only rates of jobs spread over servers (*{SPREAD}); add those of v100, …")
    return table


def whole_rates(path: Path, gpu: str, kinds: object) -> dict[tuple[str, int], float]:
    """Return the rates of all job types on one GPU type."""
    if not isinstance(kinds, dict) or not kinds:
        raise InstanceError(f"{path}: {shown(gpu)}: must be an object: ('job type', scale factor) → rates")
    rates = {}
    for key, entry in kinds.items():
        match = KEY.fullmatch(key)
        if match is None:
            raise InstanceError(f"{path}: {shown(gpu)}: {shown(key)}: a key is written ('job type', scale factor)")
        rate = entry.get("null") if isinstance(entry, dict) else None
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= LARGEST or math.isnan(rate):
            where = f"{shown(gpu)}: {shown(key)}: null = {shown(rate)}"
            raise InstanceError(f"{path}: {where}: iterations per second of the whole job, 0 or more")
        rates[match[1], int(match[2])] = float(rate)
    return rates


PAI_JOBS = TableLayout(
    "pai2020",
    (
        TraceColumn("job_name", "text", "the name of the job"),
        TraceColumn("user", "text", "the name of a user", blank=True),
        TraceColumn("start_time", "number", "seconds, 0 or more", blank=True),
    ),
    places={"6": (0, 2, 4)},
    numbers=(4,),
)
"""PAI's ``pai_job_table``: ``job_name,inst_id,user,status,start_time,end_time``."""

SHANGHAI_S = 8 * 3600
"""Seconds by which local time in Shanghai is ahead of UTC."""


def pai2020_ran(table: TableLayout, rows: FileRows, options: Options) -> Instance:
    """Return the instance of a task table with its history; the job table in the same folder has the submissions."""
    path = rows.path
    text, job_path = read_text(path, log=True), path.with_name(path.name.replace("task", "job"))
    check_format(path, text, table.id, table.form)
    if job_path == path or not job_path.exists():
        missing = "the job table (pai_job_table.csv for pai_task_table.csv) is not in the same folder"
        raise InstanceError(f"{path}: {missing}; it says when jobs were submitted")
    beside = rows.also(job_path)
    tasks, submitted = table.table(rows, text), PAI_JOBS.table(beside, read_text(job_path, log=True))
    check_unique(beside, submitted["job_name"])
    submitted = beside.kept(submitted)
    jobs, left_out, _ = pai2020(rows, tasks, options)
    submissions = submitted.set_index("job_name").reindex(jobs.index)
    lines = pd.Series(tasks.index, tasks["job_name"]).groupby(level=0).min()
    frame = pd.DataFrame(
        {
            "id": jobs.index.astype(str),
            "submit": submissions["start_time"] + SHANGHAI_S,
            "start": jobs["submit_s"] + SHANGHAI_S,
            "end": jobs["end"] + SHANGHAI_S,
            "gpus": jobs["gpus"],
            "type": jobs["gpu_type"],
            "status": jobs["status"],
            "user": submissions["user"].fillna(""),
        }
    ).set_axis(lines.reindex(jobs.index), axis=0)
    reason = f"{job_path.name} does not say when they were submitted"
    frame, unknown = sifted(frame, {reason: frame["submit"].isna()})
    shared = int(jobs["gpus_used"].count())
    notes = ["weekdays and times of day are those of Shanghai; dates are not the real ones"]
    if shared:
        notes.append(f"gangs of {counted(shared, 'job')} rounded up to whole GPUs, which no other job shares")
    total = counted(len(frame) + sum(left_out.values()) + sum(unknown.values()), "job")
    notes = [*left_out_notes(left_out | unknown, total), *notes]
    return history.to_instance(history.Log(table.id, rows, frame, tuple(notes), wall=True), options)


MORE: Mapping[str, Callable[[FileRows, pd.DataFrame, Options], Jobs]] = {
    "acme": acme,
    "gavel": gavel,
    "openb": openb,
    "pai2020": pai2020,
    "shockwave": shockwave,
}
"""Functions that turn the lines of a table into jobs, for formats where :func:`plain` does not suffice."""


READERS: Mapping[str, Any] = {
    module.__name__.rpartition(".")[2]: module for module in (kubernetes, lsf, mapped, pbs, philly_json, sacct, swf)
}
"""Modules that read formats which are no tables, by the name that ``reader`` gives."""


def spec_of(id: str, facts: dict[str, Any]) -> ImporterSpec:
    """Return the spec of a format: a table, or the functions and docstring of the module that ``reader`` names."""
    words = {name: facts.pop(name, "") for name in ("title", "layout", "source", "licence")}
    if "reader" in facts:
        reader = READERS[facts["reader"]]
        recognise = getattr(reader, "recognise", lambda line: 0)
        words["layout"] = reader.__doc__
        return ImporterSpec(
            id, read=reader.read, recognise=recognise, history=getattr(reader, facts["history"]), **words
        )
    columns = [TraceColumn(name, **{**of, **KINDS.get(of["kind"], {})}) for name, of in facts.pop("columns").items()]
    table = TableLayout(id, columns, **facts)
    ran = partial(read_as, id, table.history) if table.history else None
    ran = partial(pai2020_ran, table) if id == PAI_JOBS.id else ran
    return ImporterSpec(id, read=table.read, recognise=table.recognise, history=ran, **words)


for _id, _facts in tomllib.loads(resources.files(__package__).joinpath("formats.toml").read_text("utf-8")).items():
    IMPORTERS.register(spec_of(_id, _facts))
