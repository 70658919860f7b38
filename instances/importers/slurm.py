"""What the logs of Helios and Acme share: Slurm jobs with a submission date, a duration and a state."""

from __future__ import annotations

from pathlib import Path

from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import Options
from schedgap.instances.importers.table import Column, check_unique, duration, gang, read_table
from schedgap.instances.importers.trace import NO_GPU, REFERENCE, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = (
    Column("job_id", "text", "the name of the job"),
    Column("user", "text", "the name of a user", blank=True),
    gang("gpu_num"),
    Column("state", "text", "a status such as COMPLETED", blank=True),
    Column("submit_time", "date", "a date such as 2020-06-09 18:41:01"),
    duration("duration", blank=True),
)

NEVER_RAN = "they have no duration"


def read_slurm(
    path: Path,
    options: Options,
    format: str,
    columns: tuple[Column, ...],
    tenant: str,
    tenants: str,
    reference: str = REFERENCE,
) -> Instance:
    """Return the instance of a Slurm log.

    Parameters
    ----------
    path, options
        See :func:`schedgap.instances.importers.import_trace`.
    format
        Id of the importer.
    columns
        Columns of the format, `COLUMNS` among them.
    tenant
        Column that names the tenant.
    tenants
        What the tenants are.
    reference
        GPU type of the cluster that wrote the log.
    """
    frame = read_table(path, format, columns)
    check_unique(path, frame["job_id"])
    on_gpus = frame[frame["gpu_num"] > 0]
    ran = on_gpus[on_gpus["duration"].notna()]
    jobs = [
        TraceJob(
            id=row["job_id"],
            submit_s=row["submit_time"],
            gpus=int(row["gpu_num"]),
            tenant=row[tenant],
            duration_s=row["duration"],
            status=row["state"] or None,
        )
        for row in ran.to_dict("records")
    ]
    left_out = {NO_GPU: len(frame) - len(on_gpus), NEVER_RAN: len(on_gpus) - len(ran)}
    return to_instance(Trace(format, path, jobs, left_out, tenants=tenants, reference=reference), options)
