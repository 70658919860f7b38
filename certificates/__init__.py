"""Checks certificates of bounds with this folder and numpy alone; prints "bound 3159.2 holds", or why it does not.

::

    python examples/check_certificate.py RUN/certificates/*.json.gz

A certificate names an instance, a problem and a bound, and has multipliers from which the bound follows by weak
duality: at any prices ≥ 0 of capacity, no schedule is worth more than all capacity costs plus, for each job, the most
that the job can be worth after paying these prices. The instance is read from ``instances/`` next to
``certificates/``. The rule of each problem computes the best responses of jobs with code of its own, and adds up
integers, fractions, or floats rounded to the safe side. As in the problems themselves, 1.01e-9 of a job's work, of a
time, or of the CPUs or memory of a level may be missing, and capacities may be exceeded by 2.1e-8. What the instance
does not determine is taken from the certificate and printed: the CPUs and memory that placed jobs hold, and the rounds
and jobs of a simulation.
"""

from __future__ import annotations

import hashlib
import math
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from . import admission, hadar, oef, rigid, synergy, zhou
from .basics import Data, RefusedError, numeric, require
from .files import instance_of, parsed, printable, unpacked
from .reading.columns import texts
from .reading.jobs import arrivals
from .rules import RULES, register, rule_of

__all__ = [
    "REFUSED",
    "RULES",
    "RefusedError",
    "admission",
    "certified",
    "check",
    "digest",
    "hadar",
    "main",
    "oef",
    "proved",
    "register",
    "rigid",
    "synergy",
    "zhou",
]

PRESENTATION = {"name", "title", "source", "licence", "derived", "published", "began_s"}
REFUSED = RefusedError, ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
"""Exceptions that mean that a certificate is refused: the rules' own, and those that malformed multipliers cause."""

MOST_MEMORY = 8 * 2**30
"""Most memory, in bytes, that checking a certificate may take."""

OF_ALL = {"instance", "method", "problem", "bound", "digest", "unit"}
"""Fields that every certificate may have; `unit` is the unit of its multipliers, by default 1."""

TEXTS = {"instance", "method", "problem", "digest", "window", "round"}
"""Fields that may hold texts with digits; in all other fields, such a text is refused."""

OF_SIMULATIONS = {"window", "round_s"}
"""Fields of certificates about simulations: which of the jobs are simulated, and the length of the rounds."""

ENDLESS = 2**31
"""Number of slots for a simulation, whose rounds have no horizon."""


def digest(content: Data, without: set[str]) -> str:
    """Return the SHA-256 of plain data, leaving out the fields in `without`."""
    found = hashlib.sha256()
    for text in texts({name: value for name, value in content.items() if name not in without}):
        found.update(text.encode())
    return found.hexdigest()


def check(proof: Data, instance: Data, expected: int = 0) -> Fraction:
    """Return the bound that a certificate proves; refuse it if it claims a stronger one."""
    require(digest(instance, PRESENTATION) == proof["instance"], "it is about another instance")
    require(digest(proof, {"digest"}) == proof["digest"], "it was changed: its digest does not match its content")
    sense, value = proved(proof, instance, expected)
    holds = sense * (Fraction(proof["bound"]) - value) >= 0
    require(holds, f"only {float(value):.17g} follows, not {proof['bound']:.17g}")
    return value


def certified(proof: Data, instance: Data, expected: int = 0) -> float:
    """Return the bound that follows from the multipliers of a certificate, rounded to the safe side, or refuse them.

    The instance is not compared with the one that the certificate names, since the caller has just read it.
    """
    sense, value = proved(proof, instance, expected)
    bound = float(value)
    require(math.isfinite(bound), "the bound that follows is infinite")
    return bound if sense * (Fraction(bound) - value) >= 0 else math.nextafter(bound, sense * math.inf)


def proved(proof: Data, instance: Data, expected: int = 0) -> tuple[int, Fraction]:
    """Return the problem's sense (1 maximises, -1 minimises) and the bound that follows from the multipliers.

    A caller who knows the problem's sense gives it as `expected`: a rule with the other sense is refused.
    """
    rule = rule_of(proof)
    known = OF_ALL | rule.reads | (OF_SIMULATIONS if rule.simulated else set())
    others = [name for name in proof if name not in known]
    require(not others, f"{proof['problem']} has no {', '.join(map(repr, others[:3]))}")
    numbers = {name: content for name, content in proof.items() if name not in TEXTS}
    require(numeric(numbers), "its bound and multipliers must be numbers, not texts")
    require(proof.get("unit", 1) > 0, "the unit of prices is not positive")
    sense, value = rule.bound(posed(proof, instance), proof)
    words = f"the rule of {proof['problem']} returns the sense {sense}; the problem's is {expected}"
    require(expected in (0, sense), words)
    return sense, value


def posed(proof: Data, instance: Data) -> Data:
    """Return the instance as the certificate is about it: with some of the jobs only, or in rounds of a simulation."""
    if "window" in proof:
        require(bool(re.fullmatch("[0-9]{1,9}:[0-9]{0,9}", proof["window"])), "a window is FIRST:COUNT, two numbers")
        first, count = proof["window"].split(":")
        at = arrivals(instance)
        order = sorted(range(len(at)), key=at.__getitem__)[int(first) :][: int(count) if count else None]
        instance = {**instance, "jobs": [instance["jobs"][j] for j in order]}
    if "round_s" in proof:
        instance = {**instance, "horizon": {"slot_s": proof["round_s"], "slots": ENDLESS}}
    return instance


def assumptions(proof: Data) -> str:
    """Return, in words, which parts of the problem are taken from the certificate and not from the instance."""
    words = ["the CPUs and memory that its jobs hold"] if "held" in proof else []
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
            with memory_limited():
                proof = parsed(unpacked(path))
                check(proof, instance_of(proof, path))
        except (*REFUSED, OSError) as reason:
            sys.exit(printable(f"{path.name}: refused: {told(reason)}"))
        print(printable(f"{path.name}: bound {proof['bound']:.10g} holds ({proof['problem']}{assumptions(proof)})"))


def told(reason: BaseException) -> str:
    """Return in words why a certificate is refused; messages of Python's own errors would not help a reader."""
    if isinstance(reason, RefusedError):
        return str(reason)
    if isinstance(reason, OSError):
        return reason.strerror or "the file cannot be read"
    if isinstance(reason, MemoryError | RecursionError):
        return "it takes too much memory"
    if isinstance(reason, KeyError):
        return f"it, or its instance, lacks {reason}"
    return f"its fields do not fit the problem, or the instance ({str(reason)[:100] or type(reason).__name__})"


@contextmanager
def memory_limited() -> Iterator[None]:
    """Let allocations beyond :data:`MOST_MEMORY` fail within the block, so that no file can exhaust the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
