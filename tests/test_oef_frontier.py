"""The program of constraints of OEF: every point of a curve against a second statement of it, and what is proved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oef_reference import envy_rows, lp, own
from pyomo.environ import Constraint

from schedgap.certificates import REFUSED, certified, check, digest
from schedgap.certificates.fairness import least_envy, least_share
from schedgap.certificates.oef import FAIR
from schedgap.harness.check import judge
from schedgap.instances.arrays import Array
from schedgap.instances.catalogue import load
from schedgap.instances.views.oef import Allocation, OefView, matrix_view, view
from schedgap.models.engine.solve import SolveOptions, build
from schedgap.models.oef import printed
from schedgap.models.oef.fair import FairPoint, curve
from schedgap.models.oef.printed import Constraints

SIMPLEX = SolveOptions(method="simplex")


def drawn(seed: int, n: int = 5, k: int = 3) -> OefView:
    """Return up to `n` tenants on up to `k` types, some of equal speedups, with weights in every other one."""
    rng = np.random.default_rng(seed)
    size, types = int(rng.integers(2, n + 1)), int(rng.integers(2, k + 1))
    speedups = np.cumprod(np.hstack([np.ones((size, 1)), rng.uniform(1, 3, (size, types - 1))]), axis=1)
    speedups[-1] = speedups[rng.integers(size)]
    weight = rng.integers(1, 4, size).astype(float) if seed % 2 else np.ones(size)
    return matrix_view(speedups, rng.integers(1, 6, types), weight)


def reference(v: OefView, required: Constraints) -> float:
    """Return the optimum of the full program by :mod:`scipy`."""
    W, weight = v.speedups, v.weight
    rows, limit = [np.zeros((0, W.size))], [np.zeros(0)]
    if required.epsilon < 1:
        envy = envy_rows(W, weight)  # what is another's has coefficients above 0
        rows.append(np.where(envy > 0, (1 - required.epsilon) * envy, envy))
        limit.append(np.zeros(len(envy)))
    if required.sigma > 0:
        rows.append(-own(W, W.size))
        limit.append(-required.sigma * v.split_efficiency)
    x = lp(W, v.capacity, W.ravel(), (np.vstack(rows), np.concatenate(limit)))
    return float(W.ravel() @ x)


def solved(v: OefView, *points: Constraints) -> list[tuple[FairPoint, float, float]]:
    """Return the points of a curve with their verified totals and certified bounds."""
    found = []
    for point in curve(v, points, SIMPLEX):
        required = {"epsilon": point.required.epsilon, "sigma": point.required.sigma}
        verdict = judge(v.instance, point.allocation, FAIR, **required)
        assert not verdict.violations
        assert verdict.objective is not None
        found.append((point, verdict.objective, certified(point.proof, v.instance.plain, 1)))
    return found


def compared(seed: int) -> None:
    """Compare a curve of a random instance with the reference."""
    rng = np.random.default_rng(seed)
    v = drawn(seed)
    points = [Constraints(*rng.choice([0.0, 0.1, 0.5, 0.9, 1.0, rng.uniform()], 2).tolist()) for _ in range(4)]
    for (_, total, bound), required in zip(solved(v, *points), points, strict=True):
        expected = reference(v, required)
        assert total == pytest.approx(expected, rel=1e-9)
        assert expected <= bound <= expected * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_every_point_is_the_optimum_of_the_full_program(seed: int) -> None:
    compared(seed)


def test_printed_programs_are_special_cases() -> None:
    v = view(load("paper/oef-eq1"))
    cases = {
        printed.build_efficiency: Constraints(),
        printed.build_sharing_incentive: Constraints(sigma=1.0),
        printed.build_noncooperative: Constraints(equal=True),
        printed.build_cooperative: Constraints(epsilon=0.0),
    }
    for builder, required in cases.items():
        one, other = (build(*call) for call in ((builder, v), (printed.build_fair, v, required)))
        stated = [sorted(str(c.expr) for c in m.component_data_objects(Constraint)) for m in (one, other)]
        assert stated[0] == stated[1]


@pytest.mark.parametrize("name", ["epsilon", "sigma"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_requirements_are_parts_of_one(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} = "):
        Constraints(**{name: value})


def test_merged_tenants_and_lazy_rows_have_the_same_curve() -> None:
    v = view(load("gen/oef-20"))
    levels = (0.0, 0.05, 0.3, 0.9)
    for _, total, bound in solved(v, *(Constraints(e) for e in levels)):
        assert total <= bound <= total * (1 + 1e-6)
    for (_, total, _), epsilon in zip(solved(v, *(Constraints(e) for e in levels)), levels, strict=True):
        assert total == pytest.approx(reference(v, Constraints(epsilon)), rel=1e-9)


# ---------------------------------------------------------------- what is proved

INSTANCES = st.builds(drawn, st.integers(0, 10**6))
PARTS = st.floats(0, 1).map(lambda x: round(x, 6))


@given(INSTANCES, PARTS, PARTS, PARTS)
@settings(max_examples=25, deadline=None)
def test_the_total_rises_with_envy_and_falls_with_the_share(v: OefView, one: float, other: float, held: float) -> None:
    low, high = sorted((one, other))
    points = (Constraints(low, held), Constraints(high, held), Constraints(held, low), Constraints(held, high))
    a, b, c, d = (total for _, total, _ in solved(v, *points))
    assert a <= b * (1 + 1e-8)
    assert c >= d * (1 - 1e-8)


@given(INSTANCES, PARTS, PARTS, PARTS, st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_the_total_is_concave_in_the_share(v: OefView, epsilon: float, one: float, other: float, part: float) -> None:
    between = part * one + (1 - part) * other
    a, b, c = (total for _, total, _ in solved(v, *(Constraints(epsilon, s) for s in (one, other, between))))
    assert c >= (part * a + (1 - part) * b) * (1 - 1e-8)


@given(INSTANCES, PARTS)
@settings(max_examples=25, deadline=None)
def test_an_optimum_with_little_envy_has_most_of_the_sharing_incentive(v: OefView, epsilon: float) -> None:
    ((point, alone, _), (_, both, _)) = solved(v, Constraints(epsilon), Constraints(epsilon, 1 - epsilon))
    assert both == pytest.approx(alone, rel=1e-8)
    assert least_share(v, point.allocation.devices) >= (1 - epsilon) * (1 - 1e-7)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_in_envy_the_curve_is_convex_and_then_constant(n: int) -> None:
    speedups = np.ones((n, 2))
    speedups[0, 1] = n**2
    v, levels = matrix_view(speedups, (1, 1)), np.linspace(0, 1, 9)
    for (_, total, _), epsilon in zip(solved(v, *map(Constraints, levels.tolist())), levels, strict=True):
        held = min(1.0, 2 / (1 + (n - 1) * (1 - epsilon)))
        assert total == pytest.approx((n**2 - 1) * held + 2, rel=1e-9)


# ---------------------------------------------------------------- certificates and measures


def proof_of(v: OefView, required: Constraints) -> dict[str, object]:
    """Return a finished certificate."""
    ((point, _, bound),) = solved(v, required)
    content = {"instance": v.instance.fingerprint, "method": "curve", **point.proof, "bound": bound}
    return content | {"digest": digest(content, set())}


def test_a_certificate_is_about_its_own_degree_of_fairness() -> None:
    v = view(load("paper/oef-eq1"))
    content = proof_of(v, Constraints(0.25, 0.5))
    assert check(content, v.instance.plain) <= Fraction(content["bound"])  # type: ignore[arg-type]
    for changed in (
        {"epsilon": 0.26},
        {"sigma": 0.51},
        {"epsilon": -0.25},
        {"sigma": 1.5},
        {"bound": content["bound"] * (1 - 1e-6)},  # type: ignore[operator]
        {"envy": [[0, 1, -1]]},
        {"tenants": [-1, 0, 0]},
        {"problem": "oef.envy_free"},
    ):
        other = content | changed
        with pytest.raises(REFUSED):
            check(other, v.instance.plain)
    for changed in ({"bound": content["bound"] * (1 - 1e-6)}, {"epsilon": -0.25}, {"sigma": 1.5}):  # type: ignore[operator]
        other = content | changed
        with pytest.raises(REFUSED):
            check(other | {"digest": digest(other, {"digest"})}, v.instance.plain)
    stricter = content | {"epsilon": 0.3}
    with pytest.raises(REFUSED, match="only"):
        check(stricter | {"digest": digest(stricter, {"digest"})}, v.instance.plain)


def test_the_checker_asks_for_exactly_what_is_required() -> None:
    v = view(load("paper/oef-eq1"))
    ((point, _, _),) = solved(v, Constraints(0.1, 0.5))
    assert not judge(v.instance, point.allocation, FAIR, epsilon=0.1, sigma=0.5).violations
    assert judge(v.instance, point.allocation, FAIR, epsilon=0.099, sigma=0.5).violations
    assert judge(v.instance, point.allocation, FAIR, epsilon=0.1, sigma=1.0).violations
    assert not judge(v.instance, point.allocation, FAIR).violations


def brute(v: OefView, x: Array) -> tuple[float, float]:
    """Return the least ε and the largest σ of an allocation, pair by pair."""
    worth = [[float(v.speedups[l] @ x[i]) / v.weight[i] for i in range(v.size)] for l in range(v.size)]
    parts = [1 - worth[l][l] / worth[l][i] for l in range(v.size) for i in range(v.size) if worth[l][i] > 0]
    return max(parts), min(worth[l][l] * v.weight[l] / v.split_efficiency[l] for l in range(v.size))


@pytest.mark.parametrize("seed", range(10))
def test_the_degree_of_fairness_of_an_allocation(seed: int) -> None:
    v = drawn(seed)
    x = np.random.default_rng(seed).dirichlet(np.ones(v.size), v.capacity.size).T * v.capacity
    epsilon, sigma = brute(v, x)
    assert least_envy(v, x) == pytest.approx(epsilon, abs=1e-12)
    assert least_share(v, x) == pytest.approx(sigma)
    assert not judge(v.instance, Allocation(x), FAIR, epsilon=epsilon, sigma=min(sigma, 1.0)).violations


def test_who_has_nothing_envies_completely_unless_nobody_has_anything() -> None:
    v = view(load("paper/oef-eq1"))
    assert least_envy(v, np.zeros_like(v.speedups)) == 0
    assert least_envy(v, np.vstack([v.capacity, np.zeros((2, v.capacity.size))])) == 1
