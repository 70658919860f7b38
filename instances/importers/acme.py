"""Acme traces of Shanghai AI Laboratory (2023: ``trace_seren.csv``, ``trace_kalos.csv``), by their header.

Header
``job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time``;
Kalos has ``mem_per_pod_GB,shared_mem_per_pod,fail_time,stop_time`` as well. One job per line.

- gpu_num: GPUs of the gang; jobs with 0 run on CPUs alone and are left out
- user: the tenant
- state: COMPLETED, CANCELLED, FAILED, TIMEOUT or NODE_FAIL
- submit_time: arrival with its time zone, ``2023-03-01 00:18:22+08:00``
- duration: seconds; jobs without one are left out
- the other columns are not read

Both clusters have A100 GPUs with 80 GB, so durations count as recorded on these.
"""

from __future__ import annotations

from schedgap.instances.importers.flat import FIELDS, SLURM, Flat, register
from schedgap.instances.importers.table import Column

COLUMNS = (
    *SLURM,
    Column("type", "text", "a kind of workload", blank=True),
    Column("gpu_time", "number", "GPU-seconds, 0 or more", blank=True),
)


register(
    Flat(
        id="acme",
        title="Acme trace",
        layout=__doc__,
        source="Shanghai AI Laboratory, March to August 2023 (Hu et al., NSDI 2024), InternLM/AcmeTrace",
        licence="academic use (the repository's README); see there",
        columns=COLUMNS,
        fields=FIELDS | {"tenant": "user"},
        about={"tenants": "users", "reference": "A100-80GB"},
    )
)
