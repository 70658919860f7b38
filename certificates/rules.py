"""The registry of rules: which function derives the bound of a problem from the multipliers of a certificate.

Each file of rules registers its problems, and so may a plug-in::

    from schedgap.certificates.rules import register

    register("smith.sum", bound, reads=["prices"])  # bound(instance, proof) -> (sense, value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from .basics import Data, require

Derive = Callable[[Data, Data], tuple[int, Fraction]]
"""``derive(instance, proof)`` returns the sense (1: larger is better, -1: smaller) and the bound, exactly."""


class Rule(NamedTuple):
    """The rule of a problem: the function that derives the bound, and the fields of certificates that it reads.

    If `simulated`, certificates may be about a simulation.
    """

    bound: Derive
    reads: frozenset[str]
    simulated: bool


RULES: dict[str, dict[str, Rule]] = {}
"""The rules of each problem: the usual one under an empty name, others under the field that selects them."""


def register(problem: str, bound: Derive, reads: Iterable[str], given: str = "", simulated: bool = False) -> None:
    """Add the rule of a problem, for all certificates or for those with the field `given`.

    A certificate with other fields than those that the rule `reads` is refused; if `simulated`, it may have a window of
    jobs and a length of rounds. A file that is imported again may replace its own rule. It raises `ValueError` if the
    rule is another file's.
    """
    kept = RULES.setdefault(problem, {})
    if given in kept and _file(kept[given].bound) != _file(bound):
        raise ValueError(f"{problem} has a rule already, in {_file(kept[given].bound)}; choose another problem")
    kept[given] = Rule(bound, frozenset(reads) | ({given} if given else set()), simulated)


def _file(rule: Derive) -> str:
    """Return the module of a rule's function, also if the function is wrapped by `functools.partial`."""
    return str(getattr(getattr(rule, "func", rule), "__module__", ""))


def rule_of(proof: Data) -> Rule:
    """Return the rule for a certificate, or refuse it if there is none."""
    rules = RULES.get(proof["problem"], {})
    require(bool(rules), f"there is no rule for {proof['problem']}")
    rule = next((rule for given, rule in rules.items() if given and given in proof), rules.get(""))
    require(rule is not None, f"a certificate of {proof['problem']} has one of the fields {', '.join(rules)}")
    assert rule
    return rule
