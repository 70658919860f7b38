"""The executed schedule, and what first-come-first-served, backfilling and size-based rules make of the same jobs.

Durations are known to all rules but FCFS, Tiresias, and backfilling by requested times; a run that lasted longer than
it had asked for counts as asked for. Nobody knows releases in advance. Jobs that may choose among pools are put, at
release, where each would end first after the area that is there; the rules then go pool by pool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgap.heuristics.registry import HEURISTICS, Context, HeuristicSpec
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Changes, Parameter, passing
from schedgap.instances.rigid import OBJECTIVES, Schedule, View, kernels, starts_of

MOST_RESERVED = 5000
"""Most jobs for reservations by requested times: each early end makes all that wait reserve anew."""


def executed(view: View, context: Context, *, objective: str = "flow") -> Schedule:
    """Return what really ran, as the log has it.

    Its starts and ends are checked like anybody's; a job that the log starts before its submission counts as submitted
    then.
    """
    assert view.executed is not None
    return view.executed


def _listed(view: View, key: Callable[[Ints], Array], strict: bool = False) -> Schedule:
    return _each(view, lambda jobs, room: kernels().by_list(*_of(view, jobs), room, key(jobs), strict))


def _of(view: View, jobs: Ints) -> tuple[Ints, Ints, Ints]:
    return view.release[jobs], view.duration[jobs], view.gpus[jobs]


def _each(view: View, starts: Callable[[Ints, int], Ints]) -> Schedule:
    found = np.zeros(view.size, np.int64)
    for jobs, capacity in view.by_pool():
        found[jobs] = starts(jobs, capacity)
    return starts_of(view, found)


def fcfs(view: View, context: Context, *, objective: str = "flow") -> Schedule:
    """Return the schedule first come, first served.

    Whoever came first starts first: while its gang does not fit, nobody overtakes it.
    """
    return _listed(view, lambda jobs: np.arange(jobs.size, dtype=float), strict=True)


def sjf(view: View, context: Context, *, objective: str = "flow") -> Schedule:
    """Return the schedule by which the shortest job that fits starts first.

    At each event, jobs that wait are tried by their durations; a large gang may wait for long.
    """
    return _listed(view, lambda jobs: view.duration[jobs].astype(float))


def smallest_area(view: View, context: Context, *, objective: str = "flow") -> Schedule:
    """Return the schedule by which the job of the smallest area that fits starts first.

    At each event, jobs that wait are tried by duration times GPUs (Carastan-Santos et al., One can only gain by
    replacing EASY backfilling, CCGrid 2019).
    """
    return _listed(view, lambda jobs: (view.duration[jobs] * view.gpus[jobs]).astype(float))


def easy(view: View, context: Context, *, objective: str = "flow", estimates: str = "true") -> Schedule:
    """Return the schedule of EASY backfilling: first come, first served, but others may run before the first one.

    The first that waits has a reservation at its shadow time, when enough GPUs become free by the `estimates`; another
    one starts before it if it ends by then, or takes only GPUs that are left over then (Lifka, JSSPP 1995).
    """
    return _backfilled(view, kernels().easy, view.requested if estimates == "requested" else view.duration)


def _backfilled(view: View, kernel: Callable[..., Any], asked: Ints) -> Schedule:
    """Return what a compiled rule makes of jobs that ask to run for so long."""

    def starts(jobs: Ints, room: int) -> Ints:
        release, duration, gpus = _of(view, jobs)
        return np.asarray(kernel(release, duration, asked[jobs], gpus, room))

    return _each(view, starts)


def conservative(view: View, context: Context, *, objective: str = "flow", estimates: str = "true") -> Schedule:
    """Return the schedule of conservative backfilling: everybody has a reservation.

    A job reserves its earliest place when it comes; whoever comes later delays nobody (Mu'alem and Feitelson, IEEE TPDS
    2001). By requested times, all that wait reserve anew when a job ends early, by release.
    """
    if estimates == "true":
        return _each(view, lambda jobs, room: kernels().in_turn(*_of(view, jobs), room, np.arange(jobs.size), True))
    return _backfilled(view, kernels().conservative, view.requested)


def _interrupted(view: View, rule: int, threshold: float = 0.0) -> Schedule:
    found = []
    for jobs, capacity in view.by_pool():
        job, start, end = kernels().interrupting(*_of(view, jobs), capacity, rule, threshold)
        found.append((jobs[job], start, end, view.pool[jobs[job]]))
    return Schedule(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def srtf(view: View, context: Context, *, objective: str = "flow") -> Schedule:
    """Return the schedule by which the jobs of the shortest remaining time run, at each event anew.

    Jobs are interrupted and go on without loss; whoever does not fit is passed over.
    """
    return _interrupted(view, kernels().SHORTEST_LEFT)


def tiresias(view: View, context: Context, *, objective: str = "flow", threshold_h: float = 1.0) -> Schedule:
    """Return Tiresias's schedule: two queues by attained service, each first come, first served.

    Jobs that have held less than `threshold_h` GPU-hours come before the others (discretised 2D-LAS; Gu et al., NSDI
    2019). Nothing is known of durations, interruptions cost nothing, and whoever does not fit is passed over.
    """
    return _interrupted(view, kernels().LEAST_ATTAINED, threshold_h * view.ticks_of_hour)


def objectives(preemptive: bool) -> Parameter:
    """Return the parameter that says what is minimised; it changes the problem, not what a rule does."""
    wider = ".preemptive" if preemptive else ""
    problems: Changes = {name: {"problem": f"rigid.{name}{wider}"} for name in OBJECTIVES if name != "flow"}
    return Parameter("objective", "what the schedule is measured by", choices=tuple(OBJECTIVES), changes=problems)


ESTIMATES = Parameter("estimates", "what is known of durations beforehand", choices=("true", "requested"))


def _no_history(view: View, interrupted: bool) -> str | None:
    if view.executed is None:
        return "the instance does not say when all of its jobs ran"
    if interrupted == (view.executed.job.size > view.size):
        return None
    return "no job was interrupted" if interrupted else "jobs were interrupted: see rigid.interrupted"


def _register(name: str, rule: Callable[..., Any], source: str, *, preemptive: bool = False, **more: Any) -> None:
    """Register a rule; jobs that may choose among pools are in settled ones for all but what really ran."""
    problem = "rigid.flow.preemptive" if preemptive else "rigid.flow"
    parameters = (objectives(preemptive), *more.pop("parameters", ()))
    kind = more.pop("kind", "baseline")
    settled = passing(lambda view, context, **settings: rule(view.settled, context, **settings), rule)
    run = settled if kind == "baseline" else rule
    HEURISTICS.register(
        HeuristicSpec(
            f"rigid.{name}", "rigid", problem, kind=kind, run=run, source=source, parameters=parameters, **more
        )
    )


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
        f"{view.size} jobs reserve anew at each early end (more than {MOST_RESERVED})"
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
    parameters=(Parameter("threshold_h", "service of the first queue", unit="GPU-h", least=0.0),),
)
