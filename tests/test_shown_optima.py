"""What is called optimal: a bound and an objective that agree, also where a solve may end at a larger gap."""

from __future__ import annotations

import pytest

import schedgap as sg
from schedgap.models import MODELS
from schedgap.models.engine.solve import Solution, SolveOptions

SMALL = "gen/20jobs?jobs=6&servers_per_type=1&slot_s=7200"


@pytest.mark.parametrize(
    ("objective", "bound", "status"),
    [
        *((100.0, 100.0, "optimal"), (100.0, 100.0 + 9e-5, "optimal"), (100.0, 101.0, "gap left")),
        *((-5.0, -5.1, "gap left"), (0.0, 1e-9, "optimal"), (0.0, 0.1, "gap left")),
        *((3.0, None, "optimal"), (None, 3.0, "optimal")),
    ],
)
def test_an_optimum_needs_its_bound(objective: float | None, bound: float | None, status: str) -> None:
    claimed = Solution(status="optimal", termination="", objective=objective, bound=bound)
    assert claimed.as_shown().status == status
    assert Solution(status="feasible", termination="", objective=1.0, bound=2.0).as_shown().status == "feasible"


@pytest.mark.parametrize(
    ("method", "reference"),
    [
        *(("synergy.columns", SMALL), ("synergy.servers", SMALL), ("rigid.search", SMALL), ("hadar.p1", SMALL)),
        *(("zhou.ps.interrupted", SMALL), ("zhou.ps.columns", SMALL), ("admission.columns", SMALL)),
        *(("admission.offline", SMALL), ("hadar.p1?solver=scip", SMALL), ("hadar.p1?solver=cp-sat", SMALL)),
        ("oef.cooperative.first_order", "gen/oef-50?tenants=200"),
    ],
)
def test_no_search_that_may_end_early_calls_its_answer_optimal(method: str, reference: str) -> None:
    """Within a gap of half, some end with a gap, and said that they were optimal (before: five of these methods)."""
    spec = MODELS.get(method)
    solved = spec.run(spec.view(sg.load(reference)), SolveOptions(rel_gap=0.5, time_limit_s=20.0)).solution
    assert solved.gap is not None
    assert (solved.status == "optimal") == (solved.gap <= SolveOptions.rel_gap * (1 + 1e-6))
    assert solved.gap <= 0.5


@pytest.mark.parametrize("method", ["hadar.p2.columns", "zhou.ps.columns", "admission.columns"])
def test_a_bound_takes_little_of_the_gap_that_a_search_may_leave(method: str) -> None:
    """At a gap of 5 %, the first bound is within a tenth of it of the relaxation (before: 1.4 to 3.2 % off)."""
    spec = MODELS.get(method)
    view = spec.view(sg.load("gen/20jobs"))
    exact, rough = (spec.run(view, SolveOptions(rel_gap=gap, nodes=0)).solution.bound for gap in (1e-6, 0.05))
    assert exact is not None
    assert rough == pytest.approx(exact, rel=0.005)
