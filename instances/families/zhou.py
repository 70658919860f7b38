"""Families on which Zhou et al.'s algorithms are far from optimal, on one server with one GPU.

A_online waits for windows: jobs that are known at time τ run from 4τ on at the earliest. A_maxweight goes by weight,
whatever a job needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.zhou import instance, job, ps, servers, worker
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.zhou import RESOURCES, ZhouSchedule, view

WINDOWS = 4
"""α: the windows of a batch of A_online, as the paper calls typical."""


DEMANDS = 4.0
"""What a worker takes of GPUs, CPUs, gigabytes and Gbit/s together."""


def alone(jobs: Sequence[Any], due_slot: int | None = None) -> Instance:
    """Return these jobs on one server that runs one worker (and one PS) at a time."""
    last = max(int(one["submit_s"]) for one in jobs)
    made = instance(jobs, [servers(1, 1, 3.0, memory_gb=3.0)], [worker(bandwidth_gbps=0.5)], [ps()], slots=last + 2)
    return made.model_copy(update={"due_slot": due_slot})


def one_worker(
    given: Instance, problem: str, jobs: Sequence[int], starts: Sequence[int], kind: Any = 0, workers: int = 1
) -> ZhouSchedule:
    """Return the schedule in which these jobs start so on the only server, with a worker of a type (or one each).

    With more than one of the `workers`, a job runs for its fewest slots.
    """
    name, count = problem.split(".")[1], len(jobs)
    lengths = view(given).architectures[name].options.shortest[list(jobs)]
    nothing, one = np.zeros(count, np.int64), np.ones(count, np.int64)
    ring = name == "ra"
    columns = np.array(jobs), np.array(starts), lengths, nothing + kind, nothing - ring
    return ZhouSchedule(*columns, np.arange(count), nothing, workers * one, nothing if ring else one)


def in_order(given: Instance, problem: str, order: Sequence[int], kind: Any = 0, begin: int = 1) -> ZhouSchedule:
    """Return the schedule in which the only server runs these jobs one after another, from slot `begin` on."""
    a, free, starts = view(given).architectures[problem.split(".")[1]], begin, list[int]()
    for k in order:
        starts.append(max(free, int(a.arrival[k])))
        free = starts[-1] + int(a.options.shortest[k])
    return one_worker(given, problem, order, starts, kind)


def as_given(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs in order."""
    return in_order(given, problem, range(len(given.jobs)))


def small_first(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule in which the blockers run after all others."""
    rest = list(range(WINDOWS, len(given.jobs)))
    return in_order(given, problem, [*rest, *reversed(range(WINDOWS))])


def light_ones(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs but the first."""
    return in_order(given, problem, range(1, len(given.jobs)))


class Lone(HardSpec):
    """One job of 2^`doublings` slots."""

    doublings: int = rule("a whole number of doublings, 1 to 16", ge=1, le=16, default=10)


@hard(
    "zhou-lone",
    Lone,
    methods=("zhou.ps.online", "zhou.ra.online"),
    parameter="doublings",
    values=(2, 4, 6, 8, 10, 12),
    answer=as_given,
    growth="9L/(L + 1), which tends to 2α + 1 = 9",
    limit=9.0,
)
def lone(spec: Lone) -> Instance:
    """Return a single job of L = 2^k slots, which could start at once.

    The last slot of a window is never used, so a window of L slots is too short for it. It is planned at time 2L, for
    the interval from α·2L = 8L on, and completes at 9L.
    """
    return alone([job(1, minibatch_s=float(2**spec.doublings))])


class Blockers(HardSpec):
    """Blockers that fill all windows of a batch, and many small jobs that must wait for them."""

    jobs: int = rule("a whole number of small jobs, 1 to 2000", ge=1, le=2000, default=40)


@hard(
    "zhou-blockers",
    Blockers,
    methods=("zhou.ps.online", "zhou.ra.online"),
    parameter="jobs",
    values=(2, 5, 10, 40, 160, 640),
    answer=small_first,
    growth="tends to 4α = 16, so Theorem 5's ratio is tight",
    limit=16.0,
)
def blockers(spec: Blockers) -> Instance:
    """Return four blockers of 2L − 1 slots, of which the last is shorter by K, and K jobs of one slot that arrive at L.

    At time L no window is long enough for a blocker, and the small jobs arrive just too late for it. At 2L the blockers
    go first, since they weigh slightly more, one in each of the α = 4 windows of the interval from 8L to 16L. The small
    jobs get what the last blocker leaves, the end of the last window. They complete at 16L, and could have completed at
    L + K. With many small jobs, in a window that is long compared with their number, the ratio tends to 16.
    """
    window = 1 << math.isqrt(spec.jobs**3).bit_length()  # K/L vanishes
    lengths = [2 * window - 1] * (WINDOWS - 1) + [2 * window - 1 - spec.jobs]
    heavy = [job(1, minibatch_s=float(slots)) for slots in lengths]
    return alone([*heavy, *[job(1, weight=0.999, submit_s=float(window))] * spec.jobs])


class HeavyFirst(HardSpec):
    """A heavy job that needs all slots, and as many lighter jobs of one slot."""

    jobs: int = rule("a whole number of light jobs, 1 to 5000", ge=1, le=5000, default=20)


@hard(
    "zhou-heavy-first",
    HeavyFirst,
    methods=("zhou.ps.amaxweight", "zhou.ra.amaxweight"),
    parameter="jobs",
    values=(2, 4, 8, 16, 32, 64),
    answer=light_ones,
    growth="K/1.01; jobs are larger than Theorem 3 assumes",
    exponent=1.0,
)
def heavy_first(spec: HeavyFirst) -> Instance:
    """Return a job that takes the only GPU until the deadline, and K jobs of one slot that weigh slightly less each.

    A_maxweight goes by descending weight. On the empty cluster all prices are 0, so the heavy job costs nothing and is
    taken, and there is no slot left for the others. Theorem 3 assumes that a job takes at most 1/log λ of a server.
    """
    heavy = job(1, minibatch_s=float(spec.jobs), weight=1.01)
    return alone([heavy, *[job(1)] * spec.jobs], due_slot=spec.jobs + 1)


class Cheap(HardSpec):
    """Jobs that weigh what they consume, and one that weighs `times` as much."""

    times: int = rule("a whole number, 1 to 128", ge=1, le=128, default=16)


def side_by_side(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs at once, in the first slot."""
    columns = in_order(given, problem, range(len(given.jobs)))
    return replace(columns, start=np.ones_like(columns.start))


@hard(
    "zhou-cheap",
    Cheap,
    methods=("zhou.ra.amaxweight",),
    parameter="times",
    values=(1, 4, 16, 64, 128),
    answer=side_by_side,
    growth="log λ in the limit, half of the 2 log λ of Theorem 3, all of whose assumptions hold",
)
def cheap(spec: Cheap) -> Instance:
    """Return a server full of jobs that weigh exactly what they consume, and a job that weighs many times as much.

    The one valuable job makes F and so λ large. Prices (11) reach 1 when a share of 1/log λ of the server is in use,
    and then the others cannot pay, although nobody else comes. Jobs are small, as Theorem 3 assumes.
    """
    size = 64.0 * spec.times
    weights = [DEMANDS * spec.times] + [DEMANDS] * (int(size) - 1)
    host = servers(1, int(size), size, memory_gb=size, bandwidth_gbps=size)
    made = instance([job(1, weight=weight) for weight in weights], [host], [worker()], [ps()])
    return made.model_copy(update={"due_slot": 2})


class Memory(HardSpec):
    """Jobs that GPUs keep apart and whose weight is in their memory, of which there is plenty."""

    slots: int = rule("slots until the deadline, 3 to 200", ge=3, le=200, default=15)


THIN = 1e-6
"""Gbit/s of a worker that hardly needs any."""


def _gpus(slots: int) -> int:
    """Return log λ, rounded up: the fewest GPUs of which a job takes at most a share of 1/log λ."""
    return math.ceil(math.log2(2 * slots * len(RESOURCES) * LIGHTER + 1))


LIGHTER = 1.001
"""How much more heavy jobs weigh than light ones."""


def memory_jobs(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs of one slot, on all GPUs in all slots."""
    gpus = given.cluster.servers[0].gpus
    jobs = range(gpus, len(given.jobs))
    return one_worker(given, problem, jobs, [1 + i // gpus for i in range(len(jobs))], 1)


@hard(
    "zhou-memory",
    Memory,
    methods=("zhou.ra.amaxweight",),
    parameter="slots",
    values=(4, 8, 15, 30, 60),
    answer=memory_jobs,
    growth="(τ − 1)/1.001, where 2 log λ = 2 log(8.01τ + 1): exceeds it from τ = 15 on",
    exponent=1.0,
)
def memory(spec: Memory) -> Instance:
    """Return a job of τ − 1 slots for each GPU, and τ − 1 jobs of one slot that weigh 0.1 % less and use more memory.

    The long jobs come first, and hold all GPUs. Prices (11) are to end this: a nearly full resource shall cost more
    than a job weighs. But F bounds the weight of a job by the *sum* of what it consumes, here gigabytes of which there
    are plenty, and a GPU costs less than λ however scarce it is. So jobs that can pay find no GPU, and the prices are
    no solution of the dual. Both assumptions of the paper hold as printed, and Theorem 3 fails from τ = 15 on. It needs
    the bound F for each resource that a job uses, as Awerbuch, Azar and Plotkin (FOCS 1993) have it.
    """
    gpus, length = _gpus(spec.slots), spec.slots - 1
    base = 2 * spec.slots * len(RESOURCES) + 1
    much = 4.0 * base
    weight = length * (1 + much)
    kinds = [worker(cpus=0.0, memory_gb=gb, bandwidth_gbps=THIN) for gb in (much, weight - 1)]
    host = servers(1, gpus, 0.0, memory_gb=1e4 * weight * gpus, bandwidth_gbps=1.0)
    long = job(1, minibatch_s=[float(length), None], weight=LIGHTER * weight, ring_update_s=0.0)
    short = job(1, minibatch_s=[None, 1.0], weight=weight, ring_update_s=0.0)
    types = [ps(cpus=0.0, memory_gb=0.0, bandwidth_gbps=THIN)]
    made = instance([long] * gpus + [short] * gpus * length, [host], kinds, types, slots=spec.slots)
    return made.model_copy(update={"due_slot": spec.slots})


class Starving(HardSpec):
    """Small jobs that could all run at once, and a slightly heavier gang for each window of the first batches."""

    jobs: int = rule("a whole number of small jobs, 3 to 640", ge=3, le=640, default=20)


def _batches(jobs: int) -> int:
    """Return the number of batches in which gangs keep the small jobs waiting."""
    return max(1, math.floor(math.log2(jobs / 2.5)))


def small_at_once(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all small jobs in the first slot, and then of the gangs, the shortest first."""
    small = [k for k, one in enumerate(given.jobs) if one.weight == 1]
    gangs = in_order(given, problem, range(len(small), len(given.jobs)), 1, begin=2)
    first = one_worker(given, problem, small, [1] * len(small))
    both = {name: np.concatenate([getattr(first, name), getattr(gangs, name)]) for name in vars(first)}
    return ZhouSchedule(**both | {"run": np.arange(len(both["job"]))})


@hard(
    "zhou-starving",
    Starving,
    methods=("zhou.ps.online", "zhou.ra.online"),
    parameter="jobs",
    values=(5, 20, 80, 160, 320),
    answer=small_at_once,
    growth="grows as the number of jobs; such a run shows no 4α, as A_dual gets too little weight in a batch",
    exponent=1.0,
)
def starving(spec: Starving) -> Instance:
    """Return small jobs of one slot on one GPU each, and gangs on all GPUs that weigh 0.1 % more than one small job.

    A_maxweight goes by weight, whatever a job takes. In each of the α = 4 windows of a batch a gang comes first, which
    fills the window, and no small job runs. After k batches, gangs are used up, and the small jobs complete at
    4·2^(k+1). All of them could complete at 2. The windows get the weight of a gang, where all small jobs together have
    that of many: property (ii) of Lemma 1 fails, and the run states no ratio.
    """
    small = job(1, minibatch_s=[1.0, None], ring_update_s=0.0)
    lengths = [2**i - 1 for i in range(1, _batches(spec.jobs) + 1) for _ in range(WINDOWS)]
    gangs = [job(1, minibatch_s=[None, float(slots)], weight=LIGHTER, ring_update_s=0.0) for slots in lengths]
    need: dict[str, Any] = {"cpus": 0.0, "memory_gb": 0.0, "bandwidth_gbps": 1e-3}
    kinds, types = [worker(1, **need), worker(spec.jobs, **need)], [ps(**need)]
    host = servers(1, spec.jobs, 0.0, memory_gb=0.0, bandwidth_gbps=10.0 * spec.jobs)
    return instance([small] * spec.jobs + gangs, [host], kinds, types, slots=2 ** (_batches(spec.jobs) + 5))


class WideWorkers(HardSpec):
    """Equal jobs of one slot, which the first worker type does on all GPUs, and the second one on one."""

    jobs: int = rule("a whole number of jobs, 2 to 640", ge=2, le=640, default=20)


def narrow_ones(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs in the first slot, each on one GPU."""
    count = len(given.jobs)
    return one_worker(given, problem, range(count), [1] * count, 1)


@hard(
    "zhou-wide",
    WideWorkers,
    methods=("zhou.ps.online", "zhou.ra.online", "zhou.ps.amaxweight", "zhou.ra.amaxweight"),
    parameter="jobs",
    values=(5, 40, 120, 240, 320),
    answer=narrow_ones,
    growth="as the number of jobs; for weights, it is the number of jobs",
    exponent=1.0,
)
def wide(spec: WideWorkers) -> Instance:
    """Return equal jobs on one server with a GPU for each, and two worker types, of which the first takes all GPUs.

    On an empty cluster all schedules cost nothing, and the first one found is taken ("if cost < cost_m"). So the first
    job takes the first worker type, with all GPUs, where one would do. In each slot one job runs, and all could.
    """
    need: dict[str, Any] = {"cpus": 0.0, "memory_gb": 0.0, "bandwidth_gbps": 1e-3}
    host = servers(1, spec.jobs, 0.0, memory_gb=0.0, bandwidth_gbps=10.0 * spec.jobs)
    kinds, types = [worker(spec.jobs, **need), worker(1, **need)], [ps(**need)]
    made = instance([job(1, ring_update_s=0.0)] * spec.jobs, [host], kinds, types, slots=4)
    return made.model_copy(update={"due_slot": 2})


class RingLone(HardSpec):
    """Ring jobs of 2^`doublings` − 1 chunks, each of which takes a worker one slot."""

    doublings: int = rule("a whole number of doublings, 2 to 12", ge=2, le=12, default=8)
    jobs: int = rule("jobs, 1 to 1000", ge=1, le=1000, default=4)


def all_workers(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of the jobs one after another, a slot each, with a worker for each chunk."""
    first, count = given.jobs[0], len(given.jobs)
    begin = 1 + int(first.submit_s)
    return one_worker(given, problem, range(count), [*range(begin, begin + count)], workers=first.chunks)


@hard(
    "zhou-ring-lone",
    RingLone,
    methods=("zhou.ra.online", "zhou.ra.online?alpha=1"),
    parameter="doublings",
    values=(2, 4, 6, 8, 10),
    answer=all_workers,
    growth="tends to 13 with four jobs and to 10 with one; with α = 1 and one job to 4α = 4: tight",
    limit=13.0,
    settings={"zhou.ra.online?alpha=1": "jobs=1"},
)
def ring_lone(spec: RingLone) -> Instance:
    """Return jobs of τ − 1 chunks, τ = 2^k, on a server with a GPU for each chunk, which arrive at τ/2.

    The batch of τ/2 has just closed, so the jobs are planned at τ. On an empty cluster all schedules cost nothing, and
    Algorithm 6 tries one worker first. So a job gets one worker for a whole window, τ − 1 slots, where all GPUs would
    need one slot. It completes at 5τ − 1, and could have completed at τ/2 + 2. A second job would pay for the GPUs, and
    comes into the next window, and so on: four jobs complete at 5τ, 6τ, 7τ and 8τ, and all could be done soon after
    τ/2. With windows of α = 1 times τ, one job completes at 2τ − 1: it suffices to show that Lemma 1's ratio of 4α
    cannot be improved there.
    """
    return rings(2**spec.doublings, spec.jobs)


def rings(tau: int, count: int) -> Instance:
    """Return jobs of τ − 1 chunks on a server with a GPU for each chunk, which arrive at τ/2."""
    need: dict[str, Any] = {"cpus": 0.0, "memory_gb": 0.0, "bandwidth_gbps": 1e-3}
    host = servers(1, tau - 1, 0.0, memory_gb=0.0, bandwidth_gbps=10.0 * tau)
    jobs = [job(tau - 1, submit_s=tau / 2, ring_update_s=0.0)] * count
    return instance(jobs, [host], [worker(1, **need)], [ps(**need)], slots=6 * tau + count)


class RingMany(HardSpec):
    """`jobs` ring jobs of 255 chunks, each of which takes a worker one slot."""

    jobs: int = rule("jobs, 1 to 1000", ge=1, le=1000, default=20)


@hard(
    "zhou-ring-many",
    RingMany,
    methods=("zhou.ra.online",),
    parameter="jobs",
    values=(4, 7, 20, 80, 320),
    answer=all_workers,
    growth="at first as the number of jobs; no run with more than four shows 4α",
)
def ring_many(spec: RingMany) -> Instance:
    """Return the jobs of ``family/zhou-ring-lone`` with 255 chunks, and more of them than a batch has windows.

    The cluster could do one in each slot. But one takes one worker for a whole window, since the first worker costs
    nothing, and all others pay for the GPUs. So few are in each batch, and the rest waits for windows twice as long.
    A search found seven jobs of two lengths.
    """
    return rings(256, spec.jobs)


class Slivers(HardSpec):
    """Jobs of a fifth of the CPUs, and `jobs` lighter ones that could share all CPUs; all weigh by their memory."""

    jobs: int = rule("a whole number of light jobs, 6 to 640", ge=6, le=640, default=41)
    heavy: int = rule("a whole number of heavy jobs, 5 to 1000", ge=5, le=1000, default=5)


FIFTH = 5
"""Heavy jobs that run at a time: each takes a fifth of the CPUs, the largest share that λ allows here."""


def slivers_at_once(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all light jobs in the first slot."""
    jobs = [k for k, one in enumerate(given.jobs) if one.weight < given.jobs[0].weight]
    return one_worker(given, problem, jobs, [1] * len(jobs), 1)


@hard(
    "zhou-slivers",
    Slivers,
    methods=("zhou.ra.amaxweight", "zhou.ps.amaxweight"),
    parameter="jobs",
    values=(8, 41, 80, 160, 320),
    answer=slivers_at_once,
    growth="n/(5·1.001) for n light jobs, where 2 log λ = 8.17 whatever n is: exceeds it from n = 41 on",
    exponent=1.0,
)
def slivers(spec: Slivers) -> Instance:
    """Return jobs that take a fifth of a server's CPUs for one slot, and jobs that weigh 0.1 % less and take 1/n each.

    As in ``family/zhou-memory``, weights are in the memory, of which there is plenty, so a CPU costs less than any job
    weighs even when none is left. Five heavy jobs come first and take all CPUs; all light ones together could have
    had them. Both assumptions hold as printed, λ does not depend on n, and the ratio grows as n.

    With 245 heavy jobs and n = 270, five heavy ones take every window of a batch. Lemma 2's α, with γ = 2 log λ, is
    48, and 48 windows do not reach the weight that one window can hold.
    """
    much, share = 20.0, FIFTH / spec.jobs
    weight = 1.0 + much
    # What a light job uses, CPUs and memory, is just less than it weighs.
    kinds = [worker(0, 1.0, memory_gb=much, bandwidth_gbps=THIN)]
    kinds.append(worker(0, share, memory_gb=weight - share - 1e-4, bandwidth_gbps=THIN))
    host = servers(1, 1, FIFTH * (1 + 1e-9), memory_gb=1e6, bandwidth_gbps=1.0)
    heavy = job(1, minibatch_s=[1.0, None], weight=LIGHTER * weight, ring_update_s=0.0)
    light = job(1, minibatch_s=[None, 1.0], weight=weight, ring_update_s=0.0)
    types = [ps(cpus=0.0, memory_gb=0.0, bandwidth_gbps=THIN)]
    made = instance([heavy] * spec.heavy + [light] * spec.jobs, [host], kinds, types, slots=2)
    return made.model_copy(update={"due_slot": 2})


class DearType(HardSpec):
    """One job with two types of workers and PSs, of which the second takes `times` as much memory."""

    times: int = rule("a whole factor, 2 to 10^6", ge=2, le=10**6, default=100)


def apart(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of the first job with its worker on the second server, and PSs for it on the first."""
    thin, wide = given.worker_types[0].bandwidth_gbps, given.ps_types[0].bandwidth_gbps
    nothing, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    length = view(given).architectures[problem.split(".")[1]].options.shortest[:1]
    placed = np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), np.array([math.ceil(thin / wide), 0])
    return ZhouSchedule(nothing, one, length, nothing, nothing, *placed)


@hard(
    "zhou-dear-type",
    DearType,
    methods=("zhou.ps.amincost?printed=true",),
    parameter="times",
    values=(2, 8, 32, 128, 1024),
    answer=apart,
    growth="as the memory of the dear types; repaired, Algorithm 4 finds the optimum",
    exponent=1.0,
)
def dear_type(spec: DearType) -> Instance:
    """Return a job of one worker whose cheapest server could hold the worker or the PS, but not both.

    Lines 15 to 20 of Algorithm 4, as printed, keep the last number g of workers on a server that fits, here all of
    them; ``s = ⌈(N − g)·b/B⌉`` is then 0 PSs, and line 25 drops the schedule. So "PS on the first server, worker on the
    second one" is never found, and the types that take `times` as much memory are left, on the third server.
    """
    times = float(spec.times)
    groups = [
        servers(1, 1, 2.0, memory_gb=1.65, bandwidth_gbps=1.0),
        servers(1, 2, 0.0, memory_gb=2.0, bandwidth_gbps=1.0),
        servers(1, 1, 0.0, memory_gb=10 * times, bandwidth_gbps=1.0),
    ]
    kinds = [worker(1, 0.0, memory_gb=gb, bandwidth_gbps=1e-3) for gb in (1.0, times)]
    types = [ps(0, cpus, memory_gb=gb, bandwidth_gbps=1e-3) for cpus, gb in ((1.0, 1.0), (0.0, times))]
    made = instance([job(1)], groups, kinds, types, slots=4)
    return made.model_copy(update={"due_slot": 2})


class Hidden(HardSpec):
    """A job of weight `weight` that Algorithm 4 as printed does not place in time, and one of weight 1."""

    weight: int = rule("a whole weight, 2 to 10^6", ge=2, le=10**6, default=100)


def hidden_and_light(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of the heavy job as in :func:`apart`, and of the light one on the third server."""
    first = apart(given, problem)
    second = np.array([1]), np.array([1]), np.array([1]), np.array([2]), np.array([0])
    placed = np.array([1]), np.array([2]), np.array([1]), np.array([1])
    names = "job", "start", "slots", "worker_type", "ps_type", "run", "server", "workers", "ps"
    both = {
        name: np.concatenate([getattr(first, name), more]) for name, more in zip(names, (*second, *placed), strict=True)
    }
    return replace(first, **both)


@hard(
    "zhou-hidden",
    Hidden,
    methods=("zhou.ps.amaxweight?printed=true",),
    parameter="weight",
    values=(2, 8, 32, 128, 1024),
    answer=hidden_and_light,
    growth="the weight and 1; with the heavy job alone, nothing is scheduled",
    exponent=1.0,
)
def hidden(spec: Hidden) -> Instance:
    """Return a heavy job whose only schedule in time has ten PSs on the first server and the worker on the second one.

    As in ``family/zhou-dear-type``, Algorithm 4 as printed does not find it. The job's other worker type is slow, and
    ends after the deadline. So the light job alone is scheduled.
    """
    sizes = [(10.0, 10.5), (0.0, 10.0), (1.0, 5.0), (1.0, 1.5)]
    groups = [servers(1, 1, cpus, memory_gb=gb, bandwidth_gbps=20.0) for cpus, gb in sizes]
    needs = [(10.0, 10.0), (2.0, 0.1), (0.5, 0.1)]
    kinds = [worker(1, 0.0, memory_gb=gb, bandwidth_gbps=wide) for gb, wide in needs]
    heavy = job(1, minibatch_s=[1.0, 200.0, None], weight=float(spec.weight))
    light = job(1, minibatch_s=[None, None, 1.0])
    made = instance([heavy, light], groups, kinds, [ps(0, 1.0, bandwidth_gbps=1.0)], slots=200)
    return made.model_copy(update={"due_slot": 2})


class SlowType(HardSpec):
    """A job of 2^`doublings` slots on one type of workers, and of nearly eight times as many on the other."""

    doublings: int = rule("a whole number of doublings, 0 to 10", ge=0, le=10, default=5)


@hard(
    "zhou-slow-type",
    SlowType,
    methods=("zhou.ps.online?printed=true",),
    parameter="doublings",
    values=(0, 1, 2, 3, 5, 8),
    answer=apart,
    growth="tends to 40: five times 8, where the search for windows ends; repaired, 9",
    limit=40.0,
)
def slow_type(spec: SlowType) -> Instance:
    """Return a job of L slots with ten PSs on the first server and the worker on the second one.

    As in ``family/zhou-dear-type``, Algorithm 4 as printed does not find this schedule, and takes the worker that needs
    8L - 1 slots, on the third server. A_online plans it at time 8L, for the interval from 32L on.
    """
    slots = 2**spec.doublings
    sizes = [(10.0, 10.5), (0.0, 10.0), (1.0, 5.0)]
    groups = [servers(1, 1, cpus, memory_gb=gb, bandwidth_gbps=20.0) for cpus, gb in sizes]
    kinds = [worker(1, 0.0, memory_gb=gb, bandwidth_gbps=wide) for gb, wide in ((10.0, 10.0), (2.0, 0.1))]
    only = job(1, minibatch_s=[float(slots), 8.0 * slots - 1])
    return instance([only], groups, kinds, [ps(0, 1.0, bandwidth_gbps=1.0)], slots=64 * slots)
