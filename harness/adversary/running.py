"""``harness adversary``: search, shrink and save, in worker processes, until the budget is used up."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import environment
from harness.adversary.search import Lab, Proved, Slice, provers, search, searchable, shrink, usable, worst
from harness.pool import run_all, workers_for
from harness.store import ADVERSARY, new_folder
from heuristics import HEURISTICS, HeuristicSpec
from instances.canonical import write, write_atomically
from instances.catalogue import load, references
from instances.errors import UnknownNameError, UsageError
from instances.parameters import base_id
from instances.registry import PAPERS, unknown
from instances.schema import Instance, Published

SLICE_S = 10.0
"""Seconds after which what several processes found is put together, and what Ctrl-C keeps."""

MOST_JOBS = 6
"""Jobs or tenants up to which optima are exact within milliseconds."""

SHRINK_TRIES = 400
SHRINK_SHARE = 0.25
"""Share of the budget that is kept for making what was found simple."""

RESERVE_S = 120.0
"""Seconds that a slice or the shrinking may take beyond its budget before its process is killed."""

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


@dataclass(frozen=True)
class Caps:
    """What a worker process may take; see :class:`harness.pool.Caps`."""

    hard_limit_s: float
    memory_mb: int = 4096
    threads: int = 1


@dataclass(frozen=True)
class SearchTask:
    """A slice of the search, in a worker process."""

    lab: Lab
    seed: int
    start: tuple[Instance, ...]
    tries: int
    seconds: float
    most: int

    @property
    def limits(self) -> Caps:
        """What it may take."""
        return Caps(self.seconds + RESERVE_S)

    def run(self) -> Slice:
        """Search."""
        return search(self.lab, self.seed, self.start, self.tries, self.seconds, self.most)

    def failed(self, status: Any, reason: str) -> Slice:
        """Return what a slice found whose process died: nothing."""
        del status, reason
        return Slice()


@dataclass(frozen=True)
class ShrinkTask:
    """Make a found instance simpler, in a worker process."""

    lab: Lab
    found: Proved
    seconds: float

    @property
    def limits(self) -> Caps:
        """What it may take."""
        return Caps(self.seconds + RESERVE_S)

    def run(self) -> Proved:
        """Shrink."""
        return shrink(self.lab, self.found, SHRINK_TRIES, self.seconds)

    def failed(self, status: Any, reason: str) -> Proved:
        """Return the instance as it was."""
        del status, reason
        return self.found


@dataclass(frozen=True)
class Worst:
    """The worst that was found of one heuristic.

    Attributes
    ----------
    heuristic, problem
        Whose ratio, to the optimum of which problem.
    found
        The worst finite ratio; ``None`` where nothing was proved.
    nothing
        The smallest instance on which it reaches nothing although something can be had; its ratio is infinite.
    tried, proved
        Instances that were tried, and those whose optimum was proved.
    """

    heuristic: str
    problem: str
    found: Proved | None
    nothing: Proved | None
    tried: int
    proved: int

    @property
    def exceeded(self) -> bool:
        """Whether the paper's guarantee does not hold on the worst instance."""
        factor = self.found.guarantee_factor if self.found else None
        return bool(self.found and factor is not None and self.found.ratio > factor * (1 + 1e-6))


@dataclass(frozen=True)
class Adversary:
    """What a run found.

    Attributes
    ----------
    worst
        One entry per heuristic.
    folder
        Results folder, where it was saved.
    interrupted
        Whether Ctrl-C ended it before its budget did.
    """

    worst: tuple[Worst, ...]
    folder: Path | None
    interrupted: bool = False


def adversary(
    names: Sequence[str],
    *,
    budget_s: float = 60.0,
    tries: int | None = None,
    most: int = MOST_JOBS,
    anywhere: bool = False,
    seed: int = 0,
    jobs: int = 0,
    results: Path | None = None,
    on_slice: Callable[[str, float, float], None] = lambda name, ratio, share: None,
) -> Adversary:
    """Search the instance with the largest proved ratio of each heuristic, shrink it and save it.

    Random small instances come first, then those of ``worst/`` and changes of the worst ones known: arrivals, sizes,
    rates, weights, order, number of jobs, room. Optima are exact; every decision passes the checker.

    Parameters
    ----------
    names
        Ids, patterns or papers (see :func:`resolve`).
    budget_s
        Seconds in all, shared evenly: three quarters for the search, the rest for shrinking. Finding out which models
        prove optima comes on top, some seconds for each heuristic.
    tries
        Most instances per process and slice (the search then repeats exactly), instead of as many as time allows.
    most
        Most jobs or tenants of an instance.
    anywhere
        Look also where a guarantee of the paper promises nothing (it has one, and it is infinite there).
    seed
        Seed of the search.
    jobs
        Worker processes; 0 for as many as there are cores.
    results
        Folder in which a results folder is made; nothing is written where absent.
    on_slice
        Called with heuristic, largest ratio so far, and share of the budget that is used up.

    Raises
    ------
    UsageError
        If a name is unknown or no ratio of it can be proved.
    """
    specs = resolve(names)
    share_s = budget_s / len(specs)
    found: list[Worst] = []
    interrupted = False
    for i, spec in enumerate(specs):
        say = _progress(on_slice, spec.id, i / len(specs), 1 / len(specs))
        lab = Lab(spec.id, usable(spec.id), anywhere)
        one, interrupted = _one(spec, lab, share_s, tries, most, seed, jobs, say)
        found.append(one)
        if interrupted:
            break
    words = [w for name in names for w in ("--heuristic", name)] + ["--anywhere"] * anywhere
    words += ["--most-jobs", str(most)] * (most != MOST_JOBS)
    command = shlex.join(["harness", "adversary", *words, "--budget", f"{budget_s:g}s", "--seed", str(seed)])
    folder = _save(results, found, command) if results else None
    return Adversary(tuple(found), folder, interrupted)


def _progress(
    on_slice: Callable[[str, float, float], None], name: str, before: float, width: float
) -> Callable[[float, float], None]:
    return lambda ratio, share: on_slice(name, ratio, before + width * share)


def _one(
    spec: HeuristicSpec,
    lab: Lab,
    budget_s: float,
    tries: int | None,
    most: int,
    seed: int,
    jobs: int,
    say: Callable[[float, float], None],
) -> tuple[Worst, bool]:
    """Search the worst instance of one heuristic; return it, and whether Ctrl-C ended the search."""
    elite: list[Proved] = []
    nothing: Proved | None = None
    counts = [0, 0]
    ends, number, interrupted = time.perf_counter() + budget_s * (1 - SHRINK_SHARE), 0, False
    start = _known(spec)
    try:
        while (left := ends - time.perf_counter()) > 0 and not (tries is not None and number):
            width = workers_for(jobs, 1)
            seconds = min(SLICE_S, left) if tries is None else budget_s
            tasks = [
                SearchTask(lab, seed * 10**6 + number + k, start, tries or 10**9, seconds, most) for k in range(width)
            ]
            number += width
            for part in run_all(tasks, jobs):
                elite = worst([*elite, *part.elite])
                nothing = _smaller(nothing, part.nothing)
                counts = [counts[0] + part.tried, counts[1] + part.proved]
                say(elite[0].ratio if elite else math.nan, 1 - max(0.0, ends - time.perf_counter()) / budget_s)
            start = tuple(p.instance for p in elite)
        best, nothing = _shrunk(lab, [elite[0] if elite else None, nothing], budget_s * SHRINK_SHARE, jobs)
    except KeyboardInterrupt:
        best, interrupted = elite[0] if elite else None, True
    return Worst(spec.id, spec.problem, best, nothing, *counts), interrupted


def _known(spec: HeuristicSpec) -> tuple[Instance, ...]:
    """Return the worst instances that come with the package, on which this heuristic may be bad, too."""
    return tuple(load(ref) for ref in references() if ref.startswith(f"worst/{spec.paper}."))


def _smaller(one: Proved | None, other: Proved | None) -> Proved | None:
    return min((p for p in (one, other) if p), key=lambda p: p.size, default=None)


def _shrunk(lab: Lab, found: Sequence[Proved | None], seconds: float, jobs: int) -> list[Proved | None]:
    tasks = [ShrinkTask(lab, one, seconds) for one in found if one is not None]
    simple = list(run_all(tasks, jobs))
    by_kind = {math.isinf(one.ratio): one for one in simple}
    return [by_kind.get(False), by_kind.get(True)]


# ------------------------------------------------------------------------------------------------------------- saving


def _save(results: Path, found: Sequence[Worst], command: str) -> Path:
    """Write ``run.json``, ``adversary.json`` and the instances, ``worst/<heuristic>.json``."""
    meta = {
        "schema_version": 1,
        "kind": ADVERSARY,
        "command": command,
        "started_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "versions": environment.versions(),
        "machine": environment.machine(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
    }
    folder = new_folder(results, meta, "-adversary")
    try:
        (folder / "worst").mkdir(parents=True)
        for one in found:
            for proved, ending in ((one.found, ""), (one.nothing, ".nothing")):
                if proved:
                    name = f"{one.heuristic}{ending}"
                    write(described(proved, one.heuristic, name), folder / "worst" / f"{name}.json")
        write_atomically(folder / "run.json", (json.dumps(meta, indent=2, sort_keys=True) + "\n").encode())
        content = json.dumps([as_dict(one) for one in found], indent=2) + "\n"
        write_atomically(folder / "adversary.json", content.encode())
    except OSError as error:
        raise UsageError(f"{folder}: results cannot be written there: {error.strerror or error}") from error
    return folder


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


def as_dict(one: Worst) -> dict[str, Any]:
    """Return an entry as plain data, without the instances; an infinite ratio is ``null``."""
    names = ("ratio", "objective", "optimum", "model", "guarantee", "guarantee_factor", "size")
    found = {name: getattr(one.found, name) if one.found else None for name in names}
    mark = one.found.instance.fingerprint if one.found else None
    extra = {"exceeded": one.exceeded, "nothing": one.nothing is not None, "tried": one.tried, "proved": one.proved}
    return {"heuristic": one.heuristic, "problem": one.problem, **found, "fingerprint": mark, **extra}
