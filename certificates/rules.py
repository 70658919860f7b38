"""The registry of rules: which function derives the bound of a problem from the multipliers of a certificate.

Each file of rules registers its problems, and so may a plug-in::

    from schedgap.certificates.rules import register

    register("smith.sum", bound)  # bound(instance, proof) -> (sense, value)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .basics import Data, require

Rule = Callable[[Data, Data], tuple[int, Fraction]]
"""``rule(instance, proof)`` returns the sense (1: larger is better, -1: smaller) and the bound, exactly."""

RULES: dict[str, dict[str, Rule]] = {}
"""Rules by problem and by the field of the certificate that asks for them; an empty field is the usual rule."""


def register(problem: str, rule: Rule, given: str = "") -> None:
    """Add the rule of a problem, for all certificates or for those with the field `given`.

    A file that is imported again may replace its own rule. It raises `ValueError` if the rule is another file's.
    """
    kept = RULES.setdefault(problem, {})
    if given in kept and _file(kept[given]) != _file(rule):
        raise ValueError(f"{problem} has a rule already, in {_file(kept[given])}; choose another problem")
    kept[given] = rule


def _file(rule: Rule) -> str:
    """Return the module of a rule, also if it is a function with some arguments set."""
    return str(getattr(getattr(rule, "func", rule), "__module__", ""))


def rule_of(proof: Data) -> Rule:
    """Return the rule for a certificate, or refuse it if there is none."""
    rules = RULES.get(proof["problem"], {})
    require(bool(rules), f"there is no rule for {proof['problem']}")
    return next((rule for given, rule in rules.items() if given and given in proof), rules.get("") or refused)


def refused(instance: Data, proof: Data) -> tuple[int, Fraction]:
    """Refuse a certificate that lacks the field which its problem's only rules need."""
    fields = ", ".join(RULES[proof["problem"]])
    require(False, f"a certificate of {proof['problem']} has one of the fields {fields}")
    return 0, Fraction(0)
