"""Two runs of one kind: what got better, what got worse, and what got slower, row by row and tested in pairs.

Objectives, bounds, times of simulations and verdicts are compared wherever both runs have the row; seconds of computing
only between runs of one machine, versions and limits. Over several instances each method's differences are tested in
pairs (Wilcoxon's signed-rank test), because instances differ far more than two versions of a method do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from schedgap.harness.engine.result import Found
from schedgap.harness.simulate.row import BOUNDED
from schedgap.harness.text import some
from schedgap.instances.errors import UsageError

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
class Compared:
    """What is compared of the rows of a kind of study; fields are those of their plain data.

    Parameters
    ----------
    name, shown
        Fields that tell the rows of a run apart, and those by which people know a row.
    values
        By what it is called: a field, and whether it should be large (``max``), small (``min``) or the ``same``, or be
        as the row's ``sense`` says, or the other way round (``bound``).
    time
        Field with the seconds that it took, if there is one.
    """

    name: tuple[str, ...]
    shown: tuple[str, ...]
    values: Mapping[str, tuple[str, str]]
    time: str = ""


RULES = ("round_s", "restart_s", "spread_factor", "until_s", "profiling_s", "window")
"""Fields that say under which rules a policy was simulated."""

COMPARED = {
    "compare": Compared(
        ("fingerprint", "method", "seed", "limits"),
        ("method", "instance", "seed", "limits"),
        {"objective": ("objective", "sense"), "bound": ("own_bound", "bound")},
        "solve_s",
    ),
    "simulate": Compared(
        ("fingerprint", "policy", "seed", *RULES),
        ("policy", "instance", "seed"),
        {
            **{"TTD (s)": ("ttd_s", "min"), "mean JCT (s)": ("jct_mean_s", "min")},
            **{f"bound on {name}": (f"{prefix}_bound_s", "max") for prefix, name in BOUNDED.values()},
        },
        "simulate_s",
    ),
    "audit": Compared(("id",), ("id",), {"verdict": ("verdict", "same")}, "seconds"),
    "reproduce": Compared(
        ("figure", "place", "method", "what", "published"),
        ("figure", "method", "what"),
        {"verdict": ("verdict", "same")},
    ),
    "adversary": Compared(
        ("heuristic",), ("heuristic",), {"ratio": ("ratio", "max"), "guarantee exceeded": ("exceeded", "same")}
    ),
}
"""By kind of study."""

SECONDS = ("solve_s", "decision_")
"""Seconds of computing in figures depend on the machine, and so may the verdicts on them."""

LIMITED = tuple(f"{prefix}_bound_s" for prefix, _ in BOUNDED.values())
"""Bounds for which every simulation has some seconds."""


@dataclass(frozen=True)
class RowChange:
    """A row in both runs, as plain data: what became of its values, and what is wrong only now.

    `values` has what each was and is, and how it changed; `times` is how many times slower it is now, if that is known.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    values: Mapping[str, tuple[Any, Any, Change]]
    times: float | None = None
    trouble: str = ""

    @property
    def worse(self) -> bool:
        """Whether anything but the time got worse."""
        return bool(self.trouble) or any(how in ("worse", "vanished") for *_, how in self.values.values())

    @property
    def better(self) -> bool:
        """Whether a value got better, and nothing worse."""
        return not self.worse and any(how in ("better", "appeared") for *_, how in self.values.values())

    @property
    def relative(self) -> float | None:
        """Relative difference of the first value, 0 where it counts as the same; ``None`` where there is none."""
        old, new, how = next(iter(self.values.values()))
        if isinstance(new, str) or old is None or new is None:
            return None
        return 0.0 if how == "same" else float((new - old) / max(abs(old), abs(new)))


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
    methods over the instances; `kind` says what is compared.
    """

    kind: str
    reasons: tuple[str, ...]
    changes: tuple[RowChange, ...]
    missing: tuple[Mapping[str, Any], ...]
    new: tuple[Mapping[str, Any], ...]
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


def diff(before: Found[Any], after: Found[Any], tolerance: float = TOLERANCE) -> Difference:
    """Compare two runs of one kind, or raise `UsageError`; values within a relative `tolerance` are the same."""
    if before.kind != after.kind:
        raise UsageError(f"results of harness {before.kind} and of harness {after.kind} cannot be compared")
    what, common = COMPARED[after.kind], set(before.instances) & set(after.instances)
    everywhere = not (before.instances or after.instances)
    old, new = (
        {
            tuple(str(data[name]) for name in what.name): (row, data)
            for row in run.rows
            for data in [row.as_dict()]
            if everywhere or "fingerprint" not in data or data["fingerprint"] in common
        }
        for run in (before, after)
    )
    reasons, why_not = [], []
    for which, mine, others in (("first", before, after), ("second", after, before)):
        names = [instance.name for mark, instance in mine.instances.items() if mark not in others.instances]
        same_name = {instance.name for instance in others.instances.values()}
        if which == "first" and (changed := [name for name in names if name in same_name]):
            reasons.append(f"{some(changed, 4)}: the same name, but other content, so not compared.")
        if left := [name for name in names if name not in same_name]:
            reasons.append(f"Only the {which} run has {some(left, 4)}.")
    for name, of in (("machine", "machines"), ("versions", "versions"), ("limits", "limits")) if what.time else ():
        here, there = (_facts(run.meta.get(name)) for run in (before, after))
        differ = [key for key in here | there if here.get(key) != there.get(key) and key != "schedgap"]
        if differ:
            parts = ", ".join(f"{key} {here.get(key, '–')} → {there.get(key, '–')}" for key in differ)
            why_not.append(f"Times are not compared, the {of} differ: {parts}.")
    both = [(old[name], row) for name, row in new.items() if name in old]
    changes = tuple(_change(what, one, other, tolerance, times=not why_not) for one, other in both)
    return Difference(
        after.kind,
        reasons=(*reasons, *why_not),
        changes=changes,
        missing=tuple(data for name, (_, data) in old.items() if name not in new),
        new=tuple(data for name, (_, data) in new.items() if name not in old),
        lost=tuple(one.name for mark, one in before.instances.items() if mark not in common),
        tests=tuple(_tests(what, changes)),
        times_compared=not why_not,
    )


def _facts(value: object) -> dict[str, object]:
    """Return a part of ``run.json``, whatever somebody wrote there."""
    return dict(value) if isinstance(value, Mapping) else {"": value} if value else {}


def _change(
    what: Compared,
    before: tuple[Any, Mapping[str, Any]],
    after: tuple[Any, Mapping[str, Any]],
    tolerance: float,
    times: bool,
) -> RowChange:
    (old, was), (new, now) = before, after
    values: dict[str, tuple[Any, Any, Change]] = {}
    changed: Change
    # A model or a bound that stopped before it had a proof: what it had found hangs on how fast the machine is.
    timed = any(str(row.get("status")).startswith("time limit") for row in (was, now))
    stopped = {"feasible", "gap left", "time limit with incumbent"}
    early = any(row.get("termination") is not None and row["status"] in stopped for row in (was, now))
    hurried = {*LIMITED, *["own_bound"] * timed, *["objective"] * early}
    for name, (value, sense) in what.values.items():
        wanted = sense if sense in ("max", "min", "same") else was["sense"]
        wanted = {"max": "min", "min": "max"}[wanted] if sense == "bound" else wanted
        changed = _compared(was[value], now[value], wanted, max(tolerance, EARLY * (value in hurried)))
        changed = "same" if str(was.get("what")).startswith(SECONDS) else changed
        values[name] = was[value], now[value], changed
    took = [max(row[what.time], LEAST_S) for row in (was, now) if times and row.get(what.time) is not None]
    slower = took[1] / took[0] if len(took) > 1 else None
    return RowChange(was, now, values, slower, _trouble(old, new))


def _compared(old: Any, new: Any, sense: str, tolerance: float) -> Change:
    """Return how a value changed that should be large (``max``), small (``min``) or the ``same``."""
    if old == new or old is None or new is None:
        return ("none" if old is None else "same") if old == new else "appeared" if old is None else "vanished"
    if sense == "same":
        return "worse"
    if abs(new - old) <= tolerance * max(abs(old), abs(new)):
        return "same"
    return "better" if (new > old) == (sense == "max") else "worse"


def _trouble(before: Any, after: Any) -> str:
    """Return what happens to the row now that did not before."""
    if getattr(after, "wrong", False) and not before.wrong:
        return f"WRONG: {after.violations[0]}" if after.violations else "WRONG"
    old, new = (getattr(row, "status", "") for row in (before, after))
    ends_badly = getattr(after, "failed", False) or (new == "skipped" and not before.failed)
    return f"{old} → {new}" + (f": {after.reason}" if after.reason else "") if ends_badly and old != new else ""


def _tests(what: Compared, changes: Iterable[RowChange]) -> Iterator[MethodTest]:
    """Test each method with one number per instance: its mean, as seeds and limits are no independent samples."""
    shown, first = what.shown[0], next(iter(what.values))
    known = [
        (c.after[shown], c.after.get("fingerprint"), c.values[first][2], c.relative, c.times and math.log(c.times))
        for c in changes
    ]
    frame = pd.DataFrame(known, columns=["method", "mark", "change", "relative", "log"])
    frame = frame.astype({"relative": float, "log": float})
    for method, mine in frame.groupby("method", sort=False):
        pairs = mine.dropna(subset="relative")
        count = pairs["change"].value_counts()
        means = mine.groupby("mark", sort=False)[["relative", "log"]].mean()
        logs = means["log"].dropna()
        yield MethodTest(
            method=str(method),
            rows=len(pairs),
            **{how: int(count.get(how, 0)) for how in ("better", "same", "worse")},
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
