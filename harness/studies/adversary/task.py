"""Tasks of the search for instances on which a heuristic is furthest from the optimum of a model.

Instances are mutated, the worst ones are mutated further, and the results are simplified (shrunk).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from typing import Any, cast

import numpy as np

from schedgap.harness.check import differ
from schedgap.harness.engine.task import Limits, Task
from schedgap.harness.studies.adversary.families import as_bad, ratios_on
from schedgap.harness.studies.adversary.row import Proved, Slice
from schedgap.harness.studies.compare.methods import find_spec, promised_of
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.instances.canonical import validate
from schedgap.instances.errors import InstanceError
from schedgap.instances.parameters import base_id
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted
from schedgap.models import MODELS, ModelSpec

Document = dict[str, Any]
Place = tuple[Any, Any]
"""A container and the key or index of a number in it."""

MEMBERS = ("jobs", "tenants")
"""Lists whose entries are mutated, duplicated and dropped."""

FIXED = frozenset({"duration_s", "leave_s", "cpus_per_gpu", "memory_gb_per_gpu"})
"""Fields whose numbers are never mutated: records of past runs, and levels of tables."""

FACTORS = (0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0)
LARGEST = 1e4
"""Numbers stay below this value, so that solver tolerances do not matter."""


def document(instance: Instance) -> Document:
    """Return an instance as plain data, including default values but not its published numbers and provenance."""
    content: Document = instance.model_dump(mode="json", exclude={"published", "source", "title", "derived"})
    return content


def possible(content: Document, most: int) -> Instance | None:
    """Return the instance, or ``None`` if it is invalid or has more than `most` jobs and tenants."""
    if sum(len(content[name]) for name in MEMBERS) > most:
        return None
    try:
        return validate(content, "candidate")
    except InstanceError:
        return None


def numbers(value: Any, fixed: frozenset[str] = FIXED) -> Iterator[Place]:
    """Yield the places of all mutable numbers inside `value`."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        if key in fixed:
            continue
        if isinstance(item, int | float) and not isinstance(item, bool):
            yield value, key
        else:
            yield from numbers(item, fixed)


# ------------------------------------------------------------------------------------------------------------ search


def mutated(content: Document, rng: np.random.Generator) -> Document:
    """Return a copy with one to three random changes."""
    mutant = copy.deepcopy(content)
    changes = [*OPERATORS]
    for _ in range(int(rng.integers(1, 4))):
        changes[int(rng.choice(len(changes), p=[*OPERATORS.values()]))](mutant, rng)
    return mutant


def _members(content: Document) -> list[Any]:
    return next((content[name] for name in MEMBERS if content[name]), [])


def _name(members: Sequence[Any]) -> str:
    """Return an id that no member has."""
    taken = {member["id"] for member in members}
    return next(name for i in range(len(taken) + 1) if (name := f"J{i}") not in taken)


def _one(items: list[Any], rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _scale(content: Document, rng: np.random.Generator) -> None:
    """Multiply a number of a job or tenant by a factor, or set it to 0, 1 or 2."""
    places = list(numbers(_members(content)))
    if places:
        holder, key = _one(places, rng)
        old = holder[key]
        new = old * _one(list(FACTORS), rng) if old and rng.random() < 0.8 else float(rng.integers(0, 3))
        holder[key] = _like(old, min(new, LARGEST))


def _copy(content: Document, rng: np.random.Generator) -> None:
    """Copy a number from one job or tenant to the same place in another."""
    members = _members(content)
    if len(members) < 2:
        return
    here, there = (members[int(i)] for i in rng.choice(len(members), 2, replace=False))
    ours, theirs = list(numbers(here)), list(numbers(there))
    if len(ours) == len(theirs) and ours:
        k = int(rng.integers(len(ours)))
        (holder, key), (other, same) = ours[k], theirs[k]
        if key == same:
            holder[key] = _like(holder[key], other[same])


def _double(content: Document, rng: np.random.Generator) -> None:
    """Add a copy of a job or tenant, at a random place."""
    members = _members(content)
    if members:
        twin = {**copy.deepcopy(_one(members, rng)), "id": _name(members)}
        members.insert(int(rng.integers(len(members) + 1)), twin)


def _drop(content: Document, rng: np.random.Generator) -> None:
    members = _members(content)
    if len(members) > 1:
        members.pop(int(rng.integers(len(members))))


def _swap(content: Document, rng: np.random.Generator) -> None:
    """Exchange two jobs or tenants, since ties are broken by their order."""
    members = _members(content)
    if len(members) > 1:
        i, j = (int(i) for i in rng.choice(len(members), 2, replace=False))
        members[i], members[j] = members[j], members[i]


def _room(content: Document, rng: np.random.Generator) -> None:
    group = _one(content["cluster"]["servers"], rng)
    key = _one(["gpus", "count"], rng)
    group[key] = max(1, group[key] + int(_one([-1, 1], rng)))


def _shift(content: Document, rng: np.random.Generator) -> None:
    """Move all arrivals from some job's on, together, by a slot or by a job's distance to another."""
    jobs = content["jobs"]
    if jobs:
        begins = [job["submit_s"] for job in jobs]
        slot_s = (content.get("horizon") or {"slot_s": 1.0})["slot_s"]
        by = _one([slot_s, -slot_s, _one(begins, rng) - _one(begins, rng)], rng)
        since = _one(begins, rng)
        for job in jobs:
            if job["submit_s"] >= since:
                job["submit_s"] = max(0.0, job["submit_s"] + by)


def _stretch(content: Document, rng: np.random.Generator) -> None:
    """Make the horizon longer or shorter, by a slot or by a factor."""
    if content.get("horizon"):
        slots = content["horizon"]["slots"]
        longer = _one([slots - 1, slots + 1, slots // 2, slots * 2], rng)
        content["horizon"]["slots"] = int(min(max(longer, 1), LARGEST))


def _continue(content: Document, rng: np.random.Generator) -> None:
    """Add a job after the last one, which differs from it as it does from another one; the horizon moves along."""
    jobs = content["jobs"]
    if len(jobs) < 2:
        return
    other, last = _one(jobs[:-1], rng), jobs[-1]
    new = {**copy.deepcopy(last), "id": _name(jobs)}
    before, after = list(numbers(other)), list(numbers(new))
    if [key for _, key in before] != [key for _, key in after]:
        return
    for (old, _), (holder, key) in zip(before, after, strict=True):
        holder[key] = _like(holder[key], min(max(0.0, 2 * holder[key] - old[key]), LARGEST))
    jobs.append(new)
    if horizon := content.get("horizon"):
        horizon["slots"] += max(0, round((new["submit_s"] - last["submit_s"]) / horizon["slot_s"]))


OPERATORS: Mapping[Callable[[Document, np.random.Generator], None], float] = {
    _scale: 0.45,
    _copy: 0.1,
    _double: 0.08,
    _drop: 0.08,
    _swap: 0.06,
    _room: 0.06,
    _shift: 0.06,
    _stretch: 0.05,
    _continue: 0.06,
}
"""Changes with their probabilities."""


def _like(old: float, new: float) -> float:
    """Return `new` as an integer if `old` is one, else as a float."""
    return max(0, round(new)) if isinstance(old, int) else float(new)


# --------------------------------------------------------------------------------------------------------- shrinking


LISTS = (*((name,) for name in (*MEMBERS, "worker_types", "ps_types")), ("cluster", "servers"))
"""Paths of the lists that shrinking may shorten."""


def simpler(content: Document) -> Iterator[Document]:
    """Yield copies with one simplification: a job, group or type removed, a smaller size, or a rounder number."""
    for path in LISTS:
        *outer, name = path
        holder: Any = reduce(getitem, outer, content)
        items = holder[name]
        for i in range(len(items) if len(items) > 1 else 0):
            yield _with(content, holder, name, [*items[:i], *items[i + 1 :]])
    sizes = [(group, key) for group in content["cluster"]["servers"] for key in ("count", "gpus", "ps_slots")]
    sizes += [(content["horizon"], "slots")] if content.get("horizon") else []
    yield from (_with(content, holder, key, holder[key] - 1) for holder, key in sizes if holder[key] > 1)
    for holder, key in numbers(_members(content)):
        old = holder[key]
        for new in (0, 1, *(float(f"{old:.{digits}g}") for digits in (1, 2, 3))):
            if _complexity(new) < _complexity(old):
                yield _with(content, holder, key, _like(old, new))


def _with(content: Document, holder: Any, key: Any, value: Any) -> Document:
    """Return a copy of `content` with another value at a place in it."""
    old, holder[key] = holder[key], value
    try:
        return copy.deepcopy(content)
    finally:
        holder[key] = old


def _complexity(value: float) -> tuple[int, float]:
    """Return how hard a number is to read: its significant digits first, then its size.

    The adversary prefers the simpler of two instances that are equally bad; 0.5 is simpler than 0.4871.
    """
    return (len(f"{float(value):.12g}".replace(".", "").strip("0")), abs(value))


ELITE = 6
"""Number of the worst instances that are mutated further."""

FRESH = 0.15
"""Share of new random instances among those tried."""

EXACT = Limits(time_limit_s=2.0, rel_gap=0.0)
"""Limits of a method on a small instance."""

LEAST_GAIN = 1e-6
"""Relative difference of ratios below which instances count as equally bad."""

LOSS = 1e-3
"""Fraction of the ratio that a simpler instance may lose."""

SHRINK_TRIES = 400

RESERVE_S = 120.0
"""Seconds that a slice or the shrinking may take beyond its budget before its process is killed."""


def provers(heuristic: HeuristicSpec) -> list[ModelSpec]:
    """Return the exact models of a heuristic's problem, the cheapest on small instances first.

    A model that is one program takes one solve there; one that generates columns or rows takes several. Models are
    not timed: that would use up a short budget before the search begins, and make its path depend on the machine.
    """
    models = [model for model in MODELS if model.problem == heuristic.problem and model.kind == "exact"]
    return sorted(models, key=lambda model: model.procedure is not None)


def peers(heuristic: HeuristicSpec) -> list[str]:
    """Return the other methods whose verified decisions are quick to get: heuristics, and models that search."""
    mine = base_id(heuristic.id)
    others = [
        one.id for one in HEURISTICS if one.problem == heuristic.problem and base_id(one.id) != mine and not one.by_name
    ]
    settings = [one.id for one in HEURISTICS if base_id(one.id) == mine and one.id != heuristic.id]
    searches = [model.id for model in MODELS if model.problem == heuristic.problem and model.kind == "matheuristic"]
    return [*others, *settings, *searches]


def searchable() -> list[HeuristicSpec]:
    """Return the online heuristics of papers with small random instances for which another method makes decisions."""
    return [h for h in HEURISTICS if h.kind == "online" and h.paper in RANDOM and (provers(h) or peers(h))]


EXACT_SIZE = 8
"""Most jobs and tenants of an instance on which exact models are tried first."""


@dataclass(frozen=True)
class Lab:
    """A heuristic and the models that it is compared with, in the order in which they are tried (:meth:`of`).

    `anywhere` also admits instances on which the paper's guarantee is infinite.
    """

    heuristic: str
    models: tuple[str, ...]
    anywhere: bool = False
    limits: Limits = EXACT

    @classmethod
    def of(cls, heuristic: str, anywhere: bool = False, limits: Limits = EXACT) -> Lab:
        """Return the lab that compares a heuristic with all exact models of its problem (:func:`provers`)."""
        models = provers(cast("HeuristicSpec", find_spec(heuristic)))
        return cls(heuristic, tuple(model.id for model in models), anywhere, limits)

    def prove(self, instance: Instance, ends: float = math.inf) -> Proved | None:
        """Return the heuristic's ratio to another method's verified decision, or ``None`` if there is none.

        The ratio to the optimum is at least that. On small instances, models are tried one by one; on others, or if no
        model has a decision, all quick methods together. None is tried after the time `ends`, as `time.perf_counter`
        counts, but the first.
        """
        small = len(instance.jobs) + len(instance.tenants) <= EXACT_SIZE
        together = peers(cast("HeuristicSpec", find_spec(self.heuristic)))
        for k, others in enumerate((*((model,) for model in self.models if small), together)):
            if k and time.perf_counter() >= ends:
                return None
            compared = compare_here(instance, [self.heuristic, *others], limits=self.limits, probes=False)
            rows = {row.method: row for row in compared.rows}
            row = rows[self.heuristic]
            if row.status == "skipped" or not row.verified:
                return None
            promised = promised_of(row, instance)
            promises = promised is None or promised.measured or math.isfinite(promised.factor or math.inf)
            if not (self.anywhere or promises):
                return None
            ratio, best = row.ratio_at_least, row.best_objective
            by = [one.method for one in compared.rows if one is not row and one.verified and one.objective == best]
            if by and ratio is not None and row.objective is not None and best is not None:
                told = (promised.text, promised.factor) if promised else (None, None)
                return Proved(instance, by[0], ratio, row.objective, best, *told)
        return None


def worst(proved: Sequence[Proved]) -> list[Proved]:
    """Return the worst few instances; of equal ratios, only the smallest instance."""
    elite: list[Proved] = []
    for candidate in sorted(proved, key=lambda p: (-p.ratio, p.size)):
        if not elite or candidate.ratio < elite[-1].ratio * (1 - LEAST_GAIN):
            elite.append(candidate)
    return elite[:ELITE]


@dataclass(frozen=True)
class KeptSlice(Slice):
    """A slice in a results folder, whose ratios can be computed again."""

    def holds(self) -> str:
        """Run the heuristic and the model again on each instance; a ratio holds if they reach it again."""
        found = [*self.elite, *filter(None, [self.nothing])]
        for one in found:
            again = Lab(self.heuristic, (one.model,), anywhere=True).prove(one.instance)
            told = one.objective, one.guarantee, one.guarantee_factor
            if again is None or (again.objective, again.guarantee, again.guarantee_factor) != told:
                raise ValueError(f"{self.heuristic} gives another decision on one of its instances")
            if differ(again.optimum, one.optimum) or differ(again.ratio, one.ratio):
                raise ValueError(f"{one.model} proves a ratio of {again.ratio:.6g}, not {one.ratio:.6g}")
        return f"{counted(len(found), 'ratio')} reached again" if found else ""


# ------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _Part(Task[Slice]):
    """A task that runs for a number of seconds, but not beyond a time (as `time.time` counts)."""

    lab: Lab
    seconds: float
    until: float

    @property
    def hard_limit_s(self) -> float:
        return self.seconds + RESERVE_S

    def ends(self) -> float:
        """Return the time at which to end, as `time.perf_counter` counts."""
        return time.perf_counter() + min(self.seconds, self.until - time.time())


@dataclass(frozen=True)
class SearchTask(_Part):
    """A slice of the search: it tries the `start` instances, then random ones and mutations of the worst so far.

    The worst ones that earlier slices proved are its `elite`, and are not proved again. It ends after a number of
    `tries` or `seconds`; instances have at most `most` jobs (tenants).
    """

    seed: int
    start: tuple[Instance, ...]
    tries: int
    most: int
    elite: tuple[Proved, ...] = ()

    def identity(self) -> Mapping[str, Any]:
        """Return the fields on which the result depends, apart from the speed of the machine."""
        start = [instance.fingerprint for instance in (*self.start, *(one.instance for one in self.elite))]
        lab = [self.lab.heuristic, self.lab.anywhere]
        return {"of": [*lab, self.seed, start, self.tries, self.seconds, self.most]}

    def attempt(self) -> Slice:
        rng, ends = np.random.default_rng(self.seed), self.ends()
        draw = RANDOM.get(find_spec(self.lab.heuristic).paper).draw
        elite, begun = list(self.elite), list[str]()
        for packaged in self.start:
            if begun and time.perf_counter() >= ends:
                break
            one = self.lab.prove(packaged)
            begun.append(packaged.name)
            elite += [one] if one and math.isfinite(one.ratio) else []
        elite = worst(elite)
        nothing: Proved | None = None
        tried = proved = 0
        while tried < self.tries and time.perf_counter() < ends:
            tried += 1
            if not elite or rng.random() < FRESH:
                content = document(draw(rng))
            else:  # mutate one of the worst instances, most often the worst one
                place = min(int(rng.geometric(0.4)) - 1, len(elite) - 1)
                content = mutated(document(elite[place].instance), rng)
            instance = possible(content, self.most)
            result = self.lab.prove(instance, ends) if instance else None
            if result is None:
                continue
            proved += 1
            if math.isfinite(result.ratio):
                elite = worst([*elite, result])
            elif nothing is None or result.size < nothing.size:
                nothing = result
        return Slice(self.lab.heuristic, tuple(elite), nothing, tried, proved, begun=tuple(begun), key=self.key)

    def failed(self, status: Any, reason: str) -> Slice:
        """Return an empty slice with the reason for which its process died."""
        return Slice(self.lab.heuristic, reason=f"{status}: {reason}", key=self.key)


@dataclass(frozen=True)
class ShrinkTask(_Part):
    """Simplify an instance step by step at (nearly) the same ratio, until no simplification is left.

    `tries` is the largest number of steps.
    """

    found: Proved
    tries: int = SHRINK_TRIES

    def identity(self) -> Mapping[str, Any]:
        """Return the fields on which the result depends, apart from the speed of the machine."""
        return {"of": [self.lab.heuristic, self.lab.anywhere, self.found.instance.fingerprint, self.seconds]}

    def attempt(self) -> Slice:
        best, ends = self.found, self.ends()
        least = best.ratio * (1 - LOSS)
        for _ in range(self.tries):
            simple = next(self._simpler(best, least, ends), None)
            if simple is None:
                break
            best = simple
        ratios = ratios_on(best.instance, find_spec(self.lab.heuristic).problem, best.optimum)
        return self._slice(replace(best, also=as_bad(ratios, self.lab.heuristic, best.ratio)))

    def _simpler(self, best: Proved, least: float, ends: float) -> Iterator[Proved]:
        """Yield simpler instances with a ratio of at least `least`, until the time `ends`."""
        for content in simpler(document(best.instance)):
            if time.perf_counter() >= ends:
                return
            instance = possible(content, best.size)
            simple = self.lab.prove(instance, ends) if instance else None
            if simple is not None and simple.ratio >= least:
                yield simple

    def failed(self, status: Any, reason: str) -> Slice:
        """Return the original instance with the reason."""
        return replace(self._slice(self.found), reason=f"{status}: {reason}")

    def _slice(self, proved: Proved) -> Slice:
        elite, nothing = ((), proved) if math.isinf(proved.ratio) else ((proved,), None)
        return Slice(self.lab.heuristic, elite, nothing, shrunk=True, key=self.key)
