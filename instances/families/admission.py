"""Families on which the walk-through's admission is far from optimal: the first job pays nothing, whatever it takes."""

from __future__ import annotations

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.moldable import Runs
from schedgap.instances.random_instances.admission import instance, job
from schedgap.instances.schema import Instance, rule


class Rising(HardSpec):
    """Jobs worth 1, 2, 4, …, doubled as long as they are at most `top`, of which one can run."""

    top: int = rule("a whole value, 2 to 10^6", ge=2, le=10**6, default=1024)


def last_one(given: Instance, problem: str) -> Runs:
    """Return the run of the last job, in the only slot."""
    one, nothing = np.ones(1, np.int64), np.zeros(1, np.int64)
    last = nothing + len(given.jobs) - 1
    return Runs(last, one, one, nothing, nothing, nothing, nothing, one, one)


@hard(
    "admission-rising",
    Rising,
    methods=("admission.online",),
    parameter="top",
    values=(2, 4, 16, 256, 4096),
    answer=last_one,
    growth="the largest value U",
    exponent=1.0,
)
def rising(spec: Rising) -> Instance:
    """Return jobs worth 1, 2, 4, …, U that all want the only worker in the only slot, in ascending order.

    Prices begin at 0, so the first job pays nothing and is admitted, and nothing is ever taken back. Then the price is
    above U. Prices that begin at 0 protect nothing for later jobs, however much is known of their values.
    """
    wanted = [job(1, 1, worth=float(2**i), transfer_s=0.0) for i in range(spec.top.bit_length())]
    return instance(wanted, (("w", 1, 1),), slots=2)


class WideJob(HardSpec):
    """A job worth 1 that takes all slots of the only worker, and for each slot a job worth `top`."""

    jobs: int = rule("a whole number of later jobs, 1 to 1000", ge=1, le=1000, default=10)
    top: int = rule("a whole value, 2 to 10^6", ge=2, le=10**6, default=1024)


def all_later(given: Instance, problem: str) -> Runs:
    """Return the runs of all jobs but the first, one after another."""
    jobs = np.arange(1, len(given.jobs))
    one, nothing = np.ones_like(jobs), np.zeros_like(jobs)
    return Runs(jobs, jobs, one, nothing, nothing, np.arange(len(jobs)), nothing, one, one)


@hard(
    "admission-wide",
    WideJob,
    methods=("admission.online",),
    parameter="jobs",
    values=(1, 2, 4, 8, 16),
    answer=all_later,
    growth="(n − 1)·U for n jobs of values up to U",
    exponent=1.0,
)
def wide(spec: WideJob) -> Instance:
    """Return a nearly worthless job that takes the only worker in all slots, and a valuable one for each slot.

    At load 0 everything is free, however long a job runs: the first job pays nothing for all slots. So the ratio is the
    largest value times the number of jobs that it keeps out.
    """
    first = job(1, spec.jobs, worth=1.0, transfer_s=0.0)
    later = job(1, 1, worth=float(spec.top), transfer_s=0.0)
    return instance([first, *[later] * spec.jobs], (("w", 1, 1),), slots=spec.jobs + 1)
