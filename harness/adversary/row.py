"""A search as plain data: what each part of it found, and the worst instances of all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, TypeAdapter

from schedgap.harness.engine.result import DataRow, Found, Result, Stored, typed
from schedgap.harness.text import plain
from schedgap.instances.canonical import validate
from schedgap.instances.schema import Instance

PROVED = ("ratio", "objective", "optimum", "model", "guarantee", "guarantee_factor", "size")
FIELDS = ("heuristic", "problem", *PROVED, "fingerprint", "exceeded", "nothing", "tried", "proved")
"""Fields of an entry in tables and files."""


@dataclass(frozen=True)
class Proved:
    """A heuristic on an instance whose optimum a model proved; its ratio is infinite where it reaches nothing."""

    instance: Annotated[Instance, BeforeValidator(lambda one: validate(one, "a found instance"))]
    model: str
    ratio: Annotated[float, BeforeValidator(lambda ratio: math.inf if ratio is None else ratio)]
    objective: float
    optimum: float
    guarantee: str | None = None
    guarantee_factor: float | None = None

    @property
    def size(self) -> int:
        """Number of jobs and tenants."""
        return len(self.instance.jobs) + len(self.instance.tenants)


@dataclass(frozen=True)
class Slice(Result):
    """What a part of the search found, or, where it is `shrunk`, made of what was found before.

    `elite` has its worst instances of a finite ratio, the worst first, `nothing` the smallest instance on which the
    heuristic reaches nothing although something can be had. `reason` says why it found nothing, if its worker died.
    """

    heuristic: str
    elite: tuple[Proved, ...] = ()
    nothing: Proved | None = None
    tried: int = 0
    proved: int = 0
    shrunk: bool = False
    reason: str | None = None
    key: str = ""

    record: ClassVar[str] = "slice"

    @property
    def label(self) -> str:
        return f"{self.heuristic}: {self.elite[0].ratio:.4g}" if self.elite else self.heuristic

    @property
    def extremes(self) -> tuple[Proved | None, Proved | None]:
        """The worst instance with a finite ratio, and the smallest on which nothing is reached."""
        return self.elite[0] if self.elite else None, self.nothing

    @property
    def finished(self) -> bool:
        return self.reason is None

    def content(self) -> dict[str, Any]:
        """Return it as plain data; an infinite ratio is ``None``."""
        found: dict[str, Any] = plain(TypeAdapter(Slice).dump_python(self, mode="json", exclude_defaults=True))
        return found

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Slice:
        return typed(cls, content)


@dataclass(frozen=True)
class Worst(DataRow):
    """The worst finite ratio that was found of one heuristic, ``None`` where nothing was proved.

    `nothing` is the smallest instance on which it reaches nothing although something can be had.
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
        return bool(self.found and self.found.ratio > (self.found.guarantee_factor or math.inf) * (1 + 1e-6))

    @property
    def ok(self) -> bool:
        """Whether the guarantee holds."""
        return not self.exceeded

    def as_dict(self) -> dict[str, Any]:
        """Return :data:`FIELDS` by name, without the instances; an infinite ratio is ``null``."""
        return {
            **{"heuristic": self.heuristic, "problem": self.problem},
            **{name: getattr(self.found, name, None) for name in PROVED},
            "fingerprint": self.found.instance.fingerprint if self.found else None,
            **{"exceeded": self.exceeded, "nothing": bool(self.nothing), "tried": self.tried, "proved": self.proved},
        }


@dataclass(repr=False)
class Adversary(Found[Worst]):
    """What a search found: one row per heuristic."""

    kind = "adversary"
    fields = FIELDS
