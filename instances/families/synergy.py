"""Families on which Synergy's schedulers are far from optimal, in a round or over a whole run.

In the first two, Synergy-Tune serves equal jobs, and an odd one whose demand just does not fit. In the others, what a
round does well adds up badly: the order of the policy, or what the mechanism gives, makes many jobs wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.synergy import instance, job, matrix, servers
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.synergy import SynergySchedule

CHIP = "V100"
MEMORY_GB = 50.0
"""Gigabytes for each GPU, which all jobs need."""


class OddOne(HardSpec):
    """Jobs of one GPU each on a server with `share` CPUs per GPU: one wants many CPUs, the others one each."""

    gpus: int = rule("GPUs of the server, 2 to 64", ge=2, le=64, default=8)
    share: int = rule("CPUs of the server for each GPU, 2 to 64", ge=2, le=64, default=16)


def rest_to_odd(given: Instance, problem: str) -> SynergySchedule:
    """Return the round in which every job has one CPU, and the first one all that are left."""
    group = given.cluster.servers[0]
    count = len(given.jobs)
    nothing, one = np.zeros(count, np.int64), np.ones(count)
    cpus = np.where(np.arange(count) == 0, group.cpus - count + 1, 1.0)
    jobs = np.arange(count)
    return SynergySchedule(nothing, jobs, nothing, one, cpus, one * MEMORY_GB, nothing, jobs)


@hard(
    "synergy-odd-one",
    OddOne,
    methods=("synergy.tune",),
    parameter="gpus",
    values=(2, 4, 8, 16, 32),
    answer=rest_to_odd,
    growth="2 − 1/s − (1 − 1/s)/c for c GPUs with s CPUs each: tends to 2 − 1/s = 1.94",
    limit=2 - 1 / 16,
)
def odd_one(spec: OddOne) -> Instance:
    """Return jobs that need one CPU each, and an odd one that wants one CPU more than they leave.

    Tune places the odd one first, with all that it demands. The last of the others then finds no CPU left. Tune has
    nothing between the demand of a job and its share, so it switches the odd one back to its share, and most CPUs idle.
    Giving the odd one what is left nearly doubles the total progress.
    """
    cpus = spec.gpus * spec.share
    wanted = cpus - spec.gpus + 2
    levels = np.arange(1.0, wanted + 1)
    odd = matrix(levels.tolist(), [MEMORY_GB], levels[:, None].tolist())
    plain = matrix([1.0], [MEMORY_GB], [[1.0]])
    work: dict[str, Any] = {"iterations": 1000, "rates": {CHIP: 1.0}}
    jobs = [job(**work, sensitivity=odd), *[job(**work, sensitivity=plain)] * (spec.gpus - 1)]
    return instance(jobs, [servers(1, CHIP, spec.gpus, float(cpus), MEMORY_GB * spec.gpus)])


class ProgressStep(HardSpec):
    """Two jobs of one GPU each on a server of four CPUs; the odd one makes a step of `times` its fair progress."""

    times: int = rule("a whole number, 2 to 10^4", ge=2, le=10**4, default=10)


@hard(
    "synergy-step",
    ProgressStep,
    methods=("synergy.tune",),
    parameter="times",
    values=(2, 4, 16, 64, 256),
    answer=rest_to_odd,
    growth="(X + 1)/2, for X times the fair progress just below the demand",
    exponent=1.0,
)
def step(spec: ProgressStep) -> Instance:
    """Return a job of one CPU, and one that wants all four; with three, it makes `times` its fair progress already.

    Tune gives a job its demand or its share, and nothing between them. The demand does not fit beside the other job, so
    the odd one gets its share of two CPUs. Where progress is concave, as in Synergy's matrices, this costs at most a
    factor of 2; a step, such as a cache that begins to hold everything, makes it as large as the step.
    """
    high = float(spec.times)
    odd = matrix([1.0, 2.0, 3.0, 4.0], [MEMORY_GB], [[0.5], [1.0], [high], [1.5 * high]])
    plain = matrix([1.0], [MEMORY_GB], [[1.0]])
    work: dict[str, Any] = {"iterations": 1000, "rates": {CHIP: 1.0}}
    jobs = [job(**work, sensitivity=odd), job(**work, sensitivity=plain)]
    return instance(jobs, [servers(1, CHIP, 2, 4.0, 2 * MEMORY_GB)])


class IdleShare(HardSpec):
    """Two jobs that want three of four CPUs: the first one gains 0.1 %, the second makes `times` its progress."""

    times: int = rule("a whole number, 2 to 10^4", ge=2, le=10**4, default=10)


def most_to_second(given: Instance, problem: str) -> SynergySchedule:
    """Return the round in which the first job has one CPU and the second one three."""
    nothing, one, jobs = np.zeros(2, np.int64), np.ones(2), np.arange(2)
    return SynergySchedule(nothing, jobs, nothing, one, np.array([1.0, 3.0]), one * MEMORY_GB, nothing, jobs)


@hard(
    "synergy-idle-share",
    IdleShare,
    methods=("synergy.refill", "synergy.tune"),
    parameter="times",
    values=(2, 4, 16, 64, 256),
    answer=most_to_second,
    growth="(X + 1)/2 for X times the progress with the demand: both have their share, and nothing is left over",
    exponent=1.0,
)
def idle_share(spec: IdleShare) -> Instance:
    """Return two jobs of one GPU on four CPUs, which demand three each; one CPU is as good as two to both.

    Tune places the first job with its demand. The share of the second one, two CPUs, does not fit beside it, so the
    first falls back to its share, too. Nothing is left over to refill. But each share is twice what the progress with
    it takes: with one CPU less for the first job, which would lose nothing, the second one would make `times` its
    progress. A bound on CPUs that gains and losses set, as in Synergy-Opt, finds this.
    """
    levels = [1.0, 2.0, 3.0]
    tables = [matrix(levels, [MEMORY_GB], [[1.0], [1.0], [most]]) for most in (1.001, float(spec.times))]
    plain: dict[str, Any] = {"iterations": 1000, "rates": {CHIP: 1.0}}
    jobs = [job(**plain, sensitivity=table) for table in tables]
    return instance(jobs, [servers(1, CHIP, 2, 4.0, 2 * MEMORY_GB)])


ROUND_S = 300.0
"""Seconds of a round."""

Entry = tuple[int, int, int, float]
"""A round, a job, and the GPUs and CPUs that it holds on the only server."""


def in_rounds(entries: Iterable[Entry]) -> SynergySchedule:
    """Return the run with these allocations on the only server, and :data:`MEMORY_GB` for each GPU."""
    round_, job, gpus, cpus = (np.array(column) for column in zip(*entries, strict=True))
    nothing = np.zeros(0, np.int64)
    room = gpus.astype(float)
    return SynergySchedule(
        round_, job, np.zeros_like(job), room, cpus.astype(float), room * MEMORY_GB, nothing, nothing
    )


def work(rounds: float, gpus: int = 1, sensitivity: Any = None) -> dict[str, Any]:
    """Return a job that takes a number of rounds at progress 1, by default with one CPU for each GPU."""
    table = sensitivity or matrix([1.0], [MEMORY_GB], [[1.0]])
    return job(gpus=gpus, iterations=round(rounds * ROUND_S) * gpus, rates={CHIP: 1.0}, sensitivity=table)


class LongRun(HardSpec):
    """A long job that comes first, and `jobs` jobs of one round, on one GPU."""

    jobs: int = rule("a whole number of short jobs, 2 to 64", ge=2, le=64, default=8)


def short_first(given: Instance, problem: str) -> SynergySchedule:
    """Return the run of the short jobs, one in each round, and then of the long one."""
    short = len(given.jobs) - 1
    rounds = round(given.jobs[0].epochs / ROUND_S)
    return in_rounds([(k, 1 + k, 1, 1.0) for k in range(short)] + [(short + k, 0, 1, 1.0) for k in range(rounds)])


@hard(
    "synergy-long-run",
    LongRun,
    methods=("synergy.tune.fifo", "synergy.refill.fifo", "synergy.greedy.fifo"),
    parameter="jobs",
    values=(2, 4, 8, 16, 32),
    answer=short_first,
    growth="(2n + 1)/3 for n short jobs",
    exponent=1.0,
)
def long_run(spec: LongRun) -> Instance:
    """Return a job of n² rounds on the only GPU, and n jobs of one round, which all arrive at once behind it.

    FIFO serves the long job first, whatever the mechanism does with CPUs and memory, and all others wait for n² rounds.
    Behind the short ones it would wait for n. The mean completion time is what the run is judged by.
    """
    jobs = [work(spec.jobs**2), *[work(1)] * spec.jobs]
    return instance(jobs, [servers(1, CHIP, 1, 1.0, MEMORY_GB)], slot_s=ROUND_S)


class GangsFirst(HardSpec):
    """`gangs` gangs of all GPUs, ten rounds each, and a job of eleven rounds for each of their square GPUs."""

    gangs: int = rule("a whole number of gangs, 2 to 8", ge=2, le=8, default=4)


GANG_ROUNDS = 10
"""Rounds of a gang; a single job takes one more."""


def singles_first(given: Instance, problem: str) -> SynergySchedule:
    """Return the run of all single jobs at once, and then of the gangs one by one."""
    size = given.cluster.servers[0].gpus
    gangs = len(given.jobs) - size
    begin = GANG_ROUNDS + 1
    entries: list[Entry] = [(k, gangs + job, 1, 1.0) for k in range(begin) for job in range(size)]
    entries += [(begin + k, k // GANG_ROUNDS, size, float(size)) for k in range(gangs * GANG_ROUNDS)]
    return in_rounds(entries)


@hard(
    "synergy-gangs-first",
    GangsFirst,
    methods=("synergy.tune.srtf", "synergy.tune.ftf", "synergy.refill.srtf", "synergy.greedy.srtf"),
    parameter="gangs",
    values=(2, 3, 4, 6, 8),
    answer=singles_first,
    growth="tends to 2k/3 for k gangs",
    exponent=1.0,
)
def gangs_first(spec: GangsFirst) -> Instance:
    """Return k gangs of all k² GPUs of a server, and k² single jobs that take a tenth longer.

    SRTF goes by the time that is left, whatever a job holds meanwhile. So the gangs come first, one by one, and all
    single jobs wait for all of them. First served, they would all run at once, and the gangs would wait for eleven
    rounds. A job's GPU-seconds, or its time divided by what it leaves free, would give that order.
    """
    size = spec.gangs**2
    jobs = [*[work(GANG_ROUNDS, size)] * spec.gangs, *[work(GANG_ROUNDS + 1)] * size]
    return instance(jobs, [servers(1, CHIP, size, float(size), MEMORY_GB * size)], slot_s=ROUND_S)


class AllCpus(HardSpec):
    """A job of one round for each of `gpus` GPUs; each is faster by 0.1 % with all CPUs than with one."""

    gpus: int = rule("GPUs of the server, 2 to 64", ge=2, le=64, default=8)


def all_in_one_round(given: Instance, problem: str) -> SynergySchedule:
    """Return the run of all jobs in the first round, with one CPU each."""
    return in_rounds((0, k, 1, 1.0) for k in range(len(given.jobs)))


@hard(
    "synergy-all-cpus",
    AllCpus,
    methods=("synergy.greedy.fifo", "synergy.greedy.srtf", "synergy.greedy.las", "synergy.greedy.ftf"),
    parameter="gpus",
    values=(2, 4, 8, 16, 32),
    answer=all_in_one_round,
    growth="nearly (c + 1)/2 for c GPUs",
    exponent=1.0,
)
def all_cpus(spec: AllCpus) -> Instance:
    """Return jobs of one GPU each, which gain hardly anything from all CPUs of the server but demand them.

    Greedy gives a job its whole demand, or does not run it. So one job runs in each round, on one GPU, and all other
    GPUs idle, whatever the policy. With one CPU for each, their fair share, all would be done after one round. Tune
    gives all of them their share.
    """
    cpus = float(spec.gpus)
    greedy = matrix([1.0, cpus], [MEMORY_GB], [[1.0], [1.001]])
    jobs = [work(1, sensitivity=greedy)] * spec.gpus
    return instance(jobs, [servers(1, CHIP, spec.gpus, cpus, MEMORY_GB * spec.gpus)], slot_s=ROUND_S)


class StepRun(HardSpec):
    """A plain job, and `times` jobs that make `times` their fair progress with one CPU less than they want."""

    times: int = rule("a whole number, 2 to 40", ge=2, le=40, default=8)


def rest_in_turn(given: Instance, problem: str) -> SynergySchedule:
    """Return the run in which the odd jobs have one round each, with all CPUs but one, beside the plain job."""
    rounds = round(given.jobs[0].epochs / ROUND_S)
    beside = [(k, 1 + k, 1, 3.0) for k in range(len(given.jobs) - 1)]
    return in_rounds([*((k, 0, 1, 1.0) for k in range(rounds)), *beside])


@hard(
    "synergy-step-run",
    StepRun,
    methods=("synergy.tune.fifo", "synergy.tune.las", "synergy.tune.ftf"),
    parameter="times",
    values=(4, 8, 16, 32, 40),
    answer=rest_in_turn,
    growth="with FIFO (X² + 3X)/(3X + 1) for a step of X times the fair progress: tends to X/3",
    exponent=1.0,
)
def step_run(spec: StepRun) -> Instance:
    """Return a plain job of X² rounds, and X odd jobs as in ``family/synergy-step``, on a server of two GPUs.

    As long as the plain job runs, the demand of an odd one does not fit beside it. Tune gives it its share, and it
    takes X rounds where one CPU more would let it take one. The next odd one waits, and gets the same. LAS and
    finish-time fairness take turns, which changes little; SRTF serves the plain job last.
    """
    high = float(spec.times)
    odd = matrix([1.0, 2.0, 3.0, 4.0], [MEMORY_GB], [[0.5], [1.0], [high], [1.5 * high]])
    jobs = [work(spec.times**2), *[work(spec.times, sensitivity=odd)] * spec.times]
    return instance(jobs, [servers(1, CHIP, 2, 4.0, 2 * MEMORY_GB)], slot_s=ROUND_S)


class WholeRound(HardSpec):
    """A job that ends early in a round, and one that makes `times` its fair progress with what the first one holds."""

    times: int = rule("a whole number, 2 to 10^4", ge=2, le=10**4, default=16)


def rest_at_once(given: Instance, problem: str) -> SynergySchedule:
    """Return the run in which the first job has one CPU in the first round, and the second one three."""
    return in_rounds([(0, 0, 1, 1.0), (0, 1, 1, 3.0)])


@hard(
    "synergy-whole-round",
    WholeRound,
    methods=("synergy.tune.fifo", "synergy.tune.srtf", "synergy.tune.las", "synergy.tune.ftf"),
    parameter="times",
    values=(2, 4, 12, 60, 300),
    answer=rest_at_once,
    growth="(X + 1)/2 for X times the fair progress, with two jobs in one round",
    exponent=1.0,
)
def whole_round(spec: WholeRound) -> Instance:
    """Return a plain job that ends after a fraction 1/X of a round, and an odd one as in ``family/synergy-step``.

    Tune gives the odd job its share for the whole round, because its demand does not fit beside the plain one. It ends
    with the round. With one CPU more it would end X times sooner, when the plain job ends. Whatever orders the queue,
    both jobs run, so that no policy helps.
    """
    high = float(spec.times)
    odd = matrix([1.0, 2.0, 3.0, 4.0], [MEMORY_GB], [[0.5], [1.0], [high], [1.5 * high]])
    jobs = [work(1 / spec.times), work(1, sensitivity=odd)]
    return instance(jobs, [servers(1, CHIP, 2, 4.0, 2 * MEMORY_GB)], slot_s=ROUND_S)
