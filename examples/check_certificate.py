"""Check certificates of bounds without any code of the package that wrote them: "bound 3159.2 holds", or why not.

    python check_certificate.py RUN/certificates/*.json.gz

A certificate names an instance, a problem and a bound, and has multipliers from which the bound follows by weak
duality: whatever capacity costs (0 or more), no schedule is worth more than all capacity at these prices and what each
job can be worth alone, less what it pays. The instance is read from ``instances/`` beside ``certificates/``;
:mod:`rules` finds the best responses by dynamic programs of its own, in whole numbers and fractions, and adds up. As in
the problems themselves, 1e-9 of a job's work, of a time or of a need may be missing. Slots that the instance does not
fix, the jobs of a round, and the time by which weight counts are as the certificate says; they are printed.
"""

import gzip
import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path

from rules import elastic, machines, packing, programs
from rules.packing import RefusedError, require

PRESENTATION = {"name", "title", "source", "licence", "derived", "published"}
PROBLEMS = {**packing.PROBLEMS, **elastic.PROBLEMS, **programs.PROBLEMS, **machines.PROBLEMS}


def digest(content, without):
    """Return the SHA-256 of plain data without some fields."""
    kept = {name: value for name, value in content.items() if name not in without}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check(proof, instance):
    """Return the bound that a certificate proves; refuse where that is weaker than what it claims."""
    require(digest(instance, PRESENTATION) == proof["instance"], "it is about another instance")
    require(digest(proof, {"digest"}) == proof["digest"], "it was changed: its digest is another one")
    require(proof["problem"] in PROBLEMS, f"there is no rule for {proof['problem']}")
    problem = PROBLEMS[proof["problem"]](instance, proof)
    value = problem.value(proof)
    holds = problem.sense * (Fraction(proof["bound"]) - value) >= 0
    require(holds, f"only {float(value):.12g} follows, not {proof['bound']:.12g}")
    return value


def told(proof):
    """Return what the problem takes from the certificate, as words."""
    words = [f"{len(proof['round'])} jobs of the round"] if "round" in proof else []
    words += [f"{proof['slots']} slots of {proof['slot_s']:g} s"] if "slots" in proof else []
    return "".join(f", {word}" for word in words)


def main(paths):
    """Check files; end with 1 at the first one that is refused."""
    for path in map(Path, paths):
        try:
            proof = json.loads(gzip.decompress(path.read_bytes()))
            instance = path.parent.parent / "instances" / f"{proof['instance']}.json"
            check(proof, json.loads(instance.read_bytes()))
        except (RefusedError, ArithmeticError, LookupError, OSError, TypeError, ValueError) as reason:
            sys.exit(f"{path.name}: refused: {reason or type(reason).__name__}")
        print(f"{path.name}: bound {proof['bound']:.10g} holds ({proof['problem']}{told(proof)})")


if __name__ == "__main__":
    main(sys.argv[1:])
