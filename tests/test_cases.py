"""Inputs that failed once, with their right values: see ``cases/`` in the folder of real traces."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import orders
import pytest
from conftest import Command

from schedgap.harness.compare.row import Row
from schedgap.harness.compare.run import compare_here
from schedgap.harness.engine.task import Limits
from schedgap.instances import load
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

LIMITS = Limits(time_limit_s=20)


@pytest.fixture(scope="session")
def case(data_dir: Path) -> Path:
    """Return the folder of instances."""
    return data_dir / "cases" / "instances"


def rows(instance: Instance, methods: Sequence[str]) -> dict[str, Row]:
    """Return the rows of methods by id; none is WRONG, contradicted or an error."""
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
