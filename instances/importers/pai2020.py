"""Alibaba's PAI trace of 2020 (cluster-trace-gpu-v2020), its ``pai_task_table``, by its documented header.

Columns ``job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type``, one
task per line. The published CSV has no header line (it is a file of its own); both forms are read.

- a job is all tasks of one job_name; tasks that plan no GPU (parameter servers, evaluators) do not count
- plan_gpu: per cent of a GPU per instance; inst_num: instances (1 where empty). The gang is the sum of
  inst_num × plan_gpu / 100, rounded up to whole GPUs; the work counts with the sum itself
- start_time: the earliest one of a job is its arrival; end_time: the latest one is its end; both in seconds.
  Jobs with a task that has not started or ended are left out
- status: of the task that ends last
- gpu_type: T4, P100, V100, V100M32 or MISC (older cards, read as K80), on which the duration was recorded
- user: the tenant, where the table was joined with ``pai_job_table``; otherwise the family of the model
- the other columns are not read
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.clusters import count
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import (
    Column,
    check_format,
    check_run_times,
    first_line,
    header_of,
    numbers_at,
    parse_lines,
    parse_table,
    read_text,
    shown,
)
from schedgap.instances.importers.trace import MAX_GANG, NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

NAMES = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
COLUMNS = (
    Column("job_name", "text", "the name of the job"),
    Column("inst_num", "whole", f"a whole number of instances, 0 to {MAX_GANG}", high=MAX_GANG, blank=True),
    Column("status", "text", "a status such as Terminated", blank=True),
    Column("start_time", "number", "seconds, 0 or more", blank=True),
    Column("end_time", "number", "seconds, 0 or more", blank=True),
    Column("plan_gpu", "number", "per cent of a GPU, 0 to 10000", high=10_000, blank=True),
    Column("gpu_type", "text", "a GPU type such as V100", blank=True),
    Column("user", "text", "the name of a user", blank=True, optional=True),
)
POSITIONS = {NAMES.split(",").index(c.name): c for c in COLUMNS if not c.optional}

UNFINISHED = "a task of them has no start or no end"


def recognise(line: str) -> int:
    """Return the number of columns of a header, or 10 for a first task of a file without header."""
    return header_of(COLUMNS)(line) or numbers_at(line, width=10, positions=(2, 4, 6, 7))


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a PAI task table (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(path)
    check_format(path, text, "pai2020", f"the columns are {NAMES}, with or without a header")
    if header_of(COLUMNS)(first_line(text)):
        tasks = parse_table(path, text, COLUMNS)
    else:
        tasks = parse_lines(path, text, POSITIONS, len(NAMES.split(",")), ",")
    jobs, left_out = grouped(path, tasks)
    part = sum(job.gpus_used is not None for job in jobs)
    whole = f"gangs of {count(part)} rounded up to whole GPUs; their work counts with the part they ask for"
    tenants = "users" if "user" in tasks else None
    return to_instance(Trace("pai2020", path, jobs, left_out, (whole,) if part else (), tenants), options)


def grouped(path: Path, tasks: pd.DataFrame) -> tuple[list[TraceJob], dict[str, int]]:
    """Return the jobs of a task table, and the numbers of those left out."""
    tasks["gpus"] = tasks["inst_num"].fillna(1) * tasks["plan_gpu"].fillna(0) / 100
    on_gpus = tasks[tasks["gpus"] > 0]
    ended = on_gpus["start_time"].notna() & on_gpus["end_time"].notna()
    unfinished = set(on_gpus.loc[~ended, "job_name"])
    ran = on_gpus[~on_gpus["job_name"].isin(unfinished)]
    check_run_times(path, ran["start_time"], ran["end_time"])
    last = ran.sort_values("end_time", kind="stable").groupby("job_name", sort=False).last()
    table = ran.groupby("job_name", sort=False).agg(
        start=("start_time", "min"), end=("end_time", "max"), gpus=("gpus", "sum"), type=("gpu_type", "first")
    )
    table["status"] = last["status"]
    if "user" in ran:
        table["user"] = last["user"]
    for name, gpus in table.loc[table["gpus"] > MAX_GANG, "gpus"].items():
        raise InstanceError(f"{path}: job {shown(str(name))}: {gpus:g} GPUs: up to {MAX_GANG} for one job")
    left_out = {
        NO_GPU: tasks["job_name"].nunique() - on_gpus["job_name"].nunique(),
        UNFINISHED: len(unfinished),
    }
    rows = zip(table.index, table.to_dict("records"), strict=True)
    return [to_job(str(name), row) for name, row in rows], left_out


def to_job(name: str, row: Mapping[Any, Any]) -> TraceJob:
    """Return the job of a row of the grouped table."""
    gpus = math.ceil(row["gpus"])
    return TraceJob(
        id=name,
        submit_s=row["start"],
        gpus=gpus,
        tenant=row.get("user"),
        duration_s=row["end"] - row["start"],
        gpus_used=row["gpus"] if row["gpus"] < gpus else None,
        gpu_type=row["type"] or None,
        status=row["status"] or None,
    )


IMPORTERS.register(
    ImporterSpec(
        id="pai2020",
        title="Alibaba PAI trace (GPU 2020)",
        layout=__doc__,
        source="Alibaba cluster-trace-gpu-v2020 (Weng et al., NSDI 2022), alibaba/clusterdata",
        licence="research and study (the repository's README); see there",
        read=read,
        recognise=recognise,
    )
)
