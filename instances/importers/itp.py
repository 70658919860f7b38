"""Microsoft's ITP traces of 2021, as published with ElasticFlow.

Header ``job_id,submission_time,duration,num_gpu``, one job per line, one file per cluster.

- submission_time: seconds since the beginning of the collection
- duration: run time in seconds
- num_gpu: GPUs of the gang; jobs with 0 are left out

The ``elasticflow-traces`` of the same repository have more columns (model, iterations, batch size, deadline),
which were drawn at random by its authors; they are not read.
"""

from __future__ import annotations

from schedgap.instances.importers.flat import Flat, register
from schedgap.instances.importers.table import Column, arrival, duration, gang

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    arrival("submission_time"),
    duration("duration"),
    gang("num_gpu"),
)


register(
    Flat(
        id="itp",
        title="Microsoft ITP trace",
        layout=__doc__,
        source="Microsoft ITP, 2021 (Gu et al., ElasticFlow, ASPLOS 2023), microsoft/elasticflow-traces",
        licence="MIT",
        columns=COLUMNS,
        fields={"id": "job_id", "submit_s": "submission_time", "gpus": "num_gpu", "duration_s": "duration"},
    )
)
