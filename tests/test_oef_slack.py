"""OEF's checker allows decisions to miss requirements slightly, and bounds allow for that.

Programs whose numbers are far apart are solved exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from oef_reference import envy_rows, lp, own

from schedgap.certificates.fairness import TOLERANCE
from schedgap.certificates.rules import rule_of
from schedgap.harness.check import judge
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.arrays import Array
from schedgap.instances.canonical import validate
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, OefView, matrix_view
from schedgap.models import MODELS
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers import PROVERS

MISSED = 0.9 * TOLERANCE


def greedy(problem: str, view: OefView) -> Array:
    """Return the largest total if devices, equal splits, envy and levels may be missed by :data:`MISSED`."""
    W, weight, more = view.speedups, view.weight, view.capacity * (1 + MISSED)
    split, rows, bound, columns = view.split_efficiency, np.zeros((0, W.size)), np.zeros(0), W.size
    if problem == "oef.sharing_incentive":
        rows, bound = -own(W, W.size), -split * (1 - MISSED)
    elif problem == "oef.envy_free":
        rows, bound = envy_rows(W, weight), np.repeat(split / weight, view.size - 1) * MISSED
    elif problem == "oef.equal_efficiency":
        columns = W.size + 1
        low, high = -own(W, columns), own(W, columns)
        low[:, -1], high[:, -1] = weight * (1 - MISSED), -weight
        rows, bound = np.vstack([low, high]), np.zeros(2 * view.size)
    x = lp(W, more, np.append(W.ravel(), 0.0)[:columns], (rows, bound))[: W.size].reshape(W.shape)
    return np.maximum(x, 0.0) * np.minimum(1.0, more / np.maximum(x.sum(axis=0), 1e-300))


MODEL = {
    "oef.allocation": "oef.efficiency",
    "oef.equal_efficiency": "oef.noncooperative",
    "oef.sharing_incentive": "oef.sharing_incentive",
    "oef.envy_free": "oef.cooperative",
}


@pytest.mark.parametrize("problem", MODEL)
@pytest.mark.parametrize("far", [0.3, 2.0])
def test_a_decision_that_misses_all_by_what_the_checker_accepts_is_within_every_bound(problem: str, far: float) -> None:
    accepted, options = 0, SolveOptions()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        speedups = np.hstack([np.ones((4, 1)), np.exp(rng.uniform(0, far, (4, 2))).cumprod(axis=1)])
        view = matrix_view(speedups, rng.integers(1, 9, 3), np.exp(rng.uniform(-far, far, 4)))
        taken = judge(view.instance, Allocation(greedy(problem, view)), problem)
        content = PROVERS.get(problem).prove(view, MODELS.get(MODEL[problem]).run(view, options), options)
        assert content is not None
        assert taken.objective is not None
        proof = content | {"problem": problem}
        _, bound = rule_of(proof).bound(view.instance.plain, proof)
        exact = MODELS.get(MODEL[problem]).run(view, options).solution.objective
        assert exact is not None
        accepted += not taken.violations
        assert taken.violations or exact * (1 + MISSED / 2) < taken.objective <= bound
        assert bound <= exact * (1 + far * 1e-6)
    assert accepted >= 10


APART = {
    # HiGHS gave up the first refinement; its answer used 12 devices of a type that has 2.
    "oef.sharing_incentive": (
        (2, 300_000, 2_000),
        {
            0.042082500706275984: [[49.79971063678556, 0.30131605488587526, 0.042197271379322956]],
            5.223986294529071e-05: [[0.001238152982015487, 31.209518507466196, 173.2896269310074]],
            0.007595094825399199: [
                [0.0016108176364059792, 2.9999999997, 94.46530447652563],
                [0.1359150814548812, 15.31671715369866, 1.0000000001],
            ],
        },
    ),
    # HiGHS gave up the second program at the basis of the first.
    "oef.gavel?row_cap=true": (
        (7_000, 500_000),
        {
            1.376632112531532: [[1.0, 2.0000000002], [1.500000015, 1.0]],
            7.750467826418276: [[2.0, 1.9999999998], [1.0, 1.0]],
            1.8883494217343306: [[1.0, 1.00000001], [1.0, 1.0]],
        },
    ),
}
"""Programs that HiGHS gives up: devices by type, and rates of job types by the tenant's weight."""


@pytest.mark.parametrize("method", APART)
def test_a_program_is_solved_again_without_the_basis_at_which_highs_gives_up(method: str) -> None:
    devices, tenants = APART[method]
    (row,) = compare_here(shared(devices, tenants), [method]).rows
    assert (row.status, row.violations) == ("feasible" if row.kind == "baseline" else "optimal", ())


def test_an_optimum_that_depends_on_the_ninth_digit_of_a_split_is_not_refuted_by_a_decision_that_misses_it() -> None:
    """A certified optimum is not refuted by a decision that misses the equal split by 2e-9 and gains 7.6e-6.

    One tenant has nearly all weight, and the decision has whole devices.
    """
    rates = {1e-06: [[176.92216319054938, 2.00000002]], 0.8551738886700935: [[8.076765011580596, 311.5617471282185]]}
    rows = {row.method: row for row in compare_here(shared((400_000, 2_000), rates), ["oef.*"]).rows}
    row, whole = rows["oef.sharing_incentive"], rows["oef.rounding"]
    assert (row.status, row.violations, row.unproved) == ("optimal", (), True)
    assert row.own_bound is not None
    assert row.objective is not None
    assert whole.objective is not None
    assert row.objective * (1 + 7e-6) < whole.objective < row.own_bound < row.objective * (1 + 2e-4)


def shared(devices: Sequence[int], tenants: Mapping[float, Sequence[Sequence[float]]]) -> Instance:
    types = [f"T{j}" for j in range(len(devices))]
    shown = [
        {
            "id": f"u{l}",
            "weight": weight,
            "job_types": [{"name": f"k{t}", "rates": dict(zip(types, r, strict=True))} for t, r in enumerate(rates)],
        }
        for l, (weight, rates) in enumerate(tenants.items())
    ]
    groups = [{"name": r, "gpu_type": r, "gpus": 1, "count": n} for r, n in zip(types, devices, strict=True)]
    cluster = {"gpu_types": [{"name": r} for r in types], "servers": groups}
    return validate({"name": "apart", "cluster": cluster, "tenants": shown}, "apart")
