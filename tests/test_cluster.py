"""Studies on a Dask cluster: a real scheduler with two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clusters import start_scheduler, start_worker
from conftest import PATIENCE_S

import schedgap as sg
from schedgap.harness.engine.cluster import connect, run_remotely
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.adversary.run import adversary
from schedgap.harness.studies.audit.row import CLAIMS, Claim
from schedgap.harness.studies.compare.methods import select
from schedgap.harness.studies.compare.row import FAILED
from schedgap.harness.studies.compare.run import plan
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances import plugins
from schedgap.instances.catalogue import load
from schedgap.instances.errors import UsageError
from schedgap.instances.views.oef import Allocation

pytest.importorskip("distributed")

CASES = ["paper/oef-eq1", *(f"gen/oef-20?tenants={n}" for n in range(2, 6))]
METHODS = ["oef.cooperative", "oef.noncooperative", "oef.gandiva_fair", "oef.rounding"]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a Dask scheduler without workers."""
    process, address = start_scheduler(tmp_path_factory.mktemp("dask"))
    try:
        yield address
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def workers(scheduler: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Return two workers of the scheduler."""
    found = [start_worker(scheduler) for _ in range(2)]
    with connect(scheduler) as client:
        client.wait_for_workers(2, timeout=PATIENCE_S)
    yield found
    for process in found:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def named(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [(row.instance, row.method, row.status, row.verified, row.objective, row.best_bound) for row in rows]


def test_a_worker_that_has_just_started_knows_the_papers(tmp_path: Path) -> None:
    """A definition that imports nothing of a paper is restored there before the first task is."""
    CLAIMS.register(Claim("oef.mine", "oef", "nowhere", "It works.", "always", "by trying", lambda lab: ""))
    try:
        (task,) = plan([load("paper/oef-eq1")], select(["oef.efficiency"], ()), [0], {"": Limits()})
        (tmp_path / "task").write_bytes(pickle.dumps((plugins.loaded(), plugins.dumps(task))))
    finally:
        plugins._forget("oef.mine")
    code = (
        "import pickle, sys; from schedgap.harness.engine.cluster import run_remotely; "
        "print(pickle.loads(run_remotely(*pickle.load(open(sys.argv[1], 'rb')))).row.status)"
    )
    answer = subprocess.run([sys.executable, "-c", code, tmp_path / "task"], capture_output=True, text=True, check=True)
    assert answer.stdout == "optimal\n"


def test_a_cluster_without_workers_is_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.harness.engine.cluster.WORKERS_S", 0.5)
    with pytest.raises(UsageError, match=r"no worker joined within 0\.5 s; start one with: dask worker tcp"):
        sg.compare("paper/oef-eq1", ["oef.cooperative"], dask=scheduler)


def test_limits_hold_on_the_cluster_too(scheduler: str, workers: list[subprocess.Popen[bytes]]) -> None:
    """A task on the cluster that exceeds its memory limit fails alone; its worker runs the next task."""
    case, chosen = [load("paper/oef-eq1")], select(["oef.cooperative"], ())
    too_little = Limits()
    object.__setattr__(too_little, "memory_mb", 64)  # less than a user may ask for
    tasks = [task for limits in (too_little, Limits()) for task in plan(case, chosen, [0], {"": limits})]
    with connect(scheduler) as client:
        sent = [client.submit(run_remotely, plugins.loaded(), plugins.dumps(task), pure=False) for task in tasks]
        hungry, usual = (pickle.loads(future.result(timeout=PATIENCE_S)).row for future in sent)
    assert hungry.status in FAILED
    assert (usual.status, usual.verified) == ("optimal", True)


def test_a_killed_worker_loses_no_row_and_doubles_none(
    scheduler: str, workers: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    seen: list[str] = []

    def kill_one_in_the_middle(result: Any) -> None:
        seen.append(result.key)
        if len(seen) == 5:
            os.killpg(workers[0].pid, signal.SIGKILL)

    comparison = sg.compare(CASES, METHODS, dask=scheduler, results=tmp_path, on_result=kill_one_in_the_middle)
    assert len(comparison.rows) == len(CASES) * len(METHODS)
    assert comparison.folder is not None
    journal = (comparison.folder / "journal.jsonl").read_text().splitlines()  # with the heuristics beside the models
    assert len(seen) == len(set(seen)) == len(journal) >= len(comparison.rows) + len(comparison.bounds)
    assert comparison.ok, comparison.table[["method", "status", "reason"]]
    here = sg.compare(CASES, METHODS, jobs=2)
    assert named(comparison.rows) == named(here.rows)
    assert comparison.folder is not None
    journal = (comparison.folder / "journal.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["row"]["key"] for line in journal) == sorted(seen)
    assert named(sg.read_run(comparison.folder).rows) == named(here.rows)


def test_every_study_runs_on_a_cluster_and_resumes(
    scheduler: str, workers: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Every study runs on a cluster; run again without the cluster, it finds all results and does nothing."""
    studies: list[Any] = [
        partial(sg.simulate, "gen/20jobs", ["fifo", "gavel"]),
        partial(sg.audit, claims=["oef.slip.*"]),
        partial(adversary, ["hadar.online"], tries=2, budget_s=PATIENCE_S, anywhere=True),
    ]
    for study in studies:
        found = study(dask=scheduler, results=tmp_path)
        assert found.ok
        left: list[int] = []
        again = study(jobs=2, resume=found.folder, on_start=left.append)
        assert sum(left) == 0
        assert vars(again)["meta"]["plan"] == vars(found)["meta"]["plan"]


def test_a_method_that_is_defined_here_runs_on_a_cluster(
    scheduler: str, workers: list[subprocess.Popen[bytes]]
) -> None:
    @sg.heuristic("oef.nobody")
    def nobody(view: Any, context: Any) -> Allocation:
        return Allocation(0 * view.speedups)

    try:
        (row,) = sg.compare("paper/oef-eq1", ["oef.nobody"], dask=scheduler).rows
        assert (row.verified, row.objective) == (True, 0.0)
    finally:
        plugins.restore(())


def test_a_worker_of_other_code_says_so() -> None:
    instance = load("paper/oef-eq1")
    task = MethodTask(b"", instance.name, instance.fingerprint, "oef.cooperative", limits=Limits(), code="another")
    row = pickle.loads(run_remotely(plugins.loaded(), plugins.dumps(task))).row
    assert row.status == "error"
    assert "other code" in str(row.reason)


def test_an_address_where_nobody_answers_is_refused_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedgap.harness.engine.cluster.CONNECT_S", 0.5)
    wrong = "expected the address of a scheduler, such as tcp://host:8786"
    cases = {"tcp://127.0.0.1:1": "no Dask scheduler answers there", "nowhere": wrong, "file:///etc": wrong}
    for address, message in cases.items():
        with pytest.raises(UsageError, match=message):
            sg.compare("paper/oef-eq1", ["oef.cooperative"], dask=address, results=tmp_path)
    assert list(tmp_path.iterdir()) == []
