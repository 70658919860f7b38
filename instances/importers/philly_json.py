"""Philly's raw ``cluster_job_log``, by its documented form.

JSON: a list of jobs ``{status, vc, jobid, attempts, submitted_time, user}``; an attempt is ``{start_time, end_time,
detail}``, a detail ``{ip, gpus}`` for every server. Dates are ``2017-10-07 01:12:09`` (read as UTC).

- GPUs: those of all servers of the first attempt that lists any; jobs without any are left out
- duration: the sum of the attempts' run times; attempts without a start or an end do not count, and jobs without any
  other (never scheduled, or still running when the log was taken) are left out
- submitted_time: arrival; vc: the virtual cluster, which becomes the tenant; status: Pass, Killed or Failed
- user and ip are not read: the log carries no GPU type, and the machine list contradicts it for some machines
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from instances.errors import InstanceError
from instances.importers.filling import to_instance
from instances.importers.registry import IMPORTERS, ImporterSpec, Options
from instances.importers.table import CONTROL, check_format, read_text, seconds, shown
from instances.importers.trace import MAX_DURATION_S, MAX_GANG, NO_GPU, Trace, TraceJob
from instances.schema import Instance

NEVER_RAN = "no attempt of them has both a start and an end"
DATE = "a date such as 2017-10-07 01:12:09"


def recognise(line: str) -> int:
    """Return 1 for a first line that begins a JSON list."""
    return int(line.lstrip().startswith("["))


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a raw Philly log (see :func:`instances.importers.import_trace`)."""
    text = read_text(path)
    check_format(path, text, "philly_json", "the file is a JSON list of jobs")
    entries = checked_list(path, "the log", parsed(path, text))
    ids = [text_of(path, f"[{i}].jobid", field(path, f"[{i}]", entry, "jobid")) for i, entry in enumerate(entries)]
    check_ids(path, ids)
    submitted = dates_of(path, [(f"[{i}].submitted_time", e.get("submitted_time")) for i, e in enumerate(entries)])
    gangs = [gang_of(path, f"[{i}]", entry) for i, entry in enumerate(entries)]
    run_times = durations(path, entries)
    jobs = [
        TraceJob(
            id=ids[i],
            submit_s=submitted[i],
            gpus=gangs[i],
            tenant=text_of(path, f"[{i}].vc", entry.get("vc") or ""),
            duration_s=run_times[i],
            status=text_of(path, f"[{i}].status", entry.get("status") or "") or None,
        )
        for i, entry in enumerate(entries)
        if gangs[i] > 0 and run_times[i] is not None
    ]
    without = sum(gpus == 0 for gpus in gangs)
    left_out = {NO_GPU: without, NEVER_RAN: len(entries) - without - len(jobs)}
    return to_instance(Trace("philly_json", path, jobs, left_out, tenants="virtual clusters"), options)
