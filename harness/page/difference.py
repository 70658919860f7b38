"""What two runs differ in, as text: a sentence that answers first, why something is not compared, changes, tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schedgap.harness.compare.row import Row
from schedgap.harness.diffing import Difference, MethodTest, RowChange
from schedgap.harness.table import Block, Line, of_texts, table
from schedgap.harness.text import ABSENT, clean, number

COLUMNS = ("method", "instance", "seed", "limits", "what", "before", "after", "change", "time")
TEST_COLUMNS = ("method", "rows", "better", "same", "worse", "p (objective)", "time", "p (time)")
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
    instances = len({change.after.fingerprint for change in difference.changes})
    where = "1 instance" if instances == 1 else f"{instances} instances"
    rows = "1 row" if len(difference.changes) == 1 else f"{len(difference.changes)} rows"
    return f"{rows} of {where} compared: {listed}."


def lines(difference: Difference, everything: bool = False) -> list[Texts]:
    """Return a line (see :data:`COLUMNS`) per value that changed, or per value compared."""
    found = [line for change in difference.changes for line in _lines(change, difference.times_compared, everything)]
    found += [(*_name(row), "row", row.status, ABSENT, "missing", ABSENT) for row in difference.missing]
    if everything:
        found += [(*_name(row), "row", ABSENT, row.status, "new", ABSENT) for row in difference.new]
    return found


def _name(row: Row) -> Texts:
    return clean(row.method, 60), clean(row.instance, 60), str(row.seed), clean(row.limits, 60)


def _lines(change: RowChange, times: bool, everything: bool) -> Iterator[Texts]:
    before, after = change.before, change.after
    time = _given("{:.2f} ×", change.times if times else None)
    if change.trouble:
        yield *_name(after), "row", clean(before.status, 40), clean(after.status, 40), clean(change.trouble, 200), time
    values = (
        ("objective", before.objective, after.objective, change.objective),
        ("bound", before.own_bound, after.own_bound, change.bound),
    )
    for what, old, new, how in values:
        if how != "none" and (everything or how != "same"):
            yield *_name(after), what, *_apart(old, new), how, time


def _apart(old: float | None, new: float | None) -> tuple[str, str]:
    """Return two numbers, with as many digits as it takes to see that they differ."""
    short = number(old), number(new)
    if old is None or new is None or old == new or short[0] != short[1]:
        return short
    return f"{old:.10g}", f"{new:.10g}"


def _given(form: str, value: float | None) -> str:
    return ABSENT if value is None else form.format(value)


def test_lines(tests: Sequence[MethodTest]) -> list[Texts]:
    """Return a line per method (see :data:`TEST_COLUMNS`)."""
    return [
        (
            *(clean(t.method, 60), str(t.rows), str(t.better), str(t.same), str(t.worse)),
            *(_given("{:.2g}", t.objective_p), _given("{:.2f} ×", t.times), _given("{:.2g}", t.time_p)),
        )
        for t in tests
    ]


def blocks(difference: Difference) -> list[Block]:
    """Return what the terminal shows."""
    shown: list[Block] = [Line(sentence(difference), "bold" if difference.ok else "bold red")]
    shown += [Line(clean(reason, 400)) for reason in difference.reasons]
    if changed := lines(difference):
        shown += [Line(""), table("", of_texts(COLUMNS), changed)]
    if any(change.times is not None for change in difference.changes) and difference.times_compared:
        shown.append(Line("time: how many times slower the second run is (below 10 ms counts as 10 ms)", "dim"))
    if len({change.after.fingerprint for change in difference.changes}) > 1:
        shown += [Line(""), table("", of_texts(TEST_COLUMNS), test_lines(difference.tests))]
        shown.append(Line("p: Wilcoxon's signed-rank test, one pair per instance", "dim"))
    return shown
