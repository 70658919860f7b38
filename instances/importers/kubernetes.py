"""Lists of Kubernetes: ``kubectl get jobs,pods -A -o json``, workloads of Kueue, and jobs of Volcano (vcjob).

JSON: a list with ``items``, one object, several of either one after another, or one object per line. An object is
described by ``kind``, ``metadata`` (name, namespace, creationTimestamp), ``spec`` and ``status``; times are
``2026-03-02T08:00:05Z``. Of an object that occurs in several states, the last counts. YAML is not read.

- **Workload** (kueue.x-k8s.io): submitted when it was created, or requeued after an eviction (earlier runs are not in
  the list); it runs from its condition Admitted to Finished. GPUs: ``resourceUsage`` of its admission, whose flavor is
  the GPU type, else count × requests of its pod sets. It stands for its job and pods in the list, which are left out
- **Job** (batch): with its pods in the list, these say when it ran. Otherwise from ``startTime`` to
  ``completionTime`` or the condition Failed; such a start is when the controller took the job, even if its pods waited
- **Job** (batch.volcano.sh): its conditions say when it was Running; after Restarting or Aborted it is another job
  (``name#2``), released when the previous attempt has ended
- **Pod**: from the condition PodScheduled to the end of its last container. Pods of one owner are a gang if all ran
  together; it runs from the first start to the last end. Otherwise they are separate jobs. Pods of services
  (ReplicaSet, StatefulSet, DaemonSet) are jobs of their own
- GPUs: requests (or limits) for resources such as ``nvidia.com/gpu``, ``amd.com/gpu`` or ``nvidia.com/mig-1g.5gb``;
  each such resource is a GPU type, and so is what a node selector chooses by ``gpu.product`` or the like. In a log
  without any, jobs are counted by CPUs, rounded up (option `resource`)
- the namespace is the user, the queue the partition; ``activeDeadlineSeconds`` and ``maximumExecutionTimeSeconds`` are
  the requested time; servers are ``nodeName`` of pods
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from schedgap.instances.canonical import one_line, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import history
from schedgap.instances.importers.accounting import Holding, attempts, by_resource, distinct
from schedgap.instances.importers.registry import NO_GPU, Options
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.table import check_format, read_text
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

KINDS = {
    ("kueue.x-k8s.io", "Workload"): "workload",
    ("batch.volcano.sh", "Job"): "volcano",
    ("batch", "Job"): "job",
    ("", "Pod"): "pod",
}
"""Kinds of objects that are read, by group and kind."""

GPU = re.compile(r"(?:^|[./])(?:gpu|mig-[\w.]+|gpu\.shared|i915|xe|gaudi\d?|tpu)$")
QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(m|k|M|G|Ki|Mi|Gi)?")
UNITS = {"m": 1e-3, None: 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
PRODUCT = re.compile(
    r"(?:^|[./-])(?:gpu[.-]product|gke-accelerator|accelerator|instance-gpu-name|gpu[.-]?(?:type|model))$"
)
SERVICES = {"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Node"}
GROUP_LABELS = ("kueue.x-k8s.io/pod-group-name", "volcano.sh/job-name")
QUEUE_LABELS = ("kueue.x-k8s.io/queue-name", "volcano.sh/queue-name")
NODES_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RUNNING, GOING = "Running", {"Running", "Completing", "Terminating", "Aborting", "Restarting"}
"""States of Volcano's jobs in which a run begins, and in which it holds its GPUs."""

NO_JOBS = "they are no jobs, pods or workloads"
AGAIN = "they repeat another item"
EARLIER = "they show an earlier state of the same object"
IN_PARTS = "their pods are jobs of their own"
STOOD_FOR = "they belong to workloads or jobs of the list, which stand for them"
EVICTED = "earlier runs of {} are not in the list (evicted): submitted when requeued"
WAVES = "{} with more pods to complete than run at once: gangs of those at once"
CONTROLLER = "the start of {} without pods in the list is when the controller took them, even if their pods waited"
APART = "pods of {} did not run together: separate jobs"
WANTED = 'the file is JSON of kubectl get … -o json, with "kind" and "apiVersion"'


Amounts = Counter[tuple[str, str]]
"""Quantities by resource and the label of its kind (``""`` if there is none)."""


@dataclass
class Run:
    """A run of a job: seconds since 1970 (NaN if not known), what it holds, and its GPUs by server."""

    id: str
    submit: float
    start: float
    end: float
    amounts: Amounts
    hosts: dict[str, int] = field(default_factory=dict)
    user: str = ""
    partition: str = ""
    requested: float = math.nan
    status: str = ""


@dataclass
class ListedObject:
    """An object of the list, with its number in it, and the pods of its job."""

    number: int
    kind: str
    data: Mapping[str, Any]
    pods: list[ListedObject] = field(default_factory=list)

    def at(self, *path: str) -> Any:
        """Return a value of the object, or ``None`` if it lacks it."""
        return dig(self.data, *path)

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.at("metadata", "namespace") or "default")

    @property
    def name(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.at('metadata', 'name')}"

    @property
    def uid(self) -> str:
        """What identifies the object: its uid, or else its kind and name."""
        return str(self.at("metadata", "uid") or f"{self.kind} {self.name}")

    @property
    def owners(self) -> list[str]:
        """The uids of its owners."""
        return [str(dig(owner, "uid")) for owner in listed(self.at("metadata", "ownerReferences"))]

    @property
    def gang(self) -> str:
        """What the pods of a job have in common: the name of a group, or an owner that is no service."""
        labels = self.at("metadata", "labels") or {}
        group = next((f"{self.namespace} {labels[label]}" for label in GROUP_LABELS if label in labels), None)
        owners = (o for o in listed(self.at("metadata", "ownerReferences")) if dig(o, "kind") not in SERVICES)
        return group or next((str(dig(owner, "uid")) for owner in owners), self.uid)

    @property
    def created(self) -> float:
        """When it was created."""
        return moment(self.at("metadata", "creationTimestamp"))

    def since(self, condition: str) -> float:
        """Return since when a condition holds; NaN if it does not."""
        all_of_them = listed(self.at("status", "conditions"))
        true = [one for one in all_of_them if dig(one, "type") == condition and dig(one, "status") == "True"]
        return moment(dig(true[-1], "lastTransitionTime")) if true else math.nan


def recognise(line: str) -> int:
    """Return 3 if a text begins with JSON that names the version of an interface, else 0."""
    return 3 * (line.lstrip()[:1] in ("{", "[") and re.search(r'"apiVersion"\s*:', line) is not None)


def read(rows: FileRows, options: Options) -> Instance:
    """Return the instance of a list (see :func:`schedgap.instances.importers.import_trace`)."""
    text, rows.at = read_text(rows.path, log=True), "item"
    check_format(rows.path, text, "kubernetes", WANTED)
    return history.to_instance(log_of(rows, objects(rows, text), options), options)


def objects(rows: FileRows, text: str) -> list[ListedObject]:
    """Return the objects of a file; those that do not have the form of one are bad."""
    found: list[Any] = []
    broken: dict[int, tuple[str, str]] = {}
    at, decoder = 0, json.JSONDecoder()
    while (at := space(text, at)) < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
            found += unpacked(value)
        except (ValueError, RecursionError) as error:
            broken[len(found) + 1] = one_line(error), text[at : at + 1000].partition("\n")[0]
            found.append(None)
            following = re.compile(r"^[{\[]", re.MULTILINE).search(text, at + 1)
            at = following.start() if following else len(text)
    if len(broken) == len(found):
        raise InstanceError(
            f"{rows.path}: not valid JSON: {next(iter(broken.values()))[0]}"
            if broken
            else f"{rows.path}: an empty list"
        )

    def content(number: int) -> str:
        return broken[number][1] if number in broken else json.dumps(found[number - 1])[:2000]

    rows.begin(range(1, len(found) + 1), content)
    rows.spoil({number: problem for number, (problem, _) in broken.items()}, "they are not valid JSON")
    wrong = {
        number: f"{shown(str(one)[:80])}: an object with kind and metadata"
        for number, one in enumerate(found, 1)
        if number not in broken and not (dig(one, "kind") and isinstance(dig(one, "metadata", "name"), str))
    }
    rows.spoil(wrong, "they have no kind or no name")
    good = rows.kept(pd.DataFrame(index=range(1, len(found) + 1))).index
    return [ListedObject(number, kind_of(found[number - 1]), found[number - 1]) for number in good]


def space(text: str, at: int) -> int:
    """Return the place of the first character that is neither a space nor a comma."""
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def unpacked(value: Any) -> list[Any]:
    """Return the objects in a list, whose kind may stand at the list alone, or the object itself."""
    if isinstance(value, list):
        return [one for part in value for one in unpacked(part)]
    items = dig(value, "items")
    if not isinstance(items, list):
        return [value]
    kind = str(value.get("kind") or "").removesuffix("List")
    shared = {"kind": kind, "apiVersion": value.get("apiVersion")} if kind else {}
    return [one for item in items for one in unpacked(shared | item if isinstance(item, dict) else item)]


def kind_of(data: Mapping[str, Any]) -> str:
    """Return what an object is read as, ``""`` if it is not read."""
    group, _, version = str(data.get("apiVersion") or "").rpartition("/")
    return KINDS.get((group, str(data["kind"])), "") if version else ""


def log_of(rows: FileRows, items: Sequence[ListedObject], options: Options) -> history.Log:
    """Return the log in the objects of a list."""
    notes: Counter[str] = Counter()
    index = pd.Index([item.number for item in items], dtype=np.int64)
    last = {item.uid: item.number for item in items}
    states = [f"{item.uid} {json.dumps(item.data, sort_keys=True)}" for item in items]
    reasons = {
        AGAIN: pd.Series(states, index, dtype=object).duplicated(keep="last"),
        NO_JOBS: pd.Series([not item.kind for item in items], index),
        EARLIER: pd.Series([last[item.uid] != item.number for item in items], index),
    }
    kept = set(rows.leave(pd.DataFrame(index=index), reasons).index)
    jobs = jobs_in([item for item in items if item.number in kept])
    found: list[tuple[int, Run]] = []
    wrong: dict[int, str] = {}
    for item in jobs:
        try:
            found += runs_of(item, notes)
        except (ValueError, TypeError, AttributeError) as error:
            wrong[item.number] = f"{item.kind} {item.name}: {one_line(error)}"
    rows.spoil(wrong, "they do not have the form of their kind")
    own = {number for number, _ in found}
    apart = {item.number for item in jobs} - own
    reasons = {
        IN_PARTS: pd.Series([item.number in apart for item in items], index),
        STOOD_FOR: pd.Series([item.number not in own for item in items], index),
    }
    rows.leave(pd.DataFrame(index=index), reasons)
    return as_log(rows, found, [note.format(counted(n, "job")) for note, n in notes.items() if n], options)


def as_log(rows: FileRows, found: Sequence[tuple[int, Run]], notes: list[str], options: Options) -> history.Log:
    """Return the log of runs of numbered objects."""
    names = {resource for _, run in found for resource, _ in run.amounts if GPU.search(resource)}
    held = [holding(run, several=len(names) > 1) for _, run in found]
    index = pd.Index([number for number, _ in found], dtype=np.int64)
    columns = [name.name for name in fields(Run) if name.name not in ("amounts", "hosts")]
    frame = pd.DataFrame([[getattr(run, name) for name in columns] for _, run in found], index, columns=columns)
    amounts, unit = by_resource(held, index, options.resource, notes)
    frame = frame.assign(**amounts, id=distinct(frame["id"], frame["submit"], notes) if found else "")
    never, running = frame["start"].isna(), frame["end"].isna()
    nothing = NO_GPU.replace("GPUs", f"{unit}s")
    reasons = {nothing: frame["gpus"] == 0, history.NEVER_STARTED: never, history.STILL_RUNNING: running}
    return history.Log("kubernetes", rows, attempts(rows, rows.leave(frame, reasons), notes), tuple(notes), unit)


def jobs_in(items: Sequence[ListedObject]) -> list[ListedObject]:
    """Return the objects that are jobs, with their pods; the others belong to one of them."""
    covered = {uid for item in items if item.kind == "workload" for uid in item.owners}
    rest = [item for item in items if item.kind != "workload"]
    while fresh := {item.uid for item in rest if item.uid not in covered and covered & {item.uid, *item.owners}}:
        covered |= fresh
    free = [item for item in rest if item.uid not in covered]
    jobs = {item.uid: item for item in free if item.kind != "pod"}
    for pod in (item for item in free if item.kind == "pod"):
        job = next((jobs[uid] for uid in pod.owners if uid in jobs), None) or jobs.setdefault(pod.gang, pod)
        job.pods.append(pod)
    return [*(item for item in items if item.kind == "workload"), *jobs.values()]


def runs_of(item: ListedObject, notes: Counter[str]) -> list[tuple[int, Run]]:
    """Return the runs of a job, with the numbers of the objects that say so.

    `notes` counts by sentence how many jobs were read in an odd way.
    """
    if item.pods and item.kind != "volcano":
        return of_pods(item, notes)
    if item.kind == "volcano":
        return [(item.number, run) for run in of_volcano(item)]
    return [(item.number, of_workload(item, notes) if item.kind == "workload" else of_batch(item, notes))]


def of_workload(item: ListedObject, notes: Counter[str]) -> Run:
    """Return the run of a workload of Kueue."""
    start, again = first(item.since("Admitted"), item.since("QuotaReserved")), item.since("Requeued")
    anew = item.created < again <= start
    notes[EVICTED] += anew
    sets = {str(dig(part, "name")): part for part in listed(item.at("spec", "podSets"))}
    given = listed(item.at("status", "admission", "podSetAssignments"))
    amounts: Amounts = Counter()
    for part in given or sets.values():
        shape = sets.get(str(dig(part, "name")), {})
        asked = times(requests(dig(shape, "template", "spec")), dig(part, "count") or dig(shape, "count") or 1)
        used = Counter({(name, ""): quantity(number) for name, number in (dig(part, "resourceUsage") or {}).items()})
        flavors = dig(part, "flavors") or {}
        labels = dict(asked)
        for (name, label), number in (used or asked).items():
            amounts[name, str(flavors.get(name) or label or next((l for n, l in labels if n == name), ""))] += number
    return Run(
        id=item.name,
        submit=again if anew else item.created,
        start=start,
        end=item.since("Finished"),
        amounts=amounts,
        user=item.namespace,
        partition=str(item.at("spec", "queueName") or ""),
        requested=quantity(item.at("spec", "maximumExecutionTimeSeconds") or math.nan),
        status="Finished",
    )


def of_volcano(item: ListedObject) -> list[Run]:
    """Return the runs of a job of Volcano according to its conditions."""
    tasks = listed(item.at("spec", "tasks"))
    amounts: Amounts = Counter()
    for task in tasks:
        replicas = dig(task, "replicas")
        amounts += times(requests(dig(task, "template", "spec")), 1 if replicas is None else replicas)
    states = [
        (moment(dig(c, "lastTransitionTime")), str(dig(c, "status"))) for c in listed(item.at("status", "conditions"))
    ]
    runs: list[Run] = []
    begun = math.nan
    for time, state in sorted((time, state) for time, state in states if not math.isnan(time)):
        if state == RUNNING and math.isnan(begun):
            begun = time
        elif state not in GOING and not math.isnan(begun):
            runs.append(of_job(item, amounts, begun, time, "Restarted" if state == "Pending" else state))
            begun = math.nan
    if runs and math.isnan(begun):
        return runs
    return [*runs, of_job(item, amounts, begun, math.nan, RUNNING)]


def of_batch(item: ListedObject, notes: Counter[str]) -> Run:
    """Return the run of a job without pods in the list."""
    width, amounts = size_of(item)
    completions = item.at("spec", "completions")
    notes[WAVES] += isinstance(completions, int) and completions > width
    start = moment(item.at("status", "startTime"))
    notes[CONTROLLER] += not math.isnan(start)
    failed = item.since("Failed")
    end = first(moment(item.at("status", "completionTime")), failed, item.since("Complete"))
    return of_job(item, amounts, start, end, "Complete" if math.isnan(failed) else "Failed")


def size_of(item: ListedObject) -> tuple[int, Amounts]:
    """Return how many pods a job runs at once, and what these hold together."""
    spec = item.at("spec") or {}
    width, completions = (spec.get(name) for name in ("parallelism", "completions"))
    width = 1 if width is None else int(width)
    width = min(width, int(completions)) if completions is not None else width
    return width, times(requests(dig(spec, "template", "spec")), width)


def of_pods(item: ListedObject, notes: Counter[str]) -> list[tuple[int, Run]]:
    """Return the runs of a job according to its pods: one if all ran together, or else one for each pod."""
    runs = [of_pod(pod) for pod in item.pods]
    ran = [run for run in runs if not math.isnan(run.start)]
    ends = [run.end for run in ran]
    width, asked = size_of(item) if item.kind == "job" else (len(runs), Counter())
    if len(ran) < len(runs) or max(run.start for run in runs) >= min(first(end, math.inf) for end in ends):
        notes[APART] += len(ran) > 1
        if width == 1:  # one after another: the same job again
            runs = [replace(run, id=item.name, submit=item.created) for run in runs]
        return [(pod.number, run) for pod, run in zip(item.pods, runs, strict=True)]
    amounts: Amounts = Counter()
    hosts: Counter[str] = Counter()
    for run in runs:
        amounts.update(run.amounts)
        hosts.update(run.hosts)
    whole = of_job(
        item,
        asked if len(runs) < width else amounts,
        min(run.start for run in runs),
        max(ends) if not any(map(math.isnan, ends)) else math.nan,
        runs[0].status,
    )
    return [(item.number, replace(whole, hosts=dict(hosts), requested=first(whole.requested, runs[0].requested)))]


def of_pod(pod: ListedObject) -> Run:
    """Return the run of a pod, from its placement to the end of its last container."""
    start = first(pod.since("PodScheduled"), moment(pod.at("status", "startTime")))
    states = [
        dig(one, "state", "terminated")
        for name in ("initContainerStatuses", "containerStatuses")
        for one in listed(pod.at("status", name))
    ]
    phase = str(pod.at("status", "phase") or "")
    over = phase in ("Succeeded", "Failed")
    ends = [moment(dig(state, "finishedAt")) for state in states if state]
    gone = [  # of a pod that was evicted before its containers began
        moment(dig(one, "lastTransitionTime"))
        for one in listed(pod.at("status", "conditions"))
        if dig(one, "status") == "False" or dig(one, "type") == "DisruptionTarget"
    ]
    known = [time for time in (ends or gone) if not math.isnan(time)]
    amounts, node = requests(pod.at("spec")), pod.at("spec", "nodeName")
    end = max(known) if over and known else math.nan
    run = of_job(pod, amounts, start, end, phase)
    gpus = math.ceil(sum(number for (name, _), number in amounts.items() if GPU.search(name)))
    return replace(run, hosts={str(node): gpus} if node else {})


def of_job(item: ListedObject, amounts: Amounts, start: float, end: float, status: str) -> Run:
    """Return a run of a job."""
    labels = item.at("metadata", "labels") or {}
    queue = item.at("spec", "queue") or next((labels[label] for label in QUEUE_LABELS if label in labels), "")
    return Run(
        id=item.name,
        submit=item.created,
        start=start,
        end=end,
        amounts=amounts,
        user=item.namespace,
        partition=str(queue),
        requested=quantity(item.at("spec", "activeDeadlineSeconds") or math.nan),
        status=status,
    )


def requests(spec: Any) -> Amounts:
    """Return what a pod asks for: the sum of its containers, or the largest of those that run before them."""
    label = label_of(spec)
    shapes = {
        name: [
            Counter({res: quantity(number) for res, number in {**limits, **asked}.items()})
            for one in listed(dig(spec, name))
            for limits, asked in [[dig(one, "resources", part) or {} for part in ("limits", "requests")]]
        ]
        for name in ("initContainers", "containers")
    }
    total: Counter[str] = sum(shapes["containers"], Counter())
    for before in shapes["initContainers"]:
        total |= before
    return Counter({(name, label if GPU.search(name) else ""): number for name, number in total.items()})


def label_of(spec: Any) -> str:
    """Return the kind of GPU that a pod selects by labels of nodes; ``""`` if it selects none."""
    wanted = dig(spec, "nodeSelector") or {}
    chosen = [str(value) for key, value in wanted.items() if PRODUCT.search(key)]
    terms = listed(dig(spec, "affinity", "nodeAffinity", NODES_REQUIRED, "nodeSelectorTerms"))
    for rule in (rule for term in terms for rule in listed(dig(term, "matchExpressions"))):
        if PRODUCT.search(str(dig(rule, "key"))) and dig(rule, "operator") == "In":
            chosen += ["|".join(sorted(map(str, listed(dig(rule, "values")))))]
    return "+".join(sorted(set(chosen)))


def holding(run: Run, several: bool) -> Holding:
    """Return what a run holds; a GPU without a label is of the kind of its resource if the log has `several`."""
    gpus = {key: number for key, number in run.amounts.items() if GPU.search(key[0]) and number}
    types = {label or (name.removeprefix("nvidia.com/") if several or "/mig-" in name else "") for name, label in gpus}
    cpus = sum(number for (name, _), number in run.amounts.items() if name == "cpu")
    return {"gpus": sum(gpus.values()), "cpus": cpus, "nodes": len(run.hosts)}, "+".join(sorted(types)), run.hosts


def times(amounts: Amounts, count: Any) -> Amounts:
    """Return the amounts of `count` pods."""
    return Counter({key: number * int(count) for key, number in amounts.items()})


def quantity(text: Any) -> float:
    """Return a quantity such as ``500m`` or ``4`` as a number, or raise `ValueError`."""
    if isinstance(text, int | float):
        return float(text)
    found = QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{shown(str(text))}: a quantity such as 4 or 500m")
    return float(found[1]) * UNITS[found[2]]


def moment(text: Any) -> float:
    """Return a time as seconds since 1970, NaN for none; raise `ValueError` if it is no time."""
    if not text:
        return math.nan
    time = datetime.fromisoformat(str(text))
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def first(*values: float) -> float:
    """Return the first value that is a number."""
    return next((value for value in values if not math.isnan(value)), math.nan)


def dig(value: Any, *path: str) -> Any:
    """Return a value in nested objects, ``None`` if a part of the path is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def listed(value: Any) -> list[Any]:
    """Return a list, empty if the value is none."""
    return value if isinstance(value, list) else []
