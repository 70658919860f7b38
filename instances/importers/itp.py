"""Microsoft's ITP traces of 2021, as published with ElasticFlow.

Header ``job_id,submission_time,duration,num_gpu``, one job per line, one file per cluster.

- submission_time: seconds since the beginning of the collection
- duration: run time in seconds
- num_gpu: GPUs of the gang; jobs with 0 are left out

The ``elasticflow-traces`` of the same repository have more columns (model, iterations, batch size, deadline),
which were drawn at random by its authors; they are not read.
"""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import Column, arrival, check_unique, duration, gang, header_of, read_table
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    arrival("submission_time"),
    duration("duration"),
    gang("num_gpu"),
)


def read(path: Path, options: Options) -> Instance:
    """Return the instance of an ITP trace (see :func:`schedgap.instances.importers.import_trace`)."""
    frame = read_table(path, "itp", COLUMNS)
    check_unique(path, frame["job_id"])
    used = frame[frame["num_gpu"] > 0]
    jobs = [
        TraceJob(id=job_id, submit_s=submit, gpus=int(gpus), duration_s=seconds)
        for job_id, submit, gpus, seconds in zip(
            used["job_id"], used["submission_time"], used["num_gpu"], used["duration"], strict=True
        )
    ]
    return to_instance(Trace("itp", path, jobs, {NO_GPU: len(frame) - len(used)}), options)


IMPORTERS.register(
    ImporterSpec(
        id="itp",
        title="Microsoft ITP trace",
        layout=__doc__,
        source="Microsoft ITP, 2021 (Gu et al., ElasticFlow, ASPLOS 2023), microsoft/elasticflow-traces",
        licence="MIT",
        read=read,
        recognise=header_of(COLUMNS),
    )
)
