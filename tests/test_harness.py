"""The harness: certificates, results that survive a kill, tasks that can be killed, and resumed runs."""

from __future__ import annotations

import errno
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import PATIENCE_S, wait_for

import schedgap as sg
from schedgap.harness.check import judge_asked
from schedgap.harness.engine.environment import waited_for_core_s
from schedgap.harness.engine.folder import Folder, new_folder
from schedgap.harness.engine.pool import COMPILING, NOT_COUNTED, Compiling, Pool, Worker, workers_for
from schedgap.harness.engine.result import decode, encode
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.page.columns import COMPARE as COLUMNS
from schedgap.harness.show.table import visible
from schedgap.harness.studies.compare.methods import find_spec, select
from schedgap.harness.studies.compare.row import FAILED, FIELDS, Row, gap, ratio
from schedgap.harness.studies.compare.run import SEARCHES_S, certify, compare, plan, read_run
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.heuristics import HEURISTICS, HeuristicSpec
from schedgap.instances import clock, load, plugins
from schedgap.instances.canonical import write
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, matrix_view
from schedgap.models import MODELS

EQ1 = "paper/oef-eq1"


def row(method: str = "oef.gavel", problem: str = "oef.allocation", **fields: Any) -> Row:
    usual: dict[str, Any] = {
        "instance": "i",
        "fingerprint": "f",
        "paper": "oef",
        "kind": "baseline",
        "sense": "max",
        "verified": True,
        "status": "optimal",
    }
    return Row(**{**usual, "method": method, "problem": problem, **fields})


def task(method: str, instance: str | Instance = EQ1, **limits: Any) -> MethodTask:
    loaded = load(instance)
    return MethodTask(*sent(loaded), method, limits=Limits(**limits))


@pytest.mark.parametrize(
    ("sense", "objective", "bound", "wanted_gap", "wanted_ratio"),
    [
        ("max", 4.0, 5.0, 0.2, 1.25),
        ("min", 5.0, 4.0, 0.25, 1.25),
        ("max", 5.0, 5.0, 0.0, 1.0),
        ("max", 0.0, 5.0, 1.0, None),
        ("min", 5.0, 0.0, float("inf"), None),
        ("max", 0.0, 0.0, 0.0, 1.0),
        ("max", -5.0, -4.0, 0.25, None),
    ],
)
def test_gap_and_ratio(
    sense: str, objective: float, bound: float, wanted_gap: float, wanted_ratio: float | None
) -> None:
    assert gap(objective, bound) == pytest.approx(wanted_gap)
    found = ratio(sense, objective, bound)
    assert found == (None if wanted_ratio is None else pytest.approx(wanted_ratio))


def test_the_tightest_bound_of_the_problem_or_a_wider_one_wins() -> None:
    rows = certify(
        [
            row("oef.efficiency", objective=5.0, own_bound=5.0, kind="exact"),
            row("oef.cooperative", "oef.envy_free", objective=4.5, own_bound=4.5, kind="exact"),
            row("oef.cooperative.full", "oef.envy_free", objective=4.2, own_bound=4.8, kind="exact"),
            row("oef.gavel", objective=4.0),
        ]
    )
    assert [(r.best_bound, r.bound_from) for r in rows] == [
        (5.0, "oef.efficiency"),
        (4.5, "oef.cooperative"),
        (4.5, "oef.cooperative"),
        (5.0, "oef.efficiency"),
    ]
    assert rows[3].gap == pytest.approx(0.2)
    assert rows[3].ratio_is_upper is False


def test_a_ratio_is_an_upper_estimate_unless_the_optimum_is_proved() -> None:
    unproved = certify([row("oef.efficiency", own_bound=5.0, objective=4.9), row(objective=4.0)])
    assert [r.ratio_is_upper for r in unproved] == [True, True]
    # If a restricted problem reaches the bound of the wider one, other rows of the wider problem are not proved by it …
    elsewhere = certify(
        [
            row("oef.efficiency", own_bound=5.0),
            row(problem="oef.envy_free", objective=5.0),
            row(objective=4.0),
        ]
    )
    assert elsewhere[2].ratio_is_upper is True


def test_a_bound_that_a_verified_decision_beats_is_wrong() -> None:
    rows = certify(
        [row("oef.efficiency", own_bound=5.0, objective=5.0), row(objective=5.1), row(own_bound=5.2, objective=5.0)]
    )
    assert rows[0].verified is False
    assert rows[0].violations[0].startswith("certified bound 5 is beaten by the objective 5.1 of oef.gavel: ")
    assert rows[1].verified is False
    assert rows[1].violations[0].startswith("objective 5.1 lies beyond the certified bound 5 of oef.efficiency: ")
    assert [(one.best_bound, one.gap) for one in rows] == [(5.2, None), (5.2, None), (5.2, pytest.approx(0.2 / 5.2))]
    claimed = certify([row("oef.efficiency", claimed_bound=5.0, own_bound=5.2, objective=5.0), row(objective=5.1)])
    assert [one.verified for one in claimed] == [False, True]
    assert claimed[0].violations == ("claimed bound 5 is beaten by the objective 5.1 of oef.gavel",)
    assert (claimed[1].best_bound, claimed[1].gap) == (5.2, pytest.approx(0.1 / 5.2))
    unchecked = certify([row("oef.efficiency", own_bound=5.0), row(objective=5.1, verified=None)])
    assert unchecked[0].verified is not False


def test_infeasible_is_an_answer_unless_somebody_decides() -> None:
    alone = row("oef.efficiency", kind="exact", status="infeasible", verified=None)
    assert certify([alone])[0].status not in FAILED
    elsewhere = certify([alone, row(objective=None, verified=None)])
    assert elsewhere[0].verified is None
    contradicted = certify([alone, row(objective=4.0)])
    assert contradicted[0].verified is False
    assert contradicted[0].violations == ("infeasible, but oef.gavel has a decision of oef.allocation",)


@pytest.mark.parametrize(("sense", "objective", "best"), [("max", 1.0, 15.2), ("max", 0.0, 1.0), ("min", 15.2, 1.0)])
def test_a_guarantee_that_a_verified_decision_exceeds_is_refuted(sense: str, objective: float, best: float) -> None:
    online = row("oef.rounding", objective=objective, sense=sense, guarantee="2α = 12.8", guarantee_factor=12.8)
    refuted, other = certify([online, row(objective=best, sense=sense)])
    assert refuted.refuted is not None
    assert refuted.refuted.startswith("2α = 12.8 is refuted: oef.gavel is ")
    assert (refuted.verified, refuted.ok, other.ok) == (True, False, True)
    for kept in (row(objective=best, sense=sense, verified=None), row(objective=objective, sense=sense)):
        assert all(one.refuted is None for one in certify([online, kept]))


def test_what_is_not_verified_bounds_nothing() -> None:
    rows = certify([row("oef.efficiency", own_bound=3.0, verified=False), row(objective=4.0)])
    assert rows[1].best_bound is None
    assert rows[1].gap is None


def test_compare_eq1_shows_the_published_numbers(tmp_path: Path) -> None:
    comparison = compare(EQ1, papers=["oef"], results=tmp_path)
    assert comparison.ok
    rows = {r.method: r for r in comparison.rows}
    assert rows["oef.cooperative"].objective == pytest.approx(4.5)
    assert rows["oef.noncooperative"].objective == pytest.approx(54 / 13)
    assert rows["oef.gandiva_fair"].verified
    for method in ("oef.gandiva_fair", "oef.gavel", "oef.cooperative"):
        assert rows[method].published, method
    for r in rows.values():
        assert r.status == "skipped" or r.verified, r
        for entry in r.published:
            assert entry["exact_agrees"] is not False, (r.method, entry)
    assert list(comparison.table.columns) == [*FIELDS, "claim", "proof", "m.row_cap"]
    assert comparison.decision("oef.cooperative").devices.shape == (3, 2)
    again = read_run(comparison.folder or tmp_path)
    assert again.rows == comparison.rows
    assert set(again.decisions) == set(comparison.decisions)
    assert again.traces == comparison.traces
    frame = pd.read_parquet((comparison.folder or tmp_path) / "rows.parquet")
    assert list(frame.columns) == [*FIELDS, "claim"]
    lines = ((comparison.folder or tmp_path) / "rows.jsonl").read_text().splitlines()
    assert [list(json.loads(line)) for line in lines] == [[*FIELDS, "claim"]] * len(comparison.rows)
    assert [json.loads(line)["gap"] for line in lines] == [r.gap for r in comparison.rows]
    assert frame.gap.notna().sum() == sum(r.gap is not None for r in comparison.rows) > 0
    assert frame.objective.notna().sum() == sum(r.objective is not None for r in comparison.rows)


def test_prices_of_a_bound_are_kept_with_the_run(tmp_path: Path) -> None:
    comparison = compare("paper/hadar-fig1", ["hadar.p2.columns"], results=tmp_path)
    (prices,) = comparison.prices.values()
    assert prices.shape == (3, 8)
    assert prices.min() >= 0
    assert prices.max() > 0
    assert comparison.folder is not None
    (again,) = read_run(comparison.folder).prices.values()
    assert np.array_equal(again, prices)
    (kept,) = compare("paper/hadar-fig1", ["hadar.p2.columns"], resume=comparison.folder).prices.values()
    assert np.array_equal(kept, prices)


def test_resume_keeps_finished_rows_and_retries_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = ["oef.efficiency", "oef.cooperative", "oef.gavel"]
    first = compare(EQ1, methods, results=tmp_path)
    folder = first.folder
    assert folder is not None
    store = Folder(folder)
    failed = next(r for r in first.rows if r.method == "oef.gavel").replace(
        status="error", objective=None, verified=None
    )
    with pytest.raises(UsageError, match="another run is writing there"):
        compare(EQ1, methods, resume=folder)
    store.add(MethodResult(failed))
    store.close()
    ran: list[str] = []
    again = compare(EQ1, methods, resume=folder, on_result=lambda r: ran.append(r.row.method))
    assert ran == ["oef.gavel"]
    assert again.ok
    assert [r.method for r in again.rows] == [r.method for r in first.rows]
    other: list[MethodResult] = []
    compare(EQ1, methods, resume=folder, limits=Limits(time_limit_s=7), on_result=other.append)
    assert sorted(one.row.method for one in other if not one.helps) == sorted(methods)
    assert "oef.gandiva_fair" in {one.row.method for one in other if one.helps}  # beside the claims of models


def test_journal_survives_a_torn_line(tmp_path: Path) -> None:
    comparison = compare(EQ1, ["oef.efficiency", "oef.gavel"], results=tmp_path)
    folder = comparison.folder
    assert folder is not None
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    torn = next(line for line in journal if b'"method": "oef.gavel"' in line or b'"method":"oef.gavel"' in line)
    (folder / "journal.jsonl").write_bytes(b"".join([line for line in journal if line is not torn] + [torn[:-40]]))
    assert len(read_run(folder).rows) == 1
    resumed = compare(EQ1, ["oef.efficiency", "oef.gavel"], resume=folder)
    assert len(resumed.rows) == 2
    assert read_run(folder).rows == resumed.rows


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = compare(EQ1, ["oef.cooperative"], results=tmp_path_factory.mktemp("runs")).folder
    assert folder is not None
    return folder


def test_a_folder_without_a_run_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a results folder"):
        read_run(tmp_path)


def test_a_run_of_other_instances_is_not_resumed(finished: Path) -> None:
    wanted = "a run of paper/oef-eq1; only a run of at least these instances can be resumed"
    with pytest.raises(UsageError, match=wanted):
        compare("paper/oef-eq6", ["oef.cooperative"], resume=finished)


def test_a_full_disk_is_one_line_that_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(store: Folder, line: bytes) -> None:
        store._journal.write(line)
        store._journal.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Folder, "_append", full)
    with pytest.raises(
        UsageError, match=r"No space left on device; finished rows are kept, continue with: harness compare .* --resume"
    ):
        compare(EQ1, ["oef.cooperative"], results=tmp_path)


def test_plain_scripts_and_standard_input_need_no_main_guard(tmp_path: Path) -> None:
    code = 'import schedgap as sg\nprint(sg.compare("paper/oef-eq1", methods=["oef.maxmin"]).rows[0].status)\n'
    (tmp_path / "plain.py").write_text(code)
    for command, text in (([sys.executable, "plain.py"], None), ([sys.executable, "-"], code)):
        run = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (run.returncode, run.stdout) == (0, "feasible\n"), run.stderr


def test_a_main_module_that_was_emptied_is_not_asked() -> None:
    """A comparison runs although a notebook's ``%reset`` has removed all names from the main module."""
    code = 'import schedgap as sg\nfor name in [*globals()]:\n    if name != "sg":\n        del globals()[name]\n'
    code += 'print(sg.compare("paper/oef-eq1", methods=["oef.maxmin"]).rows[0].status)\n'
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert out.stdout == "feasible\n"


def test_impossible_limits_and_seeds_are_refused() -> None:
    for limits in ({"memory_mb": 1}, {"memory_mb": 10**17}, {"threads": 10**6}, {"time_limit_s": 0}):
        with pytest.raises(UsageError):
            compare(EQ1, limits=Limits(**limits))
    for seeds in ([-1], [2**31], [0, 0]):
        with pytest.raises(UsageError, match="seed"):
            compare(EQ1, seeds=seeds)


def test_the_command_to_reproduce_a_run_repeats_its_limits() -> None:
    limits = Limits(memory_mb=1234567, time_limit_s=0.1, all_sizes=True)
    command = compare(EQ1, ["oef.maxmin"], seeds=[3], limits=limits).meta["command"]
    wanted = "--method oef.maxmin --seed 3 --time-limit 0.1 --memory-mb 1234567 --all"
    assert command == f"harness compare --instance {EQ1} {wanted}"


def test_time_limits_reach_the_models_that_heuristics_ask() -> None:
    row = task("oef.rounding", "gen/oef-scale?tenants=300", time_limit_s=1e-6).run().row
    assert row.status == "skipped"
    assert "found no optimum to round: time limit" in (row.reason or "")


def test_unwritable_results_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="results cannot be written there"):
        compare(EQ1, results=tmp_path / "file")


def run_all(*tasks: MethodTask, jobs: int = 0) -> list[MethodResult]:
    with closing(Pool(jobs)) as pool:
        return list(pool.run(tasks))


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Path]:
    """Register ``oef.endless``, a heuristic that never ends; return the file where it writes its process's number."""
    file = tmp_path / "begun"

    @sg.heuristic("oef.endless")
    def endless(view: Any, context: Any) -> None:
        file.with_suffix(".part").write_text(str(os.getpid()))
        file.with_suffix(".part").rename(file)
        time.sleep(2 * PATIENCE_S)

    yield file
    plugins.restore(())


def test_a_slow_task_is_killed_and_the_others_go_on(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_s(worker: Worker) -> float:
        """Return no time left for the heuristic that never ends, once it has begun, and enough time for all others."""
        endless = isinstance(worker.task, MethodTask) and worker.task.method == "oef.endless"
        return PATIENCE_S if not endless else -1.0 if begun.exists() else 0.02

    monkeypatch.setattr(Worker, "left_s", property(left_s))
    monkeypatch.setattr(MethodTask, "hard_limit_s", 1.5)
    results = {r.row.method: r.row for r in run_all(task("oef.endless"), task("oef.gavel"))}
    assert results["oef.endless"].status == "time limit without incumbent"
    assert results["oef.endless"].reason == f"killed after 1.5 s{NOT_COUNTED}"
    assert results["oef.gavel"].status == "feasible"


def test_a_worker_gets_an_instance_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, other = task("oef.gavel"), task("oef.maxmin"), task("oef.gavel", "paper/oef-eq6")
    sent_: list[bytes] = []
    monkeypatch.setattr("schedgap.harness.engine.pool.dumps", lambda one: sent_.append(plugins.dumps(one)) or sent_[-1])
    results = run_all(one, two, other, one, jobs=1)
    assert [result.row.status for result in results] == ["feasible"] * 4
    packed = [one.packed, one.packed, other.packed, one.packed]
    assert [part in content for part, content in zip(packed, sent_, strict=True)] == [True, False, True, True]
    assert one.alone().key == one.key
    assert one.received().run().row.objective == results[0].row.objective


def test_a_killed_worker_is_one_failed_row(begun: Path) -> None:
    def kill() -> None:
        wait_for(begun.exists)
        os.kill(int(begun.read_text()), signal.SIGKILL)

    threading.Thread(target=kill).start()
    results = {r.row.method: r.row for r in run_all(task("oef.endless"), task("oef.gavel"), jobs=1)}
    assert results["oef.endless"].status == "error"
    assert "SIGKILL" in (results["oef.endless"].reason or "")
    assert results["oef.gavel"].status == "feasible"


def test_memory_beyond_the_cap_is_a_failed_row() -> None:
    large = task("oef.cooperative.full", "gen/oef-scale?tenants=300", memory_mb=600, all_sizes=True)
    results = {r.row.method: r.row for r in run_all(large, task("oef.gavel", memory_mb=600))}
    # An extension whose allocation fails may raise something else than MemoryError; the row fails either way.
    assert results["oef.cooperative.full"].status in {"out of memory", "error"}
    assert results["oef.gavel"].status == "feasible"


def test_what_a_method_compiles_is_said_once_and_counts_towards_no_limit(tmp_path: Path) -> None:
    said = tmp_path / "said"

    @sg.heuristic("oef.compiling")
    def compiling(view: Any, context: Any) -> Any:
        clock._COMPILING.on_start()
        while not said.exists():
            time.sleep(0.05)
        clock._COMPILING.on_end()
        return Allocation(np.zeros((view.size, len(view.capacity))))

    news: list[str] = []

    def tell(text: str) -> None:
        (worker,) = pool._busy
        assert worker.left_s == math.inf
        news.append(text)
        said.touch()

    try:
        with closing(Pool(1, tell)) as pool:
            rows = [result.row for result in pool.run([task("oef.compiling"), replace(task("oef.compiling"), seed=1)])]
    finally:
        plugins.restore(())
    assert [row.status for row in rows] == ["feasible", "feasible"]
    assert news == [COMPILING]


def test_the_limit_of_a_task_stands_still_while_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, sent, now = Worker.__new__(Worker), deque(map(pickle.dumps, (Compiling(True), Compiling(False)))), [100.0]
    monkeypatch.setattr("schedgap.harness.engine.pool.time.monotonic", lambda: now[0])
    worker.pipe = SimpleNamespace(poll=lambda *_: bool(sent), recv_bytes=sent.popleft)  # type: ignore[assignment]
    worker.process = SimpleNamespace(pid=None)  # type: ignore[assignment]
    worker.until = 130.0
    assert worker.news() == Compiling(True)
    now[0] = 500.0
    assert worker.left_s == math.inf
    assert worker.news() == Compiling(False)
    assert worker.left_s == 30.0
    assert worker.news() is None


def test_the_limit_of_a_task_stands_still_while_it_waits_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = {1: 5.0}
    monkeypatch.setattr("schedgap.harness.engine.pool.time.monotonic", lambda: 100.0)
    monkeypatch.setattr("schedgap.harness.engine.pool.waited_for_core_s", lambda pid: waited[pid])
    worker = Worker.__new__(Worker)
    worker.process, worker.pipe = SimpleNamespace(pid=1), SimpleNamespace(send_bytes=len)  # type: ignore[assignment]
    worker.give(replace(task("oef.gavel"), limits=Limits(1.0)))
    left_s = worker.left_s
    waited[1] = 25.0
    assert worker.left_s == left_s + 20.0
    waited[1] = 0.0  # the thread that had waited has ended
    assert worker.left_s == left_s


def test_seconds_that_a_process_waits_for_a_processor_are_those_of_its_longest_waiting_thread() -> None:
    own = [int((one / "schedstat").read_text().split()[1]) for one in Path("/proc/self/task").iterdir()]
    assert waited_for_core_s(os.getpid()) >= max(own) / 1e9
    assert waited_for_core_s(None) == 0.0


@pytest.mark.parametrize(("share", "kept"), [(1.0, 1), (0.0, 0)])
def test_a_worker_that_keeps_too_much_memory_gets_no_other_task(
    share: float, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedgap.harness.engine.pool.SPENT", share)
    with closing(Pool(1)) as pool:
        results = list(pool.run([task("oef.gavel"), task("oef.maxmin")]))
        assert [one.row.status for one in results] == ["feasible", "feasible"]
        assert len(pool._idle) == kept


def test_never_more_workers_times_threads_than_cores() -> None:
    from schedgap.harness.engine.environment import cores

    for threads in (1, 2, cores(), 2 * cores()):
        for jobs in (0, 1, 64):
            assert workers_for(jobs, threads) * threads <= max(cores(), threads)


@contextmanager
def plugged(file: Path) -> Iterator[None]:
    """Load a plug-in for the length of the block."""
    plugins.load_plugin(file)
    try:
        yield
    finally:
        plugins.restore(())


def endless(folder: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """Start a comparison that never ends, with its results in `folder`."""
    file = folder / "endless.py"
    folder.mkdir(exist_ok=True)
    file.write_text(
        "import time\nimport schedgap as sg\n\n\n"
        f"@sg.heuristic('oef.endless')\ndef endless(view, context):\n    time.sleep({2 * PATIENCE_S})\n"
    )
    command = [sys.executable, "-m", "schedgap", "compare", "--instance", EQ1, "--plugin", str(file)]
    command += ["--method", "oef.endless", "--time-limit", str(PATIENCE_S)]
    command += [*words, "--results", str(folder / "results")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_ctrl_c_keeps_finished_rows_and_a_kill_loses_none(tmp_path: Path) -> None:
    for stop in (signal.SIGINT, signal.SIGKILL):
        process = endless(tmp_path / stop.name, "--method", "oef.gandiva_fair")
        results = tmp_path / stop.name / "results"

        def kept(results: Path = results) -> bool:
            return any(file.read_bytes().endswith(b"\n") for file in results.glob("*/journal.jsonl"))

        wait_for(kept, process)
        process.send_signal(stop)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (130 if stop is signal.SIGINT else -9)
        with plugged(results.parent / "endless.py"):
            run = read_run(next(results.iterdir()))
        assert [(r.method, r.status) for r in run.rows] == [("oef.gandiva_fair", "feasible")]
        assert run.meta["interrupted"] is True
        if stop is signal.SIGINT:
            assert "--resume" in errors
            assert "Traceback" not in errors


def test_unknown_methods_and_papers_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean oef\.cooperative"):
        select(["oef.coperative"], [])
    with pytest.raises(UnknownNameError, match=r"unknown paper 'oeff'; did you mean oef"):
        select(["*"], ["oeff"])
    assert {s.id for s in select(["oef.g*"], ["oef"])} >= {"oef.gavel", "oef.gandiva_fair"}


def test_what_is_about_logs_runs_on_logs_or_where_it_is_asked_for() -> None:
    instances, kinds = [load("gen/20jobs"), load("paper/rigid-hpc")], {"": Limits()}
    everything = plan(instances, select(["*"], []), [0], kinds, every=True)
    papers = [{task.method.split(".")[0] for task in everything if task.instance_name == one.name} for one in instances]
    assert papers[1] - papers[0] == {"rigid"}
    assert len(plan(instances, select(["rigid.*"], []), [0], kinds)) == 2 * len(select(["rigid.*"], []))


def test_searches_share_their_time_unless_it_is_given() -> None:
    def seconds(pattern: str, limits: Limits) -> Counter[float]:
        tasks = plan([load("gen/20jobs")], select([pattern], []), [0], {"": limits}, every=True)
        return Counter(task.limits.seconds for task in tasks)

    methods, searches = len(select(["zhou.*"], [])), len(select(["zhou.*.columns*"], []))
    assert seconds("zhou.*", Limits()) == {20.0: methods - searches, SEARCHES_S / searches: searches}
    assert seconds("zhou.*", Limits(60.0)) == {60.0: methods}
    assert seconds("hadar.p2.columns", Limits()) == {min(20.0, SEARCHES_S): 1}


def test_a_failing_method_is_a_row_and_the_comparison_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(view: Any, context: Any) -> Any:
        raise RuntimeError("it\nbroke")

    def lie(view: Any, context: Any) -> Any:
        return Allocation(np.full(view.speedups.shape, 9.0))

    def decline(view: Any, context: Any) -> Any:
        raise NotApplicableError("not today")

    for name, run in (("fail", fail), ("lie", lie), ("decline", decline)):
        spec = HeuristicSpec(f"oef.{name}", "oef", "oef.allocation", "online", run, source="test")
        monkeypatch.setitem(HEURISTICS._entries, spec.id, spec)
    rows = [task(f"oef.{name}").run().row for name in ("fail", "lie", "decline")]
    assert [r.status for r in rows] == ["error", "feasible", "skipped"]
    assert re.fullmatch(r"RuntimeError: it broke \(test_harness\.py, line \d+\)", rows[0].reason)
    assert rows[1].verified is False
    assert "27 devices of GPU1 given out, 1 available" in rows[1].violations
    assert rows[2].reason == "not today"


def test_a_solver_that_reports_another_objective_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    spec = MODELS.get("oef.efficiency")

    def boast(view: Any, options: Any) -> Any:
        outcome = spec.run(view, options)
        solution = dataclasses.replace(outcome.solution, objective=9.0, bound=9.0)
        return dataclasses.replace(outcome, solution=solution)

    boasting = dataclasses.replace(spec, procedure=boast)
    monkeypatch.setitem(MODELS._entries, spec.id, boasting)
    row = task(spec.id).run().row
    assert row.verified is False
    assert row.violations == ("the solver reports 9, the checker finds 5",)


def test_monolithic_models_above_their_size_run_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.models.oef.FULL_LIMIT", 40)
    ref = "gen/oef-scale?tenants=50"
    assert task("oef.cooperative.full", ref).run().row.status == "skipped"
    assert task("oef.cooperative.full", ref, all_sizes=True).run().row.status == "optimal"


def test_the_key_depends_on_content_method_seed_limits_only() -> None:
    one = task("oef.gavel")
    same = MethodTask(one.packed, "renamed", one.fingerprint, one.method, one.seed, limits=one.limits)
    assert one.key == same.key
    others = [task("oef.maxmin"), task("oef.gavel", time_limit_s=1), task("oef.gavel", "paper/oef-eq6")]
    assert len({one.key, *(t.key for t in others)}) == 4


@pytest.mark.parametrize(
    ("devices", "rounds", "violation"),
    [
        ([[2, 0], [0, 1]], None, "2 devices of GPU1 given out, 1 available"),
        ([[-1, 0], [0, 1]], None, "u1 has -1 devices of GPU1: shares are 0 or more"),
        ([[1, 0, 0], [0, 1, 0]], None, "devices: a finite array of shape (2, 2), not one of shape (2, 3)"),
        ([[1, 0], [0, 1]], [[[1, 0], [0, 1]], [[1, 1], [0, 1]]], "round 1: 2 devices of GPU2, 1 available"),
        ([[1, 0], [0, 1]], [[[0, 0], [0, 1]]], "devices: not the average of the rounds"),
        ([[1, 0], [0, 1]], [[1, 0], [0, 1]], "rounds: a (rounds, tenants, types) array, not (2, 2)"),
        ([[0, 0], [1, 1]], None, "u1 envies u2: 3 is more than its 0"),
    ],
)
def test_the_oef_checker_names_what_is_wrong(devices: Any, rounds: Any, violation: str) -> None:
    view = matrix_view([[1, 2], [1, 5]], [1, 1])
    decision = Allocation(np.array(devices, float), None if rounds is None else np.array(rounds))
    assert violation in judge_asked(view, decision, "oef.envy_free", ("envy_free",)).violations


@pytest.mark.parametrize("rounds", [3, 5000])  # many numbers are kept as bytes
def test_codec_keeps_types_and_refuses_strangers(rounds: int) -> None:
    decision = Allocation(np.eye(2) / 3, np.arange(4 * rounds).reshape(rounds, 2, 2))
    kept = encode(decision)
    back = decode(Allocation, json.loads(json.dumps(kept)))
    assert isinstance(kept["rounds"]["data"], str) == (rounds == 5000)
    assert back.rounds is not None
    assert back.rounds.dtype == np.int64
    assert (back.rounds == decision.rounds).all()
    assert (back.devices == decision.devices).all()
    for data in ("AAAA", "!") if rounds == 5000 else ():
        with pytest.raises(ValueError, match=r"buffer size|cannot reshape|Incorrect padding"):
            decode(Allocation, kept | {"rounds": kept["rounds"] | {"data": data}})
    with pytest.raises(ValueError, match="not a Allocation"):
        decode(Allocation, {"other": 1})


def test_new_folders_are_named_by_time_and_content(tmp_path: Path) -> None:
    name = new_folder(tmp_path, {"command": "x", "kind": "compare"}).name
    stamp, digest, kind = name.split("-")
    assert len(stamp) == 16
    assert len(digest) == 6
    assert kind == "compare"


def test_importing_the_front_is_light() -> None:
    heavy = "('pyomo', 'pandas', 'altair', 'vl_convert', 'highspy')"
    code = f"import sys, schedgap, schedgap.harness; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert out.stdout.strip() == "[]"
    assert callable(sg.compare)
    assert find_spec("oef.gavel").id == "oef.gavel"


def test_an_instance_file_of_ones_own_can_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write(load(EQ1), path)
    comparison = compare(path, ["oef.cooperative"])
    assert comparison.rows[0].objective == pytest.approx(4.5)
    assert comparison.folder is None


@pytest.mark.parametrize("delay_s", [0.3, 1.0])
def test_ctrl_c_of_a_terminal_while_workers_start_is_one_line(delay_s: float, tmp_path: Path) -> None:
    process = endless(tmp_path, start_new_session=True)
    # The folder is there right before the workers are started, however slow the machine is.
    wait_for(lambda: list(tmp_path.glob("results/*/run.json")), process)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "interrupted" in errors


def test_ctrl_c_while_the_server_of_workers_starts_is_not_lost() -> None:
    code = """
import os, signal
from schedgap.harness.engine import pool

ensure = pool.forkserver.ensure_running
pool.forkserver.ensure_running = lambda: (os.kill(os.getpid(), signal.SIGINT), ensure())
try:
    pool.start_server("json", 1)
except KeyboardInterrupt:
    print("interrupted", pool.forkserver._forkserver._forkserver_pid is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout == "interrupted True\n"


def test_the_value_of_a_relaxation_stands_beside_the_tightest_bound() -> None:
    rows = certify([row("hadar.p3", kind="bound", own_bound=5.2), row("hadar.p1", kind="exact", own_bound=5.0)])
    (column,) = (c for c in visible(COLUMNS, rows) if c.key == "own_bound")
    assert [column.text(r) for r in rows] == ["5.2", "5"]
    assert [r.best_bound for r in rows] == [5.0, 5.0]
