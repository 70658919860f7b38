"""Stretches of time of a long log, which are solved apart and put together again.

A log is cut where a fluid through its pools has least work left, at best none: there a bound decomposes, since no job
before the cut interacts with one after it. A stretch is solved with some jobs before and after it, so that it knows who
competes near a cut; of what is found, only the stretch's own part counts. Whatever is put together is measured as a
whole: prices by the bound that they give on all jobs, starts by the schedule in which all jobs, in that order, take
their earliest places. So cuts may cost quality, but never validity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.arrays import Bools, Ints
from schedgap.instances.parameters import Parameter
from schedgap.instances.rigid import RigidView
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.registry import APART

MARGIN = 0.1
"""Jobs before and after a stretch that are solved with it, as a fraction of its own."""

NEAR = 0.25
"""A cut is at most this fraction of a stretch away from where stretches would be equal."""

STRETCHES = Parameter("stretches", "stretches of time of a long log that are solved apart, as tasks", least=1)


def number_of(jobs: int, stretches: int = 1) -> int:
    """Return the number of stretches of a log: as many as are asked for, and no more than jobs."""
    return max(1, min(stretches, jobs))


class Stretch(NamedTuple):
    """A stretch of time, from tick `since` to `until`, with the jobs ``(m,)`` that are solved with it, by number.

    Those that are its `own` are released in it. The first and the last stretch have no beginning and no end.
    """

    jobs: Ints
    own: Bools
    since: int
    until: int


def stretch_of(view: RigidView, at: int, count: int) -> Stretch:
    """Return one of `count` stretches of a log; `at` counts from 0."""
    order = np.lexsort((np.arange(view.size), view.release))
    cuts, margin = cuts_of(view, order, count), int(np.ceil(MARGIN * view.size / count))
    first, last = cuts[at], cuts[at + 1]
    which = np.arange(max(first - margin, 0), min(last + margin, view.size))
    ends = np.iinfo(np.int64)
    return Stretch(
        order[which],
        (first <= which) & (which < last),
        int(view.release[order[first]]) if at else ends.min,
        int(view.release[order[last]]) if at + 1 < count else ends.max,
    )


def in_parts(
    part: Callable[..., Mapping[str, Any]], view: RigidView, options: SolveOptions, objective: str, stretches: int
) -> list[Mapping[str, Any]]:
    """Return what is known of all stretches of a log: what the options know, and what is solved here; [] for one."""
    count = number_of(view.size, stretches)
    if count == 1:
        return []
    missing = [at for at in range(count) if at not in options.parts]
    limit = None if options.time_limit_s is None else APART * options.time_limit_s / max(len(missing), 1)
    own = replace(options, parts={}, time_limit_s=limit)
    found = {at: part(view, own, at, objective=objective, stretches=stretches) for at in missing}
    return [options.parts[at] if at in options.parts else found[at] for at in range(count)]


def cuts_of(view: RigidView, order: Ints, count: int) -> Ints:
    """Return ``(count + 1,)`` places in the `order` of release at which stretches begin, and the end of the last."""
    release, left = view.release[order], np.zeros(view.size)
    place = np.argsort(order, kind="stable")
    for jobs, capacity in view.by_pool():
        begin, area = view.release[jobs].astype(float), view.duration[jobs] * view.gpus[jobs] / capacity
        work = np.cumsum(area)
        over = work + np.maximum.accumulate(begin - work + area)
        before = np.searchsorted(place[jobs], np.arange(view.size)) - 1
        left += np.where(before >= 0, np.maximum(over[before] - release, 0.0) * capacity, 0.0)
    reach, even = int(NEAR * view.size / count), (np.arange(1, count) * view.size // count).tolist()
    quiet = [at - reach + int(left[at - reach : at + reach + 1].argmin()) for at in even]
    return np.array([0, *quiet, view.size])
