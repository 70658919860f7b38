"""Statements of Zhou et al.'s programs, with parameter servers (PSs) and with rings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schedgap.models.columns import SEARCH
from schedgap.models.counting import elastic_schedules
from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol
from schedgap.models.formulations.single_machine import intervals

TINY = "gen/20jobs?jobs=3"
"""Three jobs on the servers of gen/20jobs: the monolithic models of PSs have thousands of rows even here."""

TINIER = "gen/20jobs?jobs=2&servers_per_type=1&slot_s=21600"

SLOTS = r"Slots are numbered from 1; a schedule has the slots $t^-, \ldots, t^- + d - 1$ and completes at $t^- + d$."

FIXED = (
    "Products of variables in (2f) and (2h) vanish because a choice fixes types, layout, duration and start, and with "
    "them how many workers (2f) asks for; of every number of workers only the shortest duration matters."
)


def _choices(ring: bool) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...], tuple[Symbol, ...]]:
    """Return sets, data and variables of the programs over choices."""
    sets = (
        Symbol(r"j \in J", "jobs"),
        Symbol(
            r"k = (m, q, d, t^-)" if ring else r"k = (m, p, q, d, t^-)",
            "choices of a job: worker type, "
            + ("" if ring else "PS type, ")
            + "whether all is on one server ($q = 1$), duration, start",
        ),
        Symbol(r"h, r, t", "servers, resources, slots"),
    )
    data = (
        Symbol(r"w_j, a_j", "weight and arrival"),
        Symbol(
            r"N_k = \lceil E_j D_j K_j / (d \cdot \rho_k) \rceil",
            "workers that do the work in $d$ slots, by the rate $\\rho_k$ of " + ("(14)" if ring else "(1)"),
        ),
        Symbol(r"E_j D_j K_j", "work: epochs, chunks and mini-batches per chunk; $D_j$ is also the most workers"),
        Symbol(r"e_m^r" if ring else r"e_m^r, z_p^r", "what a worker" + ("" if ring else ", and a PS,") + " takes"),
        *(() if ring else (Symbol(r"b_m, B_p", "bandwidths of a worker and of a PS"),)),
        Symbol(r"C_h^r", "capacity of server $h$"),
        Symbol(
            r"R_{k,h}", "room: most workers" + ("" if ring else ", and PSs,") + " of the choice on the empty server"
        ),
    )
    variables = (
        Symbol(r"x_k \in \{0, 1\}", "choice $k$ is taken", "x"),
        Symbol(r"y_{k,h} \in \{0, 1, \ldots\}", "workers on server $h$", "y"),
        *(() if ring else (Symbol(r"s_{k,h} \in \{0, 1, \ldots\}", "PSs on server $h$", "s"),)),
        Symbol(r"o_{k,h} \in \{0, 1\}", "all is on server $h$, where $q = 1$", "one"),
        *(() if ring else (Symbol(r"c_{k,h} \in \{0, 1\}", "server $h$ has PSs, where $q = 0$", "has"),)),
    )
    return sets, data, variables


def _placement(ring: bool, free: str = "C_h^r") -> tuple[Row, ...]:
    """Return the rows that say where the parts of a choice are: (2d)–(2i), or (15a), (15b) and (2f), (2g)."""
    layout, capacity = ("15a", "15b") if ring else ("2d", "2h")
    was = {"2d": "(2d) with workers alone. ", "2h": "(2h) with workers alone. "} if ring else {"2d": "", "2h": ""}
    elsewhere = r"\sum_{g \ne h} y_{k,g}" if ring else r"\sum_{g \ne h} (y_{k,g} + s_{k,g})"
    used = r"e_m^r \cdot y_{k,h}" if ring else r"(e_m^r \cdot y_{k,h} + z_p^r \cdot s_{k,h})"
    return (
        Row(r"\sum_h y_{k,h} \ge N_k \cdot x_k", "2f", "k", "Enough workers.", ("enough_2f",)),
        Row(
            rf"\sum_h y_{{k,h}} \le {'N_k' if ring else 'D_j'} \cdot x_k",
            "2g",
            "k",
            "Two workers of a ring may be slower than one, so that their number is exact." if ring else "",
            ("chunks_2g",),
        ),
        *(() if ring else (Row(r"\sum_h s_{k,h} \ge x_k", "2e", "k", "At least one PS.", ("server_2e",)),)),
        Row(r"\sum_h o_{k,h} = x_k", layout, r"k \colon q = 1", f"{was['2d']}On one server.", ("server_2d",)),
        Row(
            r"y_{k,h} \le R_{k,h} \cdot o_{k,h}" + ("" if ring else r", \quad s_{k,h} \le R_{k,h} \cdot o_{k,h}"),
            layout,
            r"k, h \colon q = 1",
            was["2d"].strip(),
            ("workers_2d",) if ring else ("workers_2d", "servers_2d"),
        ),
        Row(
            rf"{elsewhere} \ge x_k",
            layout,
            r"k, h \colon q = 0",
            f"{was['2d']}Whatever server one looks at, something is elsewhere.",
            ("elsewhere_2d",),
        ),
        *(() if ring else _BANDWIDTH),
        Row(
            rf"\sum_{{k \colon t^- \le t < t^- + d}} {used} \le {free}",
            capacity,
            "h, r, t",
            f"{was['2h']}In parts of the capacity.",
            ("capacity_2h",),
        ),
    )


_BANDWIDTH = (
    Row(r"s_{k,h} \le R_{k,h} \cdot c_{k,h}", "2i", r"k, h \colon q = 0", parts=("host_2i",)),
    Row(
        r"b_m \cdot \sum_{g \ne h} y_{k,g} \le B_p \cdot s_{k,h} + b_m \cdot D_j \cdot (x_k - c_{k,h})",
        "2i",
        r"k, h \colon q = 0",
        "PSs on a server have the bandwidth for all workers elsewhere.",
        ("bandwidth_2i",),
    ),
)


def _offline(arch: str, ring: bool) -> Formulation:
    sets, data, variables = _choices(ring)
    return Formulation(
        id=f"zhou.{arch}.offline",
        decides="Types, number of workers, servers and start of every job, for the least weighted completion time.",
        sets=sets,
        data=data,
        variables=variables,
        objective=Row(r"\sum_k w_j \cdot (t^- + d) \cdot x_k", "15" if ring else "2"),
        constraints=(
            Row(
                r"\sum_{k \text{ of } j} x_k = 1",
                "2a",
                "j",
                "With (2b), (2c) and (2j): one choice, so one type of workers"
                + ("" if ring else " and of PSs")
                + ", from the arrival on.",
                ("one_2a",),
            ),
            *_placement(ring),
        ),
        duals=(
            "Of the relaxation: that of the capacity rows is what a resource of a server in a slot is worth, in "
            "weighted "
            "slots of completion time."
        ),
        errata=(SLOTS, FIXED),
        example=TINY if ring else TINIER,
    )


def _maxweight(arch: str, ring: bool) -> Formulation:
    base = _offline(arch, ring)
    return replace(
        base,
        id=f"zhou.{arch}.maxweight",
        decides=r"Which jobs complete by the beginning of slot $\tau$, and how, for the largest total weight.",
        data=(*base.data, Symbol(r"\tau", "end of the window; all jobs are there in slot 1")),
        objective=Row(r"\sum_k w_j \cdot x_k", "16" if ring else "7"),
        constraints=(
            Row(
                r"\sum_{k \text{ of } j} x_k \le 1",
                "7a",
                "j",
                r"(2a), but jobs may be left out; there are only choices with $t^- + d \le \tau$ (7b).",
                ("one_2a",),
            ),
            *base.constraints[1:],
        ),
        duals=(
            "Of the relaxation: that of the capacity rows is what a resource of a server in a slot is worth, in weight."
        ),
        errata=(*base.errata, r"Slot $\tau$ itself is never used, as the paper's ranges have it."),
        example=TINY,
    )


def _mincost(arch: str, ring: bool) -> Formulation:
    base = _offline(arch, ring)
    cost = r"e_m^r \cdot y_{k,h}" if ring else r"(e_m^r \cdot y_{k,h} + z_p^r \cdot s_{k,h})"
    return replace(
        base,
        id=f"zhou.{arch}.mincost",
        decides="The cheapest schedule of one job at given prices, in what other jobs leave free.",
        data=(
            *base.data[1:-2],
            Symbol(r"\delta_h^r(t)", "price of a unit of resource $r$ on server $h$ in slot $t$"),
            Symbol(r"\omega_h^r(t)", "what others leave free of it"),
            base.data[-1],
        ),
        objective=Row(
            rf"\sum_k \sum_{{t = t^-}}^{{t^- + d - 1}} \sum_h \sum_r \delta_h^r(t) \cdot {cost}",
            "20" if ring else "12",
            note="For one choice it is " + ("(21)." if ring else "(13)."),
        ),
        constraints=(
            Row(r"\sum_k x_k = 1", "2a", note="One choice of the job.", parts=("one_2a",)),
            *_placement(ring, r"\omega_h^r(t)"),
        ),
        duals="None, with integers.",
        errata=(
            FIXED,
            "Theorem 1, that the printed A_mincost is optimal, is false: with $N$ reset for every server, workers go "
            "missing, and with all workers beside the PSs none is left for (2i). The repaired form is exact.",
        ),
        solved=(
            "Choice by choice, by a lower bound on each, as arrays, until the next bound is no better than what "
            "was found."
        ),
    )


def _schedules(arch: str, ring: bool) -> Formulation:
    number = "17" if ring else "8"
    return Formulation(
        id=f"zhou.{arch}.schedules",
        decides=r"Which of its schedules every job follows, if any, for the largest weight completed by slot $\tau$.",
        sets=(
            Symbol(r"j \in J", "jobs"),
            Symbol(r"l \in \Gamma_j", "schedules of a job: a choice with its placement; $T(l)$ are its slots"),
            Symbol(r"h, r, t", "servers, resources, slots"),
        ),
        data=(
            Symbol(r"w_j", "weight"),
            Symbol(r"f_{l,h,r}", "what schedule $l$ takes of resource $r$ on server $h$"),
            Symbol(r"C_h^r", "capacity of server $h$"),
        ),
        variables=(Symbol(r"x_l \in \{0, 1\}", "schedule $l$ is followed", "x"),),
        objective=Row(r"\sum_j \sum_{l \in \Gamma_j} w_j \cdot x_l", number),
        constraints=(
            Row(
                r"\sum_{l \colon t \in T(l)} f_{l,h,r} \cdot x_l \le C_h^r",
                f"{number}a",
                "h, r, t",
                ("(8a) of rings. " if ring else "") + "In parts of the capacity.",
                ("capacity_8a",),
            ),
            Row(r"\sum_{l \in \Gamma_j} x_l \le 1", f"{number}b", "j", "(8b) of rings." if ring else "", ("one_8b",)),
        ),
        duals=f"Of the relaxation: the variables of ({'18' if ring else '9'}), zhou.{arch}.dual.",
        errata=(
            "Schedules have all PSs on one server: where (2i) lets them sit on several, each must have the "
            "bandwidth for "
            "all workers elsewhere, so that more of them only cost more.",
        )
        if not ring
        else (),
        example=TINY,
    )


def _dual(arch: str, ring: bool) -> Formulation:
    base = _schedules(arch, ring)
    number = "18" if ring else "9"
    return replace(
        base,
        id=f"zhou.{arch}.dual",
        sense="min",
        decides="Prices of resources and payoffs of jobs at which no schedule is worth more than it costs.",
        variables=(
            Symbol(r"\delta_h^r(t) \ge 0", "price of resource $r$ on server $h$ in slot $t$", "delta"),
            Symbol(r"u_j \ge 0", "payoff of job $j$", "u"),
        ),
        objective=Row(r"\sum_j u_j + \sum_h \sum_r \sum_t C_h^r \cdot \delta_h^r(t)", number),
        constraints=(
            Row(
                r"u_j \ge w_j - \sum_{t \in T(l)} \sum_h \sum_r f_{l,h,r} \cdot \delta_h^r(t)",
                f"{number}a",
                r"j, l \in \Gamma_j",
                ("(9a) of rings. " if ring else "")
                + r"At an optimum $u_j$ is the largest right-hand side, or 0 (10). The model's prices are those "
                r"of a whole "
                "capacity.",
                ("payoff_9a",),
            ),
        ),
        duals="That of the only family is the share of schedule $l$ in the relaxation.",
        errata=(),
    )


def _implied(arch: str, weight: bool) -> Callable[[Any], tuple[float, bool]]:
    def implied(view: Any) -> tuple[float, bool]:
        from schedgap.models.zhou.columns import completing, weighing

        return elastic_schedules((weighing if weight else completing)(view.architectures[arch]))

    return implied


def _columns(arch: str, ring: bool) -> Formulation:
    base = _schedules(arch, ring)
    number = "17" if ring else "8"
    return replace(
        base,
        id=f"zhou.{arch}.columns",
        decides=(
            "The same as the offline problem, over schedules that are made as prices ask for them: a lower bound "
            "on the "
            "total weighted completion time, which the paper does not have."
        ),
        sets=(
            base.sets[0],
            Symbol(r"l \in \Gamma_j' \subseteq \Gamma_j", "schedules of a job that are known so far: the columns"),
            Symbol(r"i, r, T", "classes of equal servers, resources, periods of one or several slots"),
        ),
        data=(
            Symbol(r"w_j, c_l", "weight; completion by schedule $l$"),
            Symbol(
                r"f_{l,i,r,T}", "what schedule $l$ takes of resource $r$ on servers of class $i$, times slots of $T$"
            ),
            Symbol(r"C_i^r, n_i, |T|", "capacity of one server, number of servers, slots of a period"),
        ),
        variables=(Symbol(r"x_l \ge 0", "share of schedule $l$", "x"),),
        objective=Row(
            r"\sum_j \sum_{l \in \Gamma_j'} w_j \cdot c_l \cdot x_l",
            "15" if ring else "2",
            note="The master maximises its negative.",
        ),
        constraints=(
            Row(
                r"\sum_l f_{l,i,r,T} \cdot x_l \le n_i \cdot C_i^r \cdot |T|",
                f"{number}a",
                "i, r, T",
                "Servers of a class are interchangeable: averaging over permutations shows that the rows of "
                + ("(8a) " if ring else "")
                + "equal servers can be added without changing the optimum; adding those of neighbouring slots "
                "relaxes it.",
                ("within",),
            ),
            Row(
                r"\sum_{l \in \Gamma_j'} x_l = 1",
                "2a",
                "j",
                "A job may complete beyond the slots by a column that takes nothing and costs the first end "
                "after them.",
                ("once",),
            ),
        ),
        duals=(
            "Prices of resources by class and period go to the pricing problem, the cheapest schedule of every "
            "job, which "
            "is solved exactly. At any prices its optima less the price of all capacity are a bound."
        ),
        errata=(SLOTS,),
        solved=f"By column generation with smoothed prices; schedules are on real servers. {SEARCH}",
        implied=_implied(arch, weight=False),
        example="gen/20jobs",
    )


def _variants(arch: str, ring: bool) -> tuple[Formulation, ...]:
    """Return all statements of an architecture."""
    listed, columns = _schedules(arch, ring), _columns(arch, ring)
    number = "17" if ring else "8"
    return (
        _offline(arch, ring),
        _maxweight(arch, ring),
        _mincost(arch, ring),
        listed,
        replace(
            listed,
            id=f"zhou.{arch}.schedules.offline",
            objective=Row(r"\sum_j \sum_{l \in \Gamma_j} w_j \cdot c_l \cdot x_l", "15" if ring else "2"),
            constraints=(
                listed.constraints[0],
                replace(
                    listed.constraints[1],
                    latex=r"\sum_{l \in \Gamma_j} x_l = 1",
                    note=("(8b) of rings, as an equation." if ring else "As an equation."),
                ),
            ),
            example=TINY if ring else TINIER,
            variant_of=listed.id,
            difference="Every job completes, at the least weighted completion time $w_j \\cdot c_l$.",
        ),
        replace(
            listed,
            id=f"zhou.{arch}.schedules.relaxed",
            variables=(Symbol(r"x_l \ge 0", "share of schedule $l$", "x"),),
            variant_of=listed.id,
            difference="Schedules may be followed in part.",
        ),
        _dual(arch, ring),
        columns,
        replace(
            columns,
            id=f"zhou.{arch}.columns.maxweight",
            decides=r"The same as zhou." + arch + ".schedules, over schedules that are made as prices ask for them.",
            objective=Row(r"\sum_j \sum_{l \in \Gamma_j'} w_j \cdot x_l", number),
            constraints=(
                columns.constraints[0],
                Row(r"\sum_{l \in \Gamma_j'} x_l \le 1", f"{number}b", "j", "(8b)." if ring else "", ("once",)),
            ),
            implied=_implied(arch, weight=True),
            variant_of=columns.id,
            difference=r"The largest weight completed by slot $\tau$; jobs may be left out.",
        ),
        intervals(
            f"zhou.{arch}.fluid",
            volume=(
                r"v_j = \min_{m,q,N} N \cdot x_m \cdot \max(1, E_j D_j K_j / (N \cdot \rho))"
                if ring
                else r"v_j = \min_{m,p,q,N,s} (N \cdot x_m + s \cdot y_p) \cdot \max(1, E_j D_j K_j / (N \cdot \rho))"
            ),
            weights="resources of every class of servers, at which a worker costs $x_m$"
            + ("" if ring else " and a PS $y_p$"),
            mean=False,
            example="gen/20jobs",
        ),
    )


for _arch in ("ps", "ra"):
    for _formulation in _variants(_arch, _arch == "ra"):
        FORMULATIONS.register(_formulation)
