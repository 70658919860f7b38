"""Gangs of fixed duration in event time: the jobs of a log as executed, or as they could have been scheduled.

A job holds a gang of GPUs of one pool (a GPU type, or a partition of one) for a fixed time after its release. A
schedule only limits the number of GPUs in use; it does not choose GPUs of the pool. Logs give pool, duration and
release (:class:`History`), and possibly the durations in other pools, to which a job may then be moved, and the servers
on which it ran. In an instance without history, each job runs on its fastest GPU type on which its gang fits, for its
work divided by its rate there.

Times are integral seconds if all of them are, else integral microseconds with durations rounded up; comparisons have no
tolerance.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from schedgap.instances.arrays import Ints
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.rigid import OBJECTIVES, RigidSchedule, RigidView
from schedgap.instances.schema import Instance
from schedgap.instances.schema.columns import ELSEWHERE, GPU_TYPE, HOSTS, REQUESTED, RUNS, PlainJobs
from schedgap.instances.text import amount
from schedgap.instances.workload import server_names, workload

FINE_S = 1e-6
"""Length of a tick if not all times are integral seconds."""

LONGEST_S = 2.0**60 * FINE_S
"""Latest time: ticks are 64-bit integers, and sums of two times must not overflow."""


def view(instance: Instance) -> RigidView:
    """Return the jobs of `instance` as gangs of fixed duration.

    It raises `NotApplicableError` if some jobs have a history and others do not, a job runs on no GPU type, or its gang
    fits in no pool.
    """
    jobs = PlainJobs.of(instance.plain.get("jobs", ()))
    recorded = sum(pool is not None for pool in jobs.texts(GPU_TYPE))
    if 0 < recorded < len(jobs):
        count = f"only {recorded} of {len(jobs)} jobs have a history"
        raise NotApplicableError(f"rigid: {instance.name}: {count}")
    if recorded:
        return _of_log(instance, jobs)
    try:
        work = workload(instance)
    except InstanceError as error:
        raise NotApplicableError(f"rigid: {error}") from error
    capacity = _capacity(instance)
    rates = np.where(work.gpus[:, None] <= capacity, work.rates, 0.0)
    best = rates.max(axis=1)
    if not (best > 0).all():
        job = work.ids[int(np.argmin(best))]
        raise NotApplicableError(f"rigid: {instance.name}: job {job} can use no GPU type on which its gang fits")
    lasts = work.work / (work.gpus * best)
    if work.arrival_s.max() + lasts.sum() > LONGEST_S:
        raise NotApplicableError(f"rigid: {instance.name}: run one by one, the jobs take more than {LONGEST_S:g} s")
    duration = np.ceil(lasts / FINE_S).astype(np.int64)
    return RigidView(
        instance=instance,
        tick_s=FINE_S,
        release=ticks(work.arrival_s, FINE_S),
        duration=duration,
        gpus=work.gpus,
        pool=rates.argmax(axis=1),
        requested=duration,
        weight=work.weight,
        pools=work.gpu_types,
        capacity=capacity,
        executed=None,
        asked=0,
        overran=0,
    )


def _of_log(instance: Instance, jobs: PlainJobs) -> RigidView:
    index = {g.name: i for i, g in enumerate(instance.cluster.gpu_types)}
    which, ran = jobs.pairs(RUNS)
    lasted, release = jobs.numbers("duration_s", 0.0), jobs.numbers("submit_s", 0.0)
    requested, weight = jobs.numbers(REQUESTED, np.nan), jobs.numbers("weight", 1.0)
    gpus = jobs.numbers("gpus", 1).astype(np.int64)
    pool = np.array([index[name] for name in jobs.texts(GPU_TYPE)])
    durations = enumerate(jobs.texts(ELSEWHERE))
    others = [(j, index[kind], lasts) for j, by_type in durations if by_type for kind, lasts in by_type.items()]
    other = np.array(others, float).reshape(-1, 3)
    times = np.concatenate([ran.ravel(), lasted, release, other[:, 2]])
    if times.max() > LONGEST_S:
        raise NotApplicableError(f"rigid: {instance.name}: a time of {times.max():g} s exceeds {LONGEST_S:.3g} s")
    tick_s = 1.0 if (times == np.round(times)).all() else FINE_S
    executed = RigidSchedule(
        which, ticks(ran[:, 0], tick_s), ticks(ran[:, 1], tick_s), pool[which], *_placed(instance, jobs)
    )
    complete = len(np.unique(which)) == len(jobs)
    duration = ticks(lasted, tick_s)
    if complete:
        duration = np.zeros(len(jobs), np.int64)
        np.add.at(duration, executed.job, executed.end - executed.start)
    requested_ticks = ticks(np.ceil(np.nan_to_num(requested)), tick_s)
    capacity, moves = _capacity(instance), None
    if others:
        moves = np.full((len(jobs), len(index)), -1)
        moves[other[:, 0].astype(int), other[:, 1].astype(int)] = ticks(other[:, 2], tick_s)
        moves[np.arange(len(jobs)), pool] = duration
        moves[gpus[:, None] > capacity] = -1
    too_large = gpus > capacity[pool]
    if too_large.any():
        name, where = jobs.texts("id")[int(too_large.argmax())], list(index)[pool[too_large.argmax()]]
        raise NotApplicableError(f"rigid: {instance.name}: the gang of job {name} does not fit in pool {where}")
    return RigidView(
        instance=instance,
        tick_s=tick_s,
        release=ticks(release, tick_s),
        duration=duration,
        gpus=gpus,
        pool=pool,
        requested=np.maximum(duration, requested_ticks),
        weight=weight,
        pools=tuple(index),
        capacity=capacity,
        executed=executed if complete else None,
        asked=int(np.isfinite(requested).sum()),
        overran=int((np.isfinite(requested) & (requested_ticks < duration)).sum()),
        moves=moves,
    )


def _placed(instance: Instance, jobs: PlainJobs) -> Ints:
    """Return ``(3, m)`` indices of runs, of servers, and the GPUs that the run holds there according to the log."""
    index = {name: i for i, name in enumerate(server_names(instance))}
    if HOSTS not in jobs.columns:
        return np.zeros((3, 0), np.int64)
    runs = np.bincount(jobs.pairs(RUNS)[0], minlength=len(jobs)).tolist()
    hosts = chain.from_iterable(on or ({},) * count for on, count in zip(jobs.texts(HOSTS), runs, strict=True))
    held = [(r, index[name], gpus) for r, on in enumerate(hosts) for name, gpus in on.items() if name in index]
    return np.array(held, np.int64).reshape(-1, 3).T


def ticks(seconds: np.ndarray, tick_s: float) -> Ints:
    """Return times in seconds as integral numbers of ticks."""
    return np.asarray(np.rint(seconds / tick_s).astype(np.int64))


def _capacity(instance: Instance) -> Ints:
    return np.array(list(instance.cluster.gpus_by_type.values()), np.int64)


def describe(v: RigidView) -> str:
    """Return the caption of a comparison: jobs, pools, load."""
    pools = ", ".join(amount(count, name) for name, count in zip(v.pools, v.capacity.tolist(), strict=True))
    last = (v.release + v.duration).max() if v.executed is None else v.executed.end.max()
    span = int(last - v.release.min())
    area = float((v.gpus * v.duration.astype(float)).sum())
    load = area / (float(v.capacity.sum()) * span) if span else 0.0
    free = 0 if v.moves is None else int(((v.moves >= 0).sum(axis=1) > 1).sum())
    choice = f"; {free:,} may run in other pools, too" if free else ""
    return f"{v.size:,} gangs of fixed duration on {pools}; load {load:.0%} of {span / v.ticks_of_hour:.4g} h{choice}"


_problems: list[Problem] = []
for _name, (_title, _unit) in OBJECTIVES.items():  # each problem restricts one in which jobs may be interrupted
    _preemptive = f"{_title}, interruptions allowed"
    _wider = Problem(f"rigid.{_name}.preemptive", _preemptive, "min", _unit, allows="jobs may be interrupted")
    _problems += [_wider, Problem(f"rigid.{_name}", _title, "min", _unit, _wider.id, requires="no preemption")]

PAPERS.register(
    PaperSpec(
        id="rigid",
        title="Gangs of fixed duration: what ran in a log, and how much better it could have run",
        view=view,
        problems=tuple(sorted(_problems, key=lambda p: (p.id.partition(".flow")[1] == "", p.restricts is None))),
        decision=RigidSchedule,
        describe=describe,
        usual=lambda instance: any(job.history for job in instance.jobs),
    )
)
