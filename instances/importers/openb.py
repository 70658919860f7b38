"""Alibaba's openb trace of 2023 (cluster-trace-gpu-v2023): a list of pods, and a list of servers.

Pods: header ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,
scheduled_time``, one pod per line, times in seconds.

- num_gpu: whole GPUs; pods with 0 run on CPUs alone and are left out
- gpu_milli: thousandths of a GPU that a pod with one GPU uses. It occupies a whole GPU here (jobs do not
  share GPUs), and its work counts with its share: 100 s on 460 thousandths are 46 s of a GPU
- gpu_spec: GPU types that the pod may use, ``V100M16|V100M32``; empty for all (as in the default list)
- qos: service class (LS latency-sensitive, BE best-effort, Burstable, Guaranteed), which becomes the tenant
- pod_phase: the status. ``Pending`` pods were deleted before they were scheduled: they never ran and are left
  out. ``Running`` pods carry a deletion time as the others do
- creation_time: arrival; the run time is deletion_time − scheduled_time
- cpu_milli, memory_mib: not read

Servers (option `nodes`): header ``sn,cpu_milli,memory_mib,gpu,model``; they are the cluster. ``V100M16`` and
``V100M32`` are V100s with 16 and 32 GB. G1, G2 and G3 are types that Alibaba does not disclose: they count as
fast as a V100, so that no guess makes one of them better or worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap.instances.importers.clusters import count
from schedgap.instances.importers.filling import to_instance
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.table import (
    Column,
    arrival,
    check_run_times,
    check_unique,
    gang,
    header_of,
    read_table,
)
from schedgap.instances.importers.trace import NO_GPU, Trace, TraceJob
from schedgap.instances.schema import Instance

COLUMNS = (
    Column("name", "text", "the name of the pod"),
    gang("num_gpu"),
    Column("gpu_milli", "number", "thousandths of a GPU, 0 to 1000", high=1000),
    Column("gpu_spec", "text", "GPU types such as V100M16|V100M32, or empty", blank=True),
    Column("qos", "text", "a service class such as LS or BE", blank=True),
    Column("pod_phase", "text", "Running, Succeeded, Failed or Pending"),
    arrival("creation_time"),
    Column("deletion_time", "number", "seconds, 0 or more", blank=True),
    Column("scheduled_time", "number", "seconds, or empty for pods that never ran", blank=True),
)

NEVER_RAN = "they were never scheduled (Pending)"
NEVER_ENDED = "they have no deletion time"


def read(path: Path, options: Options) -> Instance:
    """Return the instance of a list of openb pods (see :func:`schedgap.instances.importers.import_trace`)."""
    frame = read_table(path, "openb", COLUMNS)
    check_unique(path, frame["name"])
    on_gpus = frame[frame["num_gpu"] > 0]
    scheduled = on_gpus[on_gpus["scheduled_time"].notna()]
    ran = scheduled[scheduled["deletion_time"].notna()]
    check_run_times(path, ran["scheduled_time"], ran["deletion_time"])
    left_out = {
        NO_GPU: len(frame) - len(on_gpus),
        NEVER_RAN: len(on_gpus) - len(scheduled),
        NEVER_ENDED: len(scheduled) - len(ran),
    }
    sharing = int(((ran["num_gpu"] == 1) & (ran["gpu_milli"] < 1000)).sum())
    part = f"{count(sharing)} use a part of a GPU: they get a whole one, and their work counts with the part"
    jobs = [to_job(row) for row in ran.to_dict("records")]
    trace = Trace("openb", path, jobs, left_out, (part,) if sharing else (), tenants="service classes")
    return to_instance(trace, options)


def to_job(row: Mapping[Any, Any]) -> TraceJob:
    """Return the job of a pod that ran."""
    gpus, milli = int(row["num_gpu"]), row["gpu_milli"]
    return TraceJob(
        id=row["name"],
        submit_s=row["creation_time"],
        gpus=gpus,
        tenant=row["qos"],
        duration_s=row["deletion_time"] - row["scheduled_time"],
        gpus_used=milli / 1000 if gpus == 1 else None,
        allowed=tuple(name for name in row["gpu_spec"].split("|") if name),
        status=row["pod_phase"],
    )


IMPORTERS.register(
    ImporterSpec(
        id="openb",
        title="Alibaba openb trace (GPU 2023)",
        layout=__doc__,
        source="Alibaba cluster-trace-gpu-v2023 (Weng et al., ATC 2023), alibaba/clusterdata",
        licence="Apache-2.0 (the same files in hkust-adsl/kubernetes-scheduler-simulator)",
        read=read,
        recognise=header_of(COLUMNS),
    )
)
