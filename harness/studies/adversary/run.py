"""``harness adversary``: search, shrink and save, in worker processes, until the budget is used up."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Unpack

from schedgap.harness.engine.pool import workers_for
from schedgap.harness.engine.study import Finished, Running, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits, Task
from schedgap.harness.show.text import number
from schedgap.harness.studies.adversary.families import families_of
from schedgap.harness.studies.adversary.row import Adversary, Proved, Slice, Worst
from schedgap.harness.studies.adversary.task import (
    EXACT,
    KeptSlice,
    Lab,
    SearchTask,
    ShrinkTask,
    searchable,
    worst,
)
from schedgap.harness.studies.compare.methods import find_spec
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.instances.canonical import to_json
from schedgap.instances.catalogue import load, references
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance, Published

SLICE_S = 10.0
"""Seconds of a slice: results of several processes are then merged, and Ctrl-C keeps them."""

MOST_JOBS = 6
"""Largest number of jobs or tenants; up to this size, exact optima take milliseconds."""

SHRINK_SHARE = 0.25
"""Share of the budget that is reserved for shrinking."""


def seconds_of(text: str) -> float:
    """Return the seconds of ``300``, ``300s``, ``5m`` or ``1h``; raise `UsageError` unless the duration is positive."""
    import pandas as pd

    seconds = pd.to_timedelta(f"{text}s" if text[-1:].isdigit() else text, errors="coerce").total_seconds()
    if not seconds > 0:
        raise UsageError(f"--budget {text}: a positive duration, such as 300s, 5m or 1h")
    return seconds


def resolve(names: Sequence[str]) -> list[HeuristicSpec]:
    """Return the heuristics that match names: ids, patterns, papers (all their online heuristics), or ``*`` for all.

    Raise `UnknownNameError` if a name matches nothing, and `UsageError` if no model solves the problem.
    """
    possible = [spec.id for spec in searchable()]
    chosen: dict[str, HeuristicSpec] = {}
    for name in names:
        matching = HEURISTICS.matching([name, f"{name}.*"] if name in PAPERS else [name])
        if not matching:
            raise UnknownNameError(unknown("heuristic", name, possible))
        specs = [spec for spec in matching if base_id(spec.id) in possible]
        if not specs:
            first = matching[0]
            why = f"there are no small instances of {first.paper}"
            if first.kind != "online":
                why = f"{first.id} is a baseline; ratios are searched for online algorithms"
            raise UsageError(f"{name}: {why}")
        chosen |= {spec.id: spec for spec in specs}
    return list(chosen.values())


def adversary(
    names: str | Sequence[str],
    *,
    budget_s: float = 60.0,
    tries: int | None = None,
    most: int = MOST_JOBS,
    anywhere: bool = False,
    seed: int = 0,
    limits: Limits = EXACT,
    **running: Unpack[Running],
) -> Adversary:
    """Search for the instance on which each heuristic is furthest from optimal, shrink it and save it.

    The search tries those of ``worst/`` and of the hard families, random small instances, and mutations of the worst
    ones so far: arrivals one by one and together, sizes, rates, weights, curves, order, number of jobs, capacity,
    horizon. A ratio is to a verified decision, on small instances to an exact optimum.

    Parameters
    ----------
    names
        Ids, patterns or papers (see :func:`resolve`).
    budget_s
        Total seconds: three quarters for the search, the rest for shrinking. It ends with the solve that is under way.
    tries
        Largest number of instances per slice; there is then one slice per worker. If the search ends before `budget_s`,
        the same call finds the same instances again.
    most
        Largest number of jobs or tenants of an instance.
    anywhere
        Also count instances on which the paper's guarantee is infinite.
    seed
        Seed of the search.
    limits
        Limits of each solve of a small instance, and the memory of a worker process.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a name is unknown or no ratio of a heuristic can be found.
    """
    began = time.time()
    specs = resolve(names := several(names))
    options = {
        "heuristic": names,
        "anywhere": anywhere,
        "most_jobs": None if most == MOST_JOBS else most,
        "budget": f"{budget_s:g}s",
        "tries": tries,
        "seed": seed,
        **limits.given(EXACT),
    }
    labs = [Lab.of(spec.id, anywhere, limits) for spec in specs]
    meta = {"command": command_line(options, "adversary"), "heuristics": [spec.id for spec in specs]}
    stages = staged(labs, budget_s, tries, most, seed, workers_for(running.get("jobs", 0), 1), began)
    return execute(STUDY, stages, meta, **running)


def staged(
    labs: Sequence[Lab], budget_s: float, tries: int | None, most: int, seed: int, workers: int, began: float
) -> list[Callable[[Sequence[Slice]], Sequence[Task[Slice]]]]:
    """Return the stages: slices that search on from the worst instances, again and again, and finally shrinking.

    A stage depends only on the results of earlier ones, so a resumed search continues where it stopped. No task goes on
    after its share of the budget, counted from `began` (as `time.time` counts).
    """
    ends = began + budget_s
    width = math.ceil(workers / len(labs))  # slices of one heuristic in a stage: enough for all workers
    search_s = budget_s * (1 - SHRINK_SHARE) * workers / (width * len(labs))
    count = max(1, int(search_s / SLICE_S)) if tries is None else 1
    seconds = search_s / count if tries is None else budget_s

    def search(lab: Lab, done: Sequence[Slice], number: int) -> SearchTask:
        before = together(lab.heuristic, done)
        left = [one for one in known(lab.heuristic, most) if one.name not in before.begun]
        start, elite = tuple(left[number % width :: width]), before.elite
        until, at = ends - SHRINK_SHARE * budget_s, seed * 10**6 + number
        return SearchTask(lab, seconds, until, at, start, tries or 10**9, most, elite, limits=lab.limits)

    def searching(stage: int, done: Sequence[Slice]) -> Sequence[Task[Slice]]:
        return [search(lab, done, stage * width + k) for lab in labs for k in range(width)]

    def shrinking(done: Sequence[Slice]) -> Sequence[Task[Slice]]:
        extremes = [(lab, proved) for lab in labs for proved in together(lab.heuristic, done).extremes if proved]
        share_s = budget_s * SHRINK_SHARE * min(1.0, workers / max(len(extremes), 1))
        return [ShrinkTask(lab, share_s, ends, proved, limits=lab.limits) for lab, proved in extremes]

    return [*(partial(searching, stage) for stage in range(count)), shrinking]


def known(heuristic: str, most: int) -> tuple[Instance, ...]:
    """Return the packaged instances to begin with: the worst ones for the paper, and those of its hard families.

    They have at most `most` jobs and tenants.
    """
    packaged = [ref for ref in references() if ref.startswith(f"worst/{find_spec(heuristic).paper}.")]
    families = [family.worst(heuristic, value) for family in families_of(heuristic) for value in family.values]
    found = map(load, (*packaged, *families))
    return tuple(one for one in found if len(one.jobs) + len(one.tenants) <= most)


def together(heuristic: str, parts: Iterable[Slice]) -> Slice:
    """Merge the slices of a heuristic's search."""
    mine = [part for part in parts if part.heuristic == heuristic]
    elite = worst([proved for part in mine for proved in part.elite])
    nothing = min((part.nothing for part in mine if part.nothing), key=lambda proved: proved.size, default=None)
    tried, proved = sum(part.tried for part in mine), sum(part.proved for part in mine)
    begun = tuple(name for part in mine for name in part.begun)
    return Slice(heuristic, tuple(elite), nothing, tried, proved, begun=begun)


def _collected(finished: Finished) -> Adversary:
    entries = []
    for name in finished.meta["heuristics"]:
        whole = together(name, finished.results)
        # Shrunk instances replace their originals; after Ctrl-C there may be none.
        simple = together(name, (part for part in finished.results if part.shrunk))
        best, nothing = (a or b for a, b in zip(simple.extremes, whole.extremes, strict=True))
        entries.append(Worst(name, find_spec(name).problem, best, nothing, whole.tried, whole.proved))
    return Adversary(finished.meta, entries, folder=finished.folder)


def _tables(result: Adversary) -> Mapping[str, bytes]:
    """Return ``adversary.json`` and the instances, ``worst/<heuristic>.json``."""
    files = {"adversary.json": (json.dumps([row.as_dict() for row in result.rows], indent=2) + "\n").encode()}
    for row in result.rows:
        for name, proved in ((row.heuristic, row.found), (f"{row.heuristic}.nothing", row.nothing)):
            if proved:
                files[f"worst/{name}.json"] = to_json(described(proved, row.heuristic, name)).encode()
    return files


STUDY = Study("adversary", (KeptSlice,), _collected, _tables)


def described(proved: Proved, heuristic: str, name: str) -> Instance:
    """Return the instance with a title that states the result, and with both objectives as published numbers.

    A comparison on the instance then tests both numbers.
    """
    ratio = (
        "nothing, where something can be had"
        if math.isinf(proved.ratio)
        else f"ratio at least {number(proved.ratio, 6, 'at least')}"
    )
    return proved.instance.model_copy(
        update={
            "name": f"worst/{name}",
            "title": f"Worst instance found for {heuristic}: {ratio}",
            "source": "harness adversary",
            "published": tuple(
                Published(method=method, exact=value, where="harness adversary", note="both decisions are verified")
                for method, value in ((heuristic, proved.objective), (proved.model, proved.optimum))
            ),
        }
    )
