"""Gavel (Narayanan et al.: *Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads*, OSDI 2020).

Its makespan policy on the slots, gangs and GPUs of Hadar's view: every job completes, and the last one as early as
possible. Time counts from the start of the instance.
"""

from __future__ import annotations

from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance
from schedgap.instances.views.hadar import Schedule, View


def view(instance: Instance) -> View:
    """Return Gavel's view of `instance`, which is Hadar's.

    It raises `NotApplicableError` if some job can complete in no schedule, since there is no makespan then.
    """
    shared: View = PAPERS.get("hadar").view(instance)
    if reasons := [reason for reason in shared.hopeless if reason]:
        raise NotApplicableError(f"Gavel's makespan: {reasons[0]}")
    return shared


def describe(v: View) -> str:
    """Return the caption of a comparison: jobs, GPUs, slots."""
    return f"{v.size} jobs on {v.gpus}, slots of {v.slot_s:g} s; objective: end of the last job's last slot"


COPIES = Problem("gavel.makespan_copies", "earliest end of the last job with jobs as several copies", "min", "s")
MAKESPAN = Problem("gavel.makespan", "earliest end of the last job when every job completes", "min", "s", COPIES.id)
COPIES_MEAN = Problem("gavel.mean_copies", "least mean completion time with jobs as several copies", "min", "s")
MEAN = Problem("gavel.mean", "least mean completion time of all jobs", "min", "s", COPIES_MEAN.id)
_P99 = "least 99th percentile of completion times"
COPIES_P99 = Problem("gavel.p99_copies", f"{_P99} with jobs as several copies", "min", "s")
P99 = Problem("gavel.p99", f"{_P99} of all jobs", "min", "s", COPIES_P99.id)

PAPERS.register(
    PaperSpec(
        id="gavel",
        title="Narayanan et al.: Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
        view=view,
        problems=(COPIES, MAKESPAN, COPIES_MEAN, MEAN, COPIES_P99, P99),
        decision=Schedule,
        describe=describe,
        mixed=True,
    )
)
