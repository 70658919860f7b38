"""Philly's raw ``cluster_job_log``, as documented.

JSON: a list of jobs ``{status, vc, jobid, attempts, submitted_time, user}``; an attempt is ``{start_time,
end_time, detail}``, a detail ``{ip, gpus}`` for every server. Dates are ``2017-10-07 01:12:09`` (read as
UTC); a missing one is null, empty or ``None``.

- GPUs: those on all servers of the first attempt that lists any; jobs without any are left out
- duration: the sum of the attempts' run times; attempts without a start or an end are ignored, and jobs that have only
  such attempts (never scheduled, or still running when the log was taken) are left out
- submitted_time: arrival; vc: the virtual cluster, which becomes the tenant; status: Pass, Killed or Failed
- user and ip are read only with the history (attempts as they ran); the log has no GPU type, and the machine list
  contradicts it for some machines
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from schedgap.instances.canonical import describe, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history, registry
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import NO_GPU, ImportedTrace, Options
from schedgap.instances.importers.table import CONTROL, check_format, jobs_of, read_text, seconds, sifted
from schedgap.instances.schema import Instance, Name, rule

NEVER_RAN = "none of their attempts has both a start and an end"
DATE = "a date such as 2017-10-07 01:12:09"
NO_DATE = {None, "", "None"}


class PhillyEntry(BaseModel):
    """Base of the records of the log: unknown fields are ignored, types are not converted."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Server(PhillyEntry):
    """The GPUs of an attempt on one server."""

    ip: Any = None
    gpus: tuple[str, ...] = rule("a list of GPU names", max_length=registry.MAX_GANG)


class Attempt(PhillyEntry):
    """One execution of a job."""

    start_time: str | None = rule(f"{DATE}, or null", default=None)
    end_time: str | None = rule(f"{DATE}, or null", default=None)
    detail: tuple[Server, ...] = rule("a list of {ip, gpus}", max_length=registry.MAX_GANG, default=())


class LoggedJob(PhillyEntry):
    """One job of the log."""

    jobid: Name = rule("the name of the job")
    vc: Name | None = rule("the name of a virtual cluster, or null", default=None)
    user: Any = None
    status: Name | None = rule("Pass, Killed or Failed, or null", default=None)
    submitted_time: str = rule(DATE)
    attempts: tuple[Attempt, ...] = rule("a list of attempts", max_length=100_000, default=())


LOG = TypeAdapter(tuple[LoggedJob, ...])


def recognise(line: str) -> int:
    """Return 1 if the first line begins a JSON list, else 0."""
    return int(line.lstrip().startswith("["))


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a raw Philly log (see :func:`schedgap.instances.importers.import_trace`)."""
    return to_instance(trace_of(path, parsed(path)), options)


def parsed(path: Path) -> tuple[LoggedJob, ...]:
    """Return the jobs of a file, or raise `InstanceError` with the first wrong field."""
    text = read_text(path)
    check_format(path, text, "philly_json", "the file is a JSON list of jobs")
    try:
        return LOG.validate_json(text)
    except ValidationError as error:
        raise InstanceError(f"{path}: {describe(error, LoggedJob)}") from None


def read_history(path: Path, options: Options) -> Instance:
    """Return the instance of a raw Philly log with its attempts as they ran; a retried job continues."""
    log = parsed(path)
    trace_of(path, log)  # raises on duplicate ids and on gangs that are too large
    ran = attempts(path, log)
    jobs = [log[i] for i in ran["job"]]
    frame = ran.assign(
        id=[job.jobid for job in jobs],
        submit=dates(path, [f"[{i}].submitted_time" for i in ran["job"]], [job.submitted_time for job in jobs]),
        user=[clean_name(job.user) for job in jobs],
        partition=[job.vc or "" for job in jobs],
        status=[job.status or "" for job in jobs],
    ).set_axis(range(1, len(ran) + 1), axis=0)
    frame, without = sifted(frame, {NO_GPU: frame["gpus"] == 0})
    left_out = {NEVER_RAN: sum(len(job.attempts) for job in log) - len(ran)} | without
    return history.to_instance(history.Log("philly_json", path, frame, left_out), options)


def trace_of(path: Path, log: Sequence[LoggedJob]) -> ImportedTrace:
    """Return the trace of the jobs that had GPUs and ran, with counts of the others."""
    first: dict[str, int] = {}
    gangs = []
    for i, job in enumerate(log):
        if first.setdefault(job.jobid, i) != i:
            right = f"already used by [{first[job.jobid]}]; each id occurs once"
            raise InstanceError(f"{path}: [{i}].jobid = {shown(job.jobid)}: {right}")
        sizes = (sum(len(server.gpus) for server in attempt.detail) for attempt in job.attempts)
        gangs.append(next((size for size in sizes if size > 0), 0))
        if gangs[-1] > registry.MAX_GANG:
            raise InstanceError(f"{path}: [{i}].attempts: {gangs[-1]} GPUs: at most {registry.MAX_GANG} for one job")
    submitted = dates(path, [f"[{i}].submitted_time" for i in range(len(log))], [job.submitted_time for job in log])
    frame = pd.DataFrame(
        {
            "id": [job.jobid for job in log],
            "submit_s": submitted,
            "gpus": gangs,
            "tenant": [job.vc or "" for job in log],
            "duration_s": attempts(path, log).groupby("job")["lasted"].sum().reindex(range(len(log))),
            "status": [job.status for job in log],
        }
    )
    jobs, left_out = sifted(frame, {NO_GPU: frame["gpus"] == 0, NEVER_RAN: frame["duration_s"].isna()})
    return ImportedTrace("philly_json", path, jobs_of(jobs), left_out, tenants="virtual clusters", dated=True)


def attempts(path: Path, log: Sequence[LoggedJob]) -> pd.DataFrame:
    """Return a row for each attempt with a start and an end: index of its job, times in seconds, GPUs, hosts."""
    ran = [
        (i, f"[{i}].attempts[{a}]", attempt)
        for i, job in enumerate(log)
        for a, attempt in enumerate(job.attempts)
        if attempt.start_time not in NO_DATE and attempt.end_time not in NO_DATE
    ]
    start = dates(path, [f"{place}.start_time" for _, place, _ in ran], [attempt.start_time for *_, attempt in ran])
    end = dates(path, [f"{place}.end_time" for _, place, _ in ran], [attempt.end_time for *_, attempt in ran])
    hosts = [{clean_name(s.ip): len(s.gpus) for s in attempt.detail if s.ip and s.gpus} for *_, attempt in ran]
    gpus = [sum(len(server.gpus) for server in attempt.detail) for *_, attempt in ran]
    rows = pd.DataFrame({"job": [i for i, *_ in ran], "start": start, "end": end, "gpus": gpus, "hosts": hosts})
    rows["lasted"] = rows["end"] - rows["start"]
    wrong = (rows["lasted"] < 0) | (rows.groupby("job")["lasted"].cumsum() > registry.MAX_DURATION_S)
    if wrong.any():
        _, place, attempt = ran[int(wrong.argmax())]
        right = (
            f"after start_time = {shown(attempt.start_time)}; all attempts take {registry.MAX_DURATION_S:g} s at most"
        )
        raise InstanceError(f"{path}: {place}.end_time = {shown(attempt.end_time)}: {right}")
    return rows


def dates(path: Path, places: Sequence[str], texts: Sequence[str | None]) -> list[float]:
    """Return dates as seconds since 1970, or raise `InstanceError` with the place of the first wrong one."""
    values = seconds(pd.Series(texts, dtype=object)).tolist()
    for place, text, number in zip(places, texts, values, strict=True):
        if math.isnan(number) or number < 0:
            raise InstanceError(f"{path}: {place} = {shown(text)}: {DATE}")
    return values


def clean_name(value: Any) -> str:
    """Return the log's name of a user or server without control characters; ``""`` if it has none."""
    return CONTROL.sub("_", str(value or ""))[:200]
