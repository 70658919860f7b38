"""The sentence that answers first what a simulation found: who is fastest, and how far that is from a proved bound."""

from __future__ import annotations

from collections.abc import Sequence

from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.text import clean, number, percent

NAMED = 3
"""So many policies that went wrong are named."""

METRICS = (
    ("ttd_s", "ttd_bound_ratio", "finishes all jobs first, after", "more than the least that any schedule can reach"),
    ("jct_mean_s", "jct_bound_ratio", "has the least mean completion time,", "more than the best possible mean"),
)
"""Field, its ratio to the bound, and what is said about the policy that is best in it."""


def headline(rows: Sequence[SimulationRow], interrupted: bool = False) -> str:
    """Return what was found: trouble first, then who is best and how far from the bound."""
    if not rows:
        return "No policy was simulated."
    sentences = answers(rows)
    answer = sentences[0][1] if len(sentences) == 1 else _over(rows)
    parts = [
        f"The run was stopped early, after {len(rows)} policies." if interrupted else "",
        _trouble(rows),
        answer or "No policy finished all jobs.",
    ]
    return " ".join(part for part in parts if part)


def answers(rows: Sequence[SimulationRow]) -> list[tuple[str, str]]:
    """Return the sentence about each instance, with its name; instances without a confirmed time are left out."""
    found = []
    for fingerprint in dict.fromkeys(row.fingerprint for row in rows):
        here = [row for row in rows if row.fingerprint == fingerprint]
        if text := _answer(here):
            found.append((clean(here[0].instance, 60), text))
    return found


def _answer(rows: Sequence[SimulationRow]) -> str:
    clauses = [clause for metric in METRICS if (clause := _clause(rows, *metric))]
    if not clauses:
        return ""
    return f"On {clean(rows[0].instance, 60)}, {'; '.join(clauses)}."


def _clause(rows: Sequence[SimulationRow], field: str, ratio: str, what: str, beyond: str) -> str:
    """Return who is best in one metric, and how far from its bound at most."""
    known = [row for row in rows if row.verified and not row.unfinished and getattr(row, field) is not None]
    if not known:
        return ""
    best = min(known, key=lambda row: float(getattr(row, field)))
    value, above = getattr(best, field) / 3600, getattr(best, ratio)
    # Of policies that move in the same way, the best one of those that a bound is about answers the question.
    certified = [row for row in known if getattr(row, ratio) is not None]
    text = f"{clean(best.policy, 60)} {what} {number(value)} h"
    if above is not None:
        return f"{text}, {_beyond(above, beyond)}"
    if certified:
        near = min(certified, key=lambda row: float(getattr(row, ratio)))
        return f"{text}; {clean(near.policy, 60)} is {_beyond(getattr(near, ratio), beyond)}"
    return text


def _beyond(ratio: float, beyond: str) -> str:
    """Return how far a ratio to a bound is from 1, in words."""
    above = percent(ratio - 1.0, up=True)
    return "proved optimal" if above == "0 %" else f"at most {above} {beyond}"


def _over(rows: Sequence[SimulationRow]) -> str:
    """Return which policy stays nearest to the bounds over all instances."""
    names = list(dict.fromkeys(row.fingerprint for row in rows))
    for field, ratio, _, beyond in METRICS:
        by_policy: dict[str, list[float]] = {}
        for row in rows:
            if row.verified and getattr(row, ratio) is not None and getattr(row, field) is not None:
                by_policy.setdefault(row.policy, []).append(getattr(row, ratio))
        whole = {policy: max(found) for policy, found in by_policy.items() if len(found) == len(names)}
        if whole:
            best = min(whole, key=lambda policy: whole[policy])
            total = "total time" if field == "ttd_s" else "mean completion time"
            most = percent(whole[best] - 1.0, up=True)
            return f"Over {len(names)} instances, the {total} of {clean(best, 60)} is at most {most} {beyond}."
    return f"Over {len(names)} instances, no policy is bounded on all of them." if answers(rows) else ""


def _trouble(rows: Sequence[SimulationRow]) -> str:
    bad = [row for row in rows if not row.ok]
    if not bad:
        return ""
    named = ", ".join(
        f"{clean(row.policy, 60)} ({clean((row.violations or (row.reason or row.status,))[0], 100)})"
        for row in bad[:NAMED]
    )
    word = "WRONG" if any(row.verified is False for row in bad) else "failed"
    verb = "" if word == "failed" else "is " if len(bad) == 1 else "are "
    more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    return f"{len(bad)} of {len(rows)} policies {verb}{word}: {named}{more}."
