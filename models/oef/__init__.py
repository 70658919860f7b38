r"""OEF: efficiency with fairness (Mo, Xu, Lau, Middleware 2024), and the fair-share LPs it is compared with.

- :math:`l, i`: tenants.
- :math:`j`: GPU types, from slowest to fastest.
- :math:`w_l^j`: speedup of tenant l on type j, 1 on the slowest.
- :math:`m_j`: devices of type j.
- :math:`\pi_l`: weight of tenant l. The paper replicates tenants instead (§4.2.3,
  :func:`schedgap.instances.views.oef.replicated`), with equal optima.
- :math:`e_l = \sum_j w_l^j m_j \pi_l / \sum_i \pi_i`: efficiency of tenant l with the equal split, by weight.
- ``x`` :math:`x_l^j \ge 0`: devices of type j that tenant l has, fractions allowed.

All programs share the capacity rows:

.. math:: \sum_l x_l^j \le m_j \quad \forall j \tag{4b, 9b, 10b} \label{capacity}

The dual of a capacity row is the price of a type: what one more device of it would add to the objective.

*Ties.* The paper takes any optimum. Where there are several, which differ in what single tenants get, the one of the
largest second objective is returned (:func:`.printed.assortative`): fast types go to large speedups. In (9) everybody's
efficiency is the same in all optima; what a lie is worth to the liar is not, see :func:`.optima.least_over_optima`.

*Slips in the text.* The coefficient 4 after (6) is 5, “8 %” is 7.1 %, 0.0495 is 0.495.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo

from schedgap.instances.parameters import Parameter
from schedgap.instances.views.oef import ALLOCATION, ENVY_FREE, EQUAL, SHARING, View
from schedgap.models.oef.lazy import cooperative
from schedgap.models.oef.printed import (
    build_cooperative,
    build_efficiency,
    build_gavel,
    build_maxmin,
    build_noncooperative,
    build_sharing_incentive,
    decode,
    gavel,
)
from schedgap.models.registry import MODELS, ModelSpec

FULL_LIMIT = 150
"""Tenants up to which the full envy-free LP (n(n−1) rows) runs unasked: about a second."""

PRINTED_LIMIT = 12
"""Tenants up to which (10) is solved as printed, in some milliseconds; lazy rows have the same optimum."""

ENVY_TOLERANCE = 1e-9
"""Envy, relative to what the tenant has from an equal split, below which a row counts as satisfied."""


def _full_is_large(view: View) -> str | None:
    if view.size <= FULL_LIMIT:
        return None
    rows = view.size * (view.size - 1)
    return f"{rows:,} envy rows, more than {FULL_LIMIT} tenants; oef.cooperative solves the same LP by lazy rows"


def _register(name: str, build_model: Callable[[View], pyo.ConcreteModel], source: str, **fields: Any) -> None:
    defaults = {"problem": ALLOCATION.id, "kind": "exact", "method": "simplex", "example": "paper/oef-eq1"}
    MODELS.register(
        ModelSpec(id=f"oef.{name}", paper="oef", build=build_model, decode=decode, source=source, **defaults | fields)
    )


_register("efficiency", build_efficiency, "OEF §2.3.2, eq. (4)")
_register(
    "noncooperative",
    build_noncooperative,
    "OEF §4.2.1, eq. (9)",
    problem=EQUAL.id,
    claims=("equal_efficiency",),
)
_register(
    "sharing_incentive",
    build_sharing_incentive,
    "OEF §3.1, eq. (8), Theorem 3.3",
    problem=SHARING.id,
    claims=("sharing_incentive",),
)
_register(
    "cooperative",
    build_cooperative,
    "OEF §4.2.2, eq. (10), Theorem 5.1; equals merged, lazy rows",
    problem=ENVY_FREE.id,
    claims=("envy_free", "sharing_incentive"),
    procedure=cooperative,
)
_register(
    "cooperative.full",
    build_cooperative,
    "OEF §4.2.2, eq. (10), all n(n−1) rows",
    problem=ENVY_FREE.id,
    claims=("envy_free", "sharing_incentive"),
    too_large=_full_is_large,
)
_register(
    "maxmin",
    build_maxmin,
    "OEF §2.3.3, max-min fairness",
    problem=SHARING.id,
    kind="baseline",
    claims=("sharing_incentive",),
)
_register(
    "gavel",
    build_gavel,
    "OEF §2.4, Gavel in words; Gavel, OSDI 2020, §4.1",
    problem=SHARING.id,
    kind="baseline",
    procedure=gavel,
    claims=("sharing_incentive",),
    parameters=(
        Parameter(
            "row_cap",
            "at most one device per tenant, Σ_j x_l^j ≤ 1, as in Gavel and in the printed allocation (3); with fewer "
            "tenants than devices the others stay idle, and nobody need have an equal split",
            changes={True: {"problem": ALLOCATION.id, "claims": ()}},
        ),
    ),
    variants=("row_cap=true",),
)
