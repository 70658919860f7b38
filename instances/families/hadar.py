"""Families on which Hadar is far from optimal: newcomers that outbid, a long job, a late job, small jobs first, ….

In the first three families there is one GPU, and so one price: ``U_min`` while it is free, ``U_max`` while it is taken.
In the first four, jobs have constant utilities: one earns all of it if it completes by the horizon.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.hadar import linear
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.hadar import HadarSchedule, view

GPU = "a"


def worth(amplitude: float, slots: int, begin: int = 0, gpus: int = 1) -> dict[str, Any]:
    """Return a job that takes a number of slots on `gpus` GPUs from slot `begin` on, and is worth `amplitude`."""
    utility = {"kind": "constant", "amplitude": amplitude}
    return {"gpus": gpus, "epochs": slots * gpus, "rates": {GPU: 1.0}, "utility": utility, "submit_s": float(begin)}


def scheduled(instance: Instance, jobs: Iterable[int]) -> HadarSchedule:
    """Return a schedule on one server: at any time that it is free, the most valuable of these jobs that has arrived.

    It runs until it completes. A job that would end after the horizon never starts.
    """
    v = view(instance)
    left, now, entries = set(jobs), 0, list[tuple[int, int, int, int]]()
    slots = v.rounds(np.arange(v.size), v.workload.work)[:, 0].astype(int).tolist()
    worth = v.utilities.value(np.arange(v.size), 1.0).tolist()
    while left := {job for job in left if max(now, v.arrival[job]) + slots[job] <= v.slots}:
        now = max(now, min(int(v.arrival[job]) for job in left))
        job = max((job for job in left if v.arrival[job] <= now), key=lambda job: worth[job])
        entries += [(job, t, 0, int(v.workload.gpus[job])) for t in range(now, now + slots[job])]
        now += slots[job]
        left -= {job}
    return HadarSchedule.of(np.array(entries, np.int64))


def undisturbed(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule in which no job is preempted."""
    return scheduled(instance, range(len(instance.jobs)))


def small_ones(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of all jobs but the first."""
    return scheduled(instance, range(1, len(instance.jobs)))


def last_alone(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of the last job alone."""
    return scheduled(instance, [len(instance.jobs) - 1])


class Outbidding(HardSpec):
    """Jobs that outbid each other; the last one is worth nearly ``1 + rise`` times as much as the first one.

    With a `patience`, utilities fall to a half when a job has waited for so many slots, and soon to nothing.
    """

    jobs: int = rule("a whole number of jobs, 2 to 1000", ge=2, le=1000, default=20)
    slots: int = rule("slots of a job, 2 to 1000", ge=2, le=1000, default=12)
    rise: float = rule("a positive rise, at most 10", gt=0, le=10, default=0.25)
    patience: int = rule("slots, 0 (any) or more, at most 10000", ge=0, le=10_000, default=0)


@hard(
    "hadar-outbidding",
    Outbidding,
    methods=("hadar.online", "hadar.online?payoff=lifetime", "hadar.hadare"),
    parameter="jobs",
    values=(5, 10, 20, 40, 80),
    answer=undisturbed,
    growth="n − ⌈(n − 1)/L⌉ jobs of L slots complete, and Hadar completes one",
    exponent=1.0,
    settings={"hadar.online": "rise=0.001", "hadar.hadare": "rise=0.001"},
)
def outbidding(spec: Outbidding) -> Instance:
    """Return `jobs` of `slots` slots on one GPU, one every ``slots − 1`` slots, each worth slightly more than the last.

    Each arrives when its predecessor has one slot left. Hadar plans all jobs anew in each round, and the newcomer has
    the higher payoff, so it takes the GPU. Nobody has time to come back: all but the last earn nothing. Without
    preemption all complete, each one slot later than the one before, but for one in `slots`.

    With the payoff of a round, the smallest rise will do. With the payoff (8) a job also pays for the slots that it
    still needs, so the newcomer must be worth more by that: a rise of a quarter over all jobs suffices, and less does
    not, whatever their number and length. Longer jobs lose fewer of those that could complete, in as many more slots.

    With constant utilities the horizon must end with the last job, or the others would complete after it. With a
    patience it need not: coming back is worth nothing, and all jobs complete in time if none is preempted.
    """
    each = [worth(1 + spec.rise * i / spec.jobs, spec.slots, (spec.slots - 1) * i) for i in range(spec.jobs)]
    if not spec.patience:
        return linear(each, {GPU: 1}, slots=(spec.slots - 1) * spec.jobs + 1)
    falls = {"kind": "sigmoid", "midpoint_s": float(spec.slots + spec.patience), "steepness_per_s": 12 / spec.patience}
    falling = [one | {"utility": one["utility"] | falls} for one in each]
    return linear(falling, {GPU: 1}, slots=spec.slots * spec.jobs)


class LongFirst(HardSpec):
    """A long job that is worth ``1 + more``, and a small one worth 1 in each of its slots but the first."""

    slots: int = rule("slots of the long job, 2 to 10000", ge=2, le=10_000, default=20)
    more: float = rule("what the long job is worth more, at most 10", gt=0, le=10, default=0.25)


@hard(
    "hadar-long-first",
    LongFirst,
    methods=("hadar.online", "hadar.online?mode=incremental&payoff=lifetime", "hadar.hadare"),
    parameter="slots",
    values=(5, 10, 20, 40, 80, 160),
    answer=small_ones,
    growth="(L − 1)/(1 + more)",
    exponent=1.0,
)
def long_first(spec: LongFirst) -> Instance:
    """Return a job of `slots` slots, which blocks the only GPU, and jobs of one slot, which arrive one by one.

    The long job is worth slightly more than a small one, so no small job outbids it; together they are worth as many
    times more as there are. Utility per GPU and slot (``order=density``) would choose them.
    """
    small = [worth(1.0, 1, t) for t in range(1, spec.slots)]
    return linear([worth(1 + spec.more, spec.slots), *small], {GPU: 1}, slots=spec.slots)


class LateJob(HardSpec):
    """Two jobs: the first is worth 1, the second `value`."""

    value: int = rule("a whole value, 1 to 10^6", ge=1, le=10**6, default=11)


@hard(
    "hadar-late",
    LateJob,
    methods=("hadar.online?mode=incremental&payoff=lifetime", "hadar.online?mode=incremental"),
    parameter="value",
    values=(4, 11, 100, 1000, 10_000),
    answer=last_alone,
    growth="the value v, where 2α = 2 ln 16v",
    exponent=1.0,
)
def late_job(spec: LateJob) -> Instance:
    """Return a job of two slots that takes the only GPU, and a better one of one slot that arrives in the second slot.

    Without preemption the first one stays. It fills the GPU, so the price rises from ``U_min = 1/16`` to ``U_max = v``
    in one step, for which it paid ``U_min``. The proof of Theorem 2 takes the rise to be the derivative of the price
    times the step, which is ``ln(16v)`` times ``U_min``. Two jobs suffice to refute the ratio from v = 11 on.
    """
    return linear([worth(1.0, 2), worth(float(spec.value), 1, 1)], {GPU: 1}, slots=2)


class SmallFirst(HardSpec):
    """Small jobs on a server of `gpus` GPUs, worth 1 altogether, and then one that needs all of it, worth `gpus`."""

    gpus: int = rule("GPUs of the server, 2 to 512", ge=2, le=512, default=8)


@hard(
    "hadar-small-first",
    SmallFirst,
    methods=("hadar.online?mode=incremental", "hadar.online?mode=incremental&payoff=lifetime"),
    parameter="gpus",
    values=(2, 4, 8, 16, 32),
    answer=last_alone,
    growth="at least the number of GPUs",
    exponent=1.0,
)
def small_first(spec: SmallFirst) -> Instance:
    """Return a small job of two slots for each GPU of a server, and a gang for all of it that arrives one slot later.

    One small job on one GPU is enough to keep the gang out until the horizon. Prices let small jobs in as long as they
    are worth more than a GPU costs, and the first one always is.
    """
    small = [worth(1 / spec.gpus, 2) for _ in range(spec.gpus)]
    return linear([*small, worth(float(spec.gpus), 1, 1, gpus=spec.gpus)], {GPU: spec.gpus}, slots=2)


class GangFirst(HardSpec):
    """A gang that holds a server for all slots, worth ``1 + more``, and a gang for each slot, worth 1."""

    slots: int = rule("slots, 2 to 1000", ge=2, le=1000, default=10)
    gpus: int = rule("GPUs of the server, 1 to 512", ge=1, le=512, default=100)
    more: float = rule("what the long gang is worth more, at most 10", gt=0, le=10, default=0.25)


SLOW = "slow"


@hard(
    "hadar-gang-first",
    GangFirst,
    methods=("hadar.online", "hadar.online?payoff=lifetime", "hadar.online?mode=incremental&payoff=lifetime"),
    parameter="slots",
    values=(4, 7, 10, 20, 40),
    answer=small_ones,
    growth="T/(1 + more), where 2α = 2 ln(4T(1 + more)(1 + 1/c)): exceeds it from T = 10 on",
    exponent=1.0,
)
def gang_first(spec: GangFirst) -> Instance:
    """Return a long gang of all GPUs of a server, and a short gang of all GPUs for each slot; all are there at once.

    The long gang is worth slightly more, so it comes first, and it fills the server: it pays ``U_min`` for each of its
    GPUs, however many it takes in one step. Nobody is preempted, and nobody outbids it. All jobs demand all GPUs in
    all slots on their slowest type (the short ones on a slow GPU that nobody uses), so that (9) leaves ``U_min``
    high, and 2α is as small as it can be. Eleven jobs suffice to exceed it.
    """
    long = worth(1 + spec.more, spec.slots, gpus=spec.gpus)
    short = worth(1.0, 1, gpus=spec.gpus) | {"rates": {GPU: 1.0, SLOW: 1 / spec.slots}}
    return linear([long, *[short] * spec.slots], {GPU: spec.gpus, SLOW: 1}, slots=spec.slots)


class Phantom(HardSpec):
    """Jobs of one slot on a server of `gpus` GPUs, a gang that takes it for all slots, and a utility out of reach."""

    gpus: int = rule("GPUs of the server, 2 to 64", ge=2, le=64, default=6)
    slots: int = rule("a whole number, 2 to 1000", ge=2, le=1000, default=6)


OUT_OF_REACH = 1e4
"""To the power of the number of GPUs, a utility with which each GPU in use makes the next one 10,000 times dearer."""


def one_slot_each(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of the jobs of one slot, each in the slot in which it arrives."""
    v = view(instance)
    return HadarSchedule.of(np.array([(j, int(v.arrival[j]), 0, 1) for j in range(2, v.size)], np.int64))


@hard(
    "hadar-phantom",
    Phantom,
    methods=("hadar.online", "hadar.online?payoff=lifetime", "hadar.online?mode=incremental"),
    parameter="gpus",
    values=(2, 3, 4, 6, 8),
    answer=one_slot_each,
    growth="c·T/1.1 for c GPUs and T slots; α grows with c, too, so this does not refute Theorem 2",
    exponent=1.0,
)
def phantom(spec: Phantom) -> Instance:
    """Return jobs of one slot, as many in each slot as there are GPUs, and a gang of all GPUs that is worth 1.1.

    Another gang of two would be worth very much in one slot, on two GPUs of a type of which there is one. So ``U_max``
    is a utility that nobody can earn: (6) takes the shortest duration of a job on its fastest type, however few GPUs
    of it there are, and so do we. From there, prices rise so steeply with the load that the second GPU of a server
    costs more than a job is worth. Hadar runs one small job on the server, and then the gang, whose payoff is higher,
    takes all slots.
    """
    most = OUT_OF_REACH**spec.gpus
    nobody = {"kind": "sigmoid", "amplitude": most, "steepness_per_s": 2 * float(np.log(most)), "midpoint_s": 1.5}
    jobs: list[dict[str, Any]] = [{"gpus": 2, "epochs": 4, "rates": {GPU: 1.0, "b": 2.0}, "utility": nobody}]
    jobs.append(worth(1.1, spec.slots, gpus=spec.gpus))
    for slot in range(spec.slots):
        small = worth(1.0, 1, slot) | {"deadline_s": slot + 1.0}
        small["utility"] = {"kind": "linear_deadline", "amplitude": 1.0, "grace_s": spec.slots + 1.0}
        jobs += [small] * spec.gpus
    return linear(jobs, {GPU: spec.gpus, "b": 1}, slots=spec.slots)


class Misread(HardSpec):
    """One job on two nodes, worth `times` as much at the end of the first slot as at that of the second."""

    times: int = rule("a whole factor, 2 to 10^6", ge=2, le=10**6, default=100)


def on_fast_node(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of the job on the first node alone."""
    return HadarSchedule.of(np.array([(0, 0, 0, 1)], np.int64))


@hard(
    "hadar-misread",
    Misread,
    methods=("hadar.hadare",),
    parameter="times",
    values=(4, 16, 64, 1024, 16_384),
    answer=on_fast_node,
    growth="what a slot of delay costs: e^(s/2) for a sigmoid of steepness s",
    exponent=1.0,
)
def misread(spec: Misread) -> Instance:
    """Return a job that the first of two nodes does in one slot, where (10) takes the second node for the faster one.

    HadarE forks every job to all nodes, and splits its steps by the initial throughputs (10), made of TFLOPS and
    memory. Here the node of more TFLOPS is slower for this job, and gets nearly all of its steps. Measured rates come
    one round later, and then the utility has fallen. One copy alone, on the first node, would have been in time.
    """
    steep = 2 * float(np.log(spec.times))
    falls = {"kind": "sigmoid", "amplitude": 1.0, "steepness_per_s": steep, "midpoint_s": 1.5}
    only = {"gpus": 1, "epochs": 100, "rates": {GPU: 100.0, "b": 1.0}, "utility": falls}
    made = linear([only], {GPU: 1, "b": 1}, slots=3)
    powers = {GPU: 1.0, "b": 1000.0}
    kinds = (one.model_copy(update={"tflops": powers[one.name], "memory_gb": 16.0}) for one in made.cluster.gpu_types)
    return made.model_copy(update={"cluster": made.cluster.model_copy(update={"gpu_types": tuple(kinds)})})


class ForkedCopies(HardSpec):
    """A job that one node moves, worth 1.001, and a job worth 1 for each slot of each other node."""

    nodes: int = rule("nodes of a GPU each, 2 to 32", ge=2, le=32, default=6)
    slots: int = rule("slots, 1 to 100", ge=1, le=100, default=8)


HARDLY = 1e-6
"""Steps per slot on nodes that hardly move a job."""


def node_each(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of all jobs, each on the node that moves it."""
    v = view(instance)
    first = [(0, t, 0, 1) for t in range(v.slots)]
    nodes = v.servers.size - 1
    return HadarSchedule.of(
        np.array([*first, *((j, int(v.arrival[j]), 1 + (j - 1) % nodes, 1) for j in range(1, v.size))])
    )


@hard(
    "hadar-copies",
    ForkedCopies,
    methods=("hadar.hadare",),
    parameter="nodes",
    values=(2, 3, 4, 6, 8),
    answer=node_each,
    growth="(N − 1)·T + 1 for N nodes and T slots, N ≤ T; with more nodes, HadarE completes nothing",
    exponent=1.0,
)
def copies(spec: ForkedCopies) -> Instance:
    """Return a job whose copies take all nodes, though one node alone moves it, and jobs that need the others.

    HadarE places copies by payoff, and all copies of a job have the same, whether their node moves the job or not. The
    most valuable job fills all nodes in all slots, and each of the others had one slot.
    """
    kinds = [f"node{i}" for i in range(spec.nodes)]
    rates = {kind: 1.0 if i == 0 else HARDLY for i, kind in enumerate(kinds)}
    jobs: list[dict[str, Any]] = [worth(1.001, spec.slots) | {"rates": rates}]
    for slot in range(spec.slots):
        at_once = {"utility": {"kind": "linear_deadline", "amplitude": 1.0, "grace_s": 1e-3}, "deadline_s": slot + 1.0}
        jobs += [worth(1.0, 1, slot) | at_once | {"rates": {kind: 1.0}} for kind in kinds[1:]]
    return linear(jobs, dict.fromkeys(kinds, 1), slots=spec.slots)


class CheapestType(HardSpec):
    """Two jobs: one worth `value` at the end of the first slot and 1 at that of the second, and one worth 0.1."""

    value: int = rule("a whole value, 2 to 10^6", ge=2, le=10**6, default=100)


def both_at_once(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of the first job on the first server and the second one on the second, in the first slot."""
    return HadarSchedule.of(np.array([(0, 0, 0, 1), (1, 0, 1, 1)], np.int64))


@hard(
    "hadar-cheapest",
    CheapestType,
    methods=("hadar.online?alloc=cost",),
    parameter="value",
    values=(4, 16, 64, 1024, 16_384),
    answer=both_at_once,
    growth="the value v, where the job of value v could have run alone on an idle GPU",
    exponent=1.0,
)
def cheapest(spec: CheapestType) -> Instance:
    """Return a valuable job that a fast GPU does in one slot and a slow one in two, and a poor job for slow GPUs only.

    Lines 28 to 31 of Algorithm 2 take the cheapest allocation, and then subtract its cost from the utility that it
    leads to. Nobody poor can use the fast type, so U_min of (7) is low on the slow type alone, and the valuable job
    goes there. It ends one slot late, when it is worth 1. The fast GPU idles. By payoff, FIND_ALLOC takes the fast one.
    """
    steep = 2 * float(np.log(spec.value))
    falls = {"kind": "sigmoid", "amplitude": float(spec.value), "steepness_per_s": steep, "midpoint_s": 1.5}
    jobs = [
        {"gpus": 1, "epochs": 1, "rates": {GPU: 1.0, SLOW: 0.5}, "utility": falls},
        worth(0.1, 1) | {"rates": {SLOW: 1.0}},
    ]
    return linear(jobs, {GPU: 1, SLOW: 1}, slots=2)


class Skipped(HardSpec):
    """Twenty gangs that each leave one of `gpus` GPUs free, and a job of one slot for each GPU; there is one slot."""

    gpus: int = rule("GPUs, each of another type, 16 to 100", ge=16, le=100, default=24)


WIDE = 20
"""Gangs, more than the states that the beam keeps."""


def single_jobs(instance: Instance, problem: str) -> HadarSchedule:
    """Return the schedule of all single jobs, each on a server of its own."""
    singles = len(instance.jobs) - WIDE
    return HadarSchedule.of(np.array([(WIDE + k, 0, k, 1) for k in range(singles)], np.int64))


@hard(
    "hadar-skipped",
    Skipped,
    methods=("hadar.online", "hadar.online?payoff=lifetime", "hadar.online?mode=incremental"),
    parameter="gpus",
    values=(16, 24, 32, 48, 64),
    answer=single_jobs,
    growth="c/2.3 for c GPUs: what our beam loses; the paper's recursion, and second=true, have all c",
    exponent=1.0,
)
def skipped(spec: Skipped) -> Instance:
    """Return twenty gangs of all GPUs but one, worth 1.3 each, and single jobs, worth 1 each and c altogether.

    DP_allocation decides on the gangs first, which have the highest payoffs. Each of them leaves a GPU of another type
    free, so there are as many states of value 1.3 as there are GPUs, and of value 2.3 after the next job. They fill the
    beam of 16 states. The state in which no gang runs has nothing yet and is dropped, with all plans that follow it.
    """
    kinds = [f"t{k}" for k in range(spec.gpus)]
    jobs = []
    for k in range(WIDE):
        rates = {name: 1.0 for name in kinds if name != kinds[k % spec.gpus]}
        jobs.append(worth(1.3, 1, gpus=spec.gpus - 1) | {"rates": rates})
    jobs += [worth(1.0, 1) | {"rates": dict.fromkeys(kinds, 1.0)}] * spec.gpus
    return linear(jobs, dict.fromkeys(kinds, 1), slots=1)
