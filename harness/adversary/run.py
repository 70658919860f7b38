"""``harness adversary``: search, shrink and save, in worker processes, until the budget is used up."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Unpack

from schedgap.harness.adversary.row import Adversary, Proved, Slice, Worst
from schedgap.harness.adversary.task import EXACT, Lab, SearchTask, ShrinkTask, provers, searchable, usable, worst
from schedgap.harness.compare.methods import find_spec
from schedgap.harness.engine.pool import workers_for
from schedgap.harness.engine.study import Finished, Running, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits, Task
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.instances.canonical import to_json
from schedgap.instances.catalogue import load, references
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance, Published

SLICE_S = 10.0
"""Seconds after which what several processes found is put together, and what Ctrl-C keeps."""

MOST_JOBS = 6
"""Jobs or tenants up to which optima are exact within milliseconds."""

SHRINK_SHARE = 0.25
"""Share of the budget that is kept for making what was found simple."""


def seconds_of(text: str) -> float:
    """Return the seconds of ``300``, ``300s``, ``5m`` or ``1h``, or raise `UsageError` for no positive duration."""
    import pandas as pd

    found = pd.to_timedelta(f"{text}s" if text[-1:].isdigit() else text, errors="coerce").total_seconds()
    if not found > 0:
        raise UsageError(f"--budget {text}: a positive duration, such as 300s, 5m or 1h")
    return found


def resolve(names: Sequence[str]) -> list[HeuristicSpec]:
    """Return the heuristics that names mean: ids, patterns, papers (all their online ones), ``*`` for all.

    It raises `UnknownNameError` if a name matches nothing, and `UsageError` if no model proves optima of its problem,
    so that no ratio would be proved.
    """
    possible = [spec.id for spec in searchable()]
    chosen: dict[str, HeuristicSpec] = {}
    for name in names:
        found = HEURISTICS.matching([name, f"{name}.*"] if name in PAPERS else [name])
        if not found:
            raise UnknownNameError(unknown("heuristic", name, possible))
        mine = [spec for spec in found if base_id(spec.id) in possible]
        if not mine:
            why = f"there are no small instances of {found[0].paper}"
            if found[0].kind != "online":
                why = f"{found[0].id} is a baseline; ratios are searched for online algorithms"
            elif not provers(found[0]):
                why = f"no exact model decides {found[0].problem}, so that no ratio would be proved"
            raise UsageError(f"{name}: {why}")
        chosen |= {spec.id: spec for spec in mine}
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
    """Search the instance with the largest proved ratio of each heuristic, shrink it and save it.

    Random small instances come first, then those of ``worst/`` and changes of the worst ones known: arrivals, sizes,
    rates, weights, order, number of jobs, room. Optima are exact; every decision passes the checker.

    Parameters
    ----------
    names
        Ids, patterns or papers (see :func:`resolve`).
    budget_s
        Seconds in all: three quarters for the search, the rest for shrinking. Finding out which models prove optima
        comes on top, some seconds for each heuristic.
    tries
        Most instances per slice (the search is then one stage, and repeats exactly), instead of as many as time allows.
    most
        Most jobs or tenants of an instance.
    anywhere
        Look also where a guarantee of the paper promises nothing (it has one, and it is infinite there).
    seed
        Seed of the search.
    limits
        What a solve of a small instance may take, and the memory of a worker process.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a name is unknown or no ratio of it can be proved.
    """
    specs = resolve(names := several(names))
    options = {
        "heuristic": names,
        "anywhere": anywhere,
        "most_jobs": None if most == MOST_JOBS else most,
        "budget": f"{budget_s:g}s",
        "seed": seed,
        **limits.given(EXACT),
    }
    labs = [Lab(spec.id, usable(spec.id), anywhere, limits) for spec in specs]
    meta = {"command": command_line(options, "adversary"), "heuristics": [spec.id for spec in specs]}
    plan = staged(labs, budget_s, tries, most, seed, workers_for(running.get("jobs", 0), 1))
    return execute(STUDY, plan, meta, **running)


def staged(
    labs: Sequence[Lab], budget_s: float, tries: int | None, most: int, seed: int, workers: int
) -> Callable[[Sequence[Slice]], Sequence[Task[Slice]]]:
    """Return the stages: slices of every heuristic's search, each from the worst found so far; then shrinking.

    Stages depend on nothing but what the ones before found, so that a resumed search goes on where it was.
    """
    width = math.ceil(workers / len(labs))  # slices of one heuristic in a stage: enough for all workers
    search_s = budget_s * (1 - SHRINK_SHARE) * workers / (width * len(labs))
    stages = max(1, int(search_s / SLICE_S)) if tries is None else 1
    seconds = search_s / stages if tries is None else budget_s

    def search(lab: Lab, done: Sequence[Slice], number: int) -> SearchTask:
        # On the worst instances that come with the package, other heuristics of a paper may be bad, too.
        packaged = (ref for ref in references() if ref.startswith(f"worst/{find_spec(lab.heuristic).paper}."))
        start = tuple(p.instance for p in together(lab.heuristic, done).elite) or tuple(map(load, packaged))
        return SearchTask(lab, seconds, seed * 10**6 + number, start, tries or 10**9, most, limits=lab.limits)

    def following(done: Sequence[Slice]) -> Sequence[Task[Slice]]:
        searched = sum(not one.shrunk for one in done)
        stage = searched // (width * len(labs))
        if stage < stages:
            return [search(lab, done, stage * width + k) for lab in labs for k in range(width)]
        if searched < len(done):
            return []
        found = [(lab, one) for lab in labs for one in together(lab.heuristic, done).extremes if one]
        share_s = budget_s * SHRINK_SHARE * min(1.0, workers / max(len(found), 1))
        return [ShrinkTask(lab, share_s, one, limits=lab.limits) for lab, one in found]

    return following


def together(heuristic: str, parts: Iterable[Slice]) -> Slice:
    """Return what parts of a search found of a heuristic."""
    mine = [part for part in parts if part.heuristic == heuristic]
    elite = worst([one for part in mine for one in part.elite])
    nothing = min((part.nothing for part in mine if part.nothing), key=lambda one: one.size, default=None)
    return Slice(heuristic, tuple(elite), nothing, sum(part.tried for part in mine), sum(part.proved for part in mine))


def _collected(found: Finished) -> Adversary:
    entries = []
    for name in found.meta["heuristics"]:
        whole = together(name, found.results)
        # What was made simpler counts instead of what it was made from; Ctrl-C may have left nothing shrunk.
        simple = together(name, (part for part in found.results if part.shrunk))
        best, nothing = (a or b for a, b in zip(simple.extremes, whole.extremes, strict=True))
        entries.append(Worst(name, find_spec(name).problem, best, nothing, whole.tried, whole.proved))
    return Adversary(found.meta, entries, folder=found.folder)


def _tables(found: Adversary) -> Mapping[str, bytes]:
    """Return ``adversary.json`` and the instances, ``worst/<heuristic>.json``."""
    files = {"adversary.json": (json.dumps([one.as_dict() for one in found.rows], indent=2) + "\n").encode()}
    named = [(one.heuristic, name, p) for one in found.rows for name, p in (("", one.found), (".nothing", one.nothing))]
    for heuristic, ending, proved in named:
        if proved:
            name = f"{heuristic}{ending}"
            files[f"worst/{name}.json"] = to_json(described(proved, heuristic, name)).encode()
    return files


STUDY = Study("adversary", (Slice,), _collected, _tables)


def described(proved: Proved, heuristic: str, name: str) -> Instance:
    """Return an instance that says what was found on it, and by which both numbers are tested when it is compared."""
    ratio = "nothing, where something can be had" if math.isinf(proved.ratio) else f"ratio {proved.ratio:.6g}, proved"
    return proved.instance.model_copy(
        update={
            "name": f"worst/{name}",
            "title": f"Worst instance found for {heuristic}: {ratio}",
            "source": "harness adversary",
            "published": tuple(
                Published(method=method, exact=value, where="harness adversary", note="the ratio is proved")
                for method, value in ((heuristic, proved.objective), (proved.model, proved.optimum))
            ),
        }
    )
