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

from schedgap.instances.importers.flat import Flat, register
from schedgap.instances.importers.table import Column, arrival, gang, work
from schedgap.instances.importers.trace import MAX_DURATION_S

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


register(
    Flat(
        id="muri",
        title="Muri trace",
        layout=__doc__,
        source="Muri (Zhao et al., SIGCOMM 2022), Rivendile/Muri; arrivals from msr-fiddle/philly-traces",
        licence="Apache-2.0; Philly's arrivals: CC BY 4.0",
        columns=COLUMNS,
        fields={
            "id": "job_id",
            "submit_s": "submit_time",
            "gpus": "num_gpu",
            "model": "model_name",
            "iterations": "iterations",
            "duration_s": "duration",
        },
        per_s=MS,
    )
)
