"""Parts of a sweep are merged into one table, and two runs are compared row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from report_runs import row

import schedgap as sg
from schedgap.harness.engine.sealed import SEAL, sealed
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.diff import Difference, diff, lines, sentence, signed_rank_p
from schedgap.harness.studies.adversary.row import Adversary, Worst
from schedgap.harness.studies.audit.row import Audit, Count, Finding
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import read_run
from schedgap.harness.studies.folders import merge
from schedgap.harness.studies.simulate.row import Simulation, SimulationRow
from schedgap.instances.errors import UsageError

METHODS = ["oef.cooperative", "oef.gandiva_fair"]
EQ1, SMALL = "paper/oef-eq1", "gen/oef-20?tenants=3"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the folders of two runs that share an instance."""
    folder = tmp_path_factory.mktemp("parts")
    cases = ([EQ1], [EQ1, SMALL])
    found = [sg.compare(case, METHODS, jobs=1, results=folder).folder for case in cases]
    return [path for path in found if path is not None]


def told(run: Comparison) -> list[tuple[Any, ...]]:
    return [
        (r.instance, r.method, r.objective, r.best_bound, r.bound_from, r.gap, r.ratio, r.verified) for r in run.rows
    ]


# merging --------------------------------------------------------------------------------------------------------------


def test_merged_parts_are_the_table_that_one_run_gives(parts: list[Path], tmp_path: Path) -> None:
    merged = merge(parts, tmp_path)
    assert told(merged) == told(read_run(parts[1]))
    assert merged.ok
    assert not merged.interrupted
    assert merged.folder is not None
    again = read_run(merged.folder)
    assert told(again) == told(merged)
    assert set(again.decisions) == {r.name for r in merged.rows}
    assert again.meta["command"].startswith("harness merge")
    assert len(again.meta["merged"]) == 2


def test_bounds_of_one_part_hold_for_rows_of_another(tmp_path: Path) -> None:
    folders = [
        sg.compare(EQ1, [method], jobs=1, results=tmp_path).folder
        for method in ("oef.sharing_incentive", "oef.gandiva_fair")
    ]
    merged = merge([folder for folder in folders if folder is not None], tmp_path)
    assert [r.bound_from for r in merged.rows] == ["oef.sharing_incentive"] * 2
    assert merged.rows[1].ratio == pytest.approx(1.0459183673, rel=1e-6)


def test_what_cannot_be_one_table(parts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two or more"):
        merge([parts[0], parts[0]], tmp_path)
    with pytest.raises(UsageError, match="not a results folder"):
        merge([parts[0], tmp_path], tmp_path)
    longer = sg.compare(EQ1, METHODS, jobs=1, limits=Limits(time_limit_s=50), results=tmp_path).folder
    assert longer is not None
    with pytest.raises(UsageError, match=r"oef.cooperative on paper/oef-eq1 ran under two limits of the same name"):
        merge([parts[0], longer], tmp_path)
    meta = json.loads((longer / "run.json").read_text())
    del meta[SEAL]
    (longer / "run.json").write_text(json.dumps(sealed(meta | {"code": "another"})))
    with pytest.raises(UsageError, match="measured by other code"):
        merge([parts[0], longer], tmp_path)


# differences ----------------------------------------------------------------------------------------------------------

MACHINE = {"machine": {"cores": "2"}, "versions": {"highspy": "1"}, "limits": {"time_limit_s": 60}}


def run_of(*rows: Row, **meta: Any) -> Comparison:
    instances: Any = {r.fingerprint: type("I", (), {"name": r.instance}) for r in rows}
    return Comparison({**MACHINE, **meta}, list(rows), instances)


def one(method: str = "oef.cooperative", objective: float | None = 4.5, mark: str = "f" * 64, **changes: Any) -> Row:
    return row(method, mark, objective).replace(**changes)


def compared(before: Row, after: Row) -> Difference:
    return diff(run_of(before), run_of(after))


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"objective": 4.5}, {"objective": 4.5 * (1 + 1e-9)}, "same"),
        ({"objective": 4.5}, {"objective": 4.6}, "better"),
        ({"objective": 4.5}, {"objective": 4.4}, "worse"),
        ({"objective": 4.5, "sense": "min"}, {"objective": 4.6, "sense": "min"}, "worse"),
        ({"objective": None}, {"objective": 4.4}, "better"),
        ({"objective": 4.4}, {"objective": None}, "worse"),
        ({"own_bound": 5.0}, {"own_bound": 4.9}, "better"),
        ({"own_bound": 5.0}, {"own_bound": 5.1}, "worse"),
        ({"own_bound": 5.0, "objective": 4.5}, {"own_bound": 4.9, "objective": 4.4}, "worse"),
        ({"own_bound": 5.0, "sense": "min"}, {"own_bound": 4.9, "sense": "min"}, "worse"),
        ({"verified": True}, {"verified": False, "violations": ("envy",)}, "worse"),
        ({"status": "optimal"}, {"status": "error", "reason": "it broke"}, "worse"),
        ({"status": "optimal"}, {"status": "skipped", "reason": "too large"}, "worse"),
        ({"status": "error"}, {"status": "error"}, "same"),
    ],
)
def test_a_row_is_better_worse_or_the_same(before: dict[str, Any], after: dict[str, Any], word: str) -> None:
    found = compared(one(**before), one(**after))
    (change,) = found.changes
    assert {"better": change.better, "worse": change.worse, "same": not (change.better or change.worse)}[word]
    assert found.ok == (word != "worse")
    assert bool(lines(found)) == (word != "same")


def test_what_was_found_before_a_proof_may_differ_a_little() -> None:
    """Objectives of searches without a certified optimum may differ slightly between runs, those of heuristics may not.

    They depend on how fast the machine is.
    """
    early = {"status": "feasible", "termination": "gap"}
    assert compared(one(objective=4.5, **early), one(objective=4.4, **early)).ok
    assert not compared(one(objective=4.5, **early), one(objective=4.2, **early)).ok
    assert not compared(one(objective=4.5, status="feasible"), one(objective=4.4, status="feasible")).ok
    assert not compared(one(own_bound=5.0, **early), one(own_bound=5.1, **early)).ok
    late = {"status": "time limit with incumbent", "termination": "time limit"}
    assert compared(one(own_bound=5.0, **late), one(own_bound=5.1, **late)).ok


def test_a_row_that_is_gone_is_worse_and_a_new_one_is_not() -> None:
    two = run_of(one(), one("oef.maxmin"))
    assert not diff(two, run_of(one())).ok
    assert diff(run_of(one()), two).ok
    assert sentence(diff(two, run_of(one()))) == "1 row of 1 instance compared: 1 the same, 1 only in the first run."


def test_runs_of_other_instances_say_so() -> None:
    found = diff(run_of(one(instance="a", mark="a" * 64)), run_of(one(instance="a", mark="b" * 64)))
    assert not found.ok
    assert found.reasons == ("Not compared, because content differs under the same name: a.",)
    found = diff(run_of(one(), one(instance="b", mark="b" * 64)), run_of(one()))
    assert found.reasons == ("Only the first run has b.",)
    assert not found.ok


@pytest.mark.parametrize(
    ("name", "value"), [("machine", {"cores": "64"}), ("versions", {"highspy": "2"}), ("limits", {"time_limit_s": 1})]
)
def test_times_of_other_machines_are_not_compared(name: str, value: Any) -> None:
    found = diff(run_of(one(solve_s=1.0)), run_of(one(solve_s=9.0), **{name: value}))
    assert not found.times_compared
    assert found.tests[0].times is None
    (reason,) = found.reasons
    assert reason.startswith("Times are not compared because the ")
    assert " → " in reason
    assert found.ok


def test_methods_are_tested_in_pairs_over_instances() -> None:
    marks = [f"{n:064}" for n in range(8)]
    before = run_of(*(one(mark=m, objective=10.0, solve_s=1.0, seed=s) for m in marks for s in (0, 1)))
    after = run_of(*(one(mark=m, objective=10.0 + i, solve_s=2.0, seed=s) for i, m in enumerate(marks) for s in (0, 1)))
    (test,) = diff(before, after).tests
    assert (test.rows, test.better, test.same, test.worse) == (16, 14, 2, 0)
    # seven instances that moved, all the same way: 2/2⁷, however many seeds
    assert test.objective_p == pytest.approx(2 / 2**7)
    assert test.times == pytest.approx(2.0)
    assert test.time_p is not None
    assert test.time_p < 0.05


def test_too_few_pairs_prove_nothing() -> None:
    assert signed_rank_p([1.0] * 5) is None
    assert signed_rank_p([0.0] * 50) is None
    assert signed_rank_p([1.0] * 6) == pytest.approx(2 / 2**6)


def test_the_commands(command: Command, parts: list[Path], tmp_path: Path) -> None:
    same = command("diff", parts[0], parts[1])
    assert same.returncode == 0, same.stderr
    assert "2 rows of 1 instance compared: 2 the same." in same.stdout
    assert "Only the second run has gen/oef-20?tenants=3." in same.stdout
    fewer = command("diff", parts[1], parts[0], "--format", "json")
    assert fewer.returncode == 1
    assert {line["change"] for line in json.loads(fewer.stdout)} == {"same"}
    assert command("diff", parts[0], tmp_path).returncode != 0
    merged = command("merge", *parts, "--results", tmp_path, "--no-report", "--format", "json")
    assert merged.returncode == 0, merged.stderr
    assert len(json.loads(merged.stdout)) == 4


def test_runs_of_every_kind_are_compared(command: Command, tmp_path: Path) -> None:
    audited = sg.audit(claims="oef.slip.coefficient", jobs=1, results=tmp_path / "a")
    simulated = sg.simulate("paper/hadar-fig1", ["hadar.fifo", "hadar.srtf"], jobs=1, results=tmp_path / "s")
    told = {"1 row compared: 1 the same.": audited, "2 rows of 1 instance compared: 2 the same.": simulated}
    for sentence_, found in told.items():
        same = command("diff", found.folder, found.folder)
        assert (same.returncode, sentence_ in same.stdout) == (0, True), same.stderr
    other = command("diff", audited.folder, simulated.folder)
    assert (other.returncode, other.stderr) == (
        2,
        "harness: results of harness audit and of harness simulate cannot be compared\n",
    )


def test_what_other_kinds_measure_is_better_or_worse() -> None:
    mark = "f" * 64
    before = SimulationRow("i", mark, "hadar.fifo", status="done", verified=True)
    before = before.knowing(ttd_s=100.0, jct_mean_s=10.0)
    for after, word in (
        (before.knowing(ttd_s=90.0), "better"),
        (before.knowing(jct_mean_s=11.0), "worse"),
        (before.replace(status="error"), "worse"),
    ):
        runs = [Simulation({}, [row]) for row in (before, after)]
        found = diff(*runs)
        assert getattr(found.changes[0], word)
        assert lines(found)
    finding = Finding("oef.slip.coefficient", counts=(Count(tested=3),))
    refuted = finding.replace(counts=(Count(tested=3, failed=1),))
    (line,) = lines(diff(Audit({}, [finding]), Audit({}, [refuted])))
    assert line == ("oef.slip.coefficient", "verdict", "confirmed", "refuted", "worse", "1.00 ×")
    worst = [Worst("oef.rounding", "oef.allocation", None, None, 1, 1)] * 2
    assert diff(*(Adversary({}, [one]) for one in worst)).ok
