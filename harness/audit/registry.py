"""Claims of the papers as data and functions: what was tried, and the verdict that follows from the counts.

A claim's verdict is computed on every run and written down nowhere. Its check tries cases and counts in how many the
claim failed, within the scope that the paper states and, where there is one, within a narrower scope; :func:`decide`
makes the verdict of these counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from schedgap.instances.canonical import to_json
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

CONFIRMED, REFUTED, NOT_TESTABLE, ONLY = "confirmed", "refuted", "not testable", "only for"


@dataclass(frozen=True)
class Witness:
    """An instance that shows what was found.

    Attributes
    ----------
    instance
        The smallest one found.
    methods
        Methods whose rows show it: ``harness compare --instance … --method …``.
    shows
        What to look at, in one line.
    """

    instance: Instance
    methods: tuple[str, ...]
    shows: str


@dataclass(frozen=True)
class Tally:
    """How many cases of a scope were tried, and in how many of them the claim failed.

    Attributes
    ----------
    scope
        Assumptions, such that "only for …" can be followed by it.
    tested, failed
        Numbers of cases.
    """

    scope: str
    tested: int
    failed: int

    @property
    def holds(self) -> bool:
        """Whether something was tried and nothing failed."""
        return self.tested > 0 and self.failed == 0


@dataclass(frozen=True)
class Evidence:
    """What a check found.

    Attributes
    ----------
    stated
        Cases within the scope that the paper states.
    narrower
        Cases within narrower scopes, each of them as the verdict "only for …" may name it.
    text
        Which cases these were, and the numbers that count.
    numbers
        The same numbers by name.
    witnesses
        Instances that show it; the smallest counterexample first.
    """

    stated: Tally
    text: str
    narrower: tuple[Tally, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    witnesses: tuple[Witness, ...] = ()


def decide(stated: Tally, narrower: Sequence[Tally] = ()) -> str:
    """Return the verdict that follows from what was tried.

    ``not testable`` where nothing could be tried; ``confirmed`` where nothing failed, which is no proof beyond the
    cases tried; ``only for …`` where something failed, but nothing in a narrower scope that was tried; else
    ``refuted``.
    """
    if stated.tested == 0:
        return NOT_TESTABLE
    if stated.failed == 0:
        return CONFIRMED
    kept = [tally.scope for tally in narrower if tally.holds]
    return f"{ONLY} {' and '.join(kept)}" if kept else REFUTED


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how it is tested.

    Parameters
    ----------
    id
        ``<paper>.<name>``.
    paper
        Id of the paper.
    location
        Theorem, equation, figure, line.
    claim
        The claim in one sentence.
    scope
        What it assumes.
    how
        How it is tested.
    check
        ``check(lab)`` tries it, counts cases (:class:`~schedgap.harness.audit.lab.Lab`), and says which they were.
    """

    id: str
    paper: str
    location: str
    claim: str
    scope: str
    how: str
    check: Callable[[Any], str]


CLAIMS: Registry[Claim] = Registry("claim")

T = TypeVar("T", bound=Callable[..., str])


def claim(
    id: str, location: str, *, how: str, scope: str = "as stated", text: str = "", **given: Any
) -> Callable[[T], T]:
    """Register the decorated function as the check of a claim: its docstring, unless `text` says it.

    Parameters
    ----------
    id, location, how, scope, text
        See :class:`Claim`; the id begins with that of the paper.
    **given
        Further arguments of the function, for one that checks several claims.
    """

    def register(check: T) -> T:
        said = text or " ".join((check.__doc__ or "").split())
        CLAIMS.register(Claim(id, id.partition(".")[0], location, said, scope, how, partial(check, **given)))
        return check

    return register


class Count:
    """Counts cases of a scope and keeps the smallest instance in which the claim failed.

    Parameters
    ----------
    scope
        See :class:`Tally`.
    """

    def __init__(self, scope: str = "as stated") -> None:
        self.scope = scope
        self.tested = self.failed = 0
        self._smallest: tuple[int, str] | None = None
        self._witness: Witness | None = None

    def add(self, holds: bool, instance: Instance | None = None, methods: Sequence[str] = (), shows: str = "") -> bool:
        """Count a case; where the claim failed in it, `instance` may be the witness. Returns `holds`."""
        self.tested += 1
        self.failed += not holds
        if not holds and instance is not None:
            text = to_json(instance)
            if self._smallest is None or (len(text), text) < self._smallest:
                self._smallest = (len(text), text)
                self._witness = Witness(instance, tuple(methods), shows)
        return holds

    @property
    def tally(self) -> Tally:
        """The counts."""
        return Tally(self.scope, self.tested, self.failed)

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """The smallest counterexample, if there is one."""
        return () if self._witness is None else (self._witness,)
