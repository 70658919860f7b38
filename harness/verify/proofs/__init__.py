"""Certificates of bounds, checked without any code but this folder's and numpy: "bound 3159.2 holds", or why not.

::

    python examples/check_certificate.py RUN/certificates/*.json.gz

A certificate names an instance, a problem and a bound, and has multipliers from which the bound follows by weak
duality: whatever capacity costs (0 or more), no schedule is worth more than all capacity at these prices and what each
job can be worth alone, less what it pays. The instance is read from ``instances/`` beside ``certificates/``; rules,
problem by problem, find the best responses by programs of their own, and add up in whole numbers, in fractions, or
rounded to the safe side. As in the problems themselves, 1e-9 of a job's work, of a time or of a need may be missing.
What the instance does not fix is as the certificate says, and printed: slots and rounds, the jobs of a round, what they
hold where they are placed, and the time by which weight counts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import elastic, fluid, oef, packing, rigid, synergy
from .basics import Data, RefusedError, arrivals, require

__all__ = ["RefusedError", "check", "digest", "main", "proved"]

PRESENTATION = {"name", "title", "source", "licence", "derived", "published", "began_s"}
SLOTTED: dict[str, Any] = {**packing.PROBLEMS, **elastic.PROBLEMS}
RULES: dict[str, fluid.Rule] = {**fluid.PROBLEMS, **rigid.PROBLEMS, **oef.PROBLEMS, **synergy.PROBLEMS}
ENDLESS = 2**31
"""Slots of a simulation, whose rounds end after everything."""


def digest(content: Data, without: set[str]) -> str:
    """Return the SHA-256 of plain data without some fields."""
    kept = {name: value for name, value in content.items() if name not in without}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check(proof: Data, instance: Data) -> Fraction:
    """Return the bound that a certificate proves; refuse where that is weaker than what it claims."""
    require(digest(instance, PRESENTATION) == proof["instance"], "it is about another instance")
    require(digest(proof, {"digest"}) == proof["digest"], "it was changed: its digest is another one")
    if "window" in proof:
        first, count = proof["window"].split(":")
        at = arrivals(instance)
        order = sorted(range(len(at)), key=at.__getitem__)[int(first) :][: int(count) if count else None]
        instance = {**instance, "jobs": [instance["jobs"][j] for j in order]}
    if "round_s" in proof:
        instance = {**instance, "horizon": {"slot_s": proof["round_s"], "slots": ENDLESS}}
    sense, value = proved(proof, instance)
    holds = sense * (Fraction(proof["bound"]) - value) >= 0
    require(holds, f"only {float(value):.12g} follows, not {proof['bound']:.12g}")
    return value


def proved(proof: Data, instance: Data) -> tuple[int, Fraction]:
    """Return whether a problem maximises (1) or minimises (-1), and the bound that follows from multipliers."""
    name = proof["problem"]
    require(proof.get("unit", 1) > 0, "the unit of prices is not positive")
    rules = fluid.WORTH if "edges" in proof and name in fluid.WORTH else RULES
    if name in rules:
        return rules[name](instance, proof)
    require(name in SLOTTED, f"there is no rule for {name}")
    problem = SLOTTED[name](instance, proof)
    return problem.sense, problem.value(proof)


def told(proof: Data) -> str:
    """Return what the problem takes from the certificate, as words."""
    words = [f"{len(proof['round'])} jobs of the round"] if "round" in proof else []
    words += ["the CPUs and memory that they hold"] if "held" in proof else []
    number = f"{proof['slots']} " if "slots" in proof else ""
    words += [f"{number}slots of {proof['slot_s']:g} s"] if "slot_s" in proof else []
    words += [f"rounds of {proof['round_s']:g} s"] if "round_s" in proof else []
    words += [f"jobs {proof['window']} by arrival"] if "window" in proof else []
    return "".join(f", {word}" for word in words)


def main(paths: Sequence[str]) -> None:
    """Check files; end with 1 at the first one that is refused."""
    for path in map(Path, paths):
        try:
            proof = json.loads(gzip.decompress(path.read_bytes()))
            instance = path.parent.parent / "instances" / f"{proof['instance']}.json"
            check(proof, json.loads(instance.read_bytes()))
        except RecursionError:
            sys.exit(f"{path.name}: refused: it is nested too deeply")
        except (RefusedError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as reason:
            sys.exit(f"{path.name}: refused: {reason or type(reason).__name__}")
        print(f"{path.name}: bound {proof['bound']:.10g} holds ({proof['problem']}{told(proof)})")
