"""The first-order method with array libraries: the same steps, the same point, and as much precision as asked for."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE_S

from schedgap import instances, models
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.views.oef import OefView, matrix_view
from schedgap.models.oef.envy import envied
from schedgap.models.oef.first_order import FirstOrder
from schedgap.models.oef.steps import library

LIBRARIES = ("numpy", "array_api_strict", "jax", "torch")


def view() -> OefView:
    rng = np.random.default_rng(0)
    speedups = np.cumprod(np.c_[np.ones(60), 1 + rng.random((60, 3))], axis=1)
    return matrix_view(speedups, rng.integers(1, 9, 4).astype(float), rng.integers(1, 4, 60).astype(float))


def after_some_rounds(arrays: str, single: bool = False) -> FirstOrder:
    pytest.importorskip(arrays) if arrays != "compiled" else None
    method = FirstOrder.begin(view(), library(arrays, single))
    for _ in range(3):
        method.run(60)
        method.look()
    return method


@pytest.mark.parametrize("arrays", LIBRARIES)
def test_every_library_takes_the_same_steps(arrays: str) -> None:
    expected, found = after_some_rounds("compiled"), after_some_rounds(arrays)
    assert found.pairs.tolist() == expected.pairs.tolist()
    assert found.steps == expected.steps
    assert found.best == pytest.approx(expected.best, rel=1e-9)
    assert found.ratio == pytest.approx(expected.ratio, rel=1e-9)
    for mine, theirs in zip(found.point, expected.point, strict=True):
        assert mine.dtype == np.float64
        assert mine == pytest.approx(theirs, abs=1e-9)
    assert found.evidence is not None
    assert expected.evidence is not None
    assert found.evidence.multiplier == pytest.approx(expected.evidence.multiplier, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("arrays", ["compiled", *LIBRARIES])
def test_single_precision_costs_digits(arrays: str) -> None:
    expected, found = after_some_rounds("compiled"), after_some_rounds(arrays, single=True)
    assert 0 < abs(found.point.bundle - expected.point.bundle).max() < 1e-3
    assert found.best == pytest.approx(expected.best, rel=1e-3)


@pytest.mark.parametrize("arrays", LIBRARIES)
@pytest.mark.parametrize("block", [2**25, 7 * 60])
def test_every_library_finds_the_largest_envies(arrays: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(arrays)
    monkeypatch.setattr("schedgap.models.oef.steps.BLOCK", block)
    rng = np.random.default_rng(1)
    worth = rng.dirichlet(np.ones(4), 60)
    bundle = rng.random((60, 4))
    for most, least in ((3, 1e-2), (5, 0.2), (100, -1.0)):
        expected, found = envied(worth, bundle, most, least), library(arrays).envied(worth, bundle, most, least)
        assert {*zip(*found[:2], strict=True)} == {*zip(*expected[:2], strict=True)}
        assert found[2] == pytest.approx(expected[2])


@pytest.mark.parametrize("arrays", ["numpy", "jax", "torch"])
def test_a_row_says_what_it_was_computed_with(arrays: str) -> None:
    """The bound that follows from the certificate is the method's, whatever the library."""
    pytest.importorskip(arrays)
    method = f"oef.cooperative.first_order?arrays={arrays}&single=true"
    (row,) = compare_here(
        instances.load("gen/oef-scale?tenants=301"),
        [method],
        limits=Limits(rel_gap=0.05, time_limit_s=PATIENCE_S),
        probes=False,
    ).rows
    assert (row.method, row.verified) == (method, True)
    assert row.own_bound == pytest.approx(row.claimed_bound, rel=1e-5)
    assert row.objective > 0.95 * row.own_bound


def test_a_library_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    method = models.get("oef.cooperative.first_order")
    install = {"jax": r"jax is not installed: pip install 'schedgap\[gpu\]'", "torch": "install it as pytorch.org says"}
    for arrays, told in install.items():
        with pytest.raises(NotApplicableError, match=told):
            models.get(f"{method.id}?arrays={arrays}").run(view())


SCRIPT = Path(__file__).with_name("benchmarks") / "gpu" / "measure.py"


def test_without_a_card_nothing_is_measured(tmp_path: Path) -> None:
    """The script that measures on a card says in one line that there is none."""
    environment = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, str(SCRIPT), str(tmp_path / "gpu.json")]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "nothing is measured: nvidia-smi finds no card; --processor runs small sizes without one\n"
    assert not (tmp_path / "gpu.json").exists()


def test_the_script_for_cards_runs_in_small_on_a_processor(tmp_path: Path) -> None:
    measure = runpy.run_path(str(SCRIPT))
    found = measure["measured"]("program", ["gavel.makespan_fluid", "hadar", "gen/20jobs", "highs:ipm", 60])
    assert found["status"] == "optimal"
    assert found["bound"] == pytest.approx(found["objective"], rel=1e-6)
    found = measure["measured"]("first_order", [350, "numpy", False, 2])
    assert found["bound"] >= found["objective"] > 0
    assert set(measure["versions"]()) >= {"numpy", "highspy", "jax", "mpax"}
    longest = sum(given[-1] for given in (*measure["FIRST_ORDER"],))
    longest += sum(given[-1] * len(measure["SOLVERS"]) for given in measure["PROGRAMS"])
    assert longest <= 9 * 60
