"""Which mechanism has which property, at tenant level: a claim for each pair, and the table of all of them.

The mechanisms are the registered ones (:func:`schedgap.harness.ask.mechanisms.mechanisms`), the properties those of
:mod:`schedgap.harness.ask.properties`. A claim is tried first where it is known to fail, in the smallest situation that
an earlier search found (:data:`FOUND`), then in the papers' examples and in random situations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from schedgap.harness.ask.mechanisms import Mechanism, mechanism, mechanisms
from schedgap.harness.ask.properties import PROPERTIES, Property, Violation, cases, climbed, shrunk
from schedgap.harness.ask.situations import Situation
from schedgap.harness.studies.audit.claims.oef import BY_HAND
from schedgap.harness.studies.audit.lab import ClaimLab
from schedgap.harness.studies.audit.row import CLAIMS, Claim, Count, Finding, Witness

PREFIX = "oef.property"
"""Ids of the claims are ``oef.property.<mechanism>.<property>``."""

FOUND = "properties.json"
"""File next to this one with the findings of a long search (``make properties keep-properties``)."""

USUAL = 40
"""Random situations that are tried for a claim at effort 1."""

ONE_TYPE = "tenants of one job type"

EXAMPLES = (
    *BY_HAND,
    Situation((((1, 2),), ((1, 4),)), (1, 1), (1, 1)),
    Situation((((1, 2), (1, 3)), ((1, 5),)), (1, 1), (1, 1)),
)
"""Examples of OEF, and by hand: as for Table 1, Fig. 2, and the two job types of section 4.2.4."""


def _liars(
    truth: tuple[tuple[int, ...], ...], told: Mapping[int, tuple[int, ...]], devices: tuple[int, ...], *weights: int
) -> Situation:
    """Return a situation of tenants with one job type each, some of which do not tell the truth; by default alike."""
    reports = tuple((told.get(t, row),) for t, row in enumerate(truth))
    return Situation(tuple((row,) for row in truth), devices, weights or (1,) * len(truth), reports)


OURS: Mapping[str, tuple[Situation, ...]] = {
    "over-reports": (
        Situation((((1, 1), (1, 2)), ((1, 4), (1, 1))), (6, 1), (1, 1), reports=(((1, 1), (1, 2)), ((1, 4), (1, 3)))),
    ),
    "coalition-2": (
        _liars(((1, 2, 2), (1, 2, 2), (1, 3, 3)), {0: (1, 4, 2), 1: (1, 2, 4)}, (1, 1, 1)),
        _liars(((1, 1, 2), (1, 5, 5), (1, 1, 2)), {0: (1, 1, 5), 2: (1, 4, 2)}, (1, 1, 1), 2, 1, 2),
        _liars(((1, 1), (1, 4), (1, 4)), {1: (1, 3), 2: (1, 3)}, (2, 2), 2, 1, 1),
        _liars(((1, 1), (1, 1), (1, 3)), {0: (1, 2), 1: (1, 2)}, (2, 2), 1, 1, 2),
        _liars(((2, 2), (2, 2), (1, 3)), {0: (2, 3), 1: (2, 3)}, (2, 2), 1, 1, 2),
        _liars(((1, 1), (1, 1), (1, 3), (1, 3)), {2: (1, 2), 3: (1, 2)}, (1, 1)),
        _liars(((1, 1),) * 4, {0: (1, 2), 1: (1, 2)}, (1, 2)),
    ),
    "coalition-3": (
        _liars(((1, 2, 2, 2),) * 3 + ((1, 3, 3, 3),), {0: (1, 4, 2, 2), 1: (1, 2, 4, 2), 2: (1, 2, 2, 4)}, (1,) * 4),
        _liars(((1, 1), *((1, 4),) * 3), dict.fromkeys((1, 2, 3), (1, 3)), (3, 3), 3, 1, 1, 1),
        _liars((*((1, 1),) * 3, (1, 3)), dict.fromkeys((0, 1, 2), (1, 2)), (3, 3), 1, 1, 1, 3),
        _liars((*((3, 3),) * 3, (1, 3)), dict.fromkeys((0, 1, 2), (3, 4)), (3, 3), 1, 1, 1, 3),
        _liars(((1, 1),) * 3 + ((1, 3),) * 3, dict.fromkeys((3, 4, 5), (1, 2)), (2, 2)),
        _liars(((1, 1),) * 6, dict.fromkeys((0, 1, 2), (1, 2)), (1, 2)),
    ),
    "population": (
        Situation((((1, 3),), ((1, 4),), ((1, 1),)), (1, 2), (1, 1, 1), gone=2),
        Situation((((1, 3, 3),), ((1, 1, 10),), ((1, 10, 13),), ((1, 2, 11),)), (1, 6, 3), (1,) * 4, gone=0),
        Situation((((1, 1),), ((1, 1),), ((1, 2),)), (1, 3), (1, 1, 1), gone=0),
        Situation((((1, 1),), ((1, 1),), ((1, 6),)), (1, 1), (1, 1, 1), gone=1),
        Situation((((1, 4, 6),), ((1, 1, 10),), ((1, 3, 3),)), (1, 2, 1), (1, 1, 1), gone=2),
        Situation((((1, 1),), ((1, 5), (1, 2)), ((1, 3),)), (1, 1), (1, 1, 1), gone=0),
        Situation((((1, 10, 12),), ((1, 2, 4),), ((1, 2, 7), (1, 2, 3))), (2, 1, 3), (1, 1, 1), gone=0),
    ),
    "resource": (
        Situation((((1, 1, 1),), ((1, 20, 20),), ((1, 1, 100),)), (12, 2, 1), (1, 1, 1), added=2),
        Situation((((1, 1, 10),), ((1, 1, 6),), ((1, 6, 8),)), (2, 3, 3), (1, 1, 1), added=1),
        Situation(
            (((1, 6, 11, 14),), ((1, 1, 10, 11),), ((1, 3, 3, 8),), ((1, 2, 7, 9),)), (1, 1, 4, 1), (1,) * 4, added=1
        ),
        Situation((((1, 1, 4),), ((1, 2, 6),), ((1, 3, 3),)), (1, 1, 1), (1, 1, 1), added=0),
        Situation((((1, 6),), ((1, 10), (1, 1))), (1, 1), (1, 1), added=0),
    ),
}
"""Situations by hand or of a targeted search, by property.

*Lies of several.* Two or three tenants claim a type each that another one would get. Or one whose lie pays is there
twice or three times, with all others and the devices: where copies of a tenant fare like one of their weight, the lie
pays for all copies. Lies that are nearer to the truth leave less freedom to divide what the copies have together.

*Leaving.* When a slow tenant leaves, the equal split of the tenant of 3 grows, and it takes more of the fast type. Of
tenants who fill by dominant shares, one loses the fast devices that another of its kind left it.

*One more device.* Three tenants have equal gains. A fast device raises what the second and the third must have, since
both count it in what all devices are worth; only one of them gets it, and the first one has to give slow devices.
"""


class Proof(NamedTuple):
    """Why a mechanism has a property, and whether this covers tenants of several job types."""

    why: str
    several: bool = False


LIES = ("over-reports", "one-lie", "joint-lies", "invented-types", "coalition-2", "coalition-3")

_SHARES = Proof("a tenant's share depends on weights only, and grows if a tenant leaves or a device is added", True)
_LARGEST = Proof("each type goes to tenants of the largest speedup on it, also if others leave or it grows", True)
_TURNS = Proof("the first liar takes what it likes best of what the same others have left", True)
_PAID = Proof(
    "its worth is the product of all gains at its true speedups, over what its reports do not change; the truth "
    "makes this product largest; Cole, Gkatzelis and Goel, EC 2013",
    True,
)
_EQUAL = (
    "all speedups are above 0, so that all gains are equal at the optimum: who had more could give some of it to all; "
    "and whoever stays can keep what it has"
)
_PARTS = "what part of a type a tenant gets does not depend on how many devices there are"
_MARGIN = (
    "its worth is the Nash welfare of all over that of the others without it, and the logarithm of Nash welfare is, by "
    "Eisenberg and Gale's dual, the least over log prices of a function that is submodular in these, in who is there "
    "and in devices (with a minus); so is the least (Topkis 1998, Theorem 2.7.6)"
)
_LEVEL = "the level of (9) can be kept by those who stay and with more devices, and a larger one is taken"
_PRICES = (
    "prices do not rise when a buyer leaves or more is sold, as types are gross substitutes; Segal-Halevi and Sziklai, "
    "Economic Theory 2019"
)
_WITHIN = "a better allocation for all would meet the same rows with a larger total"

PROVED: Mapping[str, Mapping[str, Proof]] = {
    "oef.maxmin": dict.fromkeys(("envy-free", "sharing-incentive", *LIES, "population", "resource"), _SHARES),
    "oef.efficiency": {
        "pareto-efficient": Proof("the total is the largest of all (4)", True),
        "optimal-efficiency": Proof("the total is the largest of all (4)", True),
        "population": _LARGEST,
        "resource": _LARGEST,
    },
    "oef.noncooperative": {
        "pareto-efficient": Proof("what one tenant gains could be divided among all; OEF, Theorem 5.3"),
        "over-reports": Proof("OEF, Theorem 5.4"),
        "population": Proof(_LEVEL),
        "resource": Proof(_LEVEL),
    },
    "oef.sharing_incentive": {
        "sharing-incentive": Proof("rows (8)"),
        "pareto-efficient": Proof(_WITHIN),
        "optimal-efficiency": Proof("its objective, with rows (8)"),
    },
    "oef.cooperative": {
        "envy-free": Proof("rows (10c)"),
        "sharing-incentive": Proof("OEF, Theorem 5.1: rows (10c) added up, as all devices are given out"),
    },
    "oef.nash": {
        "envy-free": Proof("everybody can buy what another one has per weight; Varian 1974", True),
        "sharing-incentive": Proof("everybody can buy an equal split; Varian 1974", True),
        "pareto-efficient": Proof("equilibria of markets are, and it has the largest product of gains", True),
        "population": Proof(_PRICES, True),
        "resource": Proof(_PRICES, True),
    },
    "oef.least_gain": {
        "sharing-incentive": Proof("an equal split gives everybody the gain 1", True),
        "pareto-efficient": Proof(_EQUAL, True),
        "population": Proof(_EQUAL, True),
    },
    "oef.leximin": {
        "sharing-incentive": Proof("the least gain is at least that of an equal split", True),
        "pareto-efficient": Proof("a better allocation for all would have larger gains", True),
        "population": Proof(_EQUAL, True),
    },
    "oef.dictator": dict.fromkeys(LIES, _TURNS),
    "oef.drf": {"resource": Proof(_PARTS, True)},
    "oef.partial_allocation": dict.fromkeys(LIES[:4], _PAID)
    | dict.fromkeys(("population", "resource"), Proof(_MARGIN, True)),
    "oef.gavel": {
        "sharing-incentive": Proof("an equal split gives everybody the ratio 1"),
        "pareto-efficient": Proof(_WITHIN),
        "population": Proof(_EQUAL),
    },
    "oef.gandiva_fair": {
        "sharing-incentive": Proof("tenants begin with an equal split, and no trade hurts anybody"),
    },
}
"""What is proved of mechanisms, by mechanism and property."""

TABLE_1: Mapping[str, Sequence[str]] = {
    "oef.gavel": ("sharing-incentive",),
    "oef.gandiva_fair": ("pareto-efficient", "sharing-incentive"),
    "oef.cooperative": ("pareto-efficient", "envy-free", "sharing-incentive", "optimal-efficiency"),
    "oef.noncooperative": ("pareto-efficient", "over-reports"),
}
"""Marks of OEF's Table 1; its marks of OEF are those of the environment in which sections 4 and 5 promise each."""


def named(mechanism: str, property: str) -> str:
    """Return the id of the claim that a mechanism has a property."""
    return f"{PREFIX}.{mechanism.removeprefix('oef.').replace('?', ':')}.{property}"


@cache
def kept() -> dict[str, Mapping[str, Any]]:
    """Return what a long search found, by the id of the claim (:func:`as_kept`)."""
    return read_kept(resources.files(__package__).joinpath(FOUND))


def read_kept(file: Traversable) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a kept table by the id of the claim; none if there is no such file."""
    return {row["id"]: row for row in json.loads(file.read_text("utf-8"))} if file.is_file() else {}


def as_kept(finding: Finding, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is kept of a finding: what it shows, and the counts of the longer search, this or the one before.

    Counts of the one before are kept only if they have the same verdict.
    """
    counts = [count.as_dict() for count in finding.counts]
    if before and before["counts"][0]["tested"] > finding.stated.tested:
        fails = [[count["failed"] > 0 for count in found] for found in (counts, before["counts"])]
        counts = before["counts"] if fails[0] == fails[1] else counts
    return {"id": finding.id, "counts": counts, "numbers": dict(finding.numbers)}


def of_kept(row: Mapping[str, Any]) -> Finding:
    """Return the finding that a search kept, with its witnesses."""
    numbers, counts = row["numbers"], [Count(**count) for count in row["counts"]]
    if "situation" not in numbers:
        return Finding(row["id"], counts, f"holds in all of {counts[0].tested} situations", numbers)
    witnesses = _witnesses(Situation.of(numbers["situation"]), numbers["mechanism"], numbers["shows"])
    return Finding(row["id"], counts, f"{numbers['shows']}; {failing(counts[0])}", numbers, witnesses)


def _witnesses(where: Situation, id: str, shows: str) -> list[Witness]:
    """Return the instances before and after a change, or the only one."""
    before, after = Witness(where.before(), (id,), shows), Witness(where.after(), (id,), shows)
    if where.liars:
        return [after]
    return [before] if where.gone is None and where.added is None else [before, after]


def _tried(property: Property, run: Mechanism, lab: ClaimLab) -> Iterator[Situation]:
    """Yield the known situation, the examples, and random situations."""
    if (row := kept().get(lab.claim)) and "situation" in row["numbers"]:
        yield Situation.of(row["numbers"]["situation"])
    rng = lab.rng("examples")
    changed = (property.change(rng, one) for one in EXAMPLES if len(one.tenants) >= property.tenants)
    yield from (one for one in changed if one is not None)
    # A situation with steps costs as much as several without.
    count = lab.times(USUAL // 4 if property.steps else USUAL)
    yield from OURS.get(property.id, ())
    rng = lab.rng("situations")
    yield from (climbed(property, run, one, rng) for one in cases(property, rng, count))


def has(lab: ClaimLab, *, of: str, property: Property) -> str:
    """Try whether a mechanism has a property, and make the first situation in which it has not as small as possible."""
    run = mechanism(of)
    one = lab.within(ONE_TYPE) if property.one_type else Count()
    first: dict[bool, Violation] = {}
    for situation in _tried(property, run, lab):
        found = property.check(run, situation)
        lab.add(found is None)
        if situation.one_type:
            one.add(found is None)
        if found:
            first.setdefault(situation.one_type, found)
    lab.numbers = {"mechanism": of, "property": property.id}
    if not first:
        return f"holds in all of {lab.tested} situations"
    # A situation of one job type is smaller, and shows more.
    least = shrunk(property, run, first.get(True) or first[False])
    if True not in first and least.situation.one_type and property.one_type:
        lab.add(False)
        one.add(False)
    lab.also = _witnesses(least.situation, of, least.text)
    lab.numbers |= {"situation": least.situation.as_dict(), "margin": str(least.margin), "shows": least.text}
    return f"{least.text}; {failing(lab)}"


def failing(stated: Count) -> str:
    """Return in how many situations a property fails, in words."""
    return f"fails in {stated} situations"


for _id in mechanisms():
    for _property in PROPERTIES.values():
        CLAIMS.register(
            Claim(
                named(_id, _property.id),
                "oef",
                "Table 1" if _property.id in TABLE_1.get(_id, ()) else "our question",
                f"{_id}: {_property.text}",
                "whole tenants with any number of job types, whichever optimum is chosen",
                "in exact arithmetic, on OEF's examples and random situations; a counterexample is made smaller",
                partial(has, of=_id, property=_property),
                stated=False,
            )
        )


# ------------------------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class Mark:
    """A cell of the table: the finding, and what is proved of this mechanism and property, if anything."""

    finding: Finding
    proof: Proof | None = None
    promised: bool = False

    @property
    def one_type(self) -> Count | None:
        """The count of situations whose tenants have one job type."""
        return next((count for count in self.finding.counts[1:] if count.scope == ONE_TYPE), None)

    @property
    def text(self) -> str:
        """✗ with a witness, ✓ if it is proved, or else ? and the number of situations tried.

        If only tenants of several job types fail, or are not covered by the proof, a second mark after ``1:`` is about
        tenants of one job type. A dagger is for what Table 1 promises.
        """
        stated, one = self.finding.stated, self.one_type
        if not self.finding.finished:
            return "failed"
        alone = one if one is not None and one.failed == 0 else None
        narrow = "✓" if self.proof else f"?{alone.tested:,}" if alone else ""
        if stated.failed:
            text = f"✗ 1:{narrow}" if alone else "✗"
        elif self.proof and self.proof.several:
            text = "✓"
        else:
            text = f"?{stated.tested:,}" + (" 1:✓" if self.proof else "")
        return text + "†" * self.promised

    @property
    def contradicted(self) -> bool:
        """Whether something failed that is proved."""
        one = self.one_type
        failed = self.finding.stated.failed if self.proof and self.proof.several else one.failed if one else 0
        return bool(self.proof and failed)


def table_of(findings: Sequence[Finding]) -> dict[str, dict[str, Mark]]:
    """Return the marks of findings, by mechanism and property; findings about other claims are left out."""
    by_id = {finding.id: finding for finding in findings}
    marks: dict[str, dict[str, Mark]] = {}
    for id in mechanisms():
        for property in PROPERTIES:
            if finding := by_id.get(named(id, property)):
                proof = PROVED.get(id, {}).get(property)
                mark = Mark(finding, proof, property in TABLE_1.get(id, ()))
                marks.setdefault(id, {})[property] = mark
    return marks
