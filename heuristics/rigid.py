"""Rules that schedule the jobs of a log (first come first served, backfilling, shortest first), and the log's schedule.

No rule knows release times in advance. FCFS and Tiresias know no durations, either. The other rules know them or, with
``estimates=requested``, the time that each job requested; the requested time of a job that ran for longer is raised to
its duration, and a job that requested none counts with its duration. A job that may run in several pools is assigned,
at its release, to the pool in which it would end first after the work already there; the rules then schedule each pool
on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Changes, Parameter, base_id, passing
from schedgap.instances.rigid import OBJECTIVES, RigidSchedule, RigidView, kernels, priorities, starts_of

MOST_RESERVED = 100_000
"""Most jobs for which comparisons run conservative backfilling with requested times and all reservations.

It grows with the square of the number of waiting jobs, which reserve again and again: 1.3 s where the load is 90 %, but
a minute for 20,000 jobs on a pool that is overloaded from start to end.
"""

CONSIDERED = 200
"""Waiting jobs that reserve in longer logs."""

LOGGED = ("rigid.executed", "rigid.interrupted")
"""The schedules that logs record."""

NOTHING, ASKED, DURATIONS = "nothing", "requested times", "durations"
"""What an online rule knows of run times in advance."""


def affordable(method: str, jobs: int) -> str:
    """Return a rule, given by its id, as it is run on a log with so many jobs: not all of them may reserve."""
    long = method.startswith("rigid.conservative?estimates=requested") and "considered=" not in method
    return f"{method}&considered={CONSIDERED}" if long and jobs > MOST_RESERVED else method


def knowledge(method: str) -> str:
    """Return what a rule, given by its id, knows of run times; a rule of somebody else's may know all."""
    if base_id(method) in {"rigid.fcfs", "rigid.tiresias"}:
        return NOTHING
    return ASKED if "estimates=requested" in method else DURATIONS


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


def sjf(view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true") -> RigidSchedule:
    """Return the schedule in which the shortest job that fits starts first.

    At each event, waiting jobs are tried in order of duration, or of requested time; a large gang may wait for a long
    time.
    """
    return _listed(view, lambda jobs: known(view, estimates)[jobs].astype(float))


def smallest_area(
    view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true"
) -> RigidSchedule:
    """Return the schedule in which the job of smallest area (duration times GPUs) that fits starts first.

    At each event, waiting jobs are tried in order of area (Carastan-Santos et al., One can only gain by replacing EASY
    backfilling, CCGrid 2019).
    """
    return _listed(view, lambda jobs: (known(view, estimates)[jobs] * view.gpus[jobs]).astype(float))


def known(view: RigidView, estimates: str) -> Ints:
    """Return ``(n,)`` what a rule knows of durations in advance."""
    return view.requested if estimates == "requested" else view.duration


def _by_priority(
    view: RigidView,
    estimates: str,
    rule: str = "FIXED",
    overtaking: str = "EASY",
    *,
    key: Array | None = None,
    factors: dict[str, float] | None = None,
    depth: int | None = None,
) -> RigidSchedule:
    """Schedule each pool by a rule of priorities; without a `key` ``(n,)``, jobs are tried in the order of release."""
    kernel, lasts, users = priorities(), known(view, estimates), view.users
    settings = kernel.Factors(**(factors or NONE))

    def starts(jobs: Ints, capacity: int) -> Ints:
        reserve, gpus = lasts[jobs], view.gpus[jobs]
        kind = np.unique(np.stack([reserve, gpus]), axis=1, return_inverse=True)[1].ravel()
        gangs = kernel.RigidJobs(view.release[jobs], view.duration[jobs], reserve, gpus, kind)
        keys = np.arange(jobs.size, dtype=float) if key is None else key[jobs]
        how = getattr(kernel, rule), keys, users[jobs], settings, getattr(kernel, overtaking)
        return np.asarray(kernel.by_priority(gangs, capacity, *how, depth or jobs.size))

    return _per_pool(view, starts)


NONE: dict[str, float] = {
    **{"age": 0.0, "fairshare": 0.0, "size": 0.0, "max_age": 1.0, "decay": 1.0, "period": 1, "damping": 1.0},
    **{"tree": True, "small": False},
}
"""Settings of Slurm's priority for rules that do not use it."""


def easy(view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true") -> RigidSchedule:
    """Return the schedule of EASY backfilling: first come, first served, but later jobs may fill gaps.

    The first waiting job has a reservation at its shadow time, when enough GPUs become free according to `estimates`.
    Another job starts earlier if it ends by then, or uses only GPUs that are left over then (Lifka, JSSPP 1995).
    """
    return _by_priority(view, estimates)


def conservative(
    view: RigidView, context: Context, *, objective: str = "flow", estimates: str = "true", considered: int = 0
) -> RigidSchedule:
    """Return the schedule of conservative backfilling, in which every job has a reservation that no later job delays.

    A job reserves the earliest possible start when it is released (Mu'alem and Feitelson, IEEE TPDS 2001). With
    requested times, all waiting jobs reserve anew, in order of release, whenever a job ends early. Assumption for long
    logs: only the first `considered` waiting jobs reserve, and later ones wait, as in batch systems; 0 for all.
    """
    if estimates == "true":
        starts = kernels().in_turn
        return _per_pool(view, lambda jobs, gpus: starts(*_columns(view, jobs), gpus, np.arange(jobs.size), True))
    return _by_priority(view, estimates, overtaking="PLAN", depth=considered or None)


def wfp3(
    view: RigidView,
    context: Context,
    *,
    objective: str = "flow",
    estimates: str = "true",
    backfilling: str = "easy",
) -> RigidSchedule:
    r"""Return the schedule of WFP3, which prefers jobs that have waited long for their requested time, and large ones.

    At each event, jobs are tried by descending :math:`(w_j/r_j)^3 \cdot n_j`, for a wait of :math:`w_j`, a requested
    time of :math:`r_j` and :math:`n_j` GPUs (Tang et al., Fault-aware, utility-based job scheduling on Blue Gene/P
    systems, CLUSTER 2009; so printed by Carastan-Santos and de Camargo, SC 2017). The first job that does not fit stops
    all others, or has EASY's reservation. A requested time counts as at least one tick.
    """
    return _by_priority(view, estimates, "WFP3", OVERTAKING[backfilling])


def f1(
    view: RigidView,
    context: Context,
    *,
    objective: str = "flow",
    estimates: str = "true",
    backfilling: str = "easy",
    submit_weight: float = 870.0,
) -> RigidSchedule:
    r"""Return the schedule of F1, the best of the rules that Carastan-Santos and de Camargo learned by simulation.

    Jobs are tried by ascending :math:`\log_{10}(r_j) \cdot n_j + 8.70 \cdot 10^2 \cdot \log_{10}(s_j)`, for a requested
    time of :math:`r_j` seconds, :math:`n_j` GPUs, and a submission :math:`s_j` seconds after the first one (Obtaining
    Dynamic Scheduling Policies with Simulation and Machine Learning, SC 2017). The first job that does not fit stops
    all others, or has EASY's reservation. Assumption: the clock starts with the log; theirs starts anew after 15 days.
    """
    with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity: such a job comes first
        requested = np.log10(known(view, estimates) * view.tick_s)
        submitted = np.log10((view.release - view.release.min()) * view.tick_s)
    return _by_priority(
        view, estimates, "FIXED", OVERTAKING[backfilling], key=requested * view.gpus + submit_weight * submitted
    )


def multifactor(
    view: RigidView,
    context: Context,
    *,
    objective: str = "flow",
    estimates: str = "true",
    backfilling: str = "plan",
    fairshare: str = "tree",
    age_weight: float = 1000.0,
    fairshare_weight: float = 10000.0,
    size_weight: float = 1000.0,
    max_age_d: float = 14.0,
    half_life_d: float = 14.0,
    period_min: float = 5.0,
    damping: float = 1.0,
    favour_small: bool = False,
    considered: int = 100,
) -> RigidSchedule:
    r"""Return the schedule of Slurm's multifactor priority with backfilling, as its documentation describes them.

    Jobs are tried by descending priority, a whole number: the sum of weights times factors, rounded down.

    - Age: the wait over `max_age_d`, at most 1.
    - Size: the share of the pool's GPUs; with `favour_small`, a single GPU has factor 1 instead of the whole pool.
    - Fair share: with Fair Tree, the user's rank by usage, least usage first, over the number of users; with the
      classic formula :math:`2^{-U/S/d}`, where U is the user's share of all usage, S the share of the machine promised
      to the user, and d the damping factor. Usage is GPU time; every `period_min` it is multiplied by the factor that
      halves it in `half_life_d`.

    A job starts out of turn if that delays no job of higher priority: jobs reserve the earliest interval one after
    another, for their requested times, and `considered` jobs at most. Without backfilling, the first job that does not
    fit stops all others.

    Slurm leaves the following to the site, so it is assumed: weights, half-life and greatest age of the example in its
    documentation (priority_multifactor); equal shares of all users, who have no accounts above them; no usage before
    the log; usage counted in each pool of GPUs on its own; factors for partition, quality of service, association, TRES
    and site, and nice values, are 0, since logs do not state their settings. Slurm plans every 30 s, on a grid of 60 s,
    for one day ahead; here plans are made at each event, are exact, and have no end.
    """
    hour = view.ticks_of_hour
    period = max(round(period_min / 60 * hour), 1)
    factors = {
        "age": age_weight,
        "fairshare": fairshare_weight,
        "size": size_weight,
        "max_age": max_age_d * 24 * hour,
        "decay": 0.5 ** (period / (half_life_d * 24 * hour)),
        "period": period,
        "damping": damping,
        "tree": fairshare == "tree",
        "small": favour_small,
    }
    return _by_priority(view, estimates, "MULTIFACTOR", OVERTAKING[backfilling], factors=factors, depth=considered)


OVERTAKING = {"none": "NOBODY", "easy": "EASY", "plan": "PLAN"}
"""Who overtakes the first job that does not fit, by the value of the parameter ``backfilling``."""


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
BACKFILLING = Parameter("backfilling", "who overtakes the first job that does not fit", choices=("none", "easy"))


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
_estimating: dict[str, Any] = {
    "parameters": (ESTIMATES,),
    "variants": ("estimates=requested",),
    "skip": lambda view, estimates="true": (
        "the instance has no requested times" if estimates == "requested" and not view.asked else None
    ),
}
_learned = _estimating | {"parameters": (ESTIMATES, BACKFILLING)}
_register("easy", easy, "EASY backfilling (Lifka, JSSPP 1995)", **_estimating)
_register(
    "conservative",
    conservative,
    "Conservative backfilling (Mu'alem and Feitelson 2001)",
    **_estimating
    | {
        "parameters": (
            ESTIMATES,
            Parameter("considered", "waiting jobs that reserve, by requested times; 0 for all", least=0),
        )
    },
    too_large=lambda view, estimates="true", considered=0: (
        f"{view.size} jobs would reserve anew at each event (limit: {MOST_RESERVED} jobs, or considered={CONSIDERED})"
        if estimates == "requested" and not considered and view.size > MOST_RESERVED
        else None
    ),
)
_register("sjf", sjf, "The shortest job that fits first", **_estimating)
_register(
    "smallest_area",
    smallest_area,
    "The smallest area that fits first (Carastan-Santos et al. 2019)",
    **_estimating,
)
_register("wfp3", wfp3, "WFP3 (Tang et al. 2009), as in Carastan-Santos and de Camargo, SC 2017", **_learned)
_register(
    "f1",
    f1,
    "F1 (Carastan-Santos and de Camargo, SC 2017)",
    **_learned
    | {"parameters": (ESTIMATES, BACKFILLING, Parameter("submit_weight", "weight of the submission time", least=0.0))},
)
_weights = {"age_weight": "PriorityWeightAge", "fairshare_weight": "PriorityWeightFairshare"}
_weights |= {"size_weight": "PriorityWeightJobSize"}
_register(
    "multifactor",
    multifactor,
    "Multifactor priority and backfilling (Slurm's documentation)",
    **_estimating
    | {
        "parameters": (
            ESTIMATES,
            replace(BACKFILLING, choices=("none", "plan")),
            Parameter("fairshare", "formula of the fair-share factor", choices=("tree", "classic")),
            *(Parameter(name, setting, least=0.0) for name, setting in _weights.items()),
            Parameter("max_age_d", "PriorityMaxAge: wait at which the age factor is 1", unit="days", least=1e-6),
            Parameter("half_life_d", "PriorityDecayHalfLife: time in which usage halves", unit="days", least=1e-6),
            Parameter("period_min", "PriorityCalcPeriod: time after which usage counts", unit="minutes", least=0.1),
            Parameter("damping", "FairShareDampeningFactor, of the classic formula", least=1.0),
            Parameter("favour_small", "PriorityFavorSmall: small jobs have large size factors"),
            Parameter("considered", "bf_max_job_test: most jobs that a plan considers", least=1),
        )
    },
)
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
