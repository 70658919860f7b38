"""The results of a search as plain data: those of its slices, and the worst instances overall."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, TypeAdapter

from schedgap.harness.engine.result import DataRow, Found, Result, Stored, typed
from schedgap.harness.show.measures import ADVERSARY, MeasureTable
from schedgap.harness.show.text import plain
from schedgap.instances.canonical import validate
from schedgap.instances.schema import Instance

PROVED = ("ratio", "objective", "optimum", "model", "guarantee", "guarantee_factor", "size", "also")
"""Columns about the worst instance."""


@dataclass(frozen=True)
class Proved:
    """An instance on which a verified decision of `model`, of value `optimum`, is better than a heuristic's.

    The `ratio` of the two is infinite if the heuristic's `objective` is 0. `also` has the ratios of other heuristics
    that lose at least half as much there.
    """

    instance: Annotated[Instance, BeforeValidator(lambda one: validate(one, "a found instance"))]
    model: str
    ratio: Annotated[float, BeforeValidator(lambda ratio: math.inf if ratio is None else ratio)]
    objective: float
    optimum: float
    guarantee: str | None = None
    guarantee_factor: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of jobs and tenants of the instance."""
        return len(self.instance.jobs) + len(self.instance.tenants)


@dataclass(frozen=True)
class Slice(Result):
    """The result of one slice of the search, or of shrinking an instance (`shrunk`).

    `elite` has the worst instances with a finite ratio, worst first; `nothing` is the smallest instance on which the
    heuristic reaches 0 although the optimum is not. `begun` names the packaged instances that were tried. `reason` says
    why there is no result, if the worker died.
    """

    heuristic: str
    elite: tuple[Proved, ...] = ()
    nothing: Proved | None = None
    tried: int = 0
    proved: int = 0
    shrunk: bool = False
    begun: tuple[str, ...] = ()
    reason: str | None = None
    key: str = ""

    record: ClassVar[str] = "slice"

    @property
    def label(self) -> str:
        return f"{self.heuristic}: {self.elite[0].ratio:.4g}" if self.elite else self.heuristic

    @property
    def extremes(self) -> tuple[Proved | None, Proved | None]:
        """The worst instance with a finite ratio, and the smallest on which the heuristic reaches 0."""
        return self.elite[0] if self.elite else None, self.nothing

    @property
    def finished(self) -> bool:
        return self.reason is None

    def content(self) -> dict[str, Any]:
        """Return the slice as plain data; an infinite ratio is ``None``."""
        data: dict[str, Any] = plain(TypeAdapter(Slice).dump_python(self, mode="json", exclude_defaults=True))
        return data

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Slice:
        return typed(cls, content)


@dataclass(frozen=True)
class Worst(DataRow):
    """The largest finite ratio found for one heuristic; `found` is ``None`` if no instance has one.

    `nothing` is the smallest instance on which the heuristic reaches 0 although the optimum is not.
    """

    measures: ClassVar[MeasureTable] = ADVERSARY

    heuristic: str
    problem: str
    found: Proved | None
    nothing: Proved | None
    tried: int
    proved: int

    @property
    def exceeded(self) -> bool:
        """True if the ratio on the worst instance is above the paper's guarantee."""
        return bool(self.found and self.found.ratio > (self.found.guarantee_factor or math.inf) * (1 + 1e-6))

    @property
    def ok(self) -> bool:
        """True if the guarantee holds."""
        return not self.exceeded

    def as_dict(self) -> dict[str, Any]:
        """Return the columns by name, without the instances; an infinite ratio is ``null``."""
        return {
            **{"heuristic": self.heuristic, "problem": self.problem},
            **{name: getattr(self.found, name, None) for name in PROVED},
            "fingerprint": self.found.instance.fingerprint if self.found else None,
            **{"exceeded": self.exceeded, "nothing": bool(self.nothing), "tried": self.tried, "proved": self.proved},
        }


@dataclass(repr=False)
class Adversary(Found[Worst]):
    """The results of a search: one row per heuristic."""

    kind = "adversary"
    fields = tuple(ADVERSARY)
