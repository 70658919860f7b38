"""Rules that schedule the jobs of a log (first come first served, backfilling, shortest first), and the log's schedule.

All rules know the durations of jobs, except FCFS, Tiresias, and backfilling by requested times; the requested time of a
job that ran for longer is raised to its duration. No rule knows release times in advance. A job that may run in several
pools is assigned, at its release, to the pool in which it would end first after the work already there; the rules then
schedule each pool on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Changes, Parameter, passing
from schedgap.instances.rigid import OBJECTIVES, RigidSchedule, RigidView, kernels, starts_of

MOST_RESERVED = 5000
"""Most jobs for which comparisons run backfilling with requested times, where waiting jobs reserve again and again."""


def executed(view: RigidView, context: Context, *, objective: str = "flow") -> RigidSchedule:
    """Return the schedule that the log records.

    The schedule is checked like any other; a job that starts before its submission in the log counts as submitted at
    its start.
    """
    assert view.executed is not None
    return view.executed


def _listed(view: RigidView, key: Callable[[Ints], Array], strict: bool = False) -> RigidSchedule:
    return _per_pool(view, lambda jobs, gpus: kernels().by_list(*_columns(view, jobs), gpus, key(jobs), strict))


def _columns(view: RigidView, jobs: Ints) -> tuple[Ints, Ints, Ints]:
    return view.release[jobs], view.duration[jobs], view.gpus[jobs]


def _per_pool(view: RigidView, rule: Callable[[Ints, int], Ints]) -> RigidSchedule:
    """Schedule each pool on its own; ``rule(jobs, gpus)`` returns the starts of the jobs of one pool."""
    start = np.zeros(view.size, np.int64)
    for jobs, gpus in view.by_pool():
        start[jobs] = rule(jobs, gpus)
    return starts_of(view, start)


def fcfs(view: RigidView, context: Context, *, objective: str = "flow") -> RigidSchedule:
    """Return the schedule of strict first come, first served.

    Jobs start in order of release; while the gang of the first one does not fit, no other job overtakes it.
    """
    return _listed(view, lambda jobs: np.arange(jobs.size, dtype=float), strict=True)


def sjf(view: RigidView, context: Context, *, objective: str = "flow") -> RigidSchedule:
    """Return the schedule in which the shortest job that fits starts first.

    At each event, waiting jobs are tried in order of duration; a large gang may wait for a long time.
    """
    return _listed(view, lambda jobs: view.duration[jobs].astype(float))


def smallest_area(view: RigidView, context: Context, *, objective: str = "flow") -> RigidSchedule:
    """Return the schedule in which the job of smallest area (duration times GPUs) that fits starts first.

    At each event, waiting jobs are tried in order of area (Carastan-Santos et al., One can only gain by replacing EASY
    backfilling, CCGrid 2019).
    """
    return _listed(view, lambda jobs: (view.duration[jobs] * view.gpus[jobs]).astype(float))


def easy(view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true") -> RigidSchedule:
    """Return the schedule of EASY backfilling: first come, first served, but later jobs may fill gaps.

    The first waiting job has a reservation at its shadow time, when enough GPUs become free according to `estimates`.
    Another job starts earlier if it ends by then, or uses only GPUs that are left over then (Lifka, JSSPP 1995).
    """
    return _backfilled(view, kernels().easy, view.requested if estimates == "requested" else view.duration)


def _backfilled(view: RigidView, kernel: Callable[..., Any], requested: Ints) -> RigidSchedule:
    """Run a compiled rule of backfilling on each pool, for jobs with these requested times ``(n,)``."""

    def rule(jobs: Ints, capacity: int) -> Ints:
        release, duration, gpus = _columns(view, jobs)
        return np.asarray(kernel(release, duration, requested[jobs], gpus, capacity))

    return _per_pool(view, rule)


def conservative(
    view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true"
) -> RigidSchedule:
    """Return the schedule of conservative backfilling, in which every job has a reservation that no later job delays.

    A job reserves the earliest possible start when it is released (Mu'alem and Feitelson, IEEE TPDS 2001). With
    requested times, all waiting jobs reserve anew, in order of release, whenever a job ends early.
    """
    if estimates == "true":
        starts = kernels().in_turn
        return _per_pool(view, lambda jobs, gpus: starts(*_columns(view, jobs), gpus, np.arange(jobs.size), True))
    return _backfilled(view, kernels().conservative, view.requested)


def _interrupted(view: RigidView, rule: int, threshold: float = 0.0) -> RigidSchedule:
    runs = []
    for jobs, capacity in view.by_pool():
        job, start, end = kernels().interrupting(*_columns(view, jobs), capacity, rule, threshold)
        runs.append((jobs[job], start, end, view.pool[jobs[job]]))
    return RigidSchedule(*(np.concatenate(arrays) for arrays in zip(*runs, strict=True)))


def srtf(view: RigidView, context: Context, *, objective: str = "flow") -> RigidSchedule:
    """Return the schedule of shortest remaining time first, decided anew at each event.

    Jobs can be preempted and resumed without loss; a job that does not fit is skipped.
    """
    return _interrupted(view, kernels().SHORTEST_LEFT)


def tiresias(view: RigidView, context: Context, *, objective: str = "flow", threshold_h: float = 1.0) -> RigidSchedule:
    """Return Tiresias's schedule: two queues by attained service, each first come, first served.

    Jobs that have received less than `threshold_h` GPU-hours come before the others (discretised 2D-LAS; Gu et al.,
    NSDI 2019). Durations are unknown, preemption costs nothing, and a job that does not fit is skipped.
    """
    return _interrupted(view, kernels().LEAST_ATTAINED, threshold_h * view.ticks_of_hour)


def objectives(preemptive: bool) -> Parameter:
    """Return the parameter that selects the objective by which a schedule is judged; a rule does the same for all."""
    suffix = ".preemptive" if preemptive else ""
    problems: Changes = {name: {"problem": f"rigid.{name}{suffix}"} for name in OBJECTIVES if name != "flow"}
    return Parameter("objective", "objective of the schedule", choices=tuple(OBJECTIVES), changes=problems)


ESTIMATES = Parameter("estimates", "the durations that are known in advance", choices=("true", "requested"))


def _no_history(view: RigidView, interrupted: bool) -> str | None:
    if view.executed is None:
        return "the instance does not record when all of its jobs ran"
    if interrupted == (view.executed.job.size > view.size):
        return None
    return "no job was interrupted" if interrupted else "jobs were interrupted: see rigid.interrupted"


def _register(name: str, rule: Callable[..., Any], source: str, *, preemptive: bool = False, **fields: Any) -> None:
    """Register a rule as a heuristic; before it runs, each job that may use several pools is assigned to one.

    The log's own schedule is registered without that.
    """
    problem = "rigid.flow.preemptive" if preemptive else "rigid.flow"
    fields["parameters"] = (objectives(preemptive), *fields.get("parameters", ()))
    settled = passing(lambda view, context, **settings: rule(view.settled, context, **settings), rule)
    heuristic(f"rigid.{name}", problem=problem, source=source, **fields)(rule if rule is executed else settled)


_register("executed", executed, "The log itself", kind="online", skip=partial(_no_history, interrupted=False))
_register(
    "interrupted",
    executed,
    "The log itself, where it interrupts jobs",
    kind="online",
    preemptive=True,
    skip=partial(_no_history, interrupted=True),
)
_register("fcfs", fcfs, "First come, first served")
_backfilling: dict[str, Any] = {
    "parameters": (ESTIMATES,),
    "variants": ("estimates=requested",),
    "skip": lambda view, estimates="true": (
        "the instance has no requested times" if estimates == "requested" and not view.asked else None
    ),
    "too_large": lambda view, estimates="true": (
        f"{view.size} jobs would reserve anew whenever a job ends early (limit: {MOST_RESERVED} jobs)"
        if estimates == "requested" and view.size > MOST_RESERVED
        else None
    ),
}
_register("easy", easy, "EASY backfilling (Lifka, JSSPP 1995)", **_backfilling | {"too_large": lambda view: None})
_register("conservative", conservative, "Conservative backfilling (Mu'alem and Feitelson 2001)", **_backfilling)
_register("sjf", sjf, "The shortest job that fits first")
_register("smallest_area", smallest_area, "The smallest area that fits first (Carastan-Santos et al. 2019)")
_register("srtf", srtf, "The shortest remaining time first", preemptive=True)
_register(
    "tiresias",
    tiresias,
    "Tiresias (Gu et al., NSDI 2019), discretised least attained service",
    preemptive=True,
    parameters=(
        Parameter("threshold_h", "service that ends a job's time in the first queue", unit="GPU-h", least=0.0),
    ),
)
