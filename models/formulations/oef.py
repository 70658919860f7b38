"""Statements of OEF's linear programs and of the fair shares it is compared with (Mo, Xu, Lau, Middleware 2024)."""

from __future__ import annotations

from dataclasses import replace

from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol

EQ1 = "paper/oef-eq1"

SHARE = Symbol(r"x_l^j \ge 0", "devices of type $j$ that tenant $l$ has, fractions allowed", "x")
SPLIT = Symbol(
    r"e_l = \sum_j w_l^j \cdot m_j \cdot \pi_l / \sum_i \pi_i",
    "efficiency of the equal split, by weight, for tenant $l$",
)
CAPACITY = Row(r"\sum_l x_l^j \le m_j", "4b", "j", "Devices that there are.", ("capacity",))
TOTAL = Row(r"\sum_l \sum_j w_l^j \cdot x_l^j", "4a")

PRICES = "The price of a capacity row is what one more device of type $j$ would add to the total efficiency; "

SLIPS = "Slips in the text: the coefficient 4 after (6) is 5, “8 %” is 7.1 %, 0.0495 is 0.495."

TIES = (
    "The paper takes any optimum. Where there are several, the one returned has the largest second objective "
    r"$\sum_l \sum_j r_l^{1/2} \cdot j^{1/3} \cdot x_l^j$, with tenants ranked by their speedups on the fastest "
    "types ($r_l$): fast types go to large speedups."
)

EFFICIENCY = Formulation(
    id="oef.efficiency",
    decides="How many devices of which type every tenant has, for the largest total efficiency, whoever gets it.",
    sets=(Symbol(r"l, i", "tenants"), Symbol(r"j", "GPU types, from slowest to fastest")),
    data=(
        Symbol(r"w_l^j", "speedup of tenant $l$ on type $j$, 1 on the slowest"),
        Symbol(r"m_j", "devices of type $j$"),
        Symbol(r"\pi_l", "weight of tenant $l$"),
    ),
    variables=(SHARE,),
    objective=TOTAL,
    constraints=(CAPACITY,),
    duals=PRICES + "at an optimum each type goes to whoever has the highest speedup on it.",
    errata=(TIES,),
    example=EQ1,
)

MAXMIN = replace(
    EFFICIENCY,
    id="oef.maxmin",
    decides="The largest common part $s$ of the equal split that everybody can have: the equal split itself.",
    variables=(SHARE, Symbol(r"s \ge 0", "part of the equal split that everybody has", "s")),
    objective=Row("s"),
    constraints=(
        CAPACITY,
        Row(r"x_l^j = s \cdot m_j \cdot \pi_l / \sum_i \pi_i", every="l, j", parts=("equal_split",)),
    ),
    errata=(),
    duals=(
        "That of a capacity row says how much of $s$ one more device would add; types without a price are not scarce."
    ),
)

GAVEL = replace(
    EFFICIENCY,
    id="oef.gavel",
    decides=(
        "Shares that make the worst-off tenant, measured against its equal split, as well off as possible; and among "
        "those the ones of largest total efficiency."
    ),
    data=(*EFFICIENCY.data, SPLIT),
    variables=(SHARE, Symbol(r"z \ge 0", "least efficiency in parts of the equal split's", "z")),
    objective=Row("z", "3"),
    constraints=(CAPACITY, Row(r"\sum_j w_l^j \cdot x_l^j \ge z \cdot e_l", "3", "l", parts=("at_least",))),
    duals="The duals of the second rows add up to 1 in units of $e_l$: they say whose share is the bottleneck.",
    errata=(
        TIES,
        "The paper prints the allocation of the program with the cap of one device per tenant beside the text of "
        "the one "
        "without: 1.09, 1.44, 1.8 where the program as stated gives 54/49 = 1.102 times the equal split to everybody.",
        "The text ranks Gandiva_fair above Gavel in total efficiency; it has 4.356, Gavel 4.364 with the cap.",
    ),
    solved=(
        "Twice: for $z$, and then for the largest total efficiency at that $z$, so that no solver's choice of vertex "
        "shows. The sizes are those of the first program."
    ),
)

SHARING = replace(
    EFFICIENCY,
    id="oef.sharing_incentive",
    decides="The largest total efficiency at which nobody is worse off than with an equal split (Theorem 3.3).",
    data=(*EFFICIENCY.data, SPLIT),
    constraints=(
        CAPACITY,
        Row(r"\sum_j w_l^j \cdot x_l^j \ge e_l", "8", "l", "Sharing incentive.", ("at_least_split",)),
    ),
    duals=PRICES + "that of (8) is what tenant $l$'s right to its equal split costs everybody together.",
)

NONCOOPERATIVE = replace(
    EFFICIENCY,
    id="oef.noncooperative",
    decides="The largest efficiency that all tenants can have alike, by weight: no over-report ever pays.",
    variables=(SHARE, Symbol(r"E \ge 0", "efficiency per weight of everybody", "E")),
    objective=replace(TOTAL, equation="9a"),
    constraints=(
        replace(CAPACITY, equation="9b"),
        Row(
            r"\sum_j w_l^j \cdot x_l^j = \pi_l \cdot E",
            "9c",
            "l",
            "One $E$ for all instead of an equation for every pair: $n$ rows, not $n^2$.",
            ("equal_efficiency",),
        ),
    ),
    duals=PRICES + "that of (9c) is the price of equality: who would free devices if it could have less.",
    errata=(
        TIES,
        "Theorem 5.4, strategy-proofness: no over-report gains. Under-reports do, in most random instances: with "
        "speedups (1, 2) and (1, 5) and one device of each type, tenant 2 reporting 3 gets 3.0 instead of 2.143. "
        "Tenants with several job types gain by over-reports, too: see `oef.multi.strategy-proof` in the audit.",
        "Theorem 5.2, only adjacent types: needs ratios of speedups that are ordered alike for all tenants.",
        "It is not sharing-incentive.",
        SLIPS,
    ),
)

COOPERATIVE = replace(
    EFFICIENCY,
    id="oef.cooperative.full",
    decides="The largest total efficiency at which nobody would rather have another tenant's share (per weight).",
    objective=replace(TOTAL, equation="10a"),
    constraints=(
        replace(CAPACITY, equation="10b"),
        Row(
            r"\frac{1}{\pi_l} \cdot \sum_j w_l^j \cdot x_l^j \ge \frac{1}{\pi_i} \cdot \sum_j w_l^j \cdot x_i^j",
            "10c",
            r"l \ne i",
            "Envy-freeness; with equal weights it implies the sharing incentive.",
            ("no_envy",),
        ),
    ),
    duals=PRICES + "that of (10c) is what keeping $l$ from envying $i$ costs in total efficiency.",
    errata=(
        TIES,
        "Theorem 5.3, Pareto efficiency: it is efficient among envy-free allocations only. With speedups (1, 1.5, 2), "
        "(1, 2, 5), (1, 3, 8) and one device of each type the total can grow by 0.067 hurting nobody; two types "
        "suffice: 1.3, 2.5, 2.6 and 3.9 on two devices of each.",
        "Envy-freeness and sharing incentive hold between job types; a tenant with several of them can envy another "
        "one, and have less than with an equal split of which it makes the best use.",
        "The support can exceed $n + k - 1$, and Theorem 5.2 (only adjacent types) fails in a few per cent of cases.",
        SLIPS,
    ),
)

for _formulation in (
    EFFICIENCY,
    NONCOOPERATIVE,
    SHARING,
    replace(
        COOPERATIVE,
        id="oef.cooperative",
        solved=(
            "Tenants with equal speedups are merged, and rows (10c) are added as they are violated, starting "
            "from those of "
            "the nearest speedups: 2 % of the rows for 1000 tenants. The sizes are those of the full program."
        ),
    ),
    replace(
        COOPERATIVE,
        variant_of="oef.cooperative",
        difference="The same program, handed to HiGHS with all $n(n-1)$ rows (10c).",
    ),
    MAXMIN,
    GAVEL,
    replace(
        GAVEL,
        id="oef.gavel?row_cap=true",
        constraints=(
            *GAVEL.constraints,
            Row(
                r"\sum_j x_l^j \le 1",
                "3",
                "l",
                "At most one device per tenant, as in Gavel and in the printed allocation.",
                ("at_most_one_device",),
            ),
        ),
        variant_of=GAVEL.id,
        difference=r"With $\sum_j x_l^j \le 1$ for every tenant; the printed allocation is the optimum of this one.",
    ),
):
    FORMULATIONS.register(_formulation)
