"""Inputs on which something failed once, and their right values; they are in ``cases/`` of the real traces' folder."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orders
import pytest
from conftest import Command

from schedgap.harness.check import judge
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances import load
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views.zhou import ZhouSchedule

LIMITS = Limits(nodes=100)


@pytest.fixture(scope="session")
def case(data_dir: Path) -> Path:
    """Return the folder with the instances of these inputs."""
    return data_dir / "cases" / "instances"


def rows(instance: Instance, methods: Sequence[str]) -> dict[str, Row]:
    """Run methods; check that no row is WRONG, contradicted or an error, and return the rows by method."""
    found = compare_here(instance, methods, limits=LIMITS).rows
    for row in found:
        assert row.verified is not False, (row.method, row.violations)
        assert row.status not in ("error", "unbounded"), (row.method, row.reason)
        assert row.status != "skipped" or row.reason, row.method
    return {row.method: row for row in found}


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("rigid-exact-zero-duration", 50 / 3600),
        ("rigid-1", 156 / 3600),
        *((f"rigid-{n}", None) for n in (5, 7, 15)),
    ],
)
def test_gangs_of_no_duration_or_a_microsecond(case: Path, name: str, hours: float | None) -> None:
    instance = load(str(case / f"{name}.json"))
    found, view = rows(instance, ["rigid.*"]), PAPERS.get("rigid").view(instance)
    if hours is not None:
        assert found["rigid.exact"].objective == pytest.approx(hours, rel=1e-9)
    for objective in ("flow", "slowdown", "weighted", "makespan"):
        row = found["rigid.exact" if objective == "flow" else f"rigid.exact?objective={objective}"]
        assert row.status == "optimal"
        assert row.objective == pytest.approx(orders.best(view, objective), rel=1e-12, abs=0)


@pytest.mark.parametrize("objective", ["flow", "idle"])
def test_a_log_in_which_nothing_lasts_has_a_bound_of_0(
    data_dir: Path, command: Command, tmp_path: Path, objective: str
) -> None:
    with (data_dir / "cases" / "logs" / "30_k8s.csv").open() as file:
        jobs = [job | {"completed": job["started"], "gpus": job["gpus"] or "8"} for job in csv.DictReader(file)]
    log = tmp_path / "log.csv"
    with log.open("w", newline="") as file:
        writer = csv.DictWriter(file, jobs[0])
        writer.writeheader()
        writer.writerows(jobs)
    columns = "id=name,submit=created,start=started,end=completed,gpus=gpus"
    options = ["--objective", objective, "--time-limit", 5, "--no-report", "--jobs", 1, "--format", "csv"]
    done = command("certify", "csv", log, "--map", columns, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    found = list(csv.DictReader(done.stdout.splitlines()))
    bounds = [row["own_bound"] for row in found if row["problem"].startswith(f"rigid.{objective}") and row["own_bound"]]
    assert bounds
    assert set(map(float, bounds)) == {0.0}


HADAR = ["hadar.*", "gavel.*"]


def test_p1_finds_what_ordinary_rates_and_a_utility_of_a_million_hid(case: Path) -> None:
    found = rows(load(str(case / "hadar-10014.json")), HADAR)
    for method in ("hadar.p1", "hadar.p1.per_server", "hadar.p2.columns", "hadar.p2.enumerated"):
        assert found[method].objective is not None
        assert found[method].objective >= 1_000_001.75
        assert found[method].status == "optimal"


def test_p1_finds_the_utility_that_a_rate_next_to_another_hid(case: Path) -> None:
    found = rows(load(str(case / "p1-false-optimum.json")), HADAR)
    assert all(found[method].objective == 1 for method in ("hadar.p1", "hadar.p1.per_server", "hadar.p2.columns"))
    complete = [row for row in found.values() if row.problem == "hadar.complete" and row.objective is None]
    assert complete
    assert all(row.claim for row in complete if row.status == "infeasible"), "by the solver's word"


def test_p1_completes_every_job_where_a_schedule_does(case: Path) -> None:
    found = rows(load(str(case / "hadar-10012.json")), HADAR)
    assert found["hadar.p1.complete"].status == found["hadar.p1"].status == "optimal"
    for method in ("hadar.p1.complete", "hadar.p1"):
        assert found[method].objective == pytest.approx(5)


def test_heuristics_take_no_more_cpus_than_the_checker_accepts(case: Path) -> None:
    found = rows(load(str(case / "zhou-10016.json")), ["zhou.*"])
    assert found["zhou.ps.antman"].objective == pytest.approx(5_000_005, rel=1e-9)
    assert found["zhou.ps.columns"].status == "optimal"


@pytest.mark.parametrize("name", ["oef-36", "oef-83", "oef-infeasible-84"])
def test_weights_from_a_millionth_to_a_million(case: Path, name: str) -> None:
    found = rows(load(str(case / f"{name}.json")), ["oef.*"])
    assert not any(row.status == "infeasible" for row in found.values())
    decided = [row for row in found.values() if row.objective is not None]
    assert decided
    assert all(row.verified for row in decided)


@pytest.mark.parametrize(("name", "least"), [("hadarconst20", 15.2), ("hadarfin6", 5.34)])
def test_ratios_of_hadar_s_worst_cases_made_by_hand(case: Path, name: str, least: float) -> None:
    """Hadar's ratio on these instances is certified to be at least this large, whatever the optimum is."""
    row = rows(load(str(case / f"{name}.json")), ["hadar.p2.columns", "hadar.online"])["hadar.online"]
    assert row.ratio_at_least is not None
    assert row.ratio_at_least >= least
    assert row.guarantee_factor is None, "the theorem's conditions are not checked on runs that plan anew"


def test_the_ratio_of_zhou_s_worst_case_made_by_hand(case: Path) -> None:
    """A_online is far worse here than jobs one after another on the only GPU, ordered by weight per slot."""
    instance = load(str(case / "zb40.json"))
    online = rows(instance, ["zhou.ps.online"])["zhou.ps.online"]
    a = PAPERS.get("zhou").view(instance).architectures["ps"]
    job = np.argsort(a.options.shortest / a.weight, kind="stable")
    slots, none = a.options.shortest[job], np.zeros(a.size, np.int64)
    start = a.arrival.max() + np.cumsum(slots) - slots
    each, one = np.arange(a.size), none + 1
    decision = ZhouSchedule(job, start, slots, none, none, each, none, one, one)
    verdict = judge(instance, decision, "zhou.ps.completion")
    assert not verdict.violations
    assert online.objective is not None
    assert verdict.objective is not None
    assert 10.5 <= online.objective / verdict.objective <= 16
