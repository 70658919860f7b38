"""Valid but nasty instances: every method ends in an orderly, verified row, whatever the numbers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.certify import certify
from harness.tasks import Limits, Task, run_task, specs
from instances.canonical import to_json, validate

LIMITS = Limits(time_limit_s=10, all_sizes=True)
RATES = st.one_of(st.sampled_from([1.0, 2.0, 1e-3, 1e3]), st.floats(1e-4, 1e4))


@st.composite
def nasty(draw: Any) -> dict[str, Any]:
    """Few tenants with unordered rates over eight orders of magnitude, odd weights, types with one or many devices."""
    types = [f"T{j}" for j in range(draw(st.integers(1, 4)))]
    n = draw(st.integers(1, 5))
    rates = st.fixed_dictionaries(dict.fromkeys(types, RATES))
    tenants = [
        {
            "id": f"u{i}",
            "weight": draw(st.sampled_from([1.0, 2.0, 0.5, 1e-3, 100.0])),
            "job_types": [
                {"name": f"k{t}", "rates": draw(rates)}
                | ({"reported_rates": draw(rates)} if draw(st.booleans()) else {})
                for t in range(draw(st.integers(1, 2)))
            ],
        }
        for i in range(n)
    ]
    servers = [
        {"name": f"s{r}", "count": draw(st.sampled_from([1, 3, 1000])), "gpu_type": r, "gpus": draw(st.integers(1, 8))}
        for r in types
    ]
    cluster = {"gpu_types": [{"name": r} for r in types], "servers": servers}
    return {"name": "nasty", "cluster": cluster, "tenants": tenants}


@settings(max_examples=25)
@given(nasty())
def test_every_method_ends_in_an_orderly_verified_row(data: dict[str, Any]) -> None:
    instance = validate(data, "nasty")
    text = to_json(instance)
    results = [run_task(Task(text, "nasty", instance.fingerprint, spec.id, 0, LIMITS)) for spec in specs()]
    for row in certify(result.row for result in results):
        assert row.status in {"optimal", "feasible", "skipped"}, (row.method, row.status, row.reason)
        assert row.verified is not False, (row.method, row.violations)
