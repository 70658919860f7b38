"""What papers printed about an instance, beside what the rows of a study measure.

A published number names a quantity of a method. Rows say what they measure (``Row.measured``); from that follow hours
(``ttd_h`` from ``ttd_s``) and, of two rows, how many times better one is (``objective_ratio:zhou.ps.fifo``).

A published number that no study measures is an error of the instance's file: :func:`unmeasured` says what is wrong and
which names are known. What is measured is declared, by :attr:`schedgap.harness.verify.VerifierSpec.quantities` and the
fields of a simulation's rows, so that nothing has to run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from schedgap.harness.compare.row import MEASURED
from schedgap.harness.engine.result import CheckedRow
from schedgap.harness.simulate.row import ALIASES, SENSITIVE
from schedgap.harness.simulate.row import MEASURED as SIMULATED
from schedgap.harness.verify import TOLERANCE, VERIFIERS
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.catalogue import references
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import options
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance, Published

Entry = dict[str, Any]
Measured = Mapping[str, Any]
"""What a row measures, by quantity."""

LESS_IS_BETTER = ("_s", "_slots", "_rounds", "stragglers")
"""How names of times, and of what else is better where there is less of it, end."""

M = TypeVar("M", bound=CheckedRow)
T = TypeVar("T")


def together(first: Instance, other: Instance) -> Instance:
    """Return the first of two instances of one content with all numbers that were printed about either."""
    more = tuple(entry for entry in other.published if entry not in first.published)
    return first.model_copy(update={"published": (*first.published, *more)}) if more else first


def with_published(rows: Sequence[M], instances: Mapping[str, Instance], decided: Sequence[Measured] = ()) -> list[M]:
    """Return certified rows with what was published about their methods, beside what rows of the same case measure.

    `decided` is what the checker found of each row's decision beside what the row says.
    """
    peers: dict[tuple[str, ...], dict[str, Measured]] = {}
    for row, more in zip(rows, decided or [{}] * len(rows), strict=True):
        peers.setdefault(row.case, {})[row.method] = {**more, **row.measured} if row.measured else {}
    printed = {mark: one.published for mark, one in instances.items()}
    return [row.replace(published=evaluated(printed[row.case[0]], row.method, peers[row.case])) for row in rows]


def asked(entries: Iterable[Published], measured: Measured) -> Measured:
    """Return those of the quantities that published numbers are about."""
    found = (measured_as(split(entry.quantity)[0], measured) for entry in entries if not entry.scope)
    return {name: measured[name] for name, _ in filter(None, found)}


def evaluated(entries: Iterable[Published], method: str, measured: Mapping[str, Measured]) -> tuple[Entry, ...]:
    """Return what was published about a method on the instance alone (no scope), beside what is measured, if it is."""
    mine = (entry for entry in entries if entry.method == method and not entry.scope)
    found = ((entry, value_of(entry.quantity, method, measured)) for entry in mine)
    return tuple(_beside(entry, value) for entry, value in found if value is not None)


def split(quantity: str) -> tuple[str, str]:
    """Return a quantity, and the method to which it is a ratio, else ``""``: ``("ttd_ratio", "hadar.gavel")``."""
    name, _, other = quantity.partition(":")
    return name, other


def measured_as(name: str, names: Container[str]) -> tuple[str, float] | None:
    """Return which of `names` a quantity, as by :func:`split`, follows from, and how many of its units make one."""
    stem = name.removesuffix("_ratio")
    wanted = [(name, 1.0), (f"{name[:-2]}_s", 3600.0)] if name.endswith("_h") else [(name, 1.0)]
    wanted = [(stem, 1.0), (f"{stem}_s", 1.0)] if stem != name else wanted
    return next((one for one in wanted if one[0] in names), None)


def value_of(quantity: str, method: str, measured: Mapping[str, Measured]) -> Any:
    """Return our value of a published quantity, ``None`` where there is none."""
    name, other = split(quantity)
    ours = measured.get(method, {})
    found = measured_as(name, ours)
    if found is None or bool(other) != name.endswith("_ratio"):
        return None
    base, unit = found
    mine, theirs = ours[base], measured.get(other, {}).get(base)
    if not other:
        return mine if unit == 1.0 else mine / unit
    if theirs is None or np.min(mine) <= 0 or np.min(theirs) <= 0:
        return None
    less = ours.get("sense") == "min" if base == "objective" else base.endswith(LESS_IS_BETTER)
    found = np.divide(theirs, mine) if less else np.divide(mine, theirs)
    return float(found) if found.ndim == 0 else found


def _beside(entry: Published, value: Any) -> Entry:
    found = np.asarray(value, float)
    printed, exact = (None if number is None else np.asarray(number, float) for number in (entry.value, entry.exact))
    return {
        "quantity": entry.quantity,
        "value": None if printed is None else printed.tolist(),
        "relation": entry.relation,
        "exact": None if exact is None else exact.tolist(),
        "measured": found.tolist(),
        "agrees": agrees(found, printed, entry.tolerance, entry.relation),
        "exact_agrees": agrees(found, exact, TOLERANCE),
        "unit": entry.unit,
        "where": entry.where,
        "note": entry.note,
    }


def agrees(found: Any, wanted: Any, tolerance: float, relation: str = "equal") -> bool | None:
    """Return whether a number or array is what was printed, ``None`` where nothing was."""
    if wanted is None:
        return None
    if wanted.shape != found.shape:
        return False
    above = found - wanted
    off = {"equal": np.abs(above), "at least": -above, "at most": above}[relation]
    return bool(np.all(off <= tolerance * (1 + 1e-9)))


@dataclass(frozen=True)
class Measures:
    """What a study measures of methods on an instance.

    `command` and `option` are the words of the command line that run a method, `methods` returns the ids of all that it
    can run, and `quantities` what it measures of one, nothing where it cannot run it.
    """

    command: str
    option: str
    methods: Callable[[], Sequence[str]]
    quantities: Callable[[str], Collection[str]]

    def include(self, entry: Published) -> bool:
        """Return whether it measures a published number, of both methods where it is a ratio."""
        name, other = split(entry.quantity)
        return bool(other) == name.endswith("_ratio") and all(
            measured_as(name, self.quantities(method)) for method in (entry.method, other) if method
        )

    def shown(self, instance: Instance) -> list[Published]:
        """Return what was published about an instance and stands beside what it measures."""
        return [entry for entry in instance.published if unmeasured(entry) is None and self.include(entry)]

    def run(self, instance: Instance) -> str:
        """Return the command line that shows what it measures of all that was published about an instance."""
        entries = self.shown(instance)
        named = dict.fromkeys(method for entry in entries for method in (entry.method, split(entry.quantity)[1]))
        words = [word for method in named if method for word in (self.option, method)]

        where = instance.name if instance.name.partition("?")[0] in references() else "FILE"
        return shlex.join(["harness", self.command, "--instance", where, *words, *options()])


def _methods() -> list[str]:
    from schedgap.harness.compare.methods import specs

    return [spec.id for spec in specs()]


def _of_a_method(method: str) -> Collection[str]:
    from schedgap.harness.compare.methods import find_spec  # solvers and models take a second to import

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
    """Return why no study compares a published number with one of ours, ``None`` where one does."""
    if entry.scope:
        return f"it is {entry.scope}"
    if entry.value is None and entry.exact is None:
        return "no number is given, only words"
    if any(study.include(entry) for study in reversed(STUDIES)):  # models, which take long to import, come last
        return None
    name, other = split(entry.quantity)
    for method in (entry.method, other):
        if method and not any(study.quantities(method) for study in STUDIES):
            return unknown("method", method, dict.fromkeys(one for study in STUDIES for one in study.methods()))
    if bool(other) != name.endswith("_ratio"):
        return f"{entry.quantity!r}: a ratio is <quantity>_ratio:<other method>"
    known = {one for study in STUDIES for method in (entry.method, other) for one in study.quantities(method)}
    return unknown(f"quantity of {entry.method}", name.removesuffix("_ratio"), sorted(known))


def not_shown(rows: Iterable[CheckedRow], instance: Instance, study: Measures) -> list[tuple[Published, str]]:
    """Return what was published about an instance and stands beside none of its rows, and why.

    Numbers that this study measures of methods that were not run are left out: that was asked for.
    """
    shown: dict[str, set[str]] = {}
    for row in rows:
        shown.setdefault(row.method, set()).update(entry["quantity"] for entry in row.published)
    found = []
    for entry in instance.published:
        why, reference = unmeasured(entry), split(entry.quantity)[1]
        if why is None:
            if entry.quantity in shown.get(entry.method, (entry.quantity,)):
                continue
            if not study.include(entry):
                why = f"measured by {next(one for one in STUDIES if one.include(entry)).run(instance)}"
            else:
                missing = reference and reference not in shown
                why = f"{reference} must run, too" if missing else "this run has no such number"
        found.append((entry, why))
    return found


def commands(instance: Instance) -> dict[str, list[Published]]:
    """Return what was published about an instance by the command line that shows it beside ours."""
    return {study.run(instance): entries for study in STUDIES if (entries := study.shown(instance))}


def never_compared(instance: Instance) -> dict[str, list[Published]]:
    """Return what was published about an instance and no command shows beside ours, by the reason."""
    return by_reason((entry, unmeasured(entry)) for entry in instance.published)


def by_reason(pairs: Iterable[tuple[T, str | None]]) -> dict[str, list[T]]:
    """Return things by what is said of them, such as published numbers; those of which nothing is said are left out."""
    found: dict[str, list[T]] = {}
    for entry, why in pairs:
        if why:
            found.setdefault(why, []).append(entry)
    return found
