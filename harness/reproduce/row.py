"""What comes of reproductions as plain data: published beside measured beside certified, and a verdict on each.

A verdict is written down nowhere: :func:`decide` makes it of what was measured.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.harness.compare.row import Comparison
from schedgap.harness.engine.result import DataRow, Found, Later, typed
from schedgap.harness.reproduce.setting import Setting
from schedgap.harness.simulate.row import Simulation
from schedgap.harness.text import clean
from schedgap.heuristics.simulator import Trace
from schedgap.instances.canonical import read_bytes
from schedgap.instances.errors import UsageError

REPRODUCED, ONLY, DIRECTION = "reproduced", "only if", "direction"
NOT, IMPOSSIBLE, NOT_TESTABLE = "not reproduced", "impossible", "not testable here"

VERDICTS = {
    REPRODUCED: "The value is within the stated tolerance, or the ordering holds.",
    ONLY: "It holds in a setting that the paper does not state.",
    DIRECTION: "The ordering holds, the size differs.",
    NOT: "It does not hold in what was run.",
    IMPOSSIBLE: "A certified bound, or the exact value, excludes it on what was run.",
    NOT_TESTABLE: "It would need machines or data that are not here.",
}
"""Verdicts, the best first, and what they mean."""


@dataclass(frozen=True)
class Evidence:
    """What was measured about something printed, in one setting: whether it `agrees`, ``None`` where nothing was.

    Else it may point the same way (`direction`), or a certified bound rules out what was printed (`excluded`).
    """

    agrees: bool | None
    direction: bool = False
    excluded: bool = False


def decide(stated: Evidence, narrower: Mapping[str, Evidence] | None = None) -> str:
    """Return the verdict that follows from what was measured in the stated setting and in `narrower`, named ones.

    A bound rules something out for good, so it counts for more than a direction; but what was measured in one of the
    settings has not been ruled out.
    """
    held = [name for name, found in (narrower or {}).items() if found.agrees]
    if stated.agrees is None and not held:
        return NOT_TESTABLE
    if stated.agrees:
        return REPRODUCED
    if held:
        return f"{ONLY} {held[0]}"
    if stated.excluded:
        return IMPOSSIBLE
    return DIRECTION if stated.direction else NOT


def kind(verdict: str) -> str:
    """Return a verdict without the setting that "only if" names."""
    return ONLY if verdict.startswith(ONLY) else verdict


def worst(verdicts: Sequence[str]) -> str:
    """Return the verdict on a whole figure: the worst one of its parts; what was not tested counts only alone."""
    tested = [one for one in verdicts if one != NOT_TESTABLE]
    return max(tested, key=lambda one: list(VERDICTS).index(kind(one)), default=NOT_TESTABLE)


@dataclass(frozen=True)
class ReproducedRow(DataRow):
    """One number, ordering or trend of a figure or table. Absent numbers are ``None``.

    Attributes
    ----------
    figure, place
        Id of the setting; where the paper has it.
    what, method
        Quantity or ordering in words, with the points that it is about; the method that a number is of.
    published, relation, tolerance, unit
        As printed; texts where it is an ordering or a trend.
    measured, low, high, cases
        Mean (or what is printed in its place) over so many cases, with its 95 % bootstrap interval; a text where an
        ordering or a trend was measured.
    certified
        The certified bound on it in words: the most that any schedule can reach, or the least.
    verdict, elsewhere
        What follows (:func:`decide`); what was measured in settings that the paper does not state.
    note, trouble
        What there is to say; runs that failed or are WRONG.
    """

    figure: str
    place: str
    what: str
    method: str = ""
    published: Any = None
    relation: str = "equal"
    tolerance: float | None = None
    unit: str = ""
    measured: Any = None
    low: float | None = None
    high: float | None = None
    cases: int = 0
    certified: str = ""
    verdict: str = NOT_TESTABLE
    elsewhere: tuple[str, ...] = ()
    note: str = ""
    trouble: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything that it is about ran, and was confirmed."""
        return not self.trouble


@dataclass(frozen=True)
class Case:
    """A verified result as figures see it: its run, the parameters of instance and options, method, what it measures.

    `key` is what cases share that are compared with each other; `bounds` has a certified bound by quantity, with its
    model; `trace` is the history of a simulation.
    """

    run: str
    key: tuple[str, ...]
    at: Mapping[str, Any]
    method: str
    measured: Mapping[str, Any]
    bounds: Mapping[str, tuple[float, str]]
    trouble: str = ""
    trace: Later[Trace | None] | None = field(default=None, compare=False, repr=False)


@dataclass(repr=False)
class Reproduction(Found[ReproducedRow]):
    """Figures and tables: a row for everything that is compared, and what they are made of.

    Attributes
    ----------
    settings
        Settings by id, as they were run.
    cases
        All results by figure, which drawings are made of.
    comparison, simulation
        The same results as their own studies have them.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)
    cases: Mapping[str, Sequence[Case]] = field(default_factory=dict)
    comparison: Comparison | None = None
    simulation: Simulation | None = None

    kind = "reproduce"
    fields = tuple(one.name for one in dataclasses.fields(ReproducedRow))

    def of(self, figure: str) -> list[ReproducedRow]:
        """Return the rows of a figure or table."""
        return [row for row in self.rows if row.figure == figure]

    def verdict(self, figure: str) -> str:
        """Return the verdict on a whole figure or table."""
        return worst([row.verdict for row in self.of(figure)])

    @property
    def verdicts(self) -> Counter[str]:
        """Number of figures and tables by verdict."""
        return Counter(kind(self.verdict(figure)) for figure in self.settings)


def read_rows(path: Path) -> Reproduction:
    """Return the rows in the ``figures.json`` of a run; raise `UsageError` if the file is something else."""
    try:
        rows = [typed(ReproducedRow, one) for one in json.loads(read_bytes(path))]
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: no figures.json of harness reproduce ({clean(error, 100)})") from None
    return Reproduction(meta={}, rows=rows, instances={})
