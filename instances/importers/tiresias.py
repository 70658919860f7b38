"""Tiresias' traces (SymbioticLab/Tiresias).

Header ``job_id,num_gpu,submit_time,iterations,model_name,duration,interval``, one job per line.

- num_gpu: GPUs of the gang; jobs with 0 are left out
- submit_time: arrival in seconds
- iterations: steps of the whole gang
- model_name: ``vgg19``, ``resnet50``, …
- duration: run time in seconds on the P100s of its testbed, so that iterations / duration is the rate of the
  gang
- interval: to the next arrival, not read
"""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import (
    Column,
    arrival,
    check_unique,
    duration,
    gang,
    header_of,
    read_table,
    work,
)
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    gang("num_gpu"),
    arrival("submit_time"),
    work("iterations"),
    Column("model_name", "text", "the name of a model"),
    duration("duration"),
    Column("interval", "number", "seconds to the next arrival, 0 or more"),
)


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a Tiresias trace (see :func:`schedgap.instances.importers.import_trace`)."""
    frame = read_table(path, "tiresias", COLUMNS)
    check_unique(path, frame["job_id"])
    used = frame[frame["num_gpu"] > 0]
    jobs = [
        TraceJob(
            id=row["job_id"],
            submit_s=row["submit_time"],
            gpus=int(row["num_gpu"]),
            model=row["model_name"],
            iterations=int(row["iterations"]),
            duration_s=row["duration"],
        )
        for row in used.to_dict("records")
    ]
    left_out = {NO_GPU: len(frame) - len(used)}
    return to_instance(Trace("tiresias", path, jobs, left_out, reference="P100"), options)


IMPORTERS.register(
    ImporterSpec(
        id="tiresias",
        title="Tiresias trace",
        layout=__doc__,
        source="Tiresias (Gu et al., NSDI 2019), SymbioticLab/Tiresias",
        licence="Apache-2.0",
        read=read,
        recognise=header_of(COLUMNS),
    )
)
