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

from schedgap.instances.importers.flat import Flat, register
from schedgap.instances.importers.table import Column, duration, gang

COLUMNS = (
    Column("timestamp", "date", "a date such as 2017-10-09 07:01:55"),
    duration("duration"),
    gang("num_gpus"),
    Column("cluster", "text", "the name of a virtual cluster"),
)


register(
    Flat(
        id="philly",
        title="Philly trace (flat CSV)",
        layout=__doc__,
        source="Microsoft Philly, August to December 2017 (Jeon et al., ATC 2019), msr-fiddle/philly-traces",
        licence="CC BY 4.0",
        columns=COLUMNS,
        fields={"submit_s": "timestamp", "gpus": "num_gpus", "tenant": "cluster", "duration_s": "duration"},
        about={"tenants": "virtual clusters"},
    )
)
