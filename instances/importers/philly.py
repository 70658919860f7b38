"""Philly's job log as one flat CSV table, the form in which ElasticFlow ships it.

Header ``timestamp,duration,num_gpus,gpu_time,cluster``, one job per line, NOT sorted by time.

- timestamp: submission, ``2017-10-09 07:01:55`` (read as UTC: only differences count)
- duration: run time in seconds
- num_gpus: GPUs of the gang; jobs with 0 are left out
- gpu_time: duration × num_gpus, not read
- cluster: the virtual cluster, which becomes the tenant

The table has no job ids (a job's id is its place in the file, from 0), no models and no GPU types.
"""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import Column, duration, gang, header_of, read_table
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = (
    Column("timestamp", "date", "a date such as 2017-10-09 07:01:55"),
    duration("duration"),
    gang("num_gpus"),
    Column("cluster", "text", "the name of a virtual cluster"),
)


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a flat Philly table (see :func:`schedgap.instances.importers.import_trace`)."""
    frame = read_table(path, "philly", COLUMNS)
    frame["id"] = [f"job-{i}" for i in range(len(frame))]
    used = frame[frame["num_gpus"] > 0]
    jobs = [
        TraceJob(id=job_id, submit_s=submit, gpus=int(gpus), tenant=cluster, duration_s=seconds)
        for job_id, submit, gpus, cluster, seconds in zip(
            used["id"], used["timestamp"], used["num_gpus"], used["cluster"], used["duration"], strict=True
        )
    ]
    left_out = {NO_GPU: len(frame) - len(used)}
    return to_instance(Trace("philly", path, jobs, left_out, tenants="virtual clusters"), options)


IMPORTERS.register(
    ImporterSpec(
        id="philly",
        title="Philly trace (flat CSV)",
        layout=__doc__,
        source="Microsoft Philly, August to December 2017 (Jeon et al., ATC 2019), msr-fiddle/philly-traces",
        licence="CC BY 4.0",
        read=read,
        recognise=header_of(COLUMNS),
    )
)
