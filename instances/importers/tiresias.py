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

from schedgap.instances.importers.flat import Flat, register
from schedgap.instances.importers.table import (
    Column,
    arrival,
    duration,
    gang,
    work,
)

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    gang("num_gpu"),
    arrival("submit_time"),
    work("iterations"),
    Column("model_name", "text", "the name of a model"),
    duration("duration"),
    Column("interval", "number", "seconds to the next arrival, 0 or more"),
)


register(
    Flat(
        id="tiresias",
        title="Tiresias trace",
        layout=__doc__,
        source="Tiresias (Gu et al., NSDI 2019), SymbioticLab/Tiresias",
        licence="Apache-2.0",
        columns=COLUMNS,
        fields={
            "id": "job_id",
            "submit_s": "submit_time",
            "gpus": "num_gpu",
            "model": "model_name",
            "iterations": "iterations",
            "duration_s": "duration",
        },
        about={"reference": "P100"},
    )
)
