"""Fields of an instance: cluster, jobs, tenants, horizon, and published numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Literal

from schedgap.instances.schema.base import Name, Numbers, Record, Text, rule
from schedgap.instances.schema.cluster import Cluster, PSType, WorkerType
from schedgap.instances.schema.columns import CHUNK, Jobs, JobTable, PlainJobs
from schedgap.instances.schema.job import Tenant

SCHEMA_VERSION: Final = 1

PRESENTATION = {"name", "title", "source", "licence", "derived", "began_s", "published"}
"""Fields that describe an instance without changing the problem; the fingerprint does not cover them."""


def dumps(content: object) -> str:
    """Return plain data as canonical JSON: keys sorted, shortest round-trip floats."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def texts(content: Mapping[str, Any], columns: bool = False) -> Iterator[str]:
    """Yield the parts of a mapping's canonical JSON, in which the jobs of a table are listed, or are `columns`.

    Jobs that are made on demand are never all there at once.
    """
    mark = "{"
    for name in sorted(content):
        yield f"{mark}{dumps(name)}:"
        value, mark = content[name], ","
        if not isinstance(value, PlainJobs):
            yield dumps(value)
        elif columns:
            yield from texts({column: value.in_file(column) for column in value.columns})
        else:
            for first in range(0, len(value), CHUNK):
                yield ("," if first else "[") + dumps(list(value[first : first + CHUNK]))[1:-1]
            yield "]"
    yield "}" if content else "{}"


class Horizon(Record):
    """Slot length and number of slots."""

    slot_s: float = rule("a slot has a positive length in seconds", gt=0)
    slots: int = rule("a horizon has at least one slot", ge=1)

    @property
    def end_s(self) -> float:
        """End of the last slot in seconds."""
        return self.slot_s * self.slots


class Published(Record):
    """A number (or vector or matrix) that a paper printed about this instance, and the exact value.

    Attributes
    ----------
    method
        Registered method or policy.
    quantity
        Measured quantity (``objective``, ``ttd_h``), or ``<quantity>_ratio:<other method>``: the factor by which the
        method is better than the other.
    value, relation, tolerance
        Printed value (absent if the paper printed none); whether it is a value or a limit; half a unit of its last
        printed digit.
    exact
        Value by computation or proof, where that differs from `value` or the paper gives none.
    where, note
        Place in the paper; remark.
    scope
        What else the number covers if it is not about this instance alone (``the mean over seven mixes``). Such a
        number is listed with its scope and never compared with the result on one instance.
    within
        Ranges (lowest, highest) of generator parameters for which the paper states the number. It is kept for an
        instance if all other parameters are those of the spec.
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
    """Fields of an :class:`Instance`, before they are checked against one another.

    Attributes
    ----------
    derived
        Notes on values that were filled in by rule (``rates of 812 jobs from catalogue model …``).
    began_s
        Local wall-clock time of time 0, if known.
    unit_worth
        Largest weight of a job per unit of resources and slot that prices assume (Zhou's F); by default that of the
        jobs.
    due_slot
        Slot before which a job must complete for its weight to count (Zhou's τ); by default the power of two by which
        about half of the work can be done.
    published
        Numbers that papers printed about this instance; compared with results, never used in computing them.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Name
    title: Text = ""
    source: Text = ""
    licence: Text = ""
    derived: tuple[Text, ...] = ()
    cluster: Cluster
    tenants: tuple[Tenant, ...] = ()
    jobs: Jobs = ()
    worker_types: tuple[WorkerType, ...] = rule("at most 1000 worker types", max_length=1000, default=())
    ps_types: tuple[PSType, ...] = rule("at most 1000 PS types", max_length=1000, default=())
    horizon: Horizon | None = None
    began_s: float | None = rule("seconds since 1970 in local time, 0 to 1e12", ge=0, le=1e12, default=None)
    unit_worth: float | None = rule("a unit's worth is positive, at most 1e15", gt=0, le=1e15, default=None)
    due_slot: int | None = rule("a slot from 2 to 10,000", ge=2, le=10_000, default=None)
    published: tuple[Published, ...] = ()

    @cached_property
    def plain(self) -> Mapping[str, Any]:
        """The instance as plain data, as in its canonical JSON: without fields at their defaults. Do not change it.

        Checkers and the rules of certificates read this, and nothing that was computed from it
        (:mod:`schedgap.certificates.reading`). The jobs of a table are made on demand.
        """
        if isinstance(self.jobs, JobTable):
            rest = self.model_dump(mode="json", exclude_defaults=True, exclude={"jobs"})
            return {**rest, "jobs": self.jobs.plain}
        return self.model_dump(mode="json", exclude_defaults=True)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal.

        It excludes :data:`PRESENTATION` and fields at their defaults, so that a field added to the schema later does
        not change the fingerprints of today's instances.
        """
        content = {name: value for name, value in self.plain.items() if name not in PRESENTATION}
        found = hashlib.sha256()
        for part in texts(content):
            found.update(part.encode())
        return found.hexdigest()
