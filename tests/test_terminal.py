"""What commands print: the answer first, then short tables without cut cells; ``harness table`` prints them again."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HARNESS, Command
from report_runs import instance, oef_run, row, sweep_run, troubled_run
from rich.console import Console

from schedgap.harness.show.page import blocks, latest
from schedgap.harness.show.page.columns import COMPARE
from schedgap.harness.show.page.compare import goal
from schedgap.harness.show.table import Note, Selection, Table, table, to_latex, to_markdown
from schedgap.harness.show.terminal import drawn, show
from schedgap.harness.studies.audit.run import audit
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.instances.registry import PAPERS

MARK = instance().fingerprint


def run_of(*rows: Row) -> Comparison:
    return Comparison({}, list(rows), {MARK: instance()})


def printed(found: object, width: int = 200, view: Selection | None = None) -> str:
    out = io.StringIO()
    show(Console(width=width, file=out), blocks(found, view or Selection()))  # type: ignore[arg-type]
    return out.getvalue()


def many(problems: int = 2, each: int = 12) -> list[Row]:
    """Return rows of models and baselines on several problems, and of a paper's own algorithm, which is the worst."""
    found = []
    for p in range(problems):
        problem = ("oef.allocation", "oef.envy_free")[p]
        found += [row(f"oef.m{p}{i}", MARK, 5.0, problem=problem) for i in range(each)]
        found += [row(f"oef.b{p}{i}", MARK, 4.0 + i / 100, problem=problem, kind="baseline") for i in range(each)]
    return [*found, row("oef.own", MARK, 1.0, kind="online")]


def test_what_a_solver_ends_with_is_told() -> None:
    """HiGHS's PDLP ends with "Unknown" on easy programs, which is no answer, though its point may be the optimum."""
    failed = row("oef.efficiency", MARK, 5.0, status="error", termination="Unknown; Feasible", solver="highs:pdlp")
    assert "oef.efficiency: error: highs:pdlp ends with Unknown; Feasible" in printed(run_of(failed))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_nothing_of_a_table_is_cut_at_any_width(width: int) -> None:
    sentence = "every constraint was checked again, and the solver's word does not count " * 3
    rows = [*many(), row("oef.wrong", MARK, 3.0, verified=False, violations=(sentence,)), *sweep_run().rows]
    for content in (
        table("a caption", COMPARE, rows),
        table("", COMPARE, rows, view=Selection(columns=["metrics", "gap"])),
    ):
        text = "\n".join(line.plain for line in drawn(content, width))
        assert max(map(len, text.splitlines())) <= width
        left_out = text.rpartition("left out for lack of width: ")[2]
        words = "".join(text.split())
        for i, column in enumerate(content.columns):
            if column.header not in left_out:
                assert all(
                    "".join(cells[i].text.split()) in words for cells in content.rows if " " not in cells[i].text
                )


def test_what_is_wrong_never_leaves_a_narrow_table() -> None:
    content = table("", COMPARE, troubled_run().rows)
    text = "\n".join(line.plain for line in drawn(content, 50))
    assert "WRONG" in text
    assert "out of memory" in " ".join(text.split())


def test_a_table_without_rows_says_so_in_every_format() -> None:
    empty = [table("a caption", COMPARE, [])]
    out = io.StringIO()
    show(Console(file=out), empty)
    assert out.getvalue() == "a caption\n\n none\n"
    assert to_markdown(empty) == "a caption\n\nnone\n"
    assert to_latex(empty).splitlines()[1:] == ["% a caption: none"]


def test_the_answer_is_first_and_takes_few_lines() -> None:
    text = printed(run_of(*many()))
    assert text.splitlines()[0] == "On paper/oef-eq1, oef.own is 80.0 % from optimal; best baseline b011 17.8 %."
    papers = ("hadar", "synergy", "zhou.ps", "oef", "admission")
    run = run_of(*(row(f"{p}.online", MARK, 4.0, paper=p.partition(".")[0], kind="online") for p in papers))
    answer = printed(run, 80).partition("\n\n")[0].splitlines()
    assert len(answer) == 1 + len(papers) <= 8


def test_ten_rows_stay_with_the_papers_own_algorithm_and_the_best_of_each_kind() -> None:
    rows = many()
    content = next(block for block in blocks(run_of(*rows)) if isinstance(block, Table))
    names = [cells[0].text for cells in content.rows]
    assert len(names) == 10
    assert {"oef.own", "oef.b011", "oef.b111", "oef.m00", "oef.m10"} <= set(names)
    assert list(content.heads) == [0, names.index("oef.m10")]
    assert content.heads[0] == "allocation: largest total efficiency within capacity (max)"
    assert goal(PAPERS.get("gavel").problem("gavel.mean")) == "min, in s"
    text = printed(run_of(*rows))
    assert f"{len(rows) - 10} more rows: --all-rows" in text
    assert all(one.method in printed(run_of(*rows), view=Selection(float("inf"))) for one in rows)


def test_methods_for_logs_are_skipped_on_an_instance_without_jobs() -> None:
    assert "1 skipped: not applicable 1" in printed(
        run_of(
            row(
                "rigid.bound",
                MARK,
                None,
                problem="rigid.flow",
                status="skipped",
                verified=None,
                reason="rigid: no jobs",
            )
        )
    )


def test_skipped_methods_are_a_line_until_they_are_asked_for() -> None:
    skipped = {
        "status": "skipped",
        "verified": None,
    }
    rows = [*many(1, 2), row("oef.s1", MARK, None, reason="too large without --all: 9 rows", **skipped)]
    rows += [row(f"oef.t{i}", MARK, None, reason="no tenants", **skipped) for i in range(2)]
    text = printed(run_of(*rows))
    assert "oef: 3 skipped: not applicable 2, too large 1; -v lists them" in text
    assert "no tenants" not in text
    told = printed(run_of(*rows), view=Selection(verbose=True))
    assert "oef.t0, oef.t1: skipped: no tenants" in told


def test_sorted_by_what_was_asked_for() -> None:
    content = next(
        b for b in blocks(oef_run(), Selection(sort="-objective", columns=["method"])) if isinstance(b, Table)
    )
    rows = {one.method: one.objective or 0.0 for one in oef_run().rows}
    starts = [*content.heads, len(content.rows)] if content.heads else [0, len(content.rows)]
    for start, end in itertools.pairwise(starts):
        values = [rows[cells[0].text] for cells in content.rows[start:end]]
        assert values == sorted(values, reverse=True)


def test_commands_are_never_broken_into_lines() -> None:
    command = "measured by harness simulate " + "--policy hadar.online " * 10
    out = io.StringIO()
    show(Console(width=40, file=out), [Note("a number", command)])
    assert out.getvalue() == f"a number: {command}\n"


def test_any_run_is_printed_again(command: Command, tmp_path: Path) -> None:
    audit(claims=["oef.slip.coefficient"], jobs=1, results=tmp_path / "r")
    command("compare", "--instance", "paper/oef-eq1", "--method", "oef.*", "--no-report", "--jobs", 1, "--results", "r")
    command("simulate", "--instance", "paper/hadar-fig1", "--policy", "hadar.fifo", "--no-report", "--results", "r")
    folders = {path.name.rpartition("-")[2]: path for path in (tmp_path / "r").iterdir()}
    for kind, method in (("audit", "oef.slip.coefficient"), ("compare", "oef.rounding"), ("simulate", "hadar.fifo")):
        again = command("table", folders[kind])
        assert (again.returncode, again.stderr) == (0, "")
        assert method in again.stdout
        latex = command("table", folders[kind], "--top", 1, "--format", "latex").stdout
        assert latex.count("\\toprule") >= 1
    run = folders["compare"]
    shown = command("table", run, "--columns", "method, gap", "--sort", "gap", "--top", 2).stdout
    assert "15 more rows: --all-rows" in shown
    wrong = command("table", run, "--columns", "gapp")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "unknown column 'gapp'; did you mean gap" in wrong.stderr


def test_a_terminal_shows_rows_while_others_run_and_the_report_last(tmp_path: Path) -> None:
    words = ["compare", "--instance", "paper/oef-eq1", "--method", "oef.efficiency", "--jobs", "1"]
    code = f"import pty, sys; sys.exit(pty.spawn(['{HARNESS}', *{words}]) >> 8)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stdout
    assert "left:" in run.stdout
    assert re.search(
        r"(?s)left:.*finds the optimum.*results: results/.*report: results/[^\n]*report.html\s*$", run.stdout
    )


def test_models_that_nobody_asked_for_are_not_shown_while_they_run() -> None:
    class Done:
        record = "row"

        def __init__(self, one: Row, helps: bool) -> None:
            self.row, self.helps = one, helps

    shown = latest([Done(row("oef.a", MARK, 4.0), False), Done(row("oef.b", MARK, 5.0), True)])
    assert [cells[0].text for cells in shown.rows] == ["oef.a"]
