"""Muri's traces (Rivendile/Muri): Philly's arrivals, gangs and durations with models drawn at random.

Header ``job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,
resource_time_0,resource_time_1,resource_time_2,priority``, one job per line. All times are MILLISECONDS.

- num_gpu: GPUs of the gang; jobs with 0 are left out
- submit_time, duration: arrival and run time in ms on V100s
- iterations: steps of the whole gang; iterations × iteration_time = duration
- model_name, batch_size: ``bert`` with 4, …
- interval, resource_time_* (storage, CPU, GPU, network stages) and priority (0 or 1, drawn at random): not
  read
"""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import Column, arrival, check_unique, gang, header_of, read_table, work
from schedgap.instances.importers.trace import MAX_DURATION_S, NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

MS = 1000.0

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    gang("num_gpu"),
    arrival("submit_time"),
    work("iterations"),
    Column("model_name", "text", "the name of a model"),
    Column("duration", "number", "milliseconds, 0 or more", high=MAX_DURATION_S * MS),
    Column("iteration_time", "number", "milliseconds, 0 or more"),
    Column("batch_size", "number", "items per iteration, 0 or more"),
)


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a Muri trace (see :func:`schedgap.instances.importers.import_trace`)."""
    frame = read_table(path, "muri", COLUMNS)
    check_unique(path, frame["job_id"])
    used = frame[frame["num_gpu"] > 0]
    jobs = [
        TraceJob(
            id=row["job_id"],
            submit_s=row["submit_time"] / MS,
            gpus=int(row["num_gpu"]),
            model=row["model_name"],
            iterations=int(row["iterations"]),
            duration_s=row["duration"] / MS,
        )
        for row in used.to_dict("records")
    ]
    return to_instance(Trace("muri", path, jobs, {NO_GPU: len(frame) - len(used)}), options)


IMPORTERS.register(
    ImporterSpec(
        id="muri",
        title="Muri trace",
        layout=__doc__,
        source="Muri (Zhao et al., SIGCOMM 2022), Rivendile/Muri; arrivals from msr-fiddle/philly-traces",
        licence="Apache-2.0; Philly's arrivals: CC BY 4.0",
        read=read,
        recognise=header_of(COLUMNS),
    )
)
