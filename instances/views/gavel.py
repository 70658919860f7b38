"""Gavel (Narayanan et al.: *Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads*, OSDI 2020).

Its makespan policy on the slots, gangs and GPUs of Hadar's view: every job completes, and the last one as early as
possible. Time counts from the start of the instance.
"""

from __future__ import annotations

from functools import partial

from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted
from schedgap.instances.views.hadar import HadarSchedule, HadarView


def view(instance: Instance) -> HadarView:
    """Return Gavel's view of `instance`, which is Hadar's.

    It raises `NotApplicableError` if some job can complete in no schedule, since there is no makespan then.
    """
    shared: HadarView = PAPERS.get("hadar").view(instance)
    if reasons := [reason for reason in shared.hopeless if reason]:
        raise NotApplicableError(f"Gavel's makespan: {reasons[0]}")
    return shared


def describe(v: HadarView) -> str:
    """Return the caption of a comparison: jobs, GPUs, slots."""
    return f"{counted(v.size, 'job')} on {v.gpus}, slots of {v.slot_s:g} s; objective: end of the last job's last slot"


_forked = partial(Problem, sense="min", unit="s", allows="jobs may run as several copies")
_whole = partial(Problem, sense="min", unit="s", requires="one copy per job")
COPIES = _forked("gavel.makespan_copies", "earliest end of the last job with jobs as several copies")
MAKESPAN = _whole("gavel.makespan", "earliest end of the last job when every job completes", restricts=COPIES.id)
COPIES_MEAN = _forked("gavel.mean_copies", "least mean completion time with jobs as several copies")
MEAN = _whole("gavel.mean", "least mean completion time of all jobs", restricts=COPIES_MEAN.id)
_P99 = "least 99th percentile of completion times"
COPIES_P99 = _forked("gavel.p99_copies", f"{_P99} with jobs as several copies")
P99 = _whole("gavel.p99", f"{_P99} of all jobs", restricts=COPIES_P99.id)

PAPERS.register(
    PaperSpec(
        id="gavel",
        title="Narayanan et al.: Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
        view=view,
        problems=(COPIES, MAKESPAN, COPIES_MEAN, MEAN, COPIES_P99, P99),
        decision=HadarSchedule,
        describe=describe,
        mixed=True,
    )
)
