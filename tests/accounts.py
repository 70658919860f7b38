"""Builders of made-up records of PBS, LSF and Kubernetes; times are minutes after 2026-03-02 08:00 UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
T0 = int(BEGIN.timestamp())

Object = dict[str, Any]


def epoch(minutes: float) -> int:
    """Return seconds since 1970."""
    return T0 + round(60 * minutes)


# PBS

PLACED = (
    "exec_host=n1/0*8+n2/0*8 exec_vnode=(n1:ncpus=8:ngpus=2)+(n2:ncpus=8:ngpus=2) Resource_List.ncpus=16 "
    "Resource_List.ngpus=4 Resource_List.nodect=2 Resource_List.select=2:ncpus=8:ngpus=2 "
    "Resource_List.walltime=02:00:00"
)
"""Four GPUs on two servers, as PBS Professional writes it."""


def pbs(at: float, kind: str, job: str, text: str = "", hours: int = 1) -> str:
    """Return a record whose line has the local time of a zone so many hours ahead of UTC."""
    return f"{BEGIN + timedelta(minutes=at, hours=hours):%m/%d/%Y %H:%M:%S};{kind};{job};{text}"


def times(submit: float, start: float | None = None, eligible: float | None = None) -> str:
    """Return who submitted a job, where and when, and its start."""
    at = f"ctime={epoch(submit)} qtime={epoch(submit)} etime={epoch(submit if eligible is None else eligible)}"
    who = 'user=ann group=g account="one start=5 two" project=_p jobname=x queue=gpu'
    return f"{who} {at}" + ("" if start is None else f" start={epoch(start)}")


def started(
    job: str, submit: float, start: float, held: str = PLACED, *, eligible: float | None = None, hours: int = 1
) -> str:
    """Return the record of a start."""
    return pbs(start, "S", job, f"{times(submit, start, eligible)} {held}", hours)


def ended(
    job: str,
    submit: float,
    start: float,
    end: float,
    held: str = PLACED,
    *,
    kind: str = "E",
    exit: int = 0,
    eligible: float | None = None,
    hours: int = 1,
) -> str:
    """Return the record of an end, or of another kind with the same fields."""
    text = f"{times(submit, start, eligible)} {held} session=1 end={epoch(end)} Exit_status={exit}"
    return pbs(end, kind, job, text, hours)


# LSF


def lsf(
    job: int,
    submit: float,
    start: float | None,
    end: float,
    *,
    needs: str = "select[type == any] rusage[ngpus_physical=4.00/host] ",
    asks: str = "",
    hosts: Sequence[str] = ("n1",),
    index: int = 0,
    limit_s: int = -1,
    ran_s: int | None = None,
    begin: float | None = None,
    requeued: float | None = None,
    ineligible_s: int = -1,
    to: str = "",
    command: str = "train",
    extensions: Sequence[tuple[int, str]] = ((1032, "0"),),
    usage: int = 0,
    asked: Sequence[str] = (),
    status: int = 64,
    short: bool = False,
) -> str:
    """Return a record of a finished job, in an old version if it is `short`.

    `usage` is the number of fields about each host that the job used, 0 for none.
    """
    began = 0 if start is None else epoch(start)
    at = 0 if begin is None else epoch(begin)
    ran = (epoch(end) - began if start is not None else 0) if ran_s is None else ran_s
    names, wanted = ("".join(f'"{host}" ' for host in some) for some in (hosts, asked))
    record = f'"JOB_FINISH" "10.1" {epoch(end)} {job} 1501 33554434 1 {epoch(submit)} {at} 0 {began} "ann" "gpu" '
    record += f'"{asks}" "" "" "sub" "/home" "" "" "" "{epoch(submit)}.{job}" {len(asked)} {wanted}{len(hosts)} {names}'
    record += (
        f'{status} 100.0 "" "{command}" 0.005 0.006 3748 0 -1 0 0 436 4 0 928 0 -1 0 0 0 19 2 -1 "" "default" 0 1 '
    )
    record += f'"" "" {index} 2048 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 5136 "" {began} "" "" '
    if short:
        return record.strip()
    record += f"{len(extensions)} " + "".join(f'{key} "{value}" ' for key, value in extensions)
    used = [f"{host} 1306 0 128 24 " + "0 " * (usage - 5) for host in hosts if usage]
    record += f"{len(used)} {''.join(used)}"
    record += f'{limit_s} 4194304 1024 "{needs}" "" -1 "{to}" -1 0 "" 0 0 "" {ran} "/home" 0 "" 0.0 0.0 0.0 0.0 0.0 '
    again = 0 if requeued is None else epoch(requeued)
    return f'{record}{len(hosts)} {names}{ineligible_s} 0 {again} 0 0 1 "schedulingOverhead" "0.00"'


# Kubernetes


def stamp(minutes: float) -> str:
    """Return a time as Kubernetes writes it."""
    return f"{BEGIN + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def shape(gpus: int, resource: str = "nvidia.com/gpu", selector: Object | None = None) -> Object:
    """Return the spec of a pod with a container that holds GPUs, and another one."""
    held = {"limits": {resource: str(gpus)} if gpus else {}, "requests": {"cpu": "500m"}}
    return {"containers": [{"name": "main", "resources": held}, {"name": "log"}], "nodeSelector": selector or {}}


def thing(version: str, kind: str, name: str, created: float, spec: Object, status: Object, **meta: Any) -> Object:
    """Return an object."""
    known = {"name": name, "namespace": "team", "uid": f"uid of {name}", "creationTimestamp": stamp(created)}
    return {"apiVersion": version, "kind": kind, "metadata": known | meta, "spec": spec, "status": status}


def owned(uid: str, kind: str = "Job") -> list[Object]:
    """Return the owners of an object: one."""
    return [{"uid": uid, "kind": kind}]


def pod(
    name: str,
    created: float,
    start: float | None,
    end: float | None,
    gpus: int = 1,
    *,
    node: str = "n1",
    phase: str = "Succeeded",
    resource: str = "nvidia.com/gpu",
    selector: Object | None = None,
    **meta: Any,
) -> Object:
    """Return a pod."""
    status: Object = {"phase": phase, "conditions": []}
    if start is not None:
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(start)}]
    if end is not None:
        states = [{"state": {"terminated": {"finishedAt": stamp(at)}}} for at in (end - 0.5, end)]
        status["containerStatuses"] = states
    return thing("v1", "Pod", name, created, shape(gpus, resource, selector) | {"nodeName": node}, status, **meta)


def batch(
    name: str,
    created: float,
    start: float | None,
    end: float | None,
    gpus: int = 1,
    *,
    width: int = 1,
    completions: int | None = None,
    failed: float | None = None,
    **meta: Any,
) -> Object:
    """Return a job of Kubernetes."""
    spec: Object = {"parallelism": width, "completions": completions, "template": {"spec": shape(gpus)}}
    status: Object = {"startTime": None if start is None else stamp(start)}
    status |= {} if end is None else {"completionTime": stamp(end)}
    if failed is not None:
        status["conditions"] = [{"type": "Failed", "status": "True", "lastTransitionTime": stamp(failed)}]
    return thing("batch/v1", "Job", name, created, spec, status, **meta)


def workload(
    name: str,
    created: float,
    admitted: float | None,
    finished: float | None,
    *,
    gpus: int = 2,
    count: int = 2,
    flavor: str = "a100",
    requeued: float | None = None,
    **meta: Any,
) -> Object:
    """Return a workload of Kueue."""
    at = {"Admitted": admitted, "Finished": finished, "Requeued": requeued}
    states = [
        {"type": kind, "status": "True", "lastTransitionTime": stamp(time)}
        for kind, time in at.items()
        if time is not None
    ]
    used = {"nvidia.com/gpu": str(gpus * count), "cpu": "1"}
    given = {"name": "main", "count": count, "flavors": {"nvidia.com/gpu": flavor}, "resourceUsage": used}
    spec = {"queueName": "q", "podSets": [{"name": "main", "count": count, "template": {"spec": shape(gpus)}}]}
    status = {"conditions": states, "admission": {"podSetAssignments": [given]} if admitted is not None else {}}
    return thing("kueue.x-k8s.io/v1beta1", "Workload", name, created, spec, status, **meta)


def volcano(
    name: str, created: float, states: Sequence[tuple[str, float]], gpus: int = 1, replicas: Sequence[int] = (1, 2)
) -> Object:
    """Return a job of Volcano, with its states and their times."""
    tasks = [{"replicas": number, "template": {"spec": shape(gpus)}} for number in replicas]
    history = [{"status": state, "lastTransitionTime": stamp(at)} for state, at in states]
    spec = {"queue": "q", "tasks": tasks}
    return thing("batch.volcano.sh/v1alpha1", "Job", name, created, spec, {"conditions": history})
