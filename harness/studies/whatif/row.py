"""What changes of a cluster save, as plain data: a row per change, with an interval and a certified bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schedgap.harness.engine.result import CheckedRow, Found
from schedgap.harness.show.measures import WHATIF, MeasureTable, described
from schedgap.harness.studies.compare.row import FAILED
from schedgap.instances.registry import Status

EXECUTED, BASE, POLICY, LIMITS, CLUSTER = "executed", "base", "policy", "limits", "cluster"
"""Kinds of rows: the schedule in the log, the policy that stands for it, and what is changed of it."""


@described(WHATIF)
@dataclass(frozen=True)
class ChangeRow(CheckedRow):
    """A change, run online on the same jobs as the base. Absent numbers are ``None``."""

    measures: ClassVar[MeasureTable] = WHATIF

    instance: str
    fingerprint: str
    change: str
    kind: str
    method: str
    wait_h: float | None = None
    saved_h: float | None = None
    saved_low_h: float | None = None
    saved_high_h: float | None = None
    unit: str = ""
    units: int | None = None
    least_wait_h: float | None = None
    most_saved_h: float | None = None
    bound_from: str | None = None
    best_wait_h: float | None = None
    best_by: str | None = None
    status: Status = "error"
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    published: tuple[Mapping[str, Any], ...] = ()
    reason: str | None = None
    key: str = ""

    @property
    def measured(self) -> dict[str, Any]:
        """Values by quantity; empty if the row is WRONG."""
        names = ("wait_h", "saved_h", "least_wait_h", "most_saved_h", "best_wait_h")
        return {} if self.wrong else {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def case(self) -> tuple[str, ...]:
        """The changed instance, within which rows are compared with its bound."""
        return (self.fingerprint,)

    @property
    def in_order(self) -> bool:
        """True if the change was run, or there is a reason why it cannot be."""
        return self.status not in FAILED


@dataclass(repr=False)
class WhatIf(Found[ChangeRow]):
    """Changes, those first that save most; the base and the schedule in the log come first.

    Attributes
    ----------
    jobs
        Number of jobs.
    apart_h
        Mean difference, without sign, of a job's wait under the base and as executed; ``None`` if that is not known.
    chosen
        Whether the user chose the base.
    """

    jobs: int = 0
    apart_h: float | None = None
    chosen: bool = field(default=False)

    kind = "whatif"
    fields = tuple(WHATIF)

    def of(self, *kinds: str) -> list[ChangeRow]:
        """Return the rows of some kinds."""
        return [row for row in self.rows if row.kind in kinds]
