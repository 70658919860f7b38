"""Stretches of time of a long log: what is put together holds for the whole, and tasks of stretches are tasks."""

from __future__ import annotations

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certified import checker, plain
from clusters import start_scheduler, start_worker
from conftest import PATIENCE_S
from test_rigid import check, instance, view

import schedgap as sg
from schedgap.harness.engine.cluster import connect
from schedgap.harness.engine.folder import JOURNAL
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare import run
from schedgap.harness.studies.compare.methods import select
from schedgap.harness.studies.folders import check as verify
from schedgap.instances.canonical import to_json
from schedgap.instances.rigid import RigidView
from schedgap.models import MODELS
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers import prove
from schedgap.models.rigid import prices
from schedgap.models.rigid.stretches import cuts_of, number_of, stretch_of


def lines(jobs: int, load: float, seed: int = 0, room: int = 8) -> list[tuple[int, int, int]]:
    """Return jobs of minutes to hours, in gangs, that arrive evenly."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 4], jobs, p=[0.6, 0.3, 0.1])
    duration = np.clip(rng.lognormal(7, 1.2, jobs), 60, 40_000).astype(int)
    release = np.sort(rng.integers(0, int((gpus * duration).sum() / (room * load)), jobs))
    return [(int(r), int(d), int(g)) for r, d, g in zip(release, duration, gpus, strict=True)]


def certified(seen: RigidView, name: str) -> tuple[float, float | None]:
    """Return the bound of a method by the rule of certificates, and its objective by the checker."""
    spec = MODELS.get(name)
    outcome = spec.run(seen, SolveOptions(nodes=3))
    proof = plain(prove(spec.problem, seen, outcome, SolveOptions())) | {"problem": spec.problem}
    objective = None
    if outcome.decision is not None:
        verdict = check(seen, outcome.decision, spec.problem)
        assert not verdict.violations
        objective = verdict.objective
    return float(checker.certified(proof, json.loads(to_json(seen.instance)))), objective


@pytest.mark.parametrize("objective", ["flow", "weighted"])
def test_what_stretches_find_is_certified_as_one_bound_near_that_of_the_whole(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, less in {"FIRST": 48, "STEPS": 20, "MOST": 2000}.items():
        monkeypatch.setattr(prices, name, less)
    seen, setting = view(lines(80, 0.6), room=8), "" if objective == "flow" else f"&objective={objective}"
    whole, _ = certified(seen, f"rigid.starts?stretches=1{setting}")
    for count in (2, 4):
        bound, _ = certified(seen, f"rigid.starts?stretches={count}{setting}")
        assert bound >= whole * (1 - 1e-3)
        _, reached = certified(seen, f"rigid.search?stretches={count}{setting}")
        assert reached is not None
        assert bound <= reached


@pytest.mark.parametrize("seed", range(20))
def test_stretches_have_each_job_once_and_follow_one_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, count = int(rng.integers(1, 40)), int(rng.integers(1, 9))
    seen = view([tuple(map(int, one)) for one in rng.integers((0, 0, 1), (9, 9, 4), (jobs, 3))], room=4)
    count = number_of(jobs, count)
    found = [stretch_of(seen, at, count) for at in range(count)]
    assert sorted(np.concatenate([one.jobs[one.own] for one in found]).tolist()) == list(range(jobs))
    assert all(one.until == other.since for one, other in itertools.pairwise(found))
    for one in found:
        own = seen.release[one.jobs[one.own]]
        assert (one.since <= own).all()
        assert (own <= one.until).all()


def test_a_cut_is_where_nothing_is_left_to_do() -> None:
    """Two bursts of jobs far apart are cut between them, though one has more jobs than the other."""
    seen = view([(0, 50, 4)] * 12 + [(10_000, 50, 4)] * 9, room=4)
    assert cuts_of(seen, np.arange(21), 2).tolist() == [0, 12, 21]


METHODS = ["rigid.search?seeded=false&stretches=3", "rigid.starts?stretches=3"]


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [(row.method, row.status, row.verified, row.own_bound, row.objective) for row in found.rows]


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_stretches_are_tasks_whose_results_are_kept_and_resumed(tmp_path: Path) -> None:
    one, same = instance(lines(24, 0.7), room=8), {"limits": Limits(nodes=2), "probes": False}
    found = sg.compare([one], METHODS, results=tmp_path, jobs=2, **same)  # type: ignore[arg-type]
    assert found.ok
    assert found.folder is not None
    assert [row.method for row in found.rows] == METHODS
    assert not found.bounds
    kept = journal(found.folder)
    assert sorted((line["row"]["method"], line["at"]) for line in kept if line["record"] == "stretch") == sorted(
        (method, at) for method in METHODS for at in range(3)
    )
    assert not [line for line in verify(found.folder) if line.wrong]
    # A killed run lacks a stretch and what is made of it; nothing else runs again.
    lost = next(line for line in kept if line["record"] == "stretch" and "starts" in line["row"]["method"])
    gone = lost, next(line for line in kept if line["record"] == "row" and line["row"]["method"] == METHODS[1])
    left = [line for line in kept if line not in gone]
    (found.folder / JOURNAL).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in left))
    ran: list[Any] = []
    again = sg.compare([one], METHODS, resume=found.folder, jobs=2, on_result=ran.append, **same)  # type: ignore[arg-type]
    assert [(type(one).__name__, one.row.method) for one in ran] == [
        ("PartResult", METHODS[1]),
        ("MethodResult", METHODS[1]),
    ]
    assert rows(again) == rows(found)


def test_a_cluster_finds_the_same_and_repeats_only_the_stretch_of_a_killed_worker(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    one, same = instance(lines(24, 0.7), room=8), {"limits": Limits(nodes=2), "probes": False}
    scheduler, address = start_scheduler(tmp_path)
    workers = [start_worker(address) for _ in range(2)]
    try:
        with connect(address) as client:
            client.wait_for_workers(2, timeout=PATIENCE_S)
        ran: list[str] = []

        def kill_one(result: Any) -> None:
            ran.append(result.key)
            if len(ran) == 2:
                os.killpg(workers[0].pid, signal.SIGKILL)

        found = sg.compare([one], METHODS, dask=address, results=tmp_path, on_result=kill_one, **same)  # type: ignore[arg-type]
    finally:
        for process in (*workers, scheduler):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert len(ran) == len(set(ran)) == 8
    assert found.folder is not None
    assert sum(line["record"] == "stretch" for line in journal(found.folder)) == 6
    assert rows(found) == rows(sg.compare([one], METHODS, jobs=2, **same))  # type: ignore[arg-type]


def test_a_search_is_sent_the_best_decisions_if_all_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_KNOWN_MB", 1e-9)
    tasks = run.plan([instance(lines(24, 0.7), room=8)], select(["rigid.search"], ()), [0], {"": Limits(nodes=1)})
    first, others, *_ = run.staged(tasks)
    done = [task.run() for task in first(())]
    (task,) = others(done)
    reached = {
        one.row.method: one.row.objective for one in done if one.row.verified and one.row.problem == "rigid.flow"
    }
    ((method, _),) = task.known
    assert len(reached) > 5
    assert reached[method] == min(reached.values())
