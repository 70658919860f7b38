"""``harness adversary``: search, shrink and save, in worker processes, until the budget is used up."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from schedgap.harness.adversary.row import Adversary, Proved, Slice, Worst
from schedgap.harness.adversary.search import EXACT, Lab, provers, searchable, usable, worst
from schedgap.harness.adversary.task import SearchTask, ShrinkTask
from schedgap.harness.compare.methods import find_spec
from schedgap.harness.engine.limits import Limits
from schedgap.harness.engine.pool import workers_for
from schedgap.harness.engine.study import Finished, Running, Study, command_line, execute
from schedgap.harness.engine.task import Task
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

SUFFIXES = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """Return the seconds of ``300``, ``300s``, ``5m`` or ``1h``.

    Raises
    ------
    UsageError
        If the text is no positive duration.
    """
    number = text.strip().rstrip("smhin")
    unit = SUFFIXES.get(text.strip()[len(number) :])
    try:
        found = float(number) * (unit or math.nan)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise UsageError(f"--budget {text}: a positive duration, such as 300s, 5m or 1h")
    return found


def resolve(names: Sequence[str]) -> list[HeuristicSpec]:
    """Return the heuristics that names mean: ids, patterns, papers (all their online ones), ``*`` for all.

    Raises
    ------
    UnknownNameError
        If a name matches nothing.
    UsageError
        If no model proves optima of its problem, so that no ratio would be proved.
    """
    possible = {spec.id: spec for spec in searchable()}
    chosen: dict[str, HeuristicSpec] = {}
    for name in names:
        found = HEURISTICS.matching([name, f"{name}.*"] if name in PAPERS else [name])
        if not found:
            raise UnknownNameError(unknown("heuristic", name, possible))
        mine = [spec for spec in found if base_id(spec.id) in possible]
        if not mine:
            raise UsageError(f"{name}: {_why_not(found[0])}")
        chosen |= {spec.id: spec for spec in mine}
    return list(chosen.values())


def _why_not(spec: HeuristicSpec) -> str:
    if spec.kind != "online":
        return f"{spec.id} is a baseline; ratios are searched for online algorithms"
    if not provers(spec):
        return f"no exact model decides {spec.problem}, so that no ratio would be proved"
    return f"there are no small instances of {spec.paper}"


def adversary(
    names: Sequence[str],
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
    specs = resolve(names)
    options = {
        "heuristic": list(names),
        "anywhere": anywhere,
        "most_jobs": None if most == MOST_JOBS else most,
        "budget": f"{budget_s:g}s",
        "seed": seed,
        **limits.given(EXACT),
    }
    labs = [Lab(spec.id, usable(spec.id), anywhere, limits) for spec in specs]
    plan = Plan(labs, budget_s, tries, most, seed, workers_for(running.get("jobs", 0), 1), limits)
    return execute(
        STUDY,
        plan,
        {"command": command_line(options, "adversary"), "heuristics": [spec.id for spec in specs]},
        **running,
    )


@dataclass(frozen=True)
class Plan:
    """Stages of a search: in each a slice or several of every heuristic, from the worst found so far; then shrinking.

    Stages depend on nothing but what the ones before found, so that a resumed search goes on where it was.
    """

    labs: Sequence[Lab]
    budget_s: float
    tries: int | None
    most: int
    seed: int
    workers: int
    limits: Limits

    @property
    def width(self) -> int:
        """Slices of one heuristic in a stage: enough for all workers."""
        return math.ceil(self.workers / len(self.labs))

    @property
    def stages(self) -> int:
        """Stages that the search has time for."""
        if self.tries is not None:
            return 1
        return max(1, int(self.budget_s * (1 - SHRINK_SHARE) * self.workers / (SLICE_S * self.width * len(self.labs))))

    def __call__(self, done: Sequence[Slice]) -> Sequence[Task[Slice]]:
        """Return the next stage."""
        searched = sum(not one.shrunk for one in done)
        stage = searched // (self.width * len(self.labs))
        if stage < self.stages:
            return [self._slice(lab, done, stage * self.width + k) for lab in self.labs for k in range(self.width)]
        if searched < len(done):
            return []
        found = [(lab, one) for lab in self.labs for one in _best(lab.heuristic, done) if one is not None]
        seconds = self.budget_s * SHRINK_SHARE * min(1.0, self.workers / max(len(found), 1))
        return [ShrinkTask(lab, one, seconds, limits=self.limits) for lab, one in found]

    def _slice(self, lab: Lab, done: Sequence[Slice], number: int) -> SearchTask:
        elite = worst([p for part in done if part.heuristic == lab.heuristic for p in part.elite])
        start = tuple(p.instance for p in elite) or _known(find_spec(lab.heuristic).paper)
        share_s = self.budget_s * (1 - SHRINK_SHARE) / self.stages * self.workers / (self.width * len(self.labs))
        seconds = share_s if self.tries is None else self.budget_s
        return SearchTask(
            lab, self.seed * 10**6 + number, start, self.tries or 10**9, seconds, self.most, limits=self.limits
        )


def _known(paper: str) -> tuple[Instance, ...]:
    """Return the worst instances that come with the package, on which other heuristics of a paper may be bad, too."""
    return tuple(load(ref) for ref in references() if ref.startswith(f"worst/{paper}."))


def _best(heuristic: str, parts: Sequence[Slice]) -> tuple[Proved | None, Proved | None]:
    """Return the worst instance with a finite ratio, and the smallest on which nothing is reached."""
    mine = [part for part in parts if part.heuristic == heuristic]
    elite = worst([one for part in mine for one in part.elite])
    nothing = min((part.nothing for part in mine if part.nothing), key=lambda one: one.size, default=None)
    return elite[0] if elite else None, nothing


def _collected(found: Finished) -> Adversary:
    entries = []
    for name in found.meta["heuristics"]:
        parts = [part for part in found.results if part.heuristic == name]
        # What was made simpler counts instead of what it was made from; Ctrl-C may have left nothing shrunk.
        simple = _best(name, [part for part in parts if part.shrunk])
        best, nothing = (a or b for a, b in zip(simple, _best(name, parts), strict=True))
        tried, proved = sum(part.tried for part in parts), sum(part.proved for part in parts)
        entries.append(Worst(name, find_spec(name).problem, best, nothing, tried, proved))
    return Adversary(found.meta, entries, folder=found.folder)


def _tables(found: Adversary) -> Mapping[str, bytes]:
    """Return ``adversary.json`` and the instances, ``worst/<heuristic>.json``."""
    files = {"adversary.json": (json.dumps([one.as_dict() for one in found.rows], indent=2) + "\n").encode()}
    for one in found.rows:
        for proved, ending in ((one.found, ""), (one.nothing, ".nothing")):
            if proved:
                name = f"{one.heuristic}{ending}"
                files[f"worst/{name}.json"] = to_json(described(proved, one.heuristic, name)).encode()
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
