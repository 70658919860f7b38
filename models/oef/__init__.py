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

.. math:: \sum_l x_l^j \le m_j \quad \forall j \tag{4, 9b, 10b} \label{capacity}

The dual of a capacity row is the price of a type: one more device of it adds at most that much to the objective.

*Ties.* The paper takes any optimum. If several optima differ in the allocations of single tenants, the one with the
largest second objective is returned (:func:`.printed.assortative`): fast types go to large speedups. This is an
assumption; with ``ties=leximin`` it is the one in which the worst-off tenant is as well off as possible, then the
next (:func:`.leximin.breaking_ties`), in which the gains of all tenants are unique. In (9) every
tenant's efficiency is the same in all optima; the gain of a tenant that lies is not, see
:func:`.printed.least_over_optima`.

*Slips in the text.* The coefficient 4 after (6) should be 5; “8 %” should be 7.1 % (the honest total is 7.7 % above the
other); 0.0495 should be 0.495. On the right-hand side of the first formula in the proof of Theorem 5.1, :math:`w_i^j`
should be :math:`w_l^j`: as printed, u1 of (6) would need 2.625, and has 1.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyomo.environ as pyo

from schedgap.instances.discovery import import_submodules
from schedgap.instances.parameters import Parameter
from schedgap.instances.text import counted
from schedgap.instances.views.oef import ALLOCATION, ENVY_FREE, EQUAL, LEAST, NASH, SHARING, OefView
from schedgap.models.oef import printed
from schedgap.models.oef.first_order import by_first_order
from schedgap.models.oef.lazy import cooperative
from schedgap.models.oef.leximin import TIES, breaking_ties, build_least_gain, build_leximin, leximin
from schedgap.models.oef.market import build_nash, nash
from schedgap.models.registry import model, solve_built

FULL_LIMIT = 150
"""Tenants up to which the full envy-free LP (n(n−1) rows) runs by default: about a second."""


def _full_is_large(view: OefView) -> str | None:
    if view.size <= FULL_LIMIT:
        return None
    rows = view.size * (view.size - 1)
    return f"{rows:,} envy rows, more than {FULL_LIMIT} tenants; oef.cooperative solves the same LP by lazy rows"


FEW = 300
"""Tenants up to which :func:`.lazy.cooperative` ends within seconds, and the first-order method adds nothing."""


def _few(view: OefView) -> str | None:
    few = counted(view.size, "tenant")
    return f"oef.cooperative solves {few} exactly within seconds" if view.size <= FEW else None


program = partial(model, problem=ALLOCATION.id, decode=printed.decode, method="simplex", example="paper/oef-eq1")
fair = partial(program, problem=SHARING.id, claims=("sharing_incentive",))
unenvied = partial(program, problem=ENVY_FREE.id, claims=("envy_free", "sharing_incentive"))


def tied(build: Callable[[OefView], pyo.ConcreteModel]) -> dict[str, Any]:
    """Return the fields of a linear program whose ties are a parameter."""
    return {
        "procedure": partial(breaking_ties, build, partial(solve_built, build, printed.decode)),
        "parameters": (TIES,),
    }


program("oef.efficiency", source="OEF §2.3.2, eq. (4)", **tied(printed.build_efficiency))(printed.build_efficiency)
program(
    "oef.noncooperative",
    source="OEF §4.2.1, eq. (9)",
    problem=EQUAL.id,
    claims=("equal_efficiency",),
    **tied(printed.build_noncooperative),
)(printed.build_noncooperative)
fair("oef.sharing_incentive", source="OEF §3.1, eq. (8), Theorem 3.3", **tied(printed.build_sharing_incentive))(
    printed.build_sharing_incentive
)
unenvied(
    "oef.cooperative",
    source="OEF §4.2.2, eq. (10), Theorem 5.1; equals merged, lazy rows",
    procedure=cooperative,
    parameters=(TIES,),
)(printed.build_cooperative)
unenvied(
    "oef.cooperative.full",
    source="OEF §4.2.2, eq. (10), all n(n−1) rows",
    too_large=_full_is_large,
    **tied(printed.build_cooperative),
)(printed.build_cooperative)
unenvied(
    "oef.cooperative.first_order",
    source="OEF §4.2.2, eq. (10); PDHG with restarts (Lu and Yang 2024), settled by premiums",
    kind="matheuristic",
    procedure=by_first_order,
    parameters=(
        Parameter(
            "arrays",
            "what it computes with: compiled loops, or the array library numpy, torch or jax; these two take a card if "
            "there is one",
            choices=("compiled", "numpy", "torch", "jax"),
        ),
        Parameter("single", "whether steps are in single precision, which takes half the memory"),
    ),
    skip=_few,
)(printed.build_cooperative)
model(
    "oef.nash",
    source="Eisenberg and Gale 1959; Varian 1974, competitive equilibrium from equal incomes",
    problem=NASH.id,
    procedure=nash,
    claims=("envy_free", "sharing_incentive"),
    example="paper/oef-eq1",
)(build_nash)
program("oef.least_gain", source="Gavel, OSDI 2020, §4.1, between whole tenants", problem=LEAST.id)(build_least_gain)
program(
    "oef.leximin",
    source="Rawls 1971, Sen 1970; Gavel, OSDI 2020, §4.3, water filling",
    problem=LEAST.id,
    kind="baseline",
    procedure=leximin,
    claims=("leximin", "sharing_incentive"),
)(build_leximin)
fair("oef.maxmin", source="OEF §2.3.3, max-min fairness", kind="baseline")(printed.build_maxmin)
fair(
    "oef.gavel",
    source="OEF §2.4, Gavel in words; Gavel, OSDI 2020, §4.1",
    kind="baseline",
    procedure=printed.gavel,
    parameters=(
        Parameter(
            "row_cap",
            "at most one device per tenant, Σ_j x_l^j ≤ 1, as in Gavel and in the printed allocation (3); with fewer "
            "tenants than devices, some devices stay idle, and tenants may get less than an equal split",
            changes={True: {"problem": ALLOCATION.id, "claims": ()}},
        ),
    ),
    variants=("row_cap=true",),
)(printed.build_gavel)

import_submodules(__name__)
