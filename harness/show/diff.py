"""Comparison of two runs of one kind, row by row: what got better, worse, or slower, with paired tests, as text.

Objectives, bounds, simulated times and verdicts are compared for every row that both runs have; computing times only
if the runs share the machine, the versions and the limits. Over several instances, each method's differences are tested
in pairs (Wilcoxon's signed-rank test), because instances differ far more than two versions of a method do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from schedgap.harness.engine.result import Found
from schedgap.harness.show.measures import (
    ADVERSARY,
    AUDIT,
    CLOCKED,
    COMPARE,
    FRONTIER,
    REPRODUCE,
    SIMULATE,
    WHATIF,
    Measure,
)
from schedgap.harness.show.table import Block, Line, of_texts, table
from schedgap.harness.show.text import ABSENT, clean, number
from schedgap.harness.studies.published import measured_as
from schedgap.harness.studies.simulate.row import BOUNDED
from schedgap.instances.errors import UsageError
from schedgap.instances.text import counted, some

TOLERANCE = 1e-6
"""Relative difference up to which objectives and bounds count as equal."""

EARLY = 0.05
"""The tolerance for results of a model that stopped before a proof, because they depend on the machine's speed."""

LEAST_PAIRS = 6
"""With fewer pairs that differ, no outcome of the signed-rank test is significant at 5 % (two-sided: 2/2⁵ = 0.06)."""

LEAST_S = 0.01
"""Shorter times count as this long, because the clock and caches make them noisy."""

Change = Literal["better", "worse", "same", "appeared", "vanished", "none"]


@dataclass(frozen=True)
class ComparedFields:
    """What is compared in the rows of a kind of study: names of fields in the rows' plain data.

    Parameters
    ----------
    name, shown
        Fields that identify a row within a run, and those that identify it to a reader.
    values
        Measures to compare, which say what they are called, and which value is the better one.
    time
        Field with the computing time in seconds, if any.
    """

    name: tuple[str, ...]
    shown: tuple[str, ...]
    values: tuple[Measure, ...]
    time: str = ""


RULES = ("round_s", "restart_s", "spread_factor", "until_s", "profiling_s", "window", "network")
"""Fields with the rules under which a policy was simulated."""

LIMITED = tuple(f"{prefix}_bound_s" for prefix in BOUNDED.values())
"""Bounds that a simulation computes under a time limit."""

COMPARED = {
    "compare": ComparedFields(
        ("fingerprint", "method", "seed", "limits"),
        ("method", "instance", "seed", "limits"),
        (COMPARE["objective"], COMPARE["own_bound"]),
        "solve_s",
    ),
    "simulate": ComparedFields(
        ("fingerprint", "policy", "seed", *RULES),
        ("policy", "instance", "seed"),
        (SIMULATE["ttd_s"], SIMULATE["jct_mean_s"], *(SIMULATE[name] for name in LIMITED)),
        "simulate_s",
    ),
    "audit": ComparedFields(("id",), ("id",), (AUDIT["verdict"],), "seconds"),
    "reproduce": ComparedFields(
        ("figure", "place", "method", "what", "published"),
        ("figure", "method", "what"),
        (REPRODUCE["verdict"],),
    ),
    "whatif": ComparedFields(
        ("fingerprint", "change", "method"),
        ("change", "method"),
        (WHATIF["wait_h"], WHATIF["saved_h"], WHATIF["most_saved_h"]),
    ),
    "frontier": ComparedFields(
        ("fingerprint", "kind", "method", "epsilon", "sigma"),
        ("kind", "method", "epsilon", "sigma", "instance"),
        (FRONTIER["total"], FRONTIER["price_at_most"]),
    ),
    "adversary": ComparedFields(("heuristic",), ("heuristic",), (ADVERSARY["ratio"], ADVERSARY["exceeded"])),
}
"""What is compared, by kind of study."""


@dataclass(frozen=True)
class RowChange:
    """One row as it is in both runs, as plain data, and the change of each value.

    `values` maps each title to the old value, the new value and the change. `times` is the ratio of the new computing
    time to the old one, if both are comparable. `trouble` describes a failure that only the second run has.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    values: Mapping[str, tuple[Any, Any, Change]]
    times: float | None = None
    trouble: str = ""

    @property
    def worse(self) -> bool:
        """True if anything other than the computing time got worse."""
        return bool(self.trouble) or any(how in ("worse", "vanished") for *_, how in self.values.values())

    @property
    def better(self) -> bool:
        """True if a value got better and none got worse."""
        return not self.worse and any(how in ("better", "appeared") for *_, how in self.values.values())

    @property
    def relative(self) -> float | None:
        """Relative difference of the first value, 0 if it counts as equal; ``None`` if a run has no such number."""
        old, new, how = next(iter(self.values.values()))
        if isinstance(new, str) or old is None or new is None:
            return None
        return 0.0 if how == "same" else float((new - old) / max(abs(old), abs(new)))


@dataclass(frozen=True)
class MethodTest:
    """Test of one method over the rows (instances with seeds and limits) in which both runs have an objective.

    The p-values are those of Wilcoxon's two-sided signed-rank test; ``None`` if too few pairs differ. `times` is the
    geometric mean of the ratios of new to old computing time; ``None`` if times are not comparable.
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
    """Differences between two runs of one `kind` of study.

    `changes` are the rows that both runs have, in the order of the second run; `reasons` explain what is not compared.
    Among common instances, `missing` rows are only in the first run and `new` rows only in the second. The instances
    `lost` are not in the second run, or there with other content. `tests` compare each method over the instances.
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
    def ok(self) -> bool:
        """True if rows were compared and none is worse or missing."""
        return bool(self.changes) and not (self.missing or self.lost or any(change.worse for change in self.changes))


def diff(before: Found[Any], after: Found[Any], tolerance: float = TOLERANCE) -> Difference:
    """Compare two runs of one kind; raise `UsageError` if the kinds differ. `tolerance` is relative."""
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
        other_names = {instance.name for instance in others.instances.values()}
        if which == "first" and (changed := [name for name in names if name in other_names]):
            reasons.append(f"Not compared, because content differs under the same name: {some(changed, 4)}.")
        if left := [name for name in names if name not in other_names]:
            reasons.append(f"Only the {which} run has {some(left, 4)}.")
    for name, of in (("machine", "machines"), ("versions", "versions"), ("limits", "limits")) if what.time else ():
        here, there = (run.meta.get(name) or {} for run in (before, after))
        differ = [key for key in here | there if here.get(key) != there.get(key) and key != "schedgap"]
        if differ:
            parts = ", ".join(f"{key} {here.get(key, '–')} → {there.get(key, '–')}" for key in differ)
            why_not.append(f"Times are not compared because the {of} differ: {parts}.")
    both = [(old[name], row) for name, row in new.items() if name in old]
    changes = tuple(_change(what, was, now, tolerance, times=not why_not) for was, now in both)
    return Difference(
        after.kind,
        reasons=(*reasons, *why_not),
        changes=changes,
        missing=tuple(data for name, (_, data) in old.items() if name not in new),
        new=tuple(data for name, (_, data) in new.items() if name not in old),
        lost=tuple(instance.name for mark, instance in before.instances.items() if mark not in common),
        tests=tuple(_tests(what, changes)),
        times_compared=not why_not,
    )


def _change(
    what: ComparedFields,
    before: tuple[Any, Mapping[str, Any]],
    after: tuple[Any, Mapping[str, Any]],
    tolerance: float,
    times: bool,
) -> RowChange:
    (old, was), (new, now) = before, after
    values: dict[str, tuple[Any, Any, Change]] = {}
    # The results of a model or a bound that stopped before a proof depend on the machine's speed.
    timed = any(str(row.get("status")).startswith("time limit") for row in (was, now))
    stopped = {"feasible", "gap left", "time limit with incumbent"}
    early = any(row.get("termination") is not None and row["status"] in stopped for row in (was, now))
    hurried = {*LIMITED, *["own_bound"] * timed, *["objective"] * early}
    # Verdicts on reproduced times of computing may depend on the machine, too.
    computing = measured_as(re.split("[ :]", str(was.get("what")))[0], CLOCKED)
    for measure in what.values:
        name, goal = measure.name, measure.goal(was)
        change = _compared(was[name], now[name], goal, max(tolerance, EARLY * (name in hurried)))
        values[measure.label] = was[name], now[name], "same" if computing else change
    took = [max(row[what.time], LEAST_S) for row in (was, now) if times and row.get(what.time) is not None]
    slowdown = took[1] / took[0] if len(took) > 1 else None
    return RowChange(was, now, values, slowdown, _trouble(old, new))


def _compared(old: Any, new: Any, goal: str, tolerance: float) -> Change:
    """Return how a value changed, given its goal: ``max``, ``min``, or ``same`` (any change makes it worse)."""
    if old == new or old is None or new is None:
        return ("none" if old is None else "same") if old == new else "appeared" if old is None else "vanished"
    if goal == "same":
        return "worse"
    if abs(new - old) <= tolerance * max(abs(old), abs(new)):
        return "same"
    return "better" if (new > old) == (goal == "max") else "worse"


def _trouble(before: Any, after: Any) -> str:
    """Describe a failure that only the second run has; ``""`` if there is none."""
    if getattr(after, "wrong", False) and not before.wrong:
        return f"WRONG: {after.violations[0]}" if after.violations else "WRONG"
    old, new = (getattr(row, "status", "") for row in (before, after))
    ends_badly = getattr(after, "failed", False) or (new == "skipped" and not before.failed)
    return f"{old} → {new}" + (f": {after.reason}" if after.reason else "") if ends_badly and old != new else ""


def _tests(what: ComparedFields, changes: Iterable[RowChange]) -> Iterator[MethodTest]:
    """Test each method on one mean per instance, because seeds and limits are not independent samples."""
    shown, first = what.shown[0], what.values[0].label
    records = [
        (c.after[shown], c.after.get("fingerprint"), c.values[first][2], c.relative, c.times and math.log(c.times))
        for c in changes
    ]
    frame = pd.DataFrame(records, columns=["method", "mark", "change", "relative", "log"])
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
    """Return the p-value of Wilcoxon's two-sided signed-rank test; ``None`` if too few differences are nonzero."""
    from scipy.stats import wilcoxon

    moved = np.array([d for d in differences if d != 0])
    if len(moved) < LEAST_PAIRS:
        return None
    return float(wilcoxon(moved).pvalue)


# ---------------------------------------------------------------- as text


CHANGES = ("what", "before", "after", "change", "time")
TEST_COLUMNS = ("method", "rows", "better", "same", "worse", "p", "time", "p (time)")
Texts = tuple[str, ...]


def sentence(difference: Difference) -> str:
    """Return a sentence that counts the rows that are better, worse, the same, missing, or new."""
    if not difference.changes:
        return "Nothing can be compared: the runs have no row of a common instance in common."
    better, worse = (sum(getattr(change, how) for change in difference.changes) for how in ("better", "worse"))
    parts = {
        "worse": worse,
        "better": better,
        "the same": len(difference.changes) - better - worse,
        "only in the first run": len(difference.missing),
        "only in the second run": len(difference.new),
        "instances only in the first run": len(difference.lost),
    }
    listed = ", ".join(f"{count} {what}" for what, count in parts.items() if count or what == "the same")
    instances = _instances(difference)
    where = f" of {counted(instances, 'instance')}" if instances else ""
    return f"{counted(len(difference.changes), 'row')}{where} compared: {listed}."


def _instances(difference: Difference) -> int:
    """Return the number of instances compared; 0 for kinds of studies whose rows have no instance."""
    has_instance = "fingerprint" in COMPARED[difference.kind].name
    return len({change.after["fingerprint"] for change in difference.changes}) if has_instance else 0


def columns(difference: Difference) -> Texts:
    """Return the headers of :func:`lines`."""
    return *COMPARED[difference.kind].shown, *CHANGES


def lines(difference: Difference, everything: bool = False) -> list[Texts]:
    """Return a line per changed value, missing row and failure; with `everything`, a line per compared value."""
    shown = COMPARED[difference.kind].shown
    rows = [line for change in difference.changes for line in _lines(shown, change, everything)]
    rows += [(*_name(shown, row), "row", _status(row), ABSENT, "missing", ABSENT) for row in difference.missing]
    if everything:
        rows += [(*_name(shown, row), "row", ABSENT, _status(row), "new", ABSENT) for row in difference.new]
    return rows


def _name(shown: Texts, row: Mapping[str, Any]) -> Texts:
    return tuple(clean(row[name], 60) for name in shown)


def _status(row: Mapping[str, Any]) -> str:
    return clean(row.get("status") or ABSENT, 40)


def _lines(shown: Texts, change: RowChange, everything: bool) -> Iterator[Texts]:
    before, after = change.before, change.after
    time = _formatted("{:.2f} ×", change.times)
    if change.trouble:
        yield *_name(shown, after), "row", _status(before), _status(after), clean(change.trouble, 200), time
    for what, (old, new, how) in change.values.items():
        if how != "none" and (everything or how != "same"):
            yield *_name(shown, after), what, *_apart(old, new), how, time


def _apart(old: Any, new: Any) -> tuple[str, str]:
    """Return two values as text; numbers get ten digits if they differ but look equal with fewer."""
    if any(isinstance(value, str | bool) for value in (old, new)):
        return clean(ABSENT if old is None else old, 60), clean(ABSENT if new is None else new, 60)
    short = number(old), number(new)
    if old is None or new is None or old == new or short[0] != short[1]:
        return short
    return f"{old:.10g}", f"{new:.10g}"


def _formatted(form: str, value: float | None) -> str:
    return ABSENT if value is None else form.format(value)


def blocks(difference: Difference) -> list[Block]:
    """Return the blocks that the terminal shows."""
    shown: list[Block] = [Line(sentence(difference), "bold" if difference.ok else "bold red")]
    shown += [Line(clean(reason, 400)) for reason in difference.reasons]
    if changed := lines(difference):
        shown += [table("", of_texts(columns(difference)), changed)]
    if any(change.times is not None for change in difference.changes):
        shown.append(Line("time: ratio of second to first run; times below 10 ms count as 10 ms", "dim"))
    if _instances(difference) > 1:
        tests = [
            (
                *(clean(t.method, 60), str(t.rows), str(t.better), str(t.same), str(t.worse)),
                *(_formatted("{:.2g}", t.objective_p), _formatted("{:.2f} ×", t.times), _formatted("{:.2g}", t.time_p)),
            )
            for t in difference.tests
        ]
        shown += [table("", of_texts(TEST_COLUMNS), tests)]
        first = COMPARED[difference.kind].values[0].label
        shown.append(Line(f"p: Wilcoxon's signed-rank test on {first}, with one pair per instance", "dim"))
    return shown
