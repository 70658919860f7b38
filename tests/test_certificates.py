"""Certificates: a checker that shares no code with the models accepts every bound, and refuses changed certificates."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synergy_cases as cases
import zhou_cases
from certified import EXAMPLES, checker, plain, signed, spoiled
from conftest import THOROUGH

from schedgap import instances
from schedgap.certificates.hadar import GpuOffer
from schedgap.harness.engine.certificates import checked, export, read
from schedgap.harness.engine.result import packed
from schedgap.harness.engine.sealed import KeptFile, digest
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.page import blocks
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.run import certify, compare, read_run
from schedgap.harness.studies.compare.task import MethodResult, MethodTask, _decision
from schedgap.harness.studies.folders import check as check_folder
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import UsageError
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.views import synergy, zhou
from schedgap.models import MODELS
from schedgap.models.provers import PROVERS

DAY = "gen/20jobs?jobs=10&servers_per_type=1&slot_s=7200"
SMALL = {
    "hadar": ("paper/hadar-fig1", DAY),
    "gavel": ("gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600", DAY),
    "admission": ("paper/walkthrough", DAY),
    "oef": ("paper/oef-eq1", DAY),
    "synergy": ("paper/synergy-example", DAY),
    "rigid": (DAY, "paper/rigid-hpc"),
    "zhou": ("gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600", DAY),
}
"""The small instance of each paper, with the settings of its horizon."""

METHODS = (
    *("admission.columns", "gavel.makespan_fluid", "gavel.makespan_copies"),
    *("gavel.jct", "gavel.jct_copies", "gavel.jct_p99", "gavel.jct_p99_copies"),
    *("hadar.fluid", "hadar.fluid.complete", "hadar.fluid.forked"),
    *("hadar.p2.columns", "hadar.p2.columns.complete", "hadar.forked_bound"),
    *("oef.efficiency", "oef.noncooperative", "oef.sharing_incentive", "oef.cooperative"),
    *("rigid.bound?objective=weighted", "rigid.intervals", "rigid.starts"),
    *("synergy.hetero.lp1", "synergy.lp1.free", "synergy.lp1.queue"),
    *("synergy.jct", "synergy.jct_p99", "synergy.makespan_fluid", "synergy.servers", "synergy.servers.queue"),
    *("synergy.jct_intervals", "synergy.columns"),
    *("zhou.ps.fluid", "zhou.ra.fluid", "zhou.ps.intervals", "zhou.ra.intervals", "zhou.ps.columns", "zhou.ra.columns"),
    *("zhou.ps.columns.maxweight", "zhou.ra.columns.maxweight", "zhou.ps.mincost", "zhou.ra.mincost"),
)
"""Methods whose bounds use every part of their certificates on the small instance: no part may be changed."""

CASES = [
    (spec.id, spec.example if spec.example.startswith(f"{ref}?") else ref)  # its own, of fewer slots
    for spec in MODELS
    if spec.kind != "baseline"
    for ref in SMALL.get(spec.paper, ())
    if THOROUGH or ref != DAY or spec.id in METHODS
]
# With scarce capacity, bounds on completion times come from mean busy times.
CASES.append(("zhou.ra.fluid", "gen/zhou-ra?capacity=0.2"))

CROWDED = "gen/20jobs"
IN_A_CROWD = (
    *("zhou.ps.columns.maxweight", "zhou.ra.columns.maxweight", "gavel.jct", "zhou.ps.intervals", "zhou.ra.intervals"),
    *("gavel.jct_p99", "gavel.jct_p99_copies", "synergy.jct_intervals", "synergy.columns"),
    *("hadar.fluid", "hadar.fluid.complete", "hadar.fluid.forked"),
    *("rigid.bound?objective=weighted", "rigid.intervals", "rigid.starts"),
)
"""Methods whose bounds depend on capacity only with more jobs, and an instance that has enough jobs."""

FINER = "gen/20jobs?jobs=10&servers_per_type=1&slot_s=3600"
IN_SHORTER_SLOTS = "hadar.forked_bound", "zhou.ra.columns"
"""Methods whose bounds use every part of their certificates only in shorter slots, and an instance with those."""


SHORT = Limits(nodes=1)


@cache
def result(method: str, ref: str, limits: Limits = SHORT) -> tuple[MethodResult, dict[str, Any]]:
    """Run a method on an instance; return its result, and the instance as plain data."""
    instance = instances.load(ref)
    text = to_json(instance)
    task = MethodTask(*sent(instance), method, limits=limits)
    return task.run(), json.loads(text)


@pytest.mark.parametrize(("method", "ref"), CASES)
def test_the_checker_accepts_every_certificate(method: str, ref: str) -> None:
    found, instance = result(method, ref)
    row = found.row
    if row.claimed_bound is None:
        pytest.skip(f"no bound: {row.reason or row.status}")
    assert row.problem in PROVERS.ids()
    sense, value = checker.proved(plain(found.certificate), instance)
    assert found.certificate["bound"] == row.own_bound == pytest.approx(float(value), rel=1e-15)
    assert sense * (Fraction(row.own_bound) - value) >= 0
    assert checker.check(plain(found.certificate), instance) == value
    if row.kind in {"relaxation", "bound"}:
        assert not row.unproved, f"{row.own_bound} does not prove {row.claimed_bound}"
    loss = sense * (row.own_bound - row.claimed_bound) / max(abs(row.claimed_bound), 1e-9)
    assert loss <= LOST or method in BY_INTEGERS, f"{row.own_bound} instead of {row.claimed_bound}: {loss:.2g} is lost"


LOST = 1e-6
"""Largest relative difference between the bound that a rule derives and the one that the solver claims."""

BY_INTEGERS = (
    *("admission.offline", "admission.offline.from_arrival", "zhou.ps.schedules", "zhou.ra.schedules"),
    *("hadar.p1", "hadar.p1.complete", "hadar.p1.per_server", "hadar.p2.enumerated", "hadar.p2.enumerated.complete"),
    *("zhou.ps.maxweight", "zhou.ra.maxweight", "synergy.ilp1", "synergy.hetero.ilp1", "synergy.ilp1.unpruned"),
)
"""Whole integer programs, which HiGHS solves; their trees are in no certificate, and prices prove their relaxation."""


def test_the_page_counts_the_programs_that_may_lose_more() -> None:
    page = " ".join((Path(__file__).parents[1] / "docs" / "experiments.md").read_text().split())
    assert f"holds all methods to {LOST:.0e}".replace("e-0", "e-") in page
    assert f"except {len(BY_INTEGERS)} whole integer programs" in page


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
    found = MethodTask(*sent(instance), method, limits=SHORT).run()
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
    """Make the instance easier, so that its bound no longer holds: add servers, or halve the jobs' work.

    Work is halved for minimisation, where prices of capacity may all be 0.
    """
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
    found, kept = result(method, CROWDED if method in IN_A_CROWD else FINER if method in IN_SHORTER_SLOTS else DAY)
    instance = plain(kept)
    proof = change(plain(found.certificate), instance, 1 if found.row.sense == "max" else -1)
    with pytest.raises(checker.RefusedError, match=r"digest|another instance"):
        checker.check(proof, instance)
    # An easier instance asks for another time or other jobs, or has room for more than a cut allows.
    asked = r"slots do not end with τ|another round|fit beyond its limit"
    with pytest.raises(checker.RefusedError, match=rf"only .* follows|multipliers are 0|may complete within|{asked}"):
        checker.check(signed(proof, instance), instance)


@pytest.mark.parametrize("complete", ["", ".complete"])
@pytest.mark.parametrize("limit", ["MANY", "JOBS"])
def test_a_bound_over_periods_in_place_of_slots_is_proved(
    complete: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"schedgap.models.hadar.columns.{limit}", 10)
    monkeypatch.setattr("schedgap.models.engine.gangs.periods.SAMPLE", 3)
    monkeypatch.setattr("schedgap.models.hadar.columns.FEW", 3)
    monkeypatch.setattr("schedgap.models.engine.gangs.pricing.FINE", 100)
    monkeypatch.setattr("schedgap.models.engine.gangs.pricing.COARSE", 10)
    # The search ends at this gap; jobs are priced closely only if the master is solved before that.
    found, instance = result.__wrapped__(f"hadar.p2.columns{complete}", CROWDED, Limits(nodes=100, rel_gap=0.1))
    proof = plain(found.certificate)
    value, everybody = checker.check(proof, instance), list(range(len(instance["jobs"])))
    assert found.row.verified
    assert value >= found.row.objective > 0.5 * float(value)
    assert proof["divisible"]
    all_, none = (checker.proved(proof | {"divisible": which}, instance)[1] for which in (everybody, []))
    assert all_ >= value >= none
    assert all_ > none


CUT = (
    ("admission.columns", "gen/20jobs?jobs=30"),
    ("zhou.ps.columns", "gen/zhou-ps?jobs=3&servers=2&seed=4"),
)
"""Instances whose bounds need cuts: of what one class has, and of what all classes have together."""


@pytest.mark.parametrize(("method", "ref"), CUT)
def test_cuts_of_runs_are_checked(method: str, ref: str) -> None:
    """The bound needs its cuts, and the checker refuses cuts whose weights fit beyond the limit, or fall."""
    found, instance = result(method, ref)
    proof = plain(found.certificate)
    (row, limit, which), *others = proof["cuts"]
    weights, jobs = proof["weights"][which][0]
    heavy = [[[2 * limit] * len(weights), jobs], *proof["weights"][which][1:]]
    falling = [[[*weights, 0], jobs], *proof["weights"][which][1:]]
    for reason, changed in {
        "beyond its limit": {"cuts": [[row, limit - 1, which], *others]},
        "beyond": {"weights": [heavy if i == which else one for i, one in enumerate(proof["weights"])]},
        "fall with the use": {"weights": [falling if i == which else one for i, one in enumerate(proof["weights"])]},
        "has no weights": {"cuts": [[row, limit, len(proof["weights"])], *others]},
        "belongs to no row": {"cuts": [[10**7, limit, which], *others]},
        "only .* follows": {"weights": [[] for _ in proof["weights"]]},
    }.items():
        with pytest.raises(checker.RefusedError, match=reason):
            checker.check(signed(proof | changed, instance), instance)


def test_units_of_workers_are_counted_from_the_instance() -> None:
    """The checker counts whole units itself: a unit that no worker takes as often proves less."""
    found, instance = result("zhou.ps.columns", "gen/zhou-ps?jobs=3&servers=2&seed=4")
    proof = plain(found.certificate)
    assert proof["units"] == [[2, 30.5]]
    for units in ([[2, 30.6]], [[4, 30.5]], [], [[2, -30.5]], [[2, 0.0]]):
        with pytest.raises(checker.RefusedError):
            checker.check(signed(proof | {"units": units}, instance), instance)


def test_fragments_follow_from_worths_prices_and_what_jobs_hold() -> None:
    """The bound of 9 split jobs follows from the certificate's values, prices and amounts; each part is needed.

    Of the 34 jobs, 5 are split where GPUs and CPUs are full to the last, 2 because of whole CPUs, and 2 have 8 GPUs.
    """
    found, instance = result("synergy.lp2.min_fragments", "gen/200jobs")
    proof = plain(found.certificate)
    assert not found.row.unproved
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
        with pytest.raises((checker.RefusedError, ValueError), match=r"only .* follows|fair progress|another round"):
            checker.check(signed(changed, instance), instance)
    instance["jobs"] = [job for job in instance["jobs"] if job["id"] in proof["round"]]
    assert checker.check(signed(proof, instance), instance) == 9
    for group in instance["cluster"]["servers"]:
        group["count"] += 1
    with pytest.raises(checker.RefusedError, match="only 3 follows"):
        checker.check(signed(proof, instance), instance)


@pytest.mark.parametrize("worth", [None, 3.5])
@pytest.mark.parametrize("method", ["zhou.ps.mincost", "zhou.ra.mincost"])
def test_prices_are_those_that_an_instance_has(method: str, worth: float | None) -> None:
    """A certificate with a higher base of prices than the instance implies is refused.

    The base F is the largest weight per consumption, unless the instance states it.
    """
    few = f"gen/zhou-{method[5:7]}?jobs=4&servers=6&capacity=2&due_slot=300&unit_worth={worth}"
    found, instance = result(method, few if worth else DAY)
    proof = plain(found.certificate)
    with pytest.raises(checker.RefusedError, match="prices are higher"):
        checker.check(signed(proof | {"base": proof["base"] * 1.01}, instance), instance)


def test_a_results_folder_has_certificates_that_the_script_and_verify_read(tmp_path: Path) -> None:
    found = compare("paper/oef-eq1", ["oef.efficiency", "oef.cooperative", "oef.gavel"], results=tmp_path, jobs=1)
    assert found.folder is not None
    assert [row.unproved for row in found.rows] == [False] * 3
    export(found.folder, tmp_path / "mine")
    files = sorted((tmp_path / "mine" / "certificates").iterdir())
    assert len(files) == 2
    command = [sys.executable, str(EXAMPLES / "check_certificate.py"), *map(str, files)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "bound 4.500000101 holds (oef.envy_free)" in told  # 4.5, and what checkers let decisions miss
    again = read_run(found.folder)
    assert [row.own_bound for row in again.rows] == [row.own_bound for row in found.rows]
    assert not any(wrong for *_, wrong in check_folder(found.folder))

    path = found.folder / "certificates" / files[0].name
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps(content | {"bound": 4.4}).encode()))
    assert ["digest" in wrong for *_, wrong in check_folder(found.folder)].count(True) == 1
    refused = subprocess.run([*command[:2], str(path)], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "refused: it was changed" in refused.stderr
    path.write_bytes(gzip.compress(b"[" * 10**5))
    refused = subprocess.run([*command[:2], str(path)], capture_output=True, text=True, check=False)
    assert refused.stderr == f"{path.name}: refused: its JSON is nested too deeply\n"


def test_fair_progress_is_that_of_the_share_also_where_fewer_cpus_are_faster() -> None:
    """Without prices, the certified bound is at least what jobs reach with fewer CPUs than their shares.

    With one CPU each, the eight jobs make twice the progress of their shares of three CPUs.
    """
    falling = cases.matrix((1.0, 3.0, 6.0), (62.5,), [[2.0], [1.0], [1.5]])
    case = cases.instance([cases.job(id=f"j{i}", sensitivity=falling) for i in range(8)], [cases.servers(1)])
    assert MODELS.get("synergy.ilp1").run(synergy.view(case)).solution.objective == pytest.approx(16.0)
    proof = {"problem": "synergy.ideal", "unit": 1.0, "slot_s": 300.0, "prices": [[0, 0, 0]]}
    _, bound = checker.proved(proof | {"round": [one.id for one in case.jobs]}, case.plain)
    assert bound >= 16


def test_a_bound_without_proof_is_a_claim_beside_the_gap_to_a_certified_one() -> None:
    found, _ = result("synergy.lp2.min_fragments", "paper/synergy-example")
    (row,) = certify([found.row])
    assert (row.unproved, row.claim) == (False, None)
    (alone,) = certify([found.row.replace(own_bound=None)])
    assert (alone.gap, alone.best_bound, alone.claim) == (None, None, "HiGHS calls this optimal")
    (row,) = certify([found.row.replace(own_bound=0.0, objective=1.0, claimed_bound=1.0)])
    assert (row.gap, row.ratio_is_upper, row.unproved) == (float("inf"), True, True)
    case = instances.load("paper/synergy-example")
    shown = blocks(Comparison({"limits": {}}, [row], {case.fingerprint: case}))
    assert "HiGHS calls this optimal; certified: " in repr(shown)
    assert "claimed_bound" in [column.key for block in shown for column in getattr(block, "columns", ())]


def plain_case(jobs: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    """Return an instance as plain data with one GPU each of types A and B, and slots of a second."""
    hosts = [{"name": r, "gpu_type": r, "count": 1, "gpus": 1, "cpus": 8.0, "memory_gb": 8.0} for r in "AB"]
    cluster = {"gpu_types": [{"name": r} for r in "AB"], "servers": hosts}
    return {"cluster": cluster, "jobs": jobs, "horizon": {"slot_s": 1.0, "slots": 100}, **parts}


def test_copies_that_run_side_by_side_are_not_counted_one_after_the_other() -> None:
    """A job's copies on two GPU types need a multiplier for each type.

    Ten seconds of work on either GPU take five on both; a single multiplier would claim a bound of ten.
    """
    instance = plain_case([{"id": "a", "gpus": 1, "epochs": 10, "rates": {"A": 1.0, "B": 1.0}}])
    proof = {"problem": "gavel.makespan_copies", "slot_s": 1.0, "prices": [0, 0]}
    assert float(checker.proved(proof | {"jobs": [[1, 1]]}, instance)[1]) == pytest.approx(5.0)
    for own in (1, [1]):
        with pytest.raises(checker.RefusedError, match="multiplier each"):
            checker.proved(proof | {"jobs": [own]}, instance)


@pytest.mark.parametrize("problem", ["synergy.free", "synergy.ideal", "synergy.oracle"])
def test_prices_are_positive_and_jobs_are_there_once(problem: str) -> None:
    """Negative prices or units, and jobs listed twice, are refused; either could claim a bound that is wrong."""
    one = {"id": "a", "gpus": 1, "epochs": 9, "rates": {"A": 1.0}}
    instance = plain_case([one | {"sensitivity": plain(cases.matrix((1.0,), (1.0,), [[1.0]]))}])
    proof = {"problem": problem, "slot_s": 1.0, "prices": [[1, 0, 0], [0, 0, 0]], "round": ["a"]}
    assert checker.proved(proof | {"unit": 1.0}, instance)[1] >= 1
    with pytest.raises(checker.RefusedError, match="unit"):
        checker.proved(proof | {"unit": -1.0}, instance)
    with pytest.raises(checker.RefusedError, match="another round"):
        checker.proved(proof | {"unit": 1.0, "round": ["a", "a"]}, instance)


def test_a_certificate_of_the_queue_is_about_all_jobs_that_can_run() -> None:
    """Its bound counts every job that can ever run, and no other; no list of jobs can make it smaller."""
    one = {"id": "a", "gpus": 1, "epochs": 9, "rates": {"A": 1.0}}
    one |= {"sensitivity": plain(cases.matrix((1.0,), (1.0,), [[1.0]]))}
    instance = plain_case([one, one | {"id": "b"}, one | {"id": "too large", "gpus": 2}])
    proof = {"problem": "synergy.queue", "slot_s": 1.0, "unit": 1.0, "prices": [[0, 0, 0], [0, 0, 0]]}
    assert checker.proved(proof, instance)[1] == 2
    for wrong, reason in (({"round": ["a"]}, "has no"), ({"prices": [[-1, 0, 0], [0, 0, 0]]}, "negative")):
        with pytest.raises(checker.RefusedError, match=reason):
            checker.proved(proof | wrong, instance)


def sharing(*rates: tuple[float, float]) -> dict[str, Any]:
    kinds = [{"name": "m", "rates": dict(zip("AB", row, strict=True))} for row in rates]
    return plain_case([], tenants=[{"id": f"t{i}", "job_types": [kind]} for i, kind in enumerate(kinds)])


def test_multipliers_of_tenants_are_exact_whatever_numbers_they_are() -> None:
    """Bounds from tenants' multipliers are computed exactly, also for huge numbers.

    As floats, huge multipliers would be equal, and would claim a bound of 0 where 2 is right.
    """
    proof = {"problem": "oef.equal_efficiency", "unit": 1.0}
    for tenants in ([1e308, -0.5], [-1e308, 0.25]):
        # Levels may differ slightly; times such multipliers, this slack exceeds any bound.
        with pytest.raises(checker.RefusedError, match="too large to bound anything"):
            checker.proved(proof | {"tenants": tenants}, sharing((1.0, 1.0), (1.0, 1.5)))
    for tenants in ([1e6, -0.5], [-1e6, 0.25], [1e17, 1e17 - 16.0]):
        assert checker.proved(proof | {"tenants": tenants}, sharing((1.0, 1.0), (1.0, 1.5)))[1] >= 2
    with pytest.raises(checker.RefusedError, match="unit"):
        checker.proved({"problem": "oef.envy_free", "unit": -1.0, "envy": [[1, 0, 1]]}, sharing((1.0, 2.0), (1.0, 5.0)))


def test_prices_that_only_rounding_makes_parts_of_a_whole_are_refused() -> None:
    jobs = [{"id": "a", "gpus": 1, "epochs": 10, "rates": {"A": 1.0, "B": 1.0}}]
    proof = {"problem": "gavel.makespan", "slot_s": 1.0, "prices": [5e-324, 0], "jobs": [0]}
    with pytest.raises(checker.RefusedError, match="multipliers are 0"):
        checker.proved(proof, plain_case(jobs))


def test_prices_where_no_parameter_server_fits_prove_nothing() -> None:
    """Huge prices on a server without memory for a PS do not lower the bound through an overflow."""
    hosts = [zhou_cases.servers(1, 1), zhou_cases.servers(1, 1, memory_gb=0.0)]
    kinds = [zhou_cases.worker(memory_gb=0.0)], [zhou_cases.ps(memory_gb=2.0)]
    one = zhou_cases.instance([zhou_cases.job(1, weight=7.0)], hosts, *kinds)
    slots = zhou.view(one).architectures["ps"].deadline - 1
    prices = [0] * 6 * slots + [2**62 + 2**56] * slots + [0] * slots
    proof = {"problem": "zhou.ps.weight", "slot_s": 1.0, "slots": slots, "unit": 2.0**-40, "prices": [prices]}
    assert float(checker.proved(proof, json.loads(to_json(one)))[1]) == pytest.approx(7.0)


@pytest.mark.parametrize("seed", range(60))
def test_whole_gpus_cost_what_the_best_of_all_numbers_costs(seed: int) -> None:
    """A job buys the cheapest numbers of GPUs of up to four classes, two of which may be equally fast."""
    rng = np.random.default_rng(seed)
    classes, slots = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    pace, room = rng.integers(1, 6, classes) / 4, rng.integers(0, 4, (classes, slots))
    offer = GpuOffer(rng.integers(0, 9, (classes, slots)).astype(float), room, pace)
    need = float(rng.random() * (room * pace[:, None]).sum() * 1.1)
    numbers = np.indices(tuple(room.ravel() + 1)).reshape(room.size, -1)
    enough = np.repeat(pace, slots) @ numbers >= need * (1 - 1e-12)
    costs = (offer.price.ravel() @ numbers)[enough]
    assert offer.whole(need) == pytest.approx(costs.min(initial=1e300))


def test_prices_that_overflow_make_no_rest_free() -> None:
    found, instance = result("synergy.lp2.min_fragments", "paper/synergy-example")
    proof = plain(found.certificate)
    huge = {"unit": 1.0, "worth": [1e6] * len(proof["worth"]), "prices": [[[1e308] * 3] for _ in proof["prices"]]}
    with pytest.raises(checker.RefusedError, match="too large"):
        checker.proved(proof | huge, instance)


def test_slots_that_take_too_much_memory_are_refused() -> None:
    found, instance = result("zhou.ps.columns", "gen/20jobs?jobs=3")
    proof = signed(plain(found.certificate) | {"slots": 10**13}, instance)
    with pytest.raises(ValueError, match="does not hold"):
        checked(proof, instances.load("gen/20jobs?jobs=3"))


@pytest.mark.parametrize("method", ["zhou.ps.columns.maxweight", "zhou.ps.mincost"])
def test_slots_up_to_a_due_slot_are_those_of_the_instance(method: str) -> None:
    found, instance = result(method, "gen/zhou-ps?jobs=4&servers=6&capacity=2&due_slot=300")
    proof = plain(found.certificate)
    checker.check(proof, instance)
    for change in ({"slots": proof["slots"] - 1}, {"slot_s": proof["slot_s"] / 2}):
        with pytest.raises(checker.RefusedError, match="slots"):
            checker.check(signed(proof | change, instance), instance)


def kept(folder: Path, content: Any) -> KeptFile:
    """Write a file with this content, and return it with the right digest."""
    data = packed(content)
    (folder / "forged.json.gz").write_bytes(data)
    return KeptFile(folder, "forged.json.gz", digest(data))


@pytest.mark.parametrize("part", [{"window": "0:1"}, {"round_s": 60.0}])
def test_a_certificate_of_some_jobs_or_other_rounds_is_not_that_of_a_row(part: dict[str, Any], tmp_path: Path) -> None:
    found, instance = result("hadar.p2.columns", DAY)
    row, proof = found.row, plain(found.certificate)
    assert read(kept(tmp_path, proof), row.about, row.own_bound) == proof
    with pytest.raises(UsageError, match="another bound"):
        read(kept(tmp_path, signed(proof | part, instance)), row.about, row.own_bound)


@pytest.mark.parametrize(
    ("method", "part", "change", "reason"),
    [
        ("zhou.ps.mincost", "slots", lambda slots: slots - 1, "slots do not end with τ"),
        ("zhou.ra.columns.maxweight", "slots", lambda slots: 0, "slots do not end with τ"),
        ("synergy.lp1.free", "round", lambda jobs: jobs[1:], "another round"),
        ("zhou.ps.columns", "slot_s", lambda slot_s: slot_s / 2, "slots are not the problem's"),
        ("hadar.p2.columns", "slots", lambda slots: slots + 1, "slots are not the instance's own"),
    ],
)
def test_slots_and_rounds_are_those_of_the_instance(
    method: str, part: str, change: Callable[[Any], Any], reason: str
) -> None:
    found, instance = result(method, DAY)
    mine = replace(found, instance=instances.load(DAY))
    assert "holds" in mine.holds()
    proof = plain(found.certificate)
    with pytest.raises(ValueError, match=reason):
        replace(mine, certificate=signed(proof | {part: change(proof[part])}, instance)).holds()


def test_a_decision_that_breaks_a_rule_is_refused_though_it_reaches_its_objective(tmp_path: Path) -> None:
    found, _ = result("hadar.p2.columns", DAY)
    assert found.row.verified
    fields = {name: np.append(column, column[:1]) for name, column in vars(found.decision).items()}
    with pytest.raises(UsageError, match="occurs twice"):
        _decision(kept(tmp_path, replace(found.decision, **fields)), found.row, instances.load(DAY))
