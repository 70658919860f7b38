"""Small changes of small instances, as plain data: to look for worse ones, and to make bad ones simple.

An instance is changed as the dictionary of its JSON form and validated again; what is then impossible is thrown away.
So every paper's jobs and tenants change by the same few operators, whatever fields they have.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from schedgap.instances.canonical import validate
from schedgap.instances.errors import InstanceError
from schedgap.instances.schema import Instance

Document = dict[str, Any]
Place = tuple[Any, Any]
"""A container and the key or index of a number in it."""

MEMBERS = ("jobs", "tenants")
"""Lists whose entries are changed, doubled and dropped."""

FIXED = frozenset({"duration_s", "steepness_per_s", "leave_s", "cpus_per_gpu", "memory_gb_per_gpu"})
"""Numbers that stay: records of the past, and axes of tables."""

FACTORS = (0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0)
LARGEST = 1e4
"""Numbers stay within a range in which every solver's tolerances are far away."""


def document(instance: Instance) -> Document:
    """Return an instance as plain data, fields at their defaults included, without what was published about it."""
    content: Document = instance.model_dump(mode="json", exclude={"published", "source", "title", "derived"})
    return content


def possible(content: Document, most: int) -> Instance | None:
    """Return the instance, or ``None`` if there is no such instance of at most so many jobs and tenants."""
    if sum(len(content[name]) for name in MEMBERS) > most:
        return None
    try:
        return validate(content, "candidate")
    except InstanceError:
        return None


def numbers(value: Any, fixed: frozenset[str] = FIXED) -> Iterator[Place]:
    """Yield the places of all numbers below `value` that may change."""
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
    found = copy.deepcopy(content)
    for _ in range(int(rng.integers(1, 4))):
        OPERATORS[int(rng.choice(len(OPERATORS), p=WEIGHTS))](found, rng)
    return found


def _members(content: Document) -> list[Any]:
    return next((content[name] for name in MEMBERS if content[name]), [])


def _one(items: list[Any], rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _scale(content: Document, rng: np.random.Generator) -> None:
    """Multiply a number of a job or tenant, or give it the value 0 or 1."""
    places = list(numbers(_members(content)))
    if places:
        holder, key = _one(places, rng)
        old = holder[key]
        new = old * _one(list(FACTORS), rng) if old and rng.random() < 0.8 else float(rng.integers(0, 3))
        holder[key] = _like(old, min(new, LARGEST))


def _copy(content: Document, rng: np.random.Generator) -> None:
    """Give a job or tenant a number that another one has in the same place."""
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
        twin = copy.deepcopy(_one(members, rng))
        taken = {member["id"] for member in members}
        twin["id"] = next(name for i in range(len(taken) + 1) if (name := f"J{i}") not in taken)
        members.insert(int(rng.integers(len(members) + 1)), twin)


def _drop(content: Document, rng: np.random.Generator) -> None:
    members = _members(content)
    if len(members) > 1:
        members.pop(int(rng.integers(len(members))))


def _swap(content: Document, rng: np.random.Generator) -> None:
    """Exchange two jobs or tenants: ties are broken by their order."""
    members = _members(content)
    if len(members) > 1:
        i, j = (int(i) for i in rng.choice(len(members), 2, replace=False))
        members[i], members[j] = members[j], members[i]


def _room(content: Document, rng: np.random.Generator) -> None:
    """Change the size of a group of servers."""
    group = _one(content["cluster"]["servers"], rng)
    key = _one(["gpus", "count"], rng)
    group[key] = max(1, group[key] + int(_one([-1, 1], rng)))


OPERATORS: tuple[Callable[[Document, np.random.Generator], None], ...] = (_scale, _copy, _double, _drop, _swap, _room)
WEIGHTS = (0.55, 0.12, 0.1, 0.08, 0.07, 0.08)


def _like(old: float, new: float) -> float:
    """Return a number of the kind of another: whole where that is whole."""
    return max(0, round(new)) if isinstance(old, int) else float(new)


# --------------------------------------------------------------------------------------------------------- shrinking


LISTS = (*((name,) for name in (*MEMBERS, "worker_types", "ps_types")), ("cluster", "servers"))
"""Where the lists are of which something can go."""


def simpler(content: Document) -> Iterator[Document]:
    """Yield copies that are simpler in one thing: without a job, a group or a type, fewer servers, rounder numbers."""
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
        for new in (0, 1, *(_digits(old, digits) for digits in (1, 2, 3))):
            if _complexity(new) < _complexity(old):
                yield _with(content, holder, key, _like(old, new))


def _with(content: Document, holder: Any, key: Any, value: Any) -> Document:
    """Return a copy of `content` with another value at a place in it."""
    old, holder[key] = holder[key], value
    try:
        return copy.deepcopy(content)
    finally:
        holder[key] = old


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}") if value and math.isfinite(value) else 0.0


def _complexity(value: float) -> tuple[int, float]:
    """Return how hard a number is to take in: its digits, then its size."""
    return (len(f"{float(value):.12g}".replace(".", "").strip("0")), abs(value))
