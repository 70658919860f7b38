"""Accounting of LSF, ``lsb.acct``: a record per finished job, with numbers and quoted strings separated by blanks.

``"JOB_FINISH" "10.1" 1772442000 386 1501 33554434 8 1772438400 0 0 1772438460 "ann" "gpu" …``. A quote in a string is
doubled; a string may span lines. Lists (hosts, extensions) have their lengths before them, so that places vary.

- start (dispatch) and end (the event's time) are in seconds since 1970; records with a start of 0 never started
- release: the begin time (``bsub -b``) if it is later than the submission, and after the time in which the job was not
  eligible to run; after a requeue, the time of that
- GPUs: ``rusage[ngpus_physical=2.00]`` of the effective resource requirement, else ``num=2`` of ``bsub -gpu``; such a
  number is for each host, or each task with ``/task``. A compound requirement (``4*{…}+8*{…}``) has to say so, or
  that a part is on one host. In a log without any, jobs are counted by slots (CPUs) or hosts (option `resource`).
  Jobs that share a GPU count as holding a whole one. GPU type: ``gmodel=``
- hosts: each once per slot, or ``16*host``; a job that was resized counts as holding what it had at its end
- a job in an array is ``386[4]``; ids start again at 1, so that one with another submission is another job, ``386(2)``
- run limit: requested time; it stands before the third option flags in the files of LSF 9 and 10
- a job that ran for less than the time between its start and its end was suspended
- status: 64 is DONE, 32 is EXIT
- jobs that were forwarded to another cluster, and other events, are left out and counted
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from schedgap.instances.canonical import shown
from schedgap.instances.importers import history
from schedgap.instances.importers.accounting import Holding, attempts, by_resource, check_records, distinct, released
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.rows import REPEATED, FileRows
from schedgap.instances.importers.table import LONGEST, lines_of, read_text
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

EVENT = re.compile(r'"([A-Z][A-Z0-9_]*)" "\d[^"]*" \d')
RUSAGE = re.compile(r"rusage\[([^\]]*)\]")
GPUS = re.compile(r"\bn?gpus(?:_\w+)?\s*=\s*(\d{1,6}(?:\.\d+)?)\s*(?:/\s*(task|host|job))?")
REQUEST = re.compile(r"(?:^|:)num=(\d{1,6})(?:/(task|host))?(?::|$)")
MODEL = re.compile(r"\bgmodel=([\w.+-]+)")
TERM = re.compile(r"(\d{1,6})\*\{([^}]*)\}")
TILE = re.compile(r"\bptile=(\d{1,6})")

WHOLE = re.compile(r"-?\d{1,15}")

PLACES = {"the time": 2, "the job's number": 3, "its submission": 7, "its begin time": 8, "its start": 10}
"""Places of fields before the hosts."""

HOSTS = 22
"""Place of the number of hosts asked for."""

INDEX, EXTENSIONS = 29, 53
"""Places of the index in an array and of the number of extensions, counted from the status."""

RUSAGE_SIZES = (6, 5)
"""Fields of what a job used on a host, as written and as documented."""

SLACK_S = 60
"""Seconds by which the time that a job ran may differ from those between its start and its end."""

STATUS = {"32": "EXIT", "64": "DONE", "192": "DONE", "160": "DONE"}
OTHERS = "they are no records of finished jobs, which lsb.acct has (JOB_RESIZE, …)"
FORWARDED = "they were forwarded to another cluster"
WANTED = 'a record of lsb.acct is "JOB_FINISH" "10.1" and numbers and strings that are separated by blanks'


class FinishedJob(NamedTuple):
    """What a record says of a job; times are in seconds."""

    id: str
    submit: float
    eligible: float
    start: float
    end: float
    user: str
    partition: str
    status: str
    held: Holding
    requested: float
    ran: float
    forwarded: bool


class NewerFields(NamedTuple):
    """What the fields of newer versions say: requirement, run limit, the cluster that it went to, times in seconds."""

    effective: str = ""
    limit: int = 0
    to: str = ""
    ran: int = 0
    ineligible: int = 0
    requeued: int = 0


def recognise(line: str) -> int:
    """Return 11 if a line begins a record of a batch event log, else 0."""
    return 11 * (EVENT.match(line) is not None)


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a log (see :func:`schedgap.instances.importers.import_trace`)."""
    text = read_text(rows.path, log=True)
    check_records(rows.path, text, "lsf", recognise, WANTED)
    return history.to_instance(log_of(rows, text, options), options)


def records(rows: FileRows, text: str) -> pd.Series:
    """Return the records of a file by the number of their first line; one goes on while a string is open."""
    lines = lines_of(text)
    whole: dict[int, str] = {}
    lost: dict[int, str] = {}
    place = 0
    while place < len(lines):
        line, end = lines[place], place + 1
        if EVENT.match(line):
            quotes = line.count('"')
            while quotes % 2 and end < min(len(lines), place + LONGEST) and not EVENT.match(lines[end]):
                quotes += lines[end].count('"')
                end += 1
        elif line.strip() and line[0] != "#":
            lost[place + 1] = WANTED
        if line.strip() and line[0] != "#":
            whole[place + 1] = "\n".join(lines[place:end]).strip()
        place = end
    rows.begin(list(whole), whole.__getitem__)
    found = pd.Series(whole, dtype=object)
    found = rows.leave(found.to_frame("record"), {REPEATED: found.duplicated()})["record"]
    rows.spoil(lost, "they are no records")
    return rows.kept(found.to_frame("record"))["record"]


def log_of(rows: FileRows, text: str, options: Options) -> history.Log:
    """Return the log in the records of a file."""
    notes: list[str] = []
    lines = records(rows, text)
    kind = lines.str.extract(EVENT)[0]
    if resized := int((kind == "JOB_RESIZE").sum()):
        notes.append(f"{counted(resized, 'change')} of the size of a job: it counts as holding what it had at its end")
    lines = rows.leave(lines.to_frame("record"), {OTHERS: kind != "JOB_FINISH"})["record"]
    told: dict[int, FinishedJob] = {}
    wrong: dict[int, str] = {}
    for number, record in zip(lines.index.tolist(), lines, strict=True):
        try:
            told[number] = finished(fields_of(record))
        except (ValueError, IndexError) as error:
            wrong[number] = str(error) if isinstance(error, ValueError) else "the record is cut off"
    rows.spoil(wrong, "they do not have the fields of a finished job")
    frame = pd.DataFrame(list(told.values()), list(told), columns=FinishedJob._fields)
    never = (frame["start"] == 0).astype(bool)
    frame = rows.leave(frame, {FORWARDED: frame["forwarded"].astype(bool), history.NEVER_STARTED: never})
    held, unit = by_resource(frame.pop("held"), frame.index, options.resource, notes)
    away = frame["end"] - frame["start"] - frame["ran"]
    frame = frame.assign(
        **held,
        id=distinct(frame["id"], frame["submit"], notes),
        submit=released(frame["submit"], frame["eligible"], frame["start"], notes),
        suspended=away.where((frame["ran"] > 0) & (away > SLACK_S), 0.0),
    )
    if interrupted := int((frame["suspended"] > 0).sum()):
        where = "interrupted for as long in the middle of the run, since the log does not say when"
        notes.append(f"{counted(interrupted, 'job')} suspended: {where}")
    frame = rows.leave(frame, {NO_GPU.replace("GPUs", f"{unit}s"): frame["gpus"] == 0})
    return history.Log("lsf", rows, attempts(rows, frame, notes), tuple(notes), unit)


def fields_of(record: str) -> list[str]:
    """Return the fields of a record, or raise `ValueError`."""
    try:
        (fields,) = csv.reader([record.replace("\n", ";")], delimiter=" ", skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise ValueError(f"quotes do not match: {error}") from None
    return fields


def finished(fields: Sequence[str]) -> FinishedJob:
    """Return what a record says of a job, or raise `ValueError` or `IndexError` if it does not have that form."""
    event, job, submit, begin, start = (whole(fields, at, name) for name, at in PLACES.items())
    hosts, at = hosts_of(fields)
    index = whole(fields, at + INDEX, "the index in the array")
    request, tail = tail_of(fields, at + EXTENSIONS)
    return FinishedJob(
        id=f"{job}[{index}]" if index else str(job),
        submit=submit,
        eligible=max(begin, submit + max(0, tail.ineligible), tail.requeued),
        start=start,
        end=event,
        user=fields[11],
        partition=fields[12],
        status=STATUS.get(fields[at], f"status {fields[at]}"),
        held=holding(hosts, tail.effective or fields[13], request),
        requested=tail.limit if tail.limit > 0 else math.nan,
        ran=tail.ran,
        forwarded=bool(tail.to),
    )


def whole(fields: Sequence[str], at: int, name: str) -> int:
    """Return a field as a whole number, or raise `ValueError`."""
    if not WHOLE.fullmatch(fields[at]):
        raise ValueError(f"field {at + 1}, {name}, is {shown(fields[at])}: a whole number")
    return int(fields[at])


def hosts_of(fields: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the slots on each host, and the place of the status behind the hosts."""
    at = HOSTS + 1 + whole(fields, HOSTS, "the number of hosts asked for")
    end = at + 1 + whole(fields, at, "the number of hosts")
    slots: dict[str, int] = {}
    for field in fields[at + 1 : end]:
        times, star, host = field.partition("*")
        host, number = (host, int(times)) if star and times.isdecimal() else (field, 1)
        slots[host] = slots.get(host, 0) + number
    whole(fields, end, "the status")
    return slots, end


def tail_of(fields: Sequence[str], at: int) -> tuple[str, NewerFields]:
    """Return the request for GPUs among the extensions that begin at a place, and what the newer fields behind say."""
    if at >= len(fields) or not WHOLE.fullmatch(fields[at]):
        return "", NewerFields()
    rusage = at + 1 + 2 * int(fields[at])
    request = next((text for text in fields[at + 2 : rusage : 2] if REQUEST.search(text)), "")
    if rusage >= len(fields) or not WHOLE.fullmatch(fields[rusage]):
        return request, NewerFields()
    for size in RUSAGE_SIZES:
        limit = rusage + 1 + size * int(fields[rusage])
        effective = limit + 3
        numbers = [limit, limit + 1, limit + 2, effective + 2, effective + 4, effective + 10]
        fits = numbers[-1] < len(fields) and all(WHOLE.fullmatch(fields[n]) for n in numbers)
        if fits and not WHOLE.fullmatch(fields[effective]):
            return request, newer(fields, limit, effective)
    return request, NewerFields()


def newer(fields: Sequence[str], limit: int, effective: int) -> NewerFields:
    """Return what the fields from the run limit on say; LSF 10 has more of them than LSF 9."""
    known = NewerFields(fields[effective], int(fields[limit]), fields[effective + 3], int(fields[effective + 10]))
    try:
        slots = effective + 13 + 2 * whole(fields, effective + 12, "networks") + 6
        ranges = slots + 2 + whole(fields, slots, "slots")
        requeue = ranges + 1 + 3 * whole(fields, ranges, "ranges of indices")
        return known._replace(
            ineligible=whole(fields, ranges - 1, "time not eligible"),
            requeued=whole(fields, requeue, "time of requeue"),
        )
    except (ValueError, IndexError):
        return known


def holding(slots: Mapping[str, int], requirement: str, request: str) -> Holding:
    """Return what a job holds by its slots, resource requirement, and request for GPUs; raise if it is not clear."""
    amounts = {"cpus": float(sum(slots.values())), "nodes": float(len(slots))}
    types = "+".join(sorted(set(MODEL.findall(request) or MODEL.findall(requirement))))
    terms = TERM.findall(requirement)
    if terms:
        gpus = sum(of_term(int(number), term) for number, term in terms)
        return {"gpus": gpus, **amounts}, types, dict.fromkeys(slots, 0)
    asked = [found for part in RUSAGE.findall(requirement) for found in GPUS.findall(part)] or REQUEST.findall(request)
    if not asked:
        return amounts, "", dict.fromkeys(slots, 0)
    number, per = float(asked[0][0]), asked[0][1]
    if per == "job":
        return {"gpus": number, **amounts}, types, dict.fromkeys(slots, 0)
    on = {host: math.ceil(number * (tasks if per == "task" else 1)) for host, tasks in slots.items()}
    return {"gpus": float(sum(on.values())), **amounts}, types, on


def of_term(tasks: int, term: str) -> float:
    """Return the GPUs of a term of a compound requirement for so many tasks, or raise `ValueError`."""
    asked = [found for part in RUSAGE.findall(term) for found in GPUS.findall(part)]
    if not asked or not float(asked[0][0]):
        return 0.0
    number, per = float(asked[0][0]), asked[0][1]
    tile = TILE.search(term)
    if per in ("task", "job"):
        return number * (tasks if per == "task" else 1)
    if tasks == 1 or re.search(r"\bhosts=1\b", term):
        return number
    if tile and int(tile[1]):
        return number * math.ceil(tasks / int(tile[1]))
    raise ValueError(f"{shown(term)}: a compound requirement does not say on how many hosts its GPUs are")
