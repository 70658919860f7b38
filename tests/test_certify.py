"""``harness certify``: what it says about a log, which jobs waited and why, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from schedgap.harness.cli import catalogue, studies  # noqa: F401 -- importing them registers their commands
from schedgap.harness.cli.app import app
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.page import blocks
from schedgap.harness.show.page.rigid import executed, measures, why_of
from schedgap.harness.show.table import Table
from schedgap.harness.show.waiting import Why, occupancy
from schedgap.harness.studies.certify import methods
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.errors import UsageError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES, starts_of

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
    found = {one.objective: one for one in measures(run.rows)}
    assert list(found) == list(OBJECTIVES)
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
        "mean completion time as executed 9.322 h, at most ",
        "EASY backfilling",
        "SRTF",
        "best schedule found",
    ):
        assert words in text
    assert "of the avoidable waiting fell on jobs submitted on Tuesday evening" in text
    captions = [block.caption for block in shown if isinstance(block, Table)]
    assert any(caption.startswith("waiting: ") for caption in captions)
    assert any("most expensive decisions" in caption for caption in captions)


def test_waiting_is_split_and_adds_up(run: Comparison) -> None:
    why = why_of(run, run.rows)
    assert why is not None
    assert why.waited.sum() * 3600 == pytest.approx(35900 + 43000 + 42900)
    assert why.avoidable.sum() <= why.waited.sum() * (1 + 1e-9)
    by: dict[str, float] = {}
    for group in why.groups(100):
        by[group.by] = by.get(group.by, 0.0) + group.avoidable_h
    assert set(by) == {"user", "partition", "size", "submitted"}
    assert all(total == pytest.approx(why.avoidable.sum()) for total in by.values())
    first = why.decisions()[0]
    assert (why.view.instance.jobs[first.job].id, first.others) == ("b", 2)
    assert first.cost_h * 3600 == pytest.approx(2 * 7200)


def test_fragmentation_and_occupancy_by_hand() -> None:
    import test_rigid

    seen = PAPERS.get("rigid").view(test_rigid.instance([(0, 10, 3), (0, 10, 4), (2, 8, 1)]))
    schedule = starts_of(seen, np.array([0, 10, 20]))
    why = Why(seen, schedule, (seen.release + seen.duration).astype(float))
    assert why.fragmentation() * 3600 == pytest.approx(8)  # the third would fit beside the first, from 2 to 10
    assert occupancy(seen, schedule, np.array([0.0, 10.0, 20.0, 40.0])).tolist() == pytest.approx([0.75, 1.0, 0.1])
    assert why.hours is None


def test_figures_are_drawn(run: Comparison) -> None:
    names = {drawn.name for drawn in figures(run)}
    assert {"rigid-occupancy", "rigid-week", "rigid-decisions"} <= names


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
