"""Certificates: a checker without code of the package accepts every bound and refuses what was changed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synergy_cases as cases
from certificates import EXAMPLES, checker, plain, signed, spoiled

from schedgap import instances
from schedgap.harness.certificates import export
from schedgap.harness.compare.run import certify, compare, read_run
from schedgap.harness.compare.task import MethodResult, MethodTask
from schedgap.harness.engine.study import check as check_folder
from schedgap.harness.engine.task import Limits
from schedgap.instances.canonical import to_json
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.views import synergy
from schedgap.models import MODELS
from schedgap.models.certificates import PROVERS

DAY = "gen/20jobs?jobs=10&servers_per_type=1&slot_s=3600"
SMALL = {
    "hadar": ("paper/hadar-fig1", DAY),
    "gavel": ("paper/hadar-fig1", DAY),
    "admission": ("paper/walkthrough", DAY),
    "oef": ("paper/oef-eq1", DAY),
    "synergy": ("paper/synergy-example", DAY),
    "rigid": (DAY, "paper/rigid-hpc"),
    "zhou": ("gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600", DAY),
}
"""Small instances by paper."""

CASES = [(spec.id, ref) for spec in MODELS if spec.kind != "baseline" for ref in SMALL.get(spec.paper, ())]
# Where capacity is scarce, bounds on completion times follow from mean busy times.
CASES.append(("zhou.ra.fluid", "gen/zhou-ra?capacity=0.2"))
METHODS = (
    *("admission.columns", "gavel.makespan_fluid", "gavel.makespan_copies"),
    *("gavel.jct", "gavel.jct_copies", "gavel.jct_p99", "gavel.jct_p99_copies"),
    *("hadar.fluid", "hadar.fluid.complete", "hadar.fluid.forked"),
    *("hadar.p2.columns", "hadar.p2.columns.complete", "hadar.forked_bound"),
    *("oef.efficiency", "oef.noncooperative", "oef.sharing_incentive", "oef.cooperative"),
    *("rigid.bound?objective=weighted", "rigid.intervals", "rigid.starts"),
    *("synergy.hetero.lp1", "synergy.lp1.free", "synergy.jct", "synergy.jct_p99", "synergy.makespan_fluid"),
    *("zhou.ps.fluid", "zhou.ra.fluid", "zhou.ps.intervals", "zhou.ra.intervals", "zhou.ps.columns", "zhou.ra.columns"),
    *("zhou.ps.columns.maxweight", "zhou.ra.columns.maxweight", "zhou.ps.mincost", "zhou.ra.mincost"),
)
"""Methods whose bounds depend on every part of a proof."""

CROWDED = "gen/20jobs"
IN_A_CROWD = (
    *("zhou.ps.columns.maxweight", "zhou.ra.columns.maxweight", "gavel.jct", "zhou.ps.intervals", "zhou.ra.intervals"),
    *("gavel.jct_p99", "gavel.jct_p99_copies"),
    *("hadar.fluid", "hadar.fluid.complete", "hadar.fluid.forked"),
    *("rigid.bound?objective=weighted", "rigid.intervals", "rigid.starts"),
)
"""Methods whose bounds depend on capacity with more jobs only, and an instance that has them."""


SHORT = Limits(time_limit_s=1.0)


@cache
def result(method: str, ref: str, limits: Limits = SHORT) -> tuple[MethodResult, dict[str, Any]]:
    """Return what a method finds, and the instance as plain data."""
    instance = instances.load(ref)
    text = to_json(instance)
    task = MethodTask(text, instance.name, instance.fingerprint, method, limits=limits)
    return task.run(), json.loads(text)


@pytest.mark.parametrize(("method", "ref"), CASES)
def test_the_checker_accepts_every_certificate(method: str, ref: str) -> None:
    found, instance = result(method, ref)
    row = found.row
    if row.own_bound is None:
        pytest.skip(f"no bound: {row.reason or row.status}")
    if row.problem not in PROVERS:
        assert found.certificate is None
        return
    value = float(checker.check(plain(found.certificate), instance))
    assert found.certificate["bound"] == row.proved_bound == pytest.approx(value, rel=1e-6)
    if row.kind in {"relaxation", "bound"}:
        assert row.proved, f"{row.proved_bound} does not prove {row.own_bound}"


RANDOM_METHODS = (
    "hadar.p2.columns",
    "hadar.forked_bound",
    "admission.columns",
    "oef.cooperative",
    "zhou.ps.fluid",
    "zhou.ps.columns",
    "zhou.ra.columns.maxweight",
)


@pytest.mark.parametrize("seed", [0, 1, 16])
@pytest.mark.parametrize("method", RANDOM_METHODS)
def test_random_instances_have_certificates_on_the_right_side_of_verified_decisions(method: str, seed: int) -> None:
    instance = RANDOM.get(MODELS.get(method).paper).draw(np.random.default_rng(seed))
    text = to_json(instance)
    found = MethodTask(text, instance.name, instance.fingerprint, method, limits=Limits(time_limit_s=0.5)).run()
    if found.certificate is None:
        pytest.skip(f"no bound: {found.row.reason or found.row.status}")
    value = float(checker.check(plain(found.certificate), json.loads(text)))
    if found.row.objective is not None:
        better = value - found.row.objective if found.row.sense == "max" else found.row.objective - value
        assert better >= -1e-7 * abs(found.row.objective)


def stronger_bound(proof: dict[str, Any], instance: dict[str, Any], sense: int) -> dict[str, Any]:
    return proof | {"bound": proof["bound"] * (1 - sense * 1e-6)}


def other_multipliers(proof: dict[str, Any], instance: dict[str, Any], sense: int) -> dict[str, Any]:
    return spoiled(proof)


def easier_instance(proof: dict[str, Any], instance: dict[str, Any], sense: int) -> dict[str, Any]:
    """More servers, or less work where prices of capacity may all be 0."""
    for group in instance["cluster"]["servers"] if sense > 0 else ():
        group["count"] += 1
    for job in instance["jobs"] if sense < 0 else ():
        job["epochs"] = (job["epochs"] + 1) // 2
    return proof


CHANGES = stronger_bound, other_multipliers, easier_instance


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_the_checker_refuses_what_was_changed(method: str, change: Callable[..., dict[str, Any]]) -> None:
    if method == "oef.efficiency" and change is other_multipliers:
        pytest.skip("its program has no rows but capacity")
    found, kept = result(method, CROWDED if method in IN_A_CROWD else DAY)
    instance = plain(kept)
    proof = change(plain(found.certificate), instance, 1 if found.row.sense == "max" else -1)
    with pytest.raises(checker.RefusedError, match=r"digest|another instance"):
        checker.check(proof, instance)
    with pytest.raises(checker.RefusedError, match=r"only .* follows|multipliers are 0|may complete within"):
        checker.check(signed(proof, instance), instance)


@pytest.mark.parametrize("complete", ["", ".complete"])
@pytest.mark.parametrize(("limit", "told"), [("MANY", "divisible"), ("CELLS", "edges")])
def test_a_bound_over_periods_or_intervals_in_place_of_slots_is_proved(
    complete: str, limit: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"schedgap.models.hadar.columns.{limit}", 10)
    monkeypatch.setattr("schedgap.models.hadar.columns.FEW", 3)
    monkeypatch.setattr("schedgap.models.hadar.pricing.FINE", 100)
    monkeypatch.setattr("schedgap.models.hadar.pricing.COARSE", 10)
    # The gap ends it, not the clock: jobs are looked at closely only where the master is solved before that.
    found, instance = result.__wrapped__(f"hadar.p2.columns{complete}", CROWDED, Limits(time_limit_s=60.0, rel_gap=0.1))
    assert found.certificate.get(told)
    value = checker.check(plain(found.certificate), instance)
    assert found.row.verified
    assert value >= found.row.objective > 0.5 * float(value)
    if told == "divisible":
        proof = plain(found.certificate)
        everybody = list(range(len(instance["jobs"])))
        all_, none = (checker.proved(proof | {told: which}, instance)[1] for which in (everybody, []))
        assert all_ > value >= none


def test_covers_of_runs_are_checked() -> None:
    """They are needed for the bound, and refused where jobs keep more than there is, or nothing remains beside them."""
    found, instance = result("admission.columns", "gen/20jobs")
    proof = plain(found.certificate)
    (row, spare, who), *others = proof["covers"]
    much = [[job, kept + 1000] for job, kept in who]
    for cover in ([row, spare, much], [row, spare, [[who[0][0], -1]]], [row, spare + 1000, []], [row, -1, who]):
        with pytest.raises(checker.RefusedError, match="do not fit"):
            checker.check(signed(proof | {"covers": [cover, *others]}, instance), instance)
    none = [[row, spare, []] for row, spare, _ in proof["covers"]]
    with pytest.raises(checker.RefusedError, match=r"only .* follows"):
        checker.check(signed(proof | {"covers": none}, instance), instance)


def test_fragments_follow_from_worths_prices_and_what_jobs_hold() -> None:
    """Of 34 jobs 9 are split: 5 where GPUs and CPUs are full to the last, 2 for whole CPUs, 2 of 8 GPUs."""
    found, instance = result("synergy.lp2.min_fragments", "gen/200jobs")
    proof = plain(found.certificate)
    assert found.row.proved
    assert proof["bound"] == found.row.own_bound == checker.check(proof, instance) == 9
    most = max(range(len(proof["worth"])), key=proof["worth"].__getitem__)
    for part in ("worth", "held", "prices", "round"):
        changed = plain(proof)
        if part == "worth":
            changed[part][most] //= 2
        elif part == "held":
            changed[part][most][1] += 1.0
        else:
            changed[part] = changed[part][1:] if part == "round" else [[[0, 0, 0]] for _ in changed[part]]
        with pytest.raises(checker.RefusedError, match="digest"):
            checker.check(changed, instance)
        with pytest.raises((checker.RefusedError, ValueError), match=r"only .* follows|fair progress|argument"):
            checker.check(signed(changed, instance), instance)
    for group in instance["cluster"]["servers"]:
        group["count"] += 1
    with pytest.raises(checker.RefusedError, match="only 3 follows"):
        checker.check(signed(proof, instance), instance)


@pytest.mark.parametrize("worth", [None, 3.5])
@pytest.mark.parametrize("method", ["zhou.ps.mincost", "zhou.ra.mincost"])
def test_prices_are_those_that_an_instance_has(method: str, worth: float | None) -> None:
    """A job shows what F is, unless the instance says it; higher prices are refused."""
    few = f"gen/zhou-{method[5:7]}?jobs=4&servers=6&capacity=2&due_slot=300&unit_worth={worth}"
    found, instance = result(method, few if worth else DAY)
    proof = plain(found.certificate)
    assert ("job" in proof) == (worth is None)
    with pytest.raises(checker.RefusedError, match="prices are higher"):
        checker.check(signed(proof | {"base": proof["base"] * 1.01}, instance), instance)


def test_a_results_folder_has_certificates_that_the_script_and_verify_read(tmp_path: Path) -> None:
    found = compare("paper/oef-eq1", ["oef.efficiency", "oef.cooperative", "oef.gavel"], results=tmp_path, jobs=1)
    assert found.folder is not None
    assert {row.method: row.bound_by for row in found.rows} == dict.fromkeys(
        ("oef.efficiency", "oef.cooperative", "oef.gavel"), "certified"
    )
    export(found.folder, tmp_path / "mine")
    files = sorted((tmp_path / "mine" / "certificates").iterdir())
    assert len(files) == 2
    command = [sys.executable, str(EXAMPLES / "check_certificate.py"), *map(str, files)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "bound 4.500000006 holds (oef.envy_free)" in told
    again = read_run(found.folder)
    assert [row.proved_bound for row in again.rows] == [row.proved_bound for row in found.rows]
    assert not any(wrong for *_, wrong in check_folder(found.folder))

    path = found.folder / "certificates" / files[0].name
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps(content | {"bound": 4.4}).encode()))
    assert ["digest" in wrong for *_, wrong in check_folder(found.folder)].count(True) == 1
    refused = subprocess.run([*command[:2], str(path)], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "refused: it was changed" in refused.stderr


def test_fair_progress_is_that_of_the_share_also_where_fewer_cpus_are_faster() -> None:
    """With one CPU, eight jobs make twice the progress of their shares of three; without prices no less follows."""
    falling = cases.matrix((1.0, 3.0, 6.0), (62.5,), [[2.0], [1.0], [1.5]])
    case = cases.instance([cases.job(id=f"j{i}", sensitivity=falling) for i in range(8)], [cases.servers(1)])
    assert MODELS.get("synergy.ilp1").run(synergy.view(case)).solution.objective == pytest.approx(16.0)
    proof = {"problem": "synergy.ideal", "unit": 1.0, "slot_s": 300.0, "prices": [[0, 0, 0]]}
    _, bound = checker.proved(proof | {"round": [one.id for one in case.jobs]}, plain(case.model_dump(mode="json")))
    assert bound >= 16


def test_a_bound_without_proof_is_the_solvers() -> None:
    found, _ = result("synergy.lp2.min_fragments", "paper/synergy-example")
    assert certify([found.row])[0].bound_by == "certified"
    assert certify([found.row.replace(proved_bound=None)])[0].bound_by == "solver"
