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

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from schedgap.instances.canonical import describe, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history, registry
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import NO_GPU, ImportedTrace, Options
from schedgap.instances.importers.rows import FileRows, left_out_notes
from schedgap.instances.importers.table import CONTROL, check_format, check_unique, jobs_of, read_text, seconds
from schedgap.instances.schema import Instance, Name, rule
from schedgap.instances.text import counted

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
ONE = TypeAdapter(LoggedJob)


def recognise(line: str) -> int:
    """Return 1 if the first line begins a JSON list, else 0."""
    return int(line.lstrip().startswith("["))


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a raw Philly log (see :func:`schedgap.instances.importers.import_trace`)."""
    log = parsed(rows)
    jobs, _ = checked(rows, log)
    ran = rows.leave(jobs, {NO_GPU: jobs["gpus"] == 0, NEVER_RAN: jobs["duration_s"].isna()})
    trace = ImportedTrace("philly_json", rows, jobs_of(ran), tenants="virtual clusters", dated=True)
    return to_instance(trace, options)


def parsed(rows: FileRows) -> dict[int, LoggedJob]:
    """Return the valid jobs of a file by their number in it, from 1; the others are bad."""
    text, rows.at = read_text(rows.path, log=True), "record"
    check_format(rows.path, text, "philly_json", "the file is a JSON list of jobs")
    log, problems = {}, {}
    try:
        log = dict(enumerate(LOG.validate_json(text), 1))
    except ValidationError as error:
        if not any(detail["loc"] for detail in error.errors()):
            raise InstanceError(f"{rows.path}: {describe(error, LoggedJob)}") from None
    else:
        rows.begin(list(log), lambda number: json.dumps(json.loads(text)[number - 1]))
        return log
    records = json.loads(text)
    rows.begin(range(1, len(records) + 1), lambda number: json.dumps(records[number - 1]))
    for number, record in enumerate(records, 1):
        try:
            log[number] = ONE.validate_json(json.dumps(record))
        except ValidationError as error:
            problems[number] = describe(error, LoggedJob)
    rows.spoil(problems, "their fields are not those of a job")
    return log


def read_history(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a raw Philly log with its attempts as they ran; a retried job continues."""
    log = parsed(rows)
    jobs, ran = checked(rows, log)
    tried = [sum(len(log[number].attempts) for number in jobs.index), len(ran)]
    ran = ran[ran["gpus"] > 0]
    jobs = rows.leave(jobs, {NEVER_RAN: pd.Series(~jobs.index.isin(ran["job"]), jobs.index)})
    ran = ran[ran["job"].isin(jobs.index)]
    of = [log[number] for number in ran["job"]]
    frame = ran.assign(
        id=[job.jobid for job in of],
        submit=jobs["submit_s"].reindex(ran["job"]).to_numpy(),
        user=[clean_name(job.user) for job in of],
        partition=[job.vc or "" for job in of],
        status=[job.status or "" for job in of],
    ).set_index("job")
    left_out = {"they have no start or no end": tried[0] - tried[1], NO_GPU: tried[1] - len(ran)}
    notes = left_out_notes(left_out, counted(tried[0], "attempt"))
    return history.to_instance(history.Log("philly_json", rows, frame, tuple(notes), wall=True), options)


def checked(rows: FileRows, log: Mapping[int, LoggedJob]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the good jobs, indexed by number, and their attempts (:func:`attempts`); the other jobs are bad."""
    ids = pd.Series([job.jobid for job in log.values()], list(log), name="jobid")
    check_unique(rows, ids)
    sizes = [[sum(len(server.gpus) for server in attempt.detail) for attempt in job.attempts] for job in log.values()]
    gangs = pd.Series([next((n for n in own if n > 0), 0) for own in sizes], list(log), name="GPUs of an attempt")
    rows.refuse(gangs > registry.MAX_GANG, gangs, f"at most {registry.MAX_GANG}")
    submitted = dates(rows, list(log), ["submitted_time"] * len(log), [job.submitted_time for job in log.values()])
    ran = attempts(rows, log)
    jobs = pd.DataFrame(
        {
            "id": ids,
            "submit_s": submitted,
            "gpus": gangs,
            "tenant": [job.vc or "" for job in log.values()],
            "duration_s": ran.groupby("job")["lasted"].sum().reindex(list(log)),
            "status": [job.status for job in log.values()],
        }
    )
    jobs = rows.kept(jobs)
    return jobs, ran[ran["job"].isin(jobs.index)]


def attempts(rows: FileRows, log: Mapping[int, LoggedJob]) -> pd.DataFrame:
    """Return a row for each attempt with a start and an end: number of its job, times in seconds, GPUs, hosts."""
    ran = [
        (number, f"attempts[{a}]", attempt)
        for number, job in log.items()
        for a, attempt in enumerate(job.attempts)
        if attempt.start_time not in NO_DATE and attempt.end_time not in NO_DATE
    ]
    of = [number for number, *_ in ran]
    start = dates(rows, of, [f"{place}.start_time" for _, place, _ in ran], [one.start_time for *_, one in ran])
    end = dates(rows, of, [f"{place}.end_time" for _, place, _ in ran], [one.end_time for *_, one in ran])
    hosts = [{clean_name(s.ip): len(s.gpus) for s in attempt.detail if s.ip and s.gpus} for *_, attempt in ran]
    gpus = [sum(len(server.gpus) for server in attempt.detail) for *_, attempt in ran]
    table = pd.DataFrame({"job": of, "start": start, "end": end, "gpus": gpus, "hosts": hosts})
    table["lasted"] = table["end"] - table["start"]
    wrong = (table["lasted"] < 0) | (table.groupby("job")["lasted"].cumsum() > registry.MAX_DURATION_S)
    told: dict[int, str] = {}
    for at in np.flatnonzero(wrong):
        number, place, attempt = ran[at]
        after = (
            f"after start_time = {shown(attempt.start_time)}; all attempts take {registry.MAX_DURATION_S:g} s at most"
        )
        told.setdefault(number, f"{place}.end_time = {shown(attempt.end_time)}: {after}")
    rows.spoil(told, "an attempt ends before its start, or they ran for too long")
    return table


def dates(rows: FileRows, of: Sequence[int], places: Sequence[str], texts: Sequence[str | None]) -> list[float]:
    """Return dates as seconds since 1970; a job with a wrong one is bad. `places` names the fields in jobs `of`."""
    values = seconds(pd.Series(texts, dtype=object))
    told: dict[int, str] = {}
    for at in np.flatnonzero(~(values >= 0)).tolist():
        told.setdefault(of[at], f"{places[at]} = {shown(texts[at])}: {DATE}")
    rows.spoil(told, f"one of their times is no date ({DATE})")
    return values.tolist()


def clean_name(value: Any) -> str:
    """Return the log's name of a user or server without control characters; ``""`` if it has none."""
    return CONTROL.sub("_", str(value or ""))[:200]
