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
UNCLEAR = "not distinguishable"
NOT, EXCLUDED, IMPOSSIBLE = "not reproduced", "not with these jobs (certified)", "impossible"
AUDITED, MEASURED, NOT_TESTABLE = "audited", "measured", "not testable here"

VERDICTS = {
    REPRODUCED: "The value is within the stated tolerance, or the ordering holds.",
    ONLY: "It holds under another choice for something that the paper leaves open.",
    DIRECTION: "The ordering holds, and the size differs; or a small version agrees, which shows no more.",
    UNCLEAR: "It points the printed way by less than the draws differ: the 95 % intervals overlap.",
    NOT: "It does not hold in what was run.",
    EXCLUDED: "A certified bound excludes it in everything that was run, which includes choices of ours.",
    IMPOSSIBLE: "The paper prints the whole setting, and a certified bound or the exact value excludes it there.",
    AUDITED: "A claim of `harness audit` tests it.",
    MEASURED: "Nothing is printed about it, as about logs of clusters: the value stands for itself.",
    NOT_TESTABLE: "It would need machines or data that are not here, or no two policies differ in what was run.",
}
"""Verdicts, the best first, and their meaning. The last three do not judge."""

UNJUDGED = AUDITED, MEASURED, NOT_TESTABLE


@dataclass(frozen=True)
class Evidence:
    """Evidence about a published item in one setting: whether the measurement `agrees`, ``None`` without one.

    If not, it may still point the same way (`direction`), or a certified bound may rule the item out (`excluded`).
    A `reduced` run is a small version, which confirms a direction at most, and rules nothing out for good. Policies
    that are `tied` everywhere show nothing. A direction is `unclear` if the values that show it differ by less than the
    draws do. Of what is `measured`, nothing is printed.
    """

    agrees: bool | None
    direction: bool = False
    excluded: bool = False
    reduced: bool = False
    tied: bool = False
    unclear: bool = False
    measured: bool = False


def decide(stated: Evidence, others: Mapping[str, Evidence] | None = None, complete: bool = False) -> str:
    """Return the verdict that follows from evidence in the stated setting and under `others`, alternatives by name.

    An item is excluded if a bound rules it out in the stated setting and under every alternative that was run: each
    has a bound of its own, since a bound on a ratio takes the other method's result as it is. It is impossible if,
    besides, the paper prints the setting completely (`complete`) and no run was reduced.
    """
    tried = [one for one in (stated, *(others or {}).values()) if one.agrees is not None]
    held = [name for name, evidence in (others or {}).items() if evidence.agrees and not evidence.reduced]
    agreeing = any(one.agrees for one in tried)
    if stated.agrees is None and not agreeing:
        return MEASURED if stated.measured else NOT_TESTABLE
    if stated.agrees and not stated.reduced:
        return REPRODUCED
    if held and not stated.agrees:
        return f"{ONLY} {held[0]}"
    if not agreeing and all(one.excluded for one in tried):
        return IMPOSSIBLE if complete and not any(one.reduced for one in tried) else EXCLUDED
    if stated.direction and stated.unclear and not agreeing:
        return UNCLEAR
    return DIRECTION if agreeing or stated.direction else NOT


def kind(verdict: str) -> str:
    """Return a verdict without the setting or the claim that follows it."""
    return next((one for one in (ONLY, AUDITED) if verdict.startswith(one)), verdict)


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst verdict of a figure's items; those that are not judged count only if there are no others."""
    judged = [one for one in verdicts if kind(one) not in UNJUDGED]
    return max(judged or verdicts, key=lambda one: list(VERDICTS).index(kind(one)), default=NOT_TESTABLE)


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
    flips: tuple[str, ...] = ()
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
