"""Check certificates of bounds with this folder and numpy alone; print "bound 3159.2 holds", or why it does not.

::

    python examples/check_certificate.py RUN/certificates/*.json.gz

A certificate names an instance, a problem and a bound, and has multipliers from which the bound follows by weak
duality: at any prices ≥ 0 of capacity, no schedule is worth more than all capacity costs plus, for each job, the most
it can be worth by itself after paying these prices. The instance is read from ``instances/`` next to ``certificates/``.
Each problem's rule computes the best responses with code of its own, and adds up integers, fractions, or floats rounded
to the safe side. As in the problems themselves, 1.01e-9 of a job's work, of a time, or of the CPUs or memory of a level
may be missing, and capacities may be exceeded by 1.15e-8. Whatever the instance does not determine is taken from the
certificate and printed: slots and rounds, the jobs of a round, what placed jobs hold, and the time by which weight
counts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from . import elastic, fluid, oef, packing, rigid, synergy
from .basics import Data, RefusedError, require
from .reading.jobs import arrivals
from .rules import RULES, register, rule_of

__all__ = [
    "REFUSED",
    "RULES",
    "RefusedError",
    "certified",
    "check",
    "digest",
    "elastic",
    "fluid",
    "main",
    "oef",
    "packing",
    "proved",
    "register",
    "rigid",
    "synergy",
]

PRESENTATION = {"name", "title", "source", "licence", "derived", "published", "began_s"}
REFUSED = RefusedError, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError
"""Exceptions by which a rule refuses a certificate: its own, and those of multipliers that do not fit the instance."""

ENDLESS = 2**31
"""Number of slots for a simulation, whose rounds have no horizon."""


def digest(content: Data, without: set[str]) -> str:
    """Return the SHA-256 of plain data without some fields."""
    fields = {name: value for name, value in content.items() if name not in without}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check(proof: Data, instance: Data) -> Fraction:
    """Return the bound that a certificate proves; refuse it if it claims a stronger one."""
    require(digest(instance, PRESENTATION) == proof["instance"], "it is about another instance")
    require(digest(proof, {"digest"}) == proof["digest"], "it was changed: its digest does not match its content")
    sense, value = proved(proof, instance)
    holds = sense * (Fraction(proof["bound"]) - value) >= 0
    require(holds, f"only {float(value):.12g} follows, not {proof['bound']:.12g}")
    return value


def certified(proof: Data, instance: Data) -> float:
    """Return the bound that follows from multipliers, rounded to the safe side, or refuse them.

    The instance is not compared with the one that the certificate names: who calls this has just read it.
    """
    sense, value = proved(proof, instance)
    bound = float(value)
    require(math.isfinite(bound), "the bound that follows is infinite")
    return bound if sense * (Fraction(bound) - value) >= 0 else math.nextafter(bound, sense * math.inf)


def proved(proof: Data, instance: Data) -> tuple[int, Fraction]:
    """Return the problem's sense (1 maximises, -1 minimises) and the bound that follows from the multipliers."""
    require(proof.get("unit", 1) > 0, "the unit of prices is not positive")
    return rule_of(proof)(posed(proof, instance), proof)


def posed(proof: Data, instance: Data) -> Data:
    """Return the instance that a certificate is about: some of the jobs, or rounds of a simulation."""
    if "window" in proof:
        first, count = proof["window"].split(":")
        at = arrivals(instance)
        order = sorted(range(len(at)), key=at.__getitem__)[int(first) :][: int(count) if count else None]
        instance = {**instance, "jobs": [instance["jobs"][j] for j in order]}
    if "round_s" in proof:
        instance = {**instance, "horizon": {"slot_s": proof["round_s"], "slots": ENDLESS}}
    return instance


def assumptions(proof: Data) -> str:
    """Return the parts of the problem that are taken from the certificate, as text."""
    words = [f"{len(proof['round'])} jobs of the round"] if "round" in proof else []
    words += ["the CPUs and memory that they hold"] if "held" in proof else []
    number = f"{proof['slots']} " if "slots" in proof else ""
    words += [f"{number}slots of {proof['slot_s']:g} s"] if "slot_s" in proof else []
    words += [f"rounds of {proof['round_s']:g} s"] if "round_s" in proof else []
    words += [f"jobs {proof['window']} by arrival"] if "window" in proof else []
    return "".join(f", {word}" for word in words)


def main(paths: Sequence[str]) -> None:
    """Check files; exit with status 1 at the first one that is refused, and with 2 if there are none."""
    if not paths:
        print("name one or more certificates: RUN/certificates/*.json.gz", file=sys.stderr)
        sys.exit(2)
    for path in map(Path, paths):
        try:
            proof = json.loads(gzip.decompress(path.read_bytes()))
            instance = path.parent.parent / "instances" / f"{proof['instance']}.json"
            check(proof, json.loads(instance.read_bytes()))
        except RecursionError:
            sys.exit(f"{path.name}: refused: its JSON is nested too deeply")
        except (*REFUSED, OSError, ValueError) as reason:
            sys.exit(f"{path.name}: refused: {reason or type(reason).__name__}")
        print(f"{path.name}: bound {proof['bound']:.10g} holds ({proof['problem']}{assumptions(proof)})")
