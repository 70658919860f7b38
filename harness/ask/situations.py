"""Tenants who share devices, and what may change: lies, a tenant that leaves, one more device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.instances.random_instances import Source, pick
from schedgap.instances.random_instances.oef import of_tenants
from schedgap.instances.schema import Instance
from schedgap.models.engine.solve.exact import Exact

JobTypes = tuple[tuple[int, ...], ...]
"""A tenant's job types: the rate of each on every GPU type, none below that on the type before."""


@dataclass(frozen=True)
class Situation:
    """Tenants who share devices, and what changes: reports that are not true, a tenant that leaves, a device more.

    Attributes
    ----------
    tenants
        Job types of each tenant.
    devices
        Devices of each GPU type, from slowest to fastest.
    weights
        Weight of each tenant.
    reports
        What tenants report, if not the truth. A tenant may report more job types than it has; the last are invented.
    gone, added
        Index of the tenant that leaves; index of the GPU type of which there is one more device.
    """

    tenants: tuple[JobTypes, ...]
    devices: tuple[int, ...]
    weights: tuple[int, ...]
    reports: tuple[JobTypes, ...] | None = None
    gone: int | None = None
    added: int | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Situation:
        """Return the situation of plain data (:meth:`as_dict`)."""
        return cls(**{name: _tuples(value) for name, value in data.items()})

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes that are given, as plain data."""
        return {name: _lists(value) for name, value in asdict(self).items() if value is not None}

    @property
    def liars(self) -> list[int]:
        """Indices of the tenants that do not report the truth."""
        told = self.reports or self.tenants
        return [t for t, (true, told_) in enumerate(zip(self.tenants, told, strict=True)) if true != told_]

    @property
    def one_type(self) -> bool:
        """Whether no tenant has, or reports, several job types."""
        return all(len(kinds) == 1 for kinds in (*self.tenants, *(self.reports or ())))

    def best(self, tenant: int) -> Exact:
        """Return ``(k,)`` what a device of each type is worth to a tenant: the largest of its true speedups on it."""
        rows = [[Fraction(rate, row[0]) for rate in row] for row in self.tenants[tenant]]
        return np.array([max(column) for column in zip(*rows, strict=True)], object)

    def split(self, tenant: int) -> Fraction:
        """Return what a tenant's share, by weight, of every GPU type is worth to it."""
        worth = sum((w * m for w, m in zip(self.best(tenant), self.devices, strict=True)), Fraction(0))
        return Fraction(self.weights[tenant], sum(self.weights)) * worth

    def before(self) -> Instance:
        """Return the instance before the change: all tenants, who tell the truth."""
        return self._instance(range(len(self.tenants)), self.tenants, self.devices)

    def after(self) -> Instance:
        """Return the instance after the change."""
        stay = [t for t in range(len(self.tenants)) if t != self.gone]
        devices = [m + (j == self.added) for j, m in enumerate(self.devices)]
        return self._instance(stay, self.reports or self.tenants, devices)

    def _instance(self, stay: Sequence[int], reports: tuple[JobTypes, ...], devices: Sequence[int]) -> Instance:
        # A job type that is invented has no true speedups: what its devices do is best for the tenant.
        best = {t: tuple(float(worth) for worth in self.best(t)) for t in stay}
        invented = {t: len(reports[t]) - len(self.tenants[t]) for t in stay}
        true = [(*self.tenants[t], *(best[t],) * invented[t]) for t in stay]
        told, weights = [reports[t] for t in stay], [self.weights[t] for t in stay]
        return of_tenants(true, devices, told, weights, [f"u{t + 1}" for t in stay])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _lists(value: Any) -> Any:
    return [_lists(part) for part in value] if isinstance(value, list | tuple) else value


LARGEST = 6
"""Largest rate drawn."""


def drawn(rng: Source, *, tenants: int = 2, several: bool = False) -> Situation:
    """Draw a small situation of `tenants` tenants or one more, some of several job types if `several`."""
    n, k = tenants + int(rng.integers(0, 2)), 2 + int(rng.integers(0, 2))
    counts = [1 + int(rng.integers(0, 2)) if several else 1 for _ in range(n)]
    if several and max(counts) == 1:
        counts[0] = 2
    kinds = tuple(tuple(_rates(rng, k) for _ in range(count)) for count in counts)
    weighted = int(rng.integers(0, 4)) == 0
    return Situation(
        kinds,
        tuple(1 + int(rng.integers(0, 3)) for _ in range(k)),
        tuple(1 + int(rng.integers(0, 2)) if weighted else 1 for _ in range(n)),
    )


def _rates(rng: Source, types: int) -> tuple[int, ...]:
    return (1, *sorted(1 + int(rng.integers(0, LARGEST)) for _ in range(types - 1)))


def _report(rng: Source, truth: tuple[int, ...], over: bool = False) -> tuple[int, ...]:
    """Draw a report that is not true and begins with the true rate: near the truth, or anywhere."""
    near = pick(rng, (True, False))
    told = [rate + int(rng.integers(-2, 3)) if near else truth[0] + int(rng.integers(0, LARGEST + 3)) for rate in truth]
    told = [max(rate, true if over else truth[0]) for rate, true in zip(told, truth, strict=True)]
    report = (truth[0], *told[1:])
    return report if report != truth else (*truth[:-1], truth[-1] + 1)


def _telling(situation: Situation, told: Mapping[int, JobTypes]) -> Situation:
    return replace(situation, reports=tuple(told.get(t, kinds) for t, kinds in enumerate(situation.tenants)))


def misreported(rng: Source, situation: Situation, *, liars: int = 1, over: bool = False) -> Situation:
    """Let `liars` tenants misreport one job type each, upwards only if `over`."""
    told = dict[int, JobTypes]()
    while len(told) < liars:
        kinds = list(situation.tenants[t := int(rng.integers(0, len(situation.tenants)))])
        l = int(rng.integers(0, len(kinds)))
        kinds[l] = _report(rng, kinds[l], over)
        told[t] = tuple(kinds)
    return _telling(situation, told)


def stepped(rng: Source, situation: Situation) -> Situation:
    """Change one number of a report that is not true, which stays so."""
    told = situation.reports or situation.tenants
    lies = [(t, l) for t in situation.liars for l, row in enumerate(situation.tenants[t]) if told[t][l] != row]
    t, l = pick(rng, lies)
    truth, row = situation.tenants[t][l], list(told[t][l])
    j = 1 + int(rng.integers(0, len(row) - 1))
    row[j] = max(truth[0], row[j] + pick(rng, (-2, -1, 1, 2)))
    return (
        situation if tuple(row) == truth else replace(situation, reports=_with(told, t, _with(told[t], l, tuple(row))))
    )


def misreported_all(rng: Source, situation: Situation) -> Situation | None:
    """Let a tenant misreport all of its several job types."""
    owners = [t for t, kinds in enumerate(situation.tenants) if len(kinds) > 1]
    if not owners:
        return None
    t = pick(rng, owners)
    return _telling(situation, {t: tuple(_report(rng, row) for row in situation.tenants[t])})


def invented(rng: Source, situation: Situation) -> Situation:
    """Let a tenant report a job type that it does not have, and all others truly."""
    t = int(rng.integers(0, len(situation.tenants)))
    row = _rates(rng, len(situation.devices))
    return _telling(situation, {t: (*situation.tenants[t], row)})


def leaving(rng: Source, situation: Situation) -> Situation:
    """Let a tenant leave."""
    return replace(situation, gone=int(rng.integers(0, len(situation.tenants))))


def adding(rng: Source, situation: Situation) -> Situation:
    """Add a device."""
    return replace(situation, added=int(rng.integers(0, len(situation.devices))))


def smaller(s: Situation) -> Iterator[Situation]:
    """Yield situations that are one step smaller, those that leave out most first.

    Steps leave out a tenant, a GPU type or a job type, make a weight, a number of devices or a rate smaller, or bring a
    report nearer to the truth.
    """
    yield from _with_fewer_tenants(s)
    yield from _with_fewer_types(s)
    for t, weight in enumerate(s.weights):
        if weight > 1:
            yield replace(s, weights=_with(s.weights, t, 1))
    for j, m in enumerate(s.devices):
        for less in _below(m):
            yield replace(s, devices=_with(s.devices, j, less))
    yield from _with_lower_rates(s)
    yield from _with_nearer_reports(s)


def _below(number: int) -> list[int]:
    return sorted({1, number // 2, number - 1} - {0, number})


def _with_fewer_tenants(s: Situation) -> Iterator[Situation]:
    for t in range(len(s.tenants)):
        if t != s.gone and len(s.tenants) > 1:
            gone = None if s.gone is None else s.gone - (t < s.gone)
            told = None if s.reports is None else _without(s.reports, t)
            yield replace(s, tenants=_without(s.tenants, t), weights=_without(s.weights, t), reports=told, gone=gone)


def _with_fewer_types(s: Situation) -> Iterator[Situation]:
    """Leave out a GPU type, of which two stay, or a job type."""
    for j in range(len(s.devices)):
        if j != s.added and len(s.devices) > 2:
            fewer, told = (
                rows and tuple(tuple(_without(row, j) for row in t) for t in rows) for rows in (s.tenants, s.reports)
            )
            added = None if s.added is None else s.added - (j < s.added)
            yield replace(s, tenants=fewer or (), reports=told, devices=_without(s.devices, j), added=added)
    for t, kinds in enumerate(s.tenants):
        for l in range(len(kinds) if len(kinds) > 1 else 0):
            told = s.reports and _with(s.reports, t, _without(s.reports[t], l))
            yield replace(s, tenants=_with(s.tenants, t, _without(kinds, l)), reports=told)


def _with_lower_rates(s: Situation) -> Iterator[Situation]:
    for t, kinds in enumerate(s.tenants):
        for l, row in enumerate(kinds):
            if min(row) > 1:  # all rates together, those of the report as well
                told = s.reports and _with(s.reports, t, _with(s.reports[t], l, _lowered(s.reports[t][l])))
                yield replace(s, tenants=_with(s.tenants, t, _with(kinds, l, _lowered(row))), reports=told)
    for t, l, j, rate in _cells(s.tenants):
        for less in _below(rate):
            row = _with(s.tenants[t][l], j, less)
            told = s.reports
            # What was reported truly stays true, and every report begins with the true rate.
            if told and (told[t][l] == s.tenants[t][l] or j == 0):
                told = _with(told, t, _with(told[t], l, _with(told[t][l], j, less)))
            if list(row) == sorted(row):
                yield replace(s, tenants=_with(s.tenants, t, _with(s.tenants[t], l, row)), reports=told)


def _lowered(row: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(rate - 1, 1) for rate in row)


def _with_nearer_reports(s: Situation) -> Iterator[Situation]:
    """Bring a report nearer to the truth, or one of an invented job type nearer to 1."""
    told = s.reports or ()
    for t, l, j, rate in _cells(told):
        true = s.tenants[t][l][j] if l < len(s.tenants[t]) else 1
        toward = rate + (true > rate) - (true < rate)
        for nearer in dict.fromkeys((true, (rate + true) // 2, toward)):
            if j > 0 and abs(nearer - true) < abs(rate - true):
                yield replace(s, reports=_with(told, t, _with(told[t], l, _with(told[t][l], j, nearer))))


def _cells(tenants: tuple[JobTypes, ...]) -> Iterator[tuple[int, int, int, int]]:
    for t, kinds in enumerate(tenants):
        for l, row in enumerate(kinds):
            for j, rate in enumerate(row):
                yield t, l, j, rate


def _without(parts: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return parts[:at] + parts[at + 1 :]


def _with(parts: tuple[Any, ...], at: int, part: Any) -> tuple[Any, ...]:
    return (*parts[:at], part, *parts[at + 1 :])
