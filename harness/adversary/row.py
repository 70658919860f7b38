"""A search as plain data: what each part of it found, and the worst instances of all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from schedgap.harness.engine.result import DataRow, Found, Result, Stored
from schedgap.instances.canonical import to_json, validate
from schedgap.instances.schema import Instance

PROVED = ("ratio", "objective", "optimum", "model", "guarantee", "guarantee_factor", "size")
FIELDS = ("heuristic", "problem", *PROVED, "fingerprint", "exceeded", "nothing", "tried", "proved")
"""Fields of an entry in tables and files."""


@dataclass(frozen=True)
class Proved:
    """A heuristic on an instance whose optimum is proved.

    Attributes
    ----------
    instance, model
        The instance; the model that proved its optimum.
    ratio
        Optimum to objective or the reverse, at least 1; infinite where the heuristic reaches nothing.
    objective, optimum
        Verified objective of the heuristic; the optimum.
    guarantee, guarantee_factor
        The paper's worst-case ratio on this instance.
    """

    instance: Instance
    model: str
    ratio: float
    objective: float
    optimum: float
    guarantee: str | None = None
    guarantee_factor: float | None = None

    @property
    def size(self) -> int:
        """Number of jobs and tenants."""
        return len(self.instance.jobs) + len(self.instance.tenants)

    def content(self) -> dict[str, Any]:
        """Return it as plain data; an infinite ratio is ``None``."""
        ratio = self.ratio if math.isfinite(self.ratio) else None
        return {**vars(self), "ratio": ratio, "instance": json.loads(to_json(self.instance))}

    @classmethod
    def restored(cls, content: Mapping[str, Any]) -> Proved:
        """Return what :meth:`content` describes."""
        ratio = math.inf if content["ratio"] is None else content["ratio"]
        return cls(**{**content, "ratio": ratio, "instance": validate(content["instance"], where="a found instance")})


@dataclass(frozen=True)
class Slice(Result):
    """What a part of the search found: its worst instances of a finite ratio, and how many it tried.

    Attributes
    ----------
    heuristic
        Whose ratio.
    elite, nothing
        The worst first; the smallest instance on which it reaches nothing although something can be had.
    tried, proved
        Instances that were tried, and those whose optimum was proved.
    shrunk
        Whether it is no search, but made what was found simpler.
    reason
        Why it found nothing, if its worker died.
    key
        Key of its task.
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
        """What progress shows."""
        return f"{self.heuristic}: {self.elite[0].ratio:.4g}" if self.elite else self.heuristic

    @property
    def finished(self) -> bool:
        """Whether it need not be tried again."""
        return self.reason is None

    def content(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        counts = {name: getattr(self, name) for name in ("heuristic", "tried", "proved", "shrunk", "reason")}
        nothing = self.nothing.content() if self.nothing else None
        return {**counts, "elite": [one.content() for one in self.elite], "nothing": nothing}

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Slice:
        """Return the part that a journal kept."""
        known = {name: content[name] for name in ("heuristic", "tried", "proved", "shrunk", "reason", "key")}
        nothing = Proved.restored(content["nothing"]) if content["nothing"] else None
        return cls(elite=tuple(map(Proved.restored, content["elite"])), nothing=nothing, **known)


@dataclass(frozen=True)
class Worst(DataRow):
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

    @property
    def ok(self) -> bool:
        """Whether the guarantee holds."""
        return not self.exceeded

    def as_dict(self) -> dict[str, Any]:
        """Return :data:`FIELDS` by name, without the instances; an infinite ratio is ``null``."""
        found = {name: getattr(self.found, name) if self.found else None for name in PROVED}
        mark = self.found.instance.fingerprint if self.found else None
        extra = {
            "exceeded": self.exceeded,
            "nothing": self.nothing is not None,
            "tried": self.tried,
            "proved": self.proved,
        }
        return {"heuristic": self.heuristic, "problem": self.problem, **found, "fingerprint": mark, **extra}


@dataclass
class Adversary(Found[Worst]):
    """What a search found: one row per heuristic."""

    kind = "adversary"
    fields = FIELDS
