"""A frontier of efficiency and fairness as plain data: a row per point of a curve and per mechanism, and the prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from schedgap.harness.engine.result import CheckedRow, DataRow, Found
from schedgap.harness.show.measures import FRONTIER, PRICES, MeasureTable, described
from schedgap.harness.studies.compare.row import FAILED
from schedgap.instances.registry import Status

ENVY, SHARE, BOTH, OWN, MECHANISM = "envy", "share", "both", "own", "mechanism"
"""Kinds of rows: three curves, the program at the mechanisms' own degrees of fairness, and the mechanisms."""

CURVES = (ENVY, SHARE, BOTH)


@described(FRONTIER)
@dataclass(frozen=True)
class FrontierRow(CheckedRow):
    """A point of a curve, or a mechanism. Absent numbers are ``None``."""

    measures: ClassVar[MeasureTable] = FRONTIER

    instance: str
    fingerprint: str
    kind: str
    method: str
    epsilon: float | None = None
    sigma: float | None = None
    total: float | None = None
    bound: float | None = None
    price_at_least: float | None = None
    price_at_most: float | None = None
    beyond_at_most: float | None = None
    status: Status = "error"
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    published: tuple[Mapping[str, Any], ...] = ()
    reason: str | None = None
    key: str = ""

    @property
    def measured(self) -> dict[str, Any]:
        """Values by quantity; empty if the row is WRONG."""
        names = ("epsilon", "sigma", "total", "bound")
        return {} if self.wrong else {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def case(self) -> tuple[str, ...]:
        """The instance, within which rows are compared."""
        return (self.fingerprint,)

    @property
    def in_order(self) -> bool:
        """True if the row was computed, or there is a reason why it cannot be."""
        return self.status not in FAILED

    @property
    def price(self) -> tuple[float, float] | None:
        """The least and the largest value of its price, if it has one."""
        if self.price_at_least is None or self.price_at_most is None:
            return None
        return self.price_at_least, self.price_at_most


@described(PRICES)
@dataclass(frozen=True)
class PriceRow(DataRow):
    """What a property costs: on one instance, or as a distribution over several."""

    measures: ClassVar[MeasureTable] = PRICES

    requires: str
    instance: str
    instances: int
    units: int
    price_at_least: float
    price_at_most: float
    median: float | None = None
    mean: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    worst: str = ""

    @property
    def ok(self) -> bool:
        """True: a price is a result."""
        return True


@dataclass(repr=False)
class Frontier(Found[FrontierRow]):
    """Curves and mechanisms, by instance.

    Attributes
    ----------
    prices
        What each property costs, on each instance; with several instances, over all of them first.
    """

    prices: Sequence[PriceRow] = ()

    kind = "frontier"
    fields = tuple(FRONTIER)

    def of(self, *kinds: str, instance: str | None = None) -> list[FrontierRow]:
        """Return the rows of some kinds, of all instances or of the one with this fingerprint."""
        return [row for row in self.rows if row.kind in kinds and instance in (None, row.fingerprint)]

    def overall(self, name: str) -> PriceRow | None:
        """Return the price of a property over all instances, or that of the only instance."""
        return next((row for row in self.prices if row.requires == name), None)
