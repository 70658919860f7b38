"""What two runs differ in, as text: a sentence that answers first, why something is not compared, changes, tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schedgap.harness.diffing import COMPARED, Difference, RowChange
from schedgap.harness.table import Block, Line, of_texts, table
from schedgap.harness.text import ABSENT, clean, counted, number

CHANGES = ("what", "before", "after", "change", "time")
TEST_COLUMNS = ("method", "rows", "better", "same", "worse", "p", "time", "p (time)")
Texts = tuple[str, ...]


def sentence(difference: Difference) -> str:
    """Return the answer: how many rows are better, worse, the same, or gone."""
    if not difference.changes:
        return "Nothing can be compared: the runs have no row of a common instance in common."
    count = difference.counts
    parts = {
        "worse": count["worse"],
        "better": count["better"],
        "the same": count["same"],
        "only in the first run": len(difference.missing),
        "only in the second run": len(difference.new),
        "instances only in the first run": len(difference.lost),
    }
    listed = ", ".join(f"{many} {what}" for what, many in parts.items() if many or what == "the same")
    instances = _instances(difference)
    where = f" of {counted(instances, 'instance')}" if instances else ""
    return f"{counted(len(difference.changes), 'row')}{where} compared: {listed}."


def _instances(difference: Difference) -> int:
    """Return how many instances the rows are about, where these are part of what a row is."""
    about = "fingerprint" in COMPARED[difference.kind].name
    return len({change.after["fingerprint"] for change in difference.changes}) if about else 0


def columns(difference: Difference) -> Texts:
    """Return the headers of :func:`lines`."""
    return *COMPARED[difference.kind].shown, *CHANGES


def lines(difference: Difference, everything: bool = False) -> list[Texts]:
    """Return a line per value that changed, or per value compared."""
    shown = COMPARED[difference.kind].shown
    found = [line for change in difference.changes for line in _lines(shown, change, everything)]
    found += [(*_name(shown, row), "row", _status(row), ABSENT, "missing", ABSENT) for row in difference.missing]
    if everything:
        found += [(*_name(shown, row), "row", ABSENT, _status(row), "new", ABSENT) for row in difference.new]
    return found


def _name(shown: Texts, row: Mapping[str, Any]) -> Texts:
    return tuple(clean(row[name], 60) for name in shown)


def _status(row: Mapping[str, Any]) -> str:
    return clean(row.get("status") or ABSENT, 40)


def _lines(shown: Texts, change: RowChange, everything: bool) -> Iterator[Texts]:
    before, after = change.before, change.after
    time = _given("{:.2f} ×", change.times)
    if change.trouble:
        yield *_name(shown, after), "row", _status(before), _status(after), clean(change.trouble, 200), time
    for what, (old, new, how) in change.values.items():
        if how != "none" and (everything or how != "same"):
            yield *_name(shown, after), what, *_apart(old, new), how, time


def _apart(old: Any, new: Any) -> tuple[str, str]:
    """Return two values, numbers with as many digits as it takes to see that they differ."""
    if any(isinstance(value, str | bool) for value in (old, new)):
        return clean(ABSENT if old is None else old, 60), clean(ABSENT if new is None else new, 60)
    short = number(old), number(new)
    if old is None or new is None or old == new or short[0] != short[1]:
        return short
    return f"{old:.10g}", f"{new:.10g}"


def _given(form: str, value: float | None) -> str:
    return ABSENT if value is None else form.format(value)


def blocks(difference: Difference) -> list[Block]:
    """Return what the terminal shows."""
    shown: list[Block] = [Line(sentence(difference), "bold" if difference.ok else "bold red")]
    shown += [Line(clean(reason, 400)) for reason in difference.reasons]
    if changed := lines(difference):
        shown += [table("", of_texts(columns(difference)), changed)]
    if any(change.times is not None for change in difference.changes):
        shown.append(Line("time: how many times slower the second run is (below 10 ms counts as 10 ms)", "dim"))
    if _instances(difference) > 1:
        tests = [
            (
                *(clean(t.method, 60), str(t.rows), str(t.better), str(t.same), str(t.worse)),
                *(_given("{:.2g}", t.objective_p), _given("{:.2f} ×", t.times), _given("{:.2g}", t.time_p)),
            )
            for t in difference.tests
        ]
        shown += [table("", of_texts(TEST_COLUMNS), tests)]
        first = next(iter(COMPARED[difference.kind].values))
        shown.append(Line(f"p: of {first}, by Wilcoxon's signed-rank test with one pair per instance", "dim"))
    return shown
