"""Properties of mechanisms at tenant level, with any number of job types, decided in exact arithmetic.

A mechanism sees rows of job types (:mod:`schedgap.harness.ask.mechanisms`). What counts here are tenants: a tenant uses
a bundle of devices, its own or another's, as well as it can, each device for the job type that is fastest on it, at
true speedups. A property fails only if it fails whichever allocation the mechanism chooses; a lie pays only if it does
so between any allocation after it and any before it. So a tie-break is no excuse.

Everything compared is a sum over an allocation, except for Pareto efficiency, which is a linear program. §2.3.1 of
OEF defines the first four properties, for tenants of one job type. :func:`.fairness.strategy_proof` searches for the
lie that pays most on an instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np

from schedgap.harness.ask.mechanisms import Mechanism, Outcomes
from schedgap.harness.ask.situations import (
    Situation,
    adding,
    drawn,
    invented,
    leaving,
    misreported,
    misreported_all,
    smaller,
    stepped,
)
from schedgap.instances.random_instances import Source
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import OefView, view
from schedgap.models.engine.solve.exact import Exact, Limits, OptimalFace


@dataclass(frozen=True)
class Violation:
    """A situation in which a mechanism does not have a property, by how much, and the finding in words.

    `margin` is exact, in the unit of what the property compares.
    """

    situation: Situation
    margin: Fraction
    text: str


@dataclass(frozen=True)
class Property:
    """A property of mechanisms.

    Parameters
    ----------
    id, short, text
        Name, heading of its column, and a sentence that says when a mechanism has it.
    check
        ``check(mechanism, situation)`` returns how it fails in a situation, or ``None``.
    change
        ``change(rng, situation)`` returns the situation with a random change, or ``None`` if there is none.
    tenants
        Fewest tenants of a situation that can violate it.
    steps
        Random steps by which reports are made to pay more, as few lies of several tenants pay at random.
    one_type
        Whether it says anything about tenants that have, and report, one job type each.
    """

    id: str
    short: str
    text: str
    check: Callable[[Mechanism, Situation], Violation | None]
    change: Callable[[Source, Situation], Situation | None] = lambda rng, situation: situation
    tenants: int = 2
    steps: int = 0
    one_type: bool = True


# ---------------------------------------------------------------------------------------------------- what is compared


class _Seen:
    """A mechanism's outcomes on an instance, and what they are worth to tenants."""

    def __init__(self, mechanism: Mechanism, situation: Situation, instance: Instance) -> None:
        self.view: OefView = view(instance)
        self.situation, self.outcomes = situation, mechanism(self.view)
        self.owners = [self.view.tenants[owner] for owner in self.view.owner.tolist()]

    def worth(self, tenant: int, bundle: int | None = None) -> Exact:
        """Return the ``(v, k)`` worth to a tenant of the devices that it, or another tenant, has."""
        of = f"u{(tenant if bundle is None else bundle) + 1}"
        best, nothing = self.situation.best(tenant), np.full(self.view.capacity.size, Fraction(0), object)
        return np.array([best if owner == of else nothing for owner in self.owners], object)

    def least(self, tenant: int) -> Fraction:
        """Return the least that a tenant's own devices may be worth to it."""
        return self.outcomes.least(self.worth(tenant))

    def most(self, tenant: int) -> Fraction:
        """Return the most that a tenant's own devices may be worth to it."""
        return self.outcomes.most(self.worth(tenant))


def _clear(difference: Fraction, size: Fraction, *of: Outcomes) -> bool:
    """Return whether a difference counts: above 0, or above the slack of outcomes in double precision."""
    return difference > max(outcomes.slack for outcomes in of) * size


def _envy(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find a tenant that prefers the devices of another, per weight: ``u_t(x_i)/π_i > u_t(x_t)/π_t``."""
    seen, found = _Seen(mechanism, situation, situation.before()), list[Violation]()
    for t, own in enumerate(situation.weights):
        for i, other in enumerate(situation.weights):
            if i == t:
                continue
            least = seen.outcomes.least(seen.worth(t, i) / Fraction(other) - seen.worth(t) / Fraction(own))
            if _clear(least, situation.split(t), seen.outcomes):
                text = f"u{t + 1} envies u{i + 1}: its devices are worth at least {_text(least)} more per weight"
                found.append(Violation(situation, least, text))
    return max(found, key=lambda violation: violation.margin, default=None)


def _sharing(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find a tenant that has less than with its share, by weight, of every type."""
    seen, found = _Seen(mechanism, situation, situation.before()), list[Violation]()
    for t in range(len(situation.tenants)):
        split, most = situation.split(t), seen.most(t)
        if _clear(split - most, split, seen.outcomes):
            text = f"u{t + 1} has at most {_text(most)}, and {_text(split)} with an equal split"
            found.append(Violation(situation, split - most, text))
    return max(found, key=lambda violation: violation.margin, default=None)


def _pareto(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find an allocation that is worth more to some tenant and not less to any; all optima must be worth the same."""
    seen, n = _Seen(mechanism, situation, situation.before()), len(situation.tenants)
    spans = [(seen.least(t), seen.most(t)) for t in range(n)]
    if any(least != most for least, most in spans):
        return None
    # An allocation in double precision may exceed the devices by rounding, so that nothing else is worth as much.
    total = sum((least for least, _ in spans), Fraction(0))
    gain = _most(situation, [least * (1 - seen.outcomes.slack) for least, _ in spans]) - total
    if not _clear(gain, 2 * total, seen.outcomes):
        return None
    return Violation(
        situation, gain, f"tenants can have {_text(gain)} more in total than {_text(total)}, and nobody less"
    )


def _efficiency(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find that the total worth to tenants is less than an equal split for everybody allows."""
    seen, n = _Seen(mechanism, situation, situation.before()), len(situation.tenants)
    most = seen.outcomes.most(np.asarray(sum(seen.worth(t) for t in range(n)), object))
    best = _most(situation, [situation.split(t) for t in range(n)])
    if not _clear(best - most, best, seen.outcomes):
        return None
    text = (
        f"tenants have at most {_text(most)} in total, and {_text(best)} is possible with an equal split for everybody"
    )
    return Violation(situation, best - most, text)


def _most(situation: Situation, least: Sequence[Fraction]) -> Fraction:
    """Return the largest total worth to tenants at which each has at least so much."""
    n, k = len(situation.tenants), len(situation.devices)
    worth = np.full((n, n * k), Fraction(0), object)
    for t in range(n):
        worth[t, t * k : (t + 1) * k] = situation.best(t)
    rows: list[Limits] = [(worth[t], least[t], None) for t in range(n)]
    rows += [
        (_exact([int(c % k == j) for c in range(n * k)]), None, Fraction(m)) for j, m in enumerate(situation.devices)
    ]
    return OptimalFace(worth.sum(axis=0), rows).value


def _text(number: Fraction) -> str:
    """Return a fraction as text, rounded if it stands for a number in double precision."""
    return str(number) if number.denominator <= 10**9 else f"{float(number):.6g}"


def _exact(numbers: Sequence[int]) -> Exact:
    return np.array([Fraction(number) for number in numbers], object)


def _changed(
    mechanism: Mechanism, situation: Situation, who: Sequence[int], sign: Literal[1, -1], what: str, everybody: bool
) -> Violation | None:
    """Find that everybody (or somebody) among `who` has more (or, with sign −1, less) after a change than before."""
    before = _Seen(mechanism, situation, situation.before())
    after = _Seen(mechanism, situation, situation.after())
    found = list[tuple[Fraction, str]]()
    for t in who:
        # The least change over all choices before and after: no tie is a gain or a loss.
        now, was = (after.least(t), before.most(t)) if sign > 0 else (after.most(t), before.least(t))
        if (change := sign * (now - was)) > 0 and _clear(
            change, max(before.most(t), after.most(t)), before.outcomes, after.outcomes
        ):
            side = "at least" if sign > 0 else "at most"
            found.append((change, f"u{t + 1} has {side} {_text(now)} instead of {_text(was)}"))
        elif everybody:
            return None
    if not found:
        return None
    shown = found if everybody else [max(found)]
    return Violation(situation, min(change for change, _ in shown), f"{what}: {'; '.join(text for _, text in shown)}")


def _vector(row: Sequence[int]) -> str:
    return f"⟨{', '.join(map(str, row))}⟩"


LieKind = Literal["one", "several", "invented"]
"""What each liar does: it misreports one of its job types, or several, or adds one that it does not have."""


def _kind(situation: Situation) -> tuple[LieKind, bool]:
    """Return what the liars do, and whether no speedup is below the true one."""
    counts, over = list[int](), True
    for t in situation.liars:
        rows = list(zip(situation.tenants[t], (situation.reports or ())[t], strict=False))
        counts.append(sum(true != told for true, told in rows))
        # All reports begin with the true rate, so that larger rates are larger speedups.
        over &= all(b >= a for true, told in rows for a, b in zip(true, told, strict=True))
    invents = any(len(told) > len(true) for told, true in zip(situation.reports or (), situation.tenants, strict=False))
    if invents:
        return "invented", over
    return "several" if max(counts, default=0) > 1 else "one", over


def _lied(
    mechanism: Mechanism, situation: Situation, *, liars: int = 1, kind: LieKind = "one", over: bool = False
) -> Violation | None:
    """Find that all `liars` have more with reports of this kind than with the truth."""
    done, only_over = _kind(situation)
    if len(situation.liars) != liars or done != kind or (over and not only_over) or situation.reports is None:
        return None
    told = [
        f"u{t + 1} reports {', '.join(map(_vector, situation.reports[t]))}"
        f" for {', '.join(map(_vector, situation.tenants[t]))}"
        for t in situation.liars
    ]
    return _changed(mechanism, situation, situation.liars, 1, ", ".join(told), everybody=True)


def _left(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find a tenant that has less after another has left."""
    if situation.gone is None:
        return None
    stay = [t for t in range(len(situation.tenants)) if t != situation.gone]
    return _changed(mechanism, situation, stay, -1, f"u{situation.gone + 1} leaves", everybody=False)


def _more(mechanism: Mechanism, situation: Situation) -> Violation | None:
    """Find a tenant that has less after a device was added."""
    if situation.added is None:
        return None
    what = f"one device of type {situation.added + 1} more"
    return _changed(mechanism, situation, range(len(situation.tenants)), -1, what, everybody=False)


PROPERTIES: dict[str, Property] = {
    one.id: one
    for one in (
        Property("envy-free", "EF", "No tenant prefers the devices of another tenant, per weight.", _envy),
        Property("sharing-incentive", "SI", "No tenant has less than with its share of every GPU type.", _sharing),
        Property("pareto-efficient", "PE", "No tenant can have more unless another one has less.", _pareto),
        Property(
            "optimal-efficiency",
            "OE",
            "The total is not less than with the largest one that gives everybody an equal split.",
            _efficiency,
        ),
        Property(
            "over-reports",
            "SP↑",
            "No tenant gains by reporting too large speedups of one job type (§2.3.1).",
            partial(_lied, over=True),
            partial(misreported, over=True),
        ),
        Property("one-lie", "SP", "No tenant gains by misreporting one job type.", _lied, misreported),
        Property(
            "joint-lies",
            "SP joint",
            "No tenant gains by misreporting several of its job types.",
            partial(_lied, kind="several"),
            misreported_all,
            one_type=False,
        ),
        Property(
            "invented-types",
            "SP new",
            "No tenant gains by reporting a job type that it does not have.",
            partial(_lied, kind="invented"),
            invented,
            one_type=False,
        ),
        *(
            Property(
                f"coalition-{size}",
                f"SP {size}",
                f"No {size} tenants all gain by misreporting one job type each.",
                partial(_lied, liars=size),
                partial(misreported, liars=size),
                tenants=size,
                steps=12,
            )
            for size in (2, 3)
        ),
        Property("population", "PM", "Nobody who stays loses when a tenant leaves.", _left, leaving),
        Property("resource", "RM", "Nobody loses when a device is added.", _more, adding),
    )
}
"""Properties by id, in the order of the table."""


# ---------------------------------------------------------------------------------------------------------- search


def cases(property: Property, rng: Source, count: int, *, several: bool | None = None) -> Iterator[Situation]:
    """Yield `count` random situations, each with a random change.

    If `several`, some tenants have several job types; otherwise none has; by default both in turn.
    """
    turn = bool(several)
    while count:
        changed = property.change(rng, drawn(rng, tenants=property.tenants, several=turn))
        turn = not turn if several is None else turn
        if changed is not None:
            count -= 1
            yield changed


def climbed(property: Property, mechanism: Mechanism, situation: Situation, rng: Source) -> Situation:
    """Return the situation after the property's steps, each of which is kept unless the liar that gains least loses."""
    if not property.steps:
        return situation
    before = _Seen(mechanism, situation, situation.before())
    honest = {t: before.most(t) for t in situation.liars}

    def gain(of: Situation) -> Fraction:
        after = _Seen(mechanism, of, of.after())
        return min(after.least(t) - most for t, most in honest.items())

    best = gain(situation)
    for _ in range(property.steps):
        if best > 0:
            break
        other = stepped(rng, situation)
        if (found := gain(other)) >= best:
            situation, best = other, found
    return situation


def shrunk(property: Property, mechanism: Mechanism, violation: Violation) -> Violation:
    """Return a violation that no smaller step keeps (:func:`.situations.smaller`)."""
    while True:
        for less in smaller(violation.situation):
            if found := property.check(mechanism, less):
                violation = found
                break
        else:
            return violation
