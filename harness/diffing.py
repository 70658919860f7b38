"""Two runs of the same instances: what got better, what got worse, and what got slower, row by row and tested in pairs.

Objectives and bounds are facts about an instance and compared wherever both runs have the row. Times are compared only
between runs of one machine and the same versions; otherwise the reason why not is said. Over several instances each
method's differences are tested in pairs, instance by instance (Wilcoxon's signed-rank test), because instances differ
far more among each other than two versions of a method do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.text import some

TOLERANCE = 1e-6
"""Relative difference up to which objectives and bounds are the same."""

EARLY = 0.05
"""The same for what a model had found when it stopped before a proof: that depends on how fast the machine is."""

LEAST_PAIRS = 6
"""With fewer pairs that differ, no outcome of the signed-rank test is significant at 5 % (two-sided: 2/2⁵ = 0.06)."""

LEAST_S = 0.01
"""Times below this are noise of the clock and of caches, and are taken as this."""

Change = Literal["better", "worse", "same", "appeared", "vanished", "none"]


@dataclass(frozen=True)
class RowChange:
    """A method on an instance in both runs: what became of its objective and own bound, and what is wrong only now."""

    before: Row
    after: Row
    objective: Change
    bound: Change
    trouble: str = ""

    @property
    def worse(self) -> bool:
        """Whether anything but the time got worse."""
        return bool(self.trouble) or {self.objective, self.bound} & {"worse", "vanished"} != set()

    @property
    def better(self) -> bool:
        """Whether objective or bound got better, and nothing worse."""
        return not self.worse and {self.objective, self.bound} & {"better", "appeared"} != set()

    @property
    def relative(self) -> float | None:
        """Relative difference of the objectives, 0 where they count as the same; ``None`` where one is absent."""
        old, new = self.before.objective, self.after.objective
        if old is None or new is None:
            return None
        return 0.0 if self.objective == "same" else (new - old) / max(abs(old), abs(new))

    @property
    def times(self) -> float | None:
        """How many times slower it is now, or ``None`` where one of the times is unknown."""
        if self.before.solve_s is None or self.after.solve_s is None:
            return None
        return max(self.after.solve_s, LEAST_S) / max(self.before.solve_s, LEAST_S)


@dataclass(frozen=True)
class MethodTest:
    """A method over the rows (instances with seeds and limits) in which both runs have an objective.

    The p-values are two-sided, of Wilcoxon's signed-rank test on the pairs; ``None`` with too few that differ. `times`
    is the geometric mean of how many times slower it is now; ``None`` where times are not comparable.
    """

    method: str
    rows: int
    better: int
    same: int
    worse: int
    objective_p: float | None
    times: float | None
    time_p: float | None


@dataclass(frozen=True)
class Difference:
    """What two runs differ in: `changes` are the rows that both have, in the order of the second run.

    `reasons` say why something is not compared. Of instances that both have, `missing` rows are only in the first run
    and `new` ones only in the second, which lacks the instances `lost`, or has them with other content. `tests` are of
    methods over the instances.
    """

    reasons: tuple[str, ...]
    changes: tuple[RowChange, ...]
    missing: tuple[Row, ...]
    new: tuple[Row, ...]
    lost: tuple[str, ...] = ()
    tests: tuple[MethodTest, ...] = ()
    times_compared: bool = True

    @property
    def counts(self) -> dict[str, int]:
        """How many rows got better, worse or stayed as they were."""
        better, worse = (sum(getattr(change, how) for change in self.changes) for how in ("better", "worse"))
        return {"better": better, "worse": worse, "same": len(self.changes) - better - worse}

    @property
    def ok(self) -> bool:
        """Whether something was compared, and nothing is worse or missing."""
        gone = self.missing or self.lost
        return bool(self.changes) and not gone and not any(change.worse for change in self.changes)


def diff(before: Comparison, after: Comparison, tolerance: float = TOLERANCE) -> Difference:
    """Compare two runs; `tolerance` is the relative difference up to which objectives and bounds are the same."""
    common = set(before.instances) & set(after.instances)
    old = {row.name: row for row in before.rows if row.fingerprint in common}
    new = {row.name: row for row in after.rows if row.fingerprint in common}
    changes = tuple(_change(old[name], row, tolerance) for name, row in new.items() if name in old)
    why_not = _why_times_differ(before, after)
    return Difference(
        reasons=(*_different_instances(before, after), *why_not),
        changes=changes,
        missing=tuple(row for name, row in old.items() if name not in new),
        new=tuple(row for name, row in new.items() if name not in old),
        lost=tuple(one.name for mark, one in before.instances.items() if mark not in common),
        tests=tuple(_tests(changes, times=not why_not)),
        times_compared=not why_not,
    )


def _different_instances(before: Comparison, after: Comparison) -> list[str]:
    """Return what is said about instances that only one run has."""
    found = []
    for which, here, there in (("first", before, after), ("second", after, before)):
        names = [instance.name for mark, instance in here.instances.items() if mark not in there.instances]
        same_name = {instance.name for instance in there.instances.values()}
        changed = [name for name in names if name in same_name]
        if changed and which == "first":
            found.append(f"{some(changed, 4)}: the same name, but other content, so not compared.")
        if others := [name for name in names if name not in same_name]:
            found.append(f"Only the {which} run has {some(others, 4)}.")
    return found


def _why_times_differ(before: Comparison, after: Comparison) -> list[str]:
    """Return why times cannot be compared: another machine, other versions, other limits."""
    found = []
    for name, what in (("machine", "machines"), ("versions", "versions"), ("limits", "limits")):
        old, new = (_facts(run.meta.get(name)) for run in (before, after))
        differ = [key for key in old | new if old.get(key) != new.get(key) and key != "schedgap"]
        if differ:
            parts = ", ".join(f"{key} {old.get(key, '–')} → {new.get(key, '–')}" for key in differ)
            found.append(f"Times are not compared, the {what} differ: {parts}.")
    return found


def _facts(value: object) -> dict[str, object]:
    """Return a part of ``run.json``, whatever somebody wrote there."""
    return dict(value) if isinstance(value, Mapping) else {"": value} if value else {}


def _change(before: Row, after: Row, tolerance: float) -> RowChange:
    objective, bound = ("max", "min") if before.sense == "max" else ("min", "max")
    # What a model has when it stops before it proves its decision optimal hangs on how fast the machine is.
    stopped = {"feasible", "gap left", "time limit with incumbent"}
    early = any(row.termination is not None and row.status in stopped for row in (before, after))
    timed = any(row.status.startswith("time limit") for row in (before, after))
    return RowChange(
        before,
        after,
        _compared(before.objective, after.objective, objective, max(tolerance, EARLY * early)),
        _compared(before.own_bound, after.own_bound, bound, max(tolerance, EARLY * timed)),
        _trouble(before, after),
    )


def _compared(old: float | None, new: float | None, sense: str, tolerance: float) -> Change:
    """Return how a value changed that should be large (``max``) or small (``min``)."""
    if old is None or new is None:
        return "none" if old is new else "appeared" if old is None else "vanished"
    if old == new or abs(new - old) <= tolerance * max(abs(old), abs(new)):
        return "same"
    return "better" if (new > old) == (sense == "max") else "worse"


def _trouble(before: Row, after: Row) -> str:
    """Return what happens to the row now that did not before."""
    if after.wrong and not before.wrong:
        return f"WRONG: {after.violations[0]}" if after.violations else "WRONG"
    ends_badly = after.failed or (after.status == "skipped" and not before.failed)
    if ends_badly and after.status != before.status:
        return f"{before.status} → {after.status}" + (f": {after.reason}" if after.reason else "")
    return ""


def _tests(changes: Iterable[RowChange], times: bool) -> Iterator[MethodTest]:
    """Test each method with one number per instance: its mean, as seeds and limits are no independent samples."""
    known = [
        (c.after.method, c.after.fingerprint, c.objective, c.relative, math.log(c.times) if times and c.times else None)
        for c in changes
    ]
    frame = pd.DataFrame(known, columns=["method", "mark", "change", "relative", "log"])
    frame = frame.astype({"relative": float, "log": float})
    for method, mine in frame.groupby("method", sort=False):
        pairs = mine.dropna(subset="relative")
        means = mine.groupby("mark", sort=False)[["relative", "log"]].mean()
        logs = means["log"].dropna()
        yield MethodTest(
            method=str(method),
            rows=len(pairs),
            better=int((pairs["change"] == "better").sum()),
            same=int((pairs["change"] == "same").sum()),
            worse=int((pairs["change"] == "worse").sum()),
            objective_p=signed_rank_p(means["relative"].dropna()),
            times=math.exp(logs.mean()) if len(logs) else None,
            time_p=signed_rank_p(logs),
        )


def signed_rank_p(differences: Iterable[float]) -> float | None:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, or ``None`` where too few differences are not 0."""
    from scipy.stats import wilcoxon

    moved = np.array([d for d in differences if d != 0])
    if len(moved) < LEAST_PAIRS:
        return None
    return float(wilcoxon(moved).pvalue)
