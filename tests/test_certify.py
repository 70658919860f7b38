"""``harness certify``: what it says about a log, which jobs waited and why, and its figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_rigid
from conftest import examples
from typer.testing import CliRunner

from schedgap.harness.cli import catalogue, studies  # noqa: F401 -- importing them registers their commands
from schedgap.harness.cli.app import app
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.ladder import BOUND, EXECUTED, FOUND, LIMITS, PERFECT, WAITING, executed, ladder, values
from schedgap.harness.show.page import blocks, to_html
from schedgap.harness.show.page.rigid import avoidable, viewed, why_of
from schedgap.harness.show.table import Table
from schedgap.harness.show.waiting import Why, occupancy
from schedgap.harness.studies.certify import methods
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.errors import UsageError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES, RigidSchedule, starts_of
from schedgap.instances.schema import Instance

RUNGS = BOUND, FOUND, PERFECT, LIMITS, EXECUTED

MAP = "submit=submit,start=start,end=end,gpus=gpus"
LOG = """id,submit,start,end,gpus,user,partition
a,1700000000,1700000000,1700036000,3,ann,x
b,1700000100,1700036000,1700043200,4,bob,x
c,1700000200,1700043200,1700043800,1,bob,y
d,1700000300,1700043200,1700044400,2,ann,y
e,1700050000,1700050000,1700051000,2,ann,y
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Comparison:
    path = tmp_path_factory.mktemp("log") / "mine.csv"
    path.write_text(LOG)
    columns = {name: name for name in LOG.partition("\n")[0].split(",")}
    instance = import_trace("csv", path, Options(history=True, columns=columns))
    return compare_here(instance, methods("flow"), limits=Limits(nodes=1000))


def test_everything_ran_and_holds(run: Comparison) -> None:
    assert {row.status for row in run.rows} <= {
        "optimal",
        "feasible",
        "gap left",
        "skipped",
        "time limit with incumbent",
    }
    assert not any(row.wrong for row in run.rows)
    ran = executed(run.rows)
    assert ran is not None
    assert ran.objective == pytest.approx((36000 + 43100 + 43600 + 44100 + 1000) / 5 / 3600)


def test_all_objectives_stand_side_by_side(run: Comparison) -> None:
    view = viewed(run, run.rows)
    found = {objective: values(view, run.rows, objective) for objective in (*OBJECTIVES, WAITING)}
    for one in found.values():
        assert one.executed is not None
        assert one.best is not None
        assert one.bound is not None
        assert one.bound <= one.best * (1 + 1e-9) <= one.executed * (1 + 2e-9)
    assert found["flow"].best_by


def test_the_answer_in_words(run: Comparison) -> None:
    shown = blocks(run)
    text = str(shown[0])
    for words in (
        "mean completion time, with hindsight (durations and arrivals known), is at least ",
        " in the best schedule found; the best online rule with perfect estimates reaches ",
        "there is none with the users' limits: the log has no time limits; as executed 9.322 h, at most ",
        "price of policy and estimates ",
        "mean waiting: at least ",
        "h of waiting between ",
    ):
        assert words in text
    assert "of what the best schedule found saves on jobs submitted on Tuesday evening" in text
    captions = [block.caption for block in shown if isinstance(block, Table)]
    assert any(caption.startswith("waiting: ") for caption in captions)
    assert any("most expensive decisions" in caption for caption in captions)


def test_waiting_is_split_and_adds_up(run: Comparison) -> None:
    why = why_of(run, run.rows)
    assert why is not None
    assert why.waited.sum() * 3600 == pytest.approx(35900 + 43000 + 42900)
    waits = values(why.view, run.rows, WAITING)
    total, low, high = avoidable(why, waits)
    assert total == pytest.approx(why.waited.sum())
    assert 0 <= low <= high <= total
    assert waits.best is not None
    assert waits.bound is not None
    assert low == pytest.approx(total - 5 * waits.best)
    assert high == pytest.approx(total - 5 * waits.bound)
    by: dict[str, float] = {}
    for group in why.groups(100):
        by[group.by] = by.get(group.by, 0.0) + group.saved_h
    assert set(by) == {"user", "partition", "size", "submitted", "hour"}
    assert all(saved == pytest.approx(low) for saved in by.values())
    first = why.decisions()[0]
    assert (why.view.instance.jobs[first.job].id, first.others) == ("b", 2)
    assert first.cost_h * 3600 == pytest.approx(2 * 7200)


def test_fragmentation_and_occupancy_by_hand() -> None:
    seen = PAPERS.get("rigid").view(test_rigid.instance([(0, 10, 3), (0, 10, 4), (2, 8, 1)]))
    schedule = starts_of(seen, np.array([0, 10, 20]))
    why = Why(seen, schedule, (seen.release + seen.duration).astype(float), schedule)
    assert why.fragmentation() * 3600 == pytest.approx(8)  # the third would fit beside the first, from 2 to 10
    assert occupancy(seen, schedule, np.array([0.0, 10.0, 20.0, 40.0])).tolist() == pytest.approx([0.75, 1.0, 0.1])
    assert why.hours is None


def test_figures_are_drawn(run: Comparison) -> None:
    names = {drawn.name for drawn in figures(run)}
    assert {"rigid-ladder", "rigid-occupancy", "rigid-week", "rigid-decisions"} <= names


def test_the_ladder_is_the_first_figure_of_a_report(run: Comparison) -> None:
    listed = re.findall(r'data-chart="([^"]+)"', to_html(run))
    assert listed[:2] == ["rigid-ladder", "rigid-gap"]


def log_of(lines: list[test_rigid.Line], asks: list[float], **more: Any) -> Instance:
    """Return a log of jobs ``(release, duration, GPUs)`` that ran one after another, with time limits if any."""
    if "runs" not in more:
        runs, end = [], 0
        for release, lasts, _ in lines:
            end = max(end, release) + lasts
            runs.append([(float(end - lasts), float(end))])
        more["runs"] = runs
    found = test_rigid.instance(lines, 4, **more)
    jobs = (
        job.model_copy(update={"history": job.history and job.history.model_copy(update={"requested_s": asks[j]})})
        for j, job in enumerate(found.jobs)
    )
    return found.model_copy(update={"jobs": tuple(jobs)}) if asks else found


def ran(instance: Instance) -> tuple[Any, list[Row]]:
    found = compare_here(instance, methods("flow"), limits=Limits(nodes=500))
    assert not any(row.wrong for row in found.rows)
    return viewed(found, found.rows), found.rows


@pytest.mark.parametrize("seed", range(examples(1)))
def test_the_rungs_are_the_best_of_sets_that_contain_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = sorted((int(r), int(d), int(g)) for r, d, g in rng.integers((0, 1, 1), (30, 40, 5), (8, 3)))
    asks = [float(lasts + rng.integers(-5, 60)) for _, lasts, _ in lines]
    view, rows = ran(log_of(lines, asks))
    for objective in ("flow", WAITING):
        found = ladder(view, rows, objective)
        assert [rung.name for rung in found.rungs] == list(RUNGS)
        heights = [rung.value for rung in found.rungs]
        assert heights[0] <= heights[1] * (1 + 1e-9) + 1e-9
        assert heights[1] <= heights[2] <= heights[3]
        assert heights[1] <= heights[4]
        assert sum(rung.above or 0.0 for rung in found.rungs[1:]) == pytest.approx(heights[-1] - heights[0])
    means = {row.method: row.metrics["flow_h"] for row in rows if row.verified and row.problem == "rigid.flow"}
    known = {
        name: value for name, value in means.items() if name not in {"rigid.executed", "rigid.search", "rigid.exact"}
    }
    limited = [value for name, value in known.items() if name == "rigid.fcfs" or "requested" in name]
    rungs = [rung.value for rung in ladder(view, rows, "flow").rungs]
    assert rungs[1:] == [min(means.values()), min(known.values()), min(limited), means["rigid.executed"]]
    assert not any("srtf" in rung.by or "tiresias" in rung.by for rung in ladder(view, rows, "flow").rungs)


def test_rules_that_interrupt_count_where_the_log_does() -> None:
    lines: list[test_rigid.Line] = [(0, 30, 4), (1, 2, 4), (2, 5, 4)]
    runs = [[(0.0, 20.0), (27.0, 37.0)], [(25.0, 27.0)], [(20.0, 25.0)]]
    view, rows = ran(log_of(lines, [], runs=runs))
    found = ladder(view, rows, "flow")
    assert [rung.name for rung in found.rungs] == [RUNGS[0], RUNGS[1], RUNGS[2], RUNGS[4]]
    assert found.absent == "the log has no time limits"
    assert (found.rungs[1].by, found.rungs[2].by) == ("rigid.srtf", "rigid.srtf")
    assert found.rungs[-1].step == "price of policy and estimates"


def test_an_executed_schedule_better_than_all_online_rules_has_a_negative_price() -> None:
    """One waits for the short job that comes at once, which no rule knows."""
    lines: list[test_rigid.Line] = [(0, 100, 4), (1, 1, 4)]
    run = compare_here(log_of(lines, [100.0, 1.0], runs=[[(2.0, 102.0)], [(1.0, 2.0)]]), methods("flow"))
    last = ladder(viewed(run, run.rows), run.rows, WAITING).rungs[-1]
    assert last.above is not None
    assert last.above * 3600 == pytest.approx((2 - 99) / 2)
    text = " ".join(str(blocks(run)[0]).split())
    assert "price of the policy -0.01347 h (what ran is better than all online rules here)" in text


def test_waiting_counts_the_time_that_a_slower_type_costs() -> None:
    seen = test_rigid.view([(0, 10, 2), (0, 10, 2)], others=[4, -1], runs=[[(0.0, 10.0)], [(0.0, 10.0)]])
    moved = RigidSchedule(np.arange(2), np.zeros(2, np.int64), np.array([4, 10]), np.array([1, 0]))
    assert seen.executed is not None
    why = Why(seen, seen.executed, np.array([4.0, 10.0]), moved)
    assert (why.waited * 3600).tolist() == pytest.approx([6, 0])
    assert (why.saved * 3600).tolist() == pytest.approx([6, 0])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sacct", "no-such-file"], "no such file"),
        (["csv", "{log}"], "unknown column"),
        (["csv", "{log}", "--map", "start"], "expected columns such as id=job"),
        (
            ["csv", "{log}", "--map", MAP, "--objective", "x"],
            "unknown objective",
        ),
        (
            ["csv", "{log}", "--map", MAP, "--gpus", "V100=4"],
            "the log has pools",
        ),
        (["hadar", "{log}"], "unknown importer 'hadar'"),
    ],
)
def test_bad_usage_is_answered(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG.replace("id,submit", "job,submit"))
    result = CliRunner().invoke(app, ["certify", *(word.format(log="log.csv") for word in words)])
    assert result.exit_code != 0
    assert told in f"{result.output} {result.exception}"
    assert not (tmp_path / "results").exists()


def test_the_command_that_judges_a_log_again_has_all_options_that_were_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(*_: Any, command: str, **__: Any) -> None:
        raise UsageError(command)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("schedgap.harness.studies.certify.compare", compared)
    (tmp_path / "log.csv").write_text(LOG)
    words = ["certify", "csv", "log.csv", "--map", MAP, "--gpus", "4", "--max-jobs", "4", "--memory-mb", "2048"]
    assert str(CliRunner().invoke(app, words).exception) == " ".join(["harness", *words])
