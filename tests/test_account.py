"""One account of time for every row: phases are measured once each, and add up to the total."""

from __future__ import annotations

import time
from io import StringIO

import pandas as pd
import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.engine.task import sent
from schedgap.harness.studies.compare import task as of_methods
from schedgap.harness.studies.compare.consistent import contradictions
from schedgap.harness.studies.compare.methods import find_spec, select
from schedgap.harness.studies.compare.row import PHASES, Row
from schedgap.harness.studies.compare.task import MethodTask, repeated
from schedgap.instances import clock, load
from schedgap.instances.errors import NotApplicableError, UsageError

SMALL = {
    "hadar": "gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600",
    "gavel": "gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600",
    "oef": "paper/oef-eq1",
    "synergy": "paper/synergy-example",
    "zhou": "paper/walkthrough",
    "admission": "paper/walkthrough",
    "rigid": "paper/rigid-hpc",
}


@pytest.mark.parametrize("method", [spec.id for spec in select(("*",), ())])
def test_no_phase_is_counted_twice(method: str) -> None:
    """The phases that are measured take no longer together than all of the method, by the same clock."""
    spec = find_spec(method)
    task = MethodTask(*sent(load(SMALL[spec.paper])), spec.id, limits=sg.Limits(nodes=1))
    before, began = clock.stood_still(), time.perf_counter()
    try:
        row = of_methods._run(task, spec, task.limits.options(0)).row
    except NotApplicableError as reason:
        pytest.skip(str(reason))
    wall_s, compiled_s = time.perf_counter() - began, clock.stood_still()[0] - before[0]
    assert row.took_s <= wall_s - compiled_s + 1e-4
    assert row.read_s is None  # all that is left, which is known only at the end


def test_times_of_a_row_add_up() -> None:
    row = MethodTask(*sent(load("paper/walkthrough")), "admission.columns", limits=sg.Limits(nodes=1)).run().row
    assert all(getattr(row, name) is not None for name in PHASES)
    assert row.total_s == pytest.approx(row.took_s)
    wrong = row.replace(total_s=2 * row.took_s)
    assert next(contradictions(wrong, find_spec(row.method), {})).startswith("its times add up to")


def test_a_method_that_runs_several_times_has_medians_that_add_up() -> None:
    rows = [
        Row("i", "f", "oef", "oef.maxmin", "p", "k", "max", solve_s=s, read_s=r) for s, r in ((1, 5), (2, 1), (9, 3))
    ]
    row = repeated(rows)
    assert (row.solve_s, row.read_s, row.total_s, row.fastest_s, row.slowest_s) == (2, 3, 5, 3, 12)
    assert row.check_s is None


def test_a_method_runs_once_more_than_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    once = MethodTask.once

    def counted(task: MethodTask) -> object:
        runs.append(1)
        return once(task)

    monkeypatch.setattr(MethodTask, "once", counted)
    one = sent(load("paper/oef-eq1"))
    row = MethodTask(*one, "oef.maxmin", limits=sg.Limits(repeat=3)).run().row
    assert len(runs) == 4
    assert row.fastest_s is not None
    assert row.slowest_s is not None
    assert row.fastest_s <= row.slowest_s
    runs.clear()
    assert MethodTask(*one, "oef.maxmin").run().row.fastest_s is None
    assert len(runs) == 1
    with pytest.raises(UsageError, match="repeat = 0: must be 1 or more"):
        sg.Limits(repeat=0)


def test_the_command_measures_several_runs(command: Command) -> None:
    words = "compare --instance paper/oef-eq1 --method oef.cooperative --repeat 2 --no-report --jobs 1 --format csv"
    done = command(*words.split())
    assert done.returncode == 0
    (row,) = pd.read_csv(StringIO(done.stdout)).to_dict("records")
    assert row["fastest_s"] <= row["slowest_s"]
    assert row["total_s"] == pytest.approx(sum(row[name] for name in PHASES))
