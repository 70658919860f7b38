"""What an instance holds: cluster, jobs, tenants, horizon, and what papers have published about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

from schedgap.instances.schema.base import Name, Numbers, Record, Text, rule
from schedgap.instances.schema.cluster import Cluster, PSType, WorkerType
from schedgap.instances.schema.job import Job, Tenant

SCHEMA_VERSION: Final = 1

PRESENTATION = {"name", "title", "source", "licence", "derived", "began_s", "published"}
"""Fields that describe an instance without changing what is solved; they are not part of its fingerprint."""


def dumps(content: object) -> str:
    """Return plain data as canonical JSON: keys sorted, shortest round-trip floats."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Horizon(Record):
    """Slot length and number of slots."""

    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    slots: int = rule("a horizon has at least one slot", ge=1)

    @property
    def end_s(self) -> float:
        """End of the last slot in seconds."""
        return self.slot_s * self.slots


class Published(Record):
    """One number (vector, matrix) that a paper printed about this instance, and what is exactly true.

    Attributes
    ----------
    method
        Registered method or policy.
    quantity
        What is measured of it (``objective``, ``ttd_h``), or ``<quantity>_ratio:<other method>``: how many times
        better it is than the other.
    value, relation, tolerance
        What the paper printed (absent where it printed none), whether as a value or as a limit, and half a unit of its
        last printed place.
    exact
        What holds by computation or proof where that differs from `value` or where the paper is silent.
    where, note
        Place in the paper; what there is to say about it.
    scope
        What else the number is about where it is not about this instance alone (``the mean over seven mixes``). Such
        a number is listed with its scope and never compared with the result on one instance.
    within
        Lowest and highest value of generator parameters between which the paper states it; the number is kept for
        instances whose other parameters are those of the spec.
    """

    method: Name
    quantity: Name = "objective"
    value: Numbers | None = None
    relation: Literal["equal", "at least", "at most"] = "equal"
    tolerance: float = rule("a tolerance is positive", gt=0, default=0.005)
    exact: Numbers | None = None
    unit: Name = "1"
    where: Name
    scope: Text = ""
    within: Mapping[Name, tuple[float, float]] = {}
    note: Text = ""


class Content(Record):
    """The fields of an :class:`Instance`, before they are checked against one another.

    Attributes
    ----------
    derived
        What was filled in by rule rather than given (``rates of 812 jobs from catalogue model …``).
    began_s
        When time 0 was, by the clock on the wall there, where that is known.
    unit_worth
        Largest weight of a job per unit of resources and slot that prices reckon with (Zhou's F); by default that of
        the jobs.
    due_slot
        Slot by whose beginning jobs must be done for their weight to count (Zhou's τ); by default the power of two by
        which about half of the work can be done.
    published
        Numbers that papers printed about this instance; tested against, never used.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Name
    title: Text = ""
    source: Text = ""
    licence: Text = ""
    derived: tuple[Text, ...] = ()
    cluster: Cluster
    tenants: tuple[Tenant, ...] = ()
    jobs: tuple[Job, ...] = ()
    worker_types: tuple[WorkerType, ...] = rule("at most 1000 worker types", max_length=1000, default=())
    ps_types: tuple[PSType, ...] = rule("at most 1000 PS types", max_length=1000, default=())
    horizon: Horizon | None = None
    began_s: float | None = rule("seconds since 1970, by the clock on the wall", ge=0, le=1e12, default=None)
    unit_worth: float | None = rule("a unit's worth is positive, at most 1e15", gt=0, le=1e15, default=None)
    due_slot: int | None = rule("a slot from 2 to 10,000", ge=2, le=10_000, default=None)
    published: tuple[Published, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal.

        :data:`PRESENTATION` does not count, nor do fields at their defaults, so that a field added to the schema later
        leaves the fingerprints of today's instances as they are.
        """
        content = self.model_dump(mode="json", exclude_defaults=True, exclude=PRESENTATION)
        return hashlib.sha256(dumps(content).encode()).hexdigest()
