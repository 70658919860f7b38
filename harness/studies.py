"""Which command measures what of which method, and so what becomes of each number that was published.

A published number that no study measures is an error of the instance's file: :func:`unmeasured` says what is wrong and
which names are known. What is measured is declared, by :attr:`schedgap.harness.verify.VerifierSpec.quantities` and the
fields of a simulation's rows, so that nothing has to run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from schedgap.harness.published import measured_as, split
from schedgap.harness.rows import MEASURED, Row
from schedgap.harness.simulation.rows import ALIASES, SENSITIVE, SimulationRow
from schedgap.harness.simulation.rows import MEASURED as SIMULATED
from schedgap.harness.tasks import find_spec, specs
from schedgap.harness.verify import VERIFIERS
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.catalogue import references
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance, Published


@dataclass(frozen=True)
class Study:
    """A command that runs methods on an instance and puts their rows together.

    Parameters
    ----------
    command, option
        Words of the command line that run a method.
    methods
        Returns the ids of all methods that it can run.
    quantities
        Returns what it measures of a method; nothing where it cannot run it.
    """

    command: str
    option: str
    methods: Callable[[], Sequence[str]]
    quantities: Callable[[str], Collection[str]]

    def measures(self, entry: Published) -> bool:
        """Return whether it measures a published number, of both methods where it is a ratio."""
        name, other = split(entry.quantity)
        return bool(other) == name.endswith("_ratio") and all(
            measured_as(name, self.quantities(method)) for method in (entry.method, other) if method
        )

    def run(self, instance: Instance) -> str:
        """Return the command line that shows what it measures of all that was published about an instance."""
        entries = [entry for entry in instance.published if _shows(self, entry)]
        named = dict.fromkeys(method for entry in entries for method in (entry.method, split(entry.quantity)[1]))
        words = [word for method in named if method for word in (self.option, method)]
        packaged = instance.name.partition("?")[0] in references()
        return shlex.join(["harness", self.command, "--instance", instance.name if packaged else "FILE", *words])


def _of_a_method(method: str) -> Collection[str]:
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


COMPARE = Study("compare", "--method", lambda: [spec.id for spec in specs()], _of_a_method)
SIMULATE = Study("simulate", "--policy", POLICIES.ids, _of_a_policy)
STUDIES = (COMPARE, SIMULATE)


def unmeasured(entry: Published) -> str | None:
    """Return why no study compares a published number with one of ours, ``None`` where one does."""
    if entry.scope:
        return f"it is {entry.scope}"
    if entry.value is None and entry.exact is None:
        return "no number is given, only words"
    if any(study.measures(entry) for study in STUDIES):
        return None
    name, other = split(entry.quantity)
    for method in (entry.method, other):
        if method and not any(study.quantities(method) for study in STUDIES):
            return unknown("method", method, dict.fromkeys(one for study in STUDIES for one in study.methods()))
    if bool(other) != name.endswith("_ratio"):
        return f"{entry.quantity!r}: a ratio is <quantity>_ratio:<other method>"
    known = {one for study in STUDIES for method in (entry.method, other) for one in study.quantities(method)}
    return unknown(f"quantity of {entry.method}", name.removesuffix("_ratio"), sorted(known))


def not_shown(rows: Iterable[Row | SimulationRow], instance: Instance, study: Study) -> list[tuple[Published, str]]:
    """Return what was published about an instance and stands beside none of its rows, and why.

    Numbers that this study measures of methods that were not run are left out: that was asked for.
    """
    ran, shown = set(), set()
    for row in rows:
        method = row.method if isinstance(row, Row) else row.policy
        ran.add(method)
        shown |= {(method, entry["quantity"]) for entry in row.published}
    found = []
    for entry in instance.published:
        why = unmeasured(entry)
        if why is None and (entry.method not in ran or (entry.method, entry.quantity) in shown):
            continue
        found.append((entry, why or _why_here(entry, instance, study, ran)))
    return found


def _why_here(entry: Published, instance: Instance, study: Study, ran: Collection[str]) -> str:
    if not study.measures(entry):
        other = next(one for one in STUDIES if one.measures(entry))
        return f"measured by {other.run(instance)}"
    _, reference = split(entry.quantity)
    if reference and reference not in ran:
        return f"{reference} must run, too"
    return "this run has no such number"


def commands(instance: Instance) -> dict[str, list[Published]]:
    """Return what was published about an instance by the command line that shows it beside ours."""
    found = ((study.run(instance), [e for e in instance.published if _shows(study, e)]) for study in STUDIES)
    return {command: entries for command, entries in found if entries}


def never_compared(instance: Instance) -> dict[str, list[Published]]:
    """Return what was published about an instance and no command shows beside ours, by the reason."""
    return by_reason((entry, unmeasured(entry)) for entry in instance.published)


def by_reason(pairs: Iterable[tuple[Published, str | None]]) -> dict[str, list[Published]]:
    """Return published numbers by what is said of them; those of which nothing is said are left out."""
    found: dict[str, list[Published]] = {}
    for entry, why in pairs:
        if why:
            found.setdefault(why, []).append(entry)
    return found


def _shows(study: Study, entry: Published) -> bool:
    return unmeasured(entry) is None and study.measures(entry)
