"""Comparison of the numbers that papers print about an instance with the quantities that a study measures.

A published number names a method and a quantity. The measured quantities of a row are in ``Row.measured``; hours
(``ttd_h`` from ``ttd_s``) and improvement factors over another method (``objective_ratio:zhou.ps.fifo``) are derived.

A published number that no study can measure is an error in the instance's file: :func:`unmeasured` says what is wrong
and which names are valid. It needs no run, because the measured quantities are declared by
:attr:`schedgap.harness.check.VerifierSpec.quantities` and by the fields of a simulation's rows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from schedgap.harness.check import TOLERANCE, VERIFIERS
from schedgap.harness.engine.result import CheckedRow
from schedgap.harness.show.measures import smaller_is_better
from schedgap.harness.studies.compare.row import MEASURED
from schedgap.harness.studies.simulate.row import ALIASES, SENSITIVE
from schedgap.harness.studies.simulate.row import MEASURED as SIMULATED
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.catalogue import references
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import options
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance, Published

Entry = dict[str, Any]
Measured = Mapping[str, Any]
"""Measured values of a row, by quantity."""

M = TypeVar("M", bound=CheckedRow)
T = TypeVar("T")


def together(first: Instance, other: Instance) -> Instance:
    """Return `first` with the published numbers of both instances, which have the same content."""
    added = tuple(entry for entry in other.published if entry not in first.published)
    return first.model_copy(update={"published": (*first.published, *added)}) if added else first


def with_published(rows: Sequence[M], instances: Mapping[str, Instance], decided: Sequence[Measured] = ()) -> list[M]:
    """Return certified rows with the published numbers of their methods, compared with the rows of the same case.

    `decided` holds, for each row, further quantities that the checker measured from its decision.
    """
    peers: dict[tuple[str, ...], dict[str, Measured]] = {}
    for row, more in zip(rows, decided or [{}] * len(rows), strict=True):
        peers.setdefault(row.case, {})[row.method] = {**more, **row.measured} if row.measured else {}
    printed = {mark: instance.published for mark, instance in instances.items()}
    return [row.replace(published=evaluated(printed[row.case[0]], row.method, peers[row.case])) for row in rows]


def asked(entries: Iterable[Published], measured: Measured) -> Measured:
    """Return the measured quantities that some of the published numbers refer to."""
    pairs = (measured_as(split(entry.quantity)[0], measured) for entry in entries if not entry.scope)
    return {name: measured[name] for name, _ in filter(None, pairs)}


def evaluated(entries: Iterable[Published], method: str, measured: Mapping[str, Measured]) -> tuple[Entry, ...]:
    """Compare the published numbers of a method, except those with a `scope`, with our values, if we have them."""
    mine = (entry for entry in entries if entry.method == method and not entry.scope)
    pairs = ((entry, value_of(entry.quantity, method, measured)) for entry in mine)
    return tuple(_compared(entry, value) for entry, value in pairs if value is not None)


def split(quantity: str) -> tuple[str, str]:
    """Split a quantity into its name and a ratio's other method, else ``""``: ``("ttd_ratio", "hadar.gavel")``."""
    name, _, other = quantity.partition(":")
    return name, other


def measured_as(name: str, names: Container[str]) -> tuple[str, float] | None:
    """Return the measured quantity from which another one derives, and the divisor: ``("ttd_s", 3600)`` for ``ttd_h``.

    The measured quantity is one of `names`; the result is ``None`` if none of them fits.
    """
    stem = name.removesuffix("_ratio")
    sources = [(name, 1.0), (f"{name[:-2]}_s", 3600.0)] if name.endswith("_h") else [(name, 1.0)]
    sources = [(stem, 1.0), (f"{stem}_s", 1.0)] if stem != name else sources
    return next((source for source in sources if source[0] in names), None)


def value_of(quantity: str, method: str, measured: Mapping[str, Measured]) -> Any:
    """Return our value of a published quantity, ``None`` if we have none."""
    name, other = split(quantity)
    ours = measured.get(method, {})
    source = measured_as(name, ours)
    if source is None or bool(other) != name.endswith("_ratio"):
        return None
    base, unit = source
    mine, theirs = ours[base], measured.get(other, {}).get(base)
    if not other:
        return mine if unit == 1.0 else mine / unit
    if theirs is None or np.min(mine) <= 0 or np.min(theirs) <= 0:
        return None
    quotient = np.divide(theirs, mine) if smaller_is_better(base, ours) else np.divide(mine, theirs)
    return float(quotient) if quotient.ndim == 0 else quotient


def _compared(entry: Published, value: Any) -> Entry:
    measured = np.asarray(value, float)
    printed, exact = (None if number is None else np.asarray(number, float) for number in (entry.value, entry.exact))
    return {
        "quantity": entry.quantity,
        "value": None if printed is None else printed.tolist(),
        "relation": entry.relation,
        "exact": None if exact is None else exact.tolist(),
        "measured": measured.tolist(),
        "agrees": agrees(measured, printed, entry.tolerance, entry.relation),
        "exact_agrees": agrees(measured, exact, TOLERANCE),
        "unit": entry.unit,
        "where": entry.where,
        "note": entry.note,
    }


def agrees(measured: Any, printed: Any, tolerance: float, relation: str = "equal") -> bool | None:
    """Return whether a measured number or array agrees with the printed one; ``None`` if none was printed."""
    if printed is None:
        return None
    if printed.shape != measured.shape:
        return False
    above = measured - printed
    off = {"equal": np.abs(above), "at least": -above, "at most": above}[relation]
    return bool(np.all(off <= tolerance * (1 + 1e-9)))


@dataclass(frozen=True)
class Measures:
    """Quantities that a kind of study measures.

    `command` and `option` are the words of the command line that run a method. `methods` returns the ids of the methods
    that the study can run, and `quantities` the quantities that it measures for one, none if it cannot run it.
    """

    command: str
    option: str
    methods: Callable[[], Sequence[str]]
    quantities: Callable[[str], Collection[str]]

    def include(self, entry: Published) -> bool:
        """Return whether the study measures a published number, for both methods if it is a ratio."""
        name, other = split(entry.quantity)
        return bool(other) == name.endswith("_ratio") and all(
            measured_as(name, self.quantities(method)) for method in (entry.method, other) if method
        )

    def shown(self, instance: Instance) -> list[Published]:
        """Return the published numbers of an instance that the study can be compared with."""
        return [entry for entry in instance.published if unmeasured(entry) is None and self.include(entry)]

    def run(self, instance: Instance) -> str:
        """Return the command line that measures all these published numbers of an instance."""
        entries = self.shown(instance)
        methods = dict.fromkeys(method for entry in entries for method in (entry.method, split(entry.quantity)[1]))
        words = [word for method in methods if method for word in (self.option, method)]
        where = instance.name if instance.name.partition("?")[0] in references() else "FILE"
        return shlex.join(["harness", self.command, "--instance", where, *words, *options()])


def _methods() -> list[str]:
    from schedgap.harness.studies.compare.methods import specs

    return [spec.id for spec in specs()]


def _of_a_method(method: str) -> Collection[str]:
    from schedgap.harness.studies.compare.methods import find_spec  # solvers and models take a second to import

    try:
        spec = find_spec(method)
    except UsageError:
        return ()
    return {*MEASURED, *VERIFIERS.get(spec.paper).quantities(spec.problem)}


def _of_a_policy(policy: str) -> Collection[str]:
    try:
        sensitive = POLICIES.get(policy).sensitive
    except UsageError:
        return ()
    return {*SIMULATED, *ALIASES} - (set() if sensitive else SENSITIVE)


COMPARE = Measures("compare", "--method", _methods, _of_a_method)
SIMULATE = Measures("simulate", "--policy", POLICIES.ids, _of_a_policy)
STUDIES = (COMPARE, SIMULATE)


def unmeasured(entry: Published) -> str | None:
    """Return the reason why no study measures a published number, ``None`` if one does."""
    if entry.scope:
        return f"it is {entry.scope}"
    if entry.value is None and entry.exact is None:
        return "no number is given, only words"
    if any(study.include(entry) for study in reversed(STUDIES)):  # models come last, as they take long to import
        return None
    name, other = split(entry.quantity)
    for method in (entry.method, other):
        if method and not any(study.quantities(method) for study in STUDIES):
            return unknown("method", method, dict.fromkeys(id for study in STUDIES for id in study.methods()))
    if bool(other) != name.endswith("_ratio"):
        return f"{entry.quantity!r}: a ratio is <quantity>_ratio:<other method>"
    valid = {quantity for study in STUDIES for id in (entry.method, other) for quantity in study.quantities(id)}
    return unknown(f"quantity of {entry.method}", name.removesuffix("_ratio"), sorted(valid))


def not_shown(rows: Iterable[CheckedRow], instance: Instance, study: Measures) -> list[tuple[Published, str]]:
    """Return the published numbers of an instance that none of its rows is compared with, and the reasons.

    Numbers that this study measures only for methods that were not run are left out, as the user did not select them.
    """
    shown: dict[str, set[str]] = {}
    for row in rows:
        shown.setdefault(row.method, set()).update(entry["quantity"] for entry in row.published)
    omissions = []
    for entry in instance.published:
        why, reference = unmeasured(entry), split(entry.quantity)[1]
        if why is None:
            if entry.quantity in shown.get(entry.method, (entry.quantity,)):
                continue
            if not study.include(entry):
                why = f"measured by {next(other for other in STUDIES if other.include(entry)).run(instance)}"
            else:
                missing = reference and reference not in shown
                why = f"{reference} must also run" if missing else "this run does not measure it"
        omissions.append((entry, why))
    return omissions


def commands(instance: Instance) -> dict[str, list[Published]]:
    """Return the published numbers of an instance by the command line that compares ours with them."""
    return {study.run(instance): entries for study in STUDIES if (entries := study.shown(instance))}


def never_compared(instance: Instance) -> dict[str, list[Published]]:
    """Return the published numbers of an instance that no command compares with ours, by reason."""
    return by_reason((entry, unmeasured(entry)) for entry in instance.published)


def by_reason(pairs: Iterable[tuple[T, str | None]]) -> dict[str, list[T]]:
    """Group entries by reason, in order of first appearance; those without a reason are left out."""
    groups: dict[str, list[T]] = {}
    for entry, why in pairs:
        if why:
            groups.setdefault(why, []).append(entry)
    return groups
