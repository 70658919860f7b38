"""SenseTime's Helios traces of 2020 (``cluster_log.csv``), by their documented header.

Header ``job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue``, one
Slurm job per line.

- gpu_num: GPUs of the gang; jobs with 0 run on CPUs alone and are left out
- vc: the virtual cluster, which becomes the tenant
- state: COMPLETED, CANCELLED, FAILED, TIMEOUT or NODE_FAIL
- submit_time: arrival, ``2020-06-09 18:41:01``
- duration: end − start in seconds; jobs without one are left out
- the other columns are not read

The GPU type is not in the log; durations count as recorded on V100s.
"""

from __future__ import annotations

from schedgap.instances.importers.flat import FIELDS, SLURM, Flat, register
from schedgap.instances.importers.table import Column

COLUMNS = (*SLURM, Column("vc", "text", "the name of a virtual cluster", blank=True))


register(
    Flat(
        id="helios",
        title="Helios trace",
        layout=__doc__,
        source="SenseTime Helios, 2020 (Hu et al., SC 2021), S-Lab-System-Group/HeliosData",
        licence="academic use (the repository's README); see there",
        columns=COLUMNS,
        fields=FIELDS | {"tenant": "vc"},
        about={"tenants": "virtual clusters"},
    )
)
