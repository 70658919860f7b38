"""A reproduction as plain data: published, measured and certified values, with a verdict on each.

No verdict is written by hand: :func:`decide` derives it from the measurements.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from schedgap.harness.engine.result import DataRow, Found, Later, typed
from schedgap.harness.show.measures import REPRODUCE, MeasureTable, described
from schedgap.harness.show.text import clean
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.reproduce.setting import Setting
from schedgap.harness.studies.simulate.row import Simulation
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
"""Verdicts, the best first, and their meaning."""


@dataclass(frozen=True)
class Evidence:
    """Evidence about a published item in one setting: whether the measurement `agrees`, ``None`` without one.

    If not, it may still point the same way (`direction`), or a certified bound may rule the item out (`excluded`).
    """

    agrees: bool | None
    direction: bool = False
    excluded: bool = False


def decide(stated: Evidence, narrower: Mapping[str, Evidence] | None = None) -> str:
    """Return the verdict that follows from evidence in the stated setting and in `narrower` settings, by name.

    A bound counts more than a direction, because it rules an item out for good; but an item that was measured in one of
    the settings is not ruled out.
    """
    held = [name for name, evidence in (narrower or {}).items() if evidence.agrees]
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
    """Return a verdict without the setting that follows "only if"."""
    return ONLY if verdict.startswith(ONLY) else verdict


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst verdict of a figure's items; untested items count only if there are no others."""
    tested = [one for one in verdicts if one != NOT_TESTABLE]
    return max(tested, key=lambda one: list(VERDICTS).index(kind(one)), default=NOT_TESTABLE)


@described(REPRODUCE)
@dataclass(frozen=True)
class ReproducedRow(DataRow):
    """One number, ordering or trend of a figure or table. Absent numbers are ``None``."""

    measures: ClassVar[MeasureTable] = REPRODUCE

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
        """True if all runs behind this row succeeded and were verified."""
        return not self.trouble


@dataclass(frozen=True)
class Case:
    """A result as figures use it: its run, parameters of instance and options (`at`), method and measured values.

    Cases with the same `key` are compared with each other. `bounds` maps quantities to certified bounds and their
    models; `trace` is the history of a simulation.
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
    """Reproduced figures and tables: a row for every compared item, and the results behind it.

    Attributes
    ----------
    settings
        Settings by id, as they were run.
    cases
        All results by figure, from which figures are drawn.
    comparison, simulation
        The same results, collected by their own studies.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)
    cases: Mapping[str, Sequence[Case]] = field(default_factory=dict)
    comparison: Comparison | None = None
    simulation: Simulation | None = None

    kind = "reproduce"
    fields = tuple(REPRODUCE)

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
    """Read the rows in the ``figures.json`` of a run; raise `UsageError` if the file is something else."""
    try:
        rows = [typed(ReproducedRow, one) for one in json.loads(read_bytes(path))]
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: not a figures.json of harness reproduce ({clean(error, 100)})") from None
    return Reproduction(meta={}, rows=rows, instances={})
