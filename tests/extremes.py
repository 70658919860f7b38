"""Valid instances with extreme numbers: small ones, in which a few numbers become tiny, huge, equal or nothing."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np

from schedgap.harness.adversary.task import Document, document, numbers, possible
from schedgap.instances import load
from schedgap.instances.schema import Instance

BASES = ("paper/walkthrough", "paper/hadar-fig1", "paper/oef-eq1", "paper/synergy-example", "gen/20jobs?jobs=3")
VALUES = (0.0, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e12)
COUNTS = (1, 2, 1000, 10**6)
MOST = 6


@cache
def _base(reference: str) -> Document:
    return document(load(reference))


def extreme(seed: int) -> Instance:
    """Return the valid extreme instance of a seed: one to four changes of a small instance."""
    rng = np.random.default_rng(seed)
    while True:
        content = copy.deepcopy(_base(BASES[int(rng.integers(len(BASES)))]))
        content["name"] = f"extreme-{seed}"
        for _ in range(int(rng.integers(1, 5))):
            CHANGES[int(rng.integers(len(CHANGES)))](content, rng)
        if found := possible(content, MOST):
            return found


def _one(content: Document, rng: np.random.Generator) -> None:
    """Give one number an extreme value."""
    _set([_pick(content, rng)], rng, apart=True)


def _alike(content: Document, rng: np.random.Generator) -> None:
    """Give all numbers of one name the same extreme value, or each its own."""
    _, name = _pick(content, rng)
    _set([place for place in numbers(content, frozenset()) if place[1] == name], rng, apart=bool(rng.random() < 0.5))


def _pick(content: Document, rng: np.random.Generator) -> tuple[Any, Any]:
    places = [place for place in numbers(content, frozenset()) if place[1] != "schema_version"]
    names = sorted({str(name) for _, name in places})
    name = names[int(rng.integers(len(names)))]
    among = [place for place in places if str(place[1]) == name]
    return among[int(rng.integers(len(among)))]


def _set(places: list[tuple[Any, Any]], rng: np.random.Generator, apart: bool) -> None:
    value, count = VALUES[int(rng.integers(len(VALUES)))], COUNTS[int(rng.integers(len(COUNTS)))]
    for holder, key in places:
        if apart:
            value, count = VALUES[int(rng.integers(len(VALUES)))], COUNTS[int(rng.integers(len(COUNTS)))]
        holder[key] = count if isinstance(holder[key], int) else value


def _one_job(content: Document, rng: np.random.Generator) -> None:
    for name in ("jobs", "tenants"):
        content[name] = content[name][:1]


def _equal(content: Document, rng: np.random.Generator) -> None:
    for name in ("jobs", "tenants"):
        content[name] = [content[name][0] | {"id": item["id"]} for item in content[name]]


def _whole_cluster(content: Document, rng: np.random.Generator) -> None:
    gpus = sum(group["count"] * group["gpus"] for group in content["cluster"]["servers"])
    for job in content["jobs"]:
        job["gpus"] = max(1, gpus)


def _weights(content: Document, rng: np.random.Generator) -> None:
    for job in content["jobs"]:
        job["weight"] = (0.0, 1.0, 1e9)[int(rng.integers(3))]


def _many_servers(content: Document, rng: np.random.Generator) -> None:
    groups = content["cluster"]["servers"]
    groups[int(rng.integers(len(groups)))]["count"] = (1, 100, 10_000)[int(rng.integers(3))]


def _slots(content: Document, rng: np.random.Generator) -> None:
    if content["horizon"]:
        content["horizon"]["slots"] = (1, 2, 10_000)[int(rng.integers(3))]


CHANGES = (_one, _one, _alike, _alike, _alike, _one_job, _equal, _whole_cluster, _weights, _many_servers, _slots)
