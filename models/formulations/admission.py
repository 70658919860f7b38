"""Statements of the admission example: the ILP over schedules, its dual, and column generation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schedgap.models.columns import SEARCH
from schedgap.models.counting import elastic_schedules
from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol

WALKTHROUGH = "paper/walkthrough"

FROM_ARRIVAL = r"A job may start in the slot of its arrival, too: $a \ge r_j$ instead of $a > r_j$."


def _columns(problem: str) -> Any:
    def implied(view: Any) -> tuple[float, bool]:
        from schedgap.models.admission.columns import admitting

        return elastic_schedules(admitting(view, problem))

    return implied


SLIPS = (
    "The text's total of 431.33 is called optimal; its schedule is worth 430.51 (exponentials were rounded), and the "
    "optimum is 435.01: jobs 1 and 2 share servers side by side, and job 3 need not be spread.",
    "Its half-open slots [4, 6] and [6, 8] overlap; here a schedule has the slots $a, \\ldots, a + d - 1$.",
    r"The text changes $\theta$ on the way (37.4, 36.7, 18.9); here it is fixed beforehand.",
)

OFFLINE = Formulation(
    id="admission.offline",
    decides="Which jobs are admitted, and by which schedule: start, number of workers, servers.",
    sets=(
        Symbol(r"j \in J", "jobs"),
        Symbol(r"l \in L_j", "schedules of a job that meet its deadline, with start $a > r_j$"),
        Symbol(r"s, w, p, t", "servers, worker types, the type of parameter servers (PSs), slots"),
    ),
    data=(
        Symbol(r"f_j(\Delta)", r"utility of completing $\Delta$ after the arrival $r_j$"),
        Symbol(r"\hat{t}_l", "completion by schedule $l$, at most the deadline of the job"),
        Symbol(r"y_{l,s,w}", "workers of type $w$ that $l$ has on server $s$ in each of its slots $T(l)$"),
        Symbol(r"z_{l,s,p}", "PSs likewise"),
        Symbol(r"C_{sw}, C_{sp}", "workers, and PSs, that server $s$ holds"),
    ),
    variables=(Symbol(r"x_l \in \{0, 1\}", "schedule $l$ is followed", "x"),),
    objective=Row(r"\sum_j \sum_{l \in L_j} f_j(\hat{t}_l - r_j) \cdot x_l"),
    constraints=(
        Row(
            r"\sum_{l \colon t \in T(l)} y_{l,s,w} \cdot x_l \le C_{sw}",
            every="s, w, t",
            note="Written in parts of the capacity.",
            parts=("workers",),
        ),
        Row(r"\sum_{l \colon t \in T(l)} z_{l,s,p} \cdot x_l \le C_{sp}", every="s, p, t", parts=("servers",)),
        Row(r"\sum_{l \in L_j} x_l \le 1", every="j", note="At most one schedule per job.", parts=("one",)),
    ),
    duals="They are the variables of (18a), admission.dual: what a worker, or a PS, of a server in a slot is worth.",
    errata=SLIPS,
    example=WALKTHROUGH,
)

DUAL = replace(
    OFFLINE,
    id="admission.dual",
    sense="min",
    decides="Prices of workers and PSs, and payoffs of jobs, at which no schedule is worth more than it costs.",
    variables=(
        Symbol(r"\alpha_{s,w,t} \ge 0", "price of a worker of type $w$ on server $s$ in slot $t$", "alpha"),
        Symbol(r"\beta_{s,p,t} \ge 0", "price of a PS there", "beta"),
        Symbol(r"\mu_j \ge 0", "payoff of job $j$", "mu"),
    ),
    objective=Row(r"\sum_j \mu_j + \sum_{s,w,t} C_{sw} \cdot \alpha_{s,w,t} + \sum_{s,p,t} C_{sp} \cdot \beta_{s,p,t}"),
    constraints=(
        Row(
            r"\mu_j \ge f_j(\hat{t}_l - r_j) - \sum_{t \in T(l)} \sum_s \left( \sum_w \alpha_{s,w,t} \cdot y_{l,s,w} "
            r"+ \beta_{s,p,t} \cdot z_{l,s,p} \right)",
            "18a",
            r"j, l \in L_j",
            parts=("payoff_18a",),
        ),
    ),
    duals="That of (18a) is the share of schedule $l$ in the ILP's relaxation.",
)

MASTER = replace(
    OFFLINE,
    id="admission.columns",
    decides="The same as admission.offline, over schedules that are made as prices ask for them.",
    sets=(
        OFFLINE.sets[0],
        Symbol(r"l \in L_j' \subseteq L_j", "schedules of a job that are known so far: the columns"),
        Symbol(r"c, w, p, t", "classes of equal servers, worker types, the type of PSs, slots"),
    ),
    data=(
        *OFFLINE.data[:2],
        Symbol(r"y_{l,c,w}, z_{l,c,p}", "workers and PSs that $l$ has on servers of class $c$"),
        Symbol(r"C_{cw}, C_{cp}", "workers and PSs that all servers of a class hold together"),
    ),
    variables=(Symbol(r"x_l \ge 0", "share of schedule $l$", "x"),),
    objective=Row(r"\sum_j \sum_{l \in L_j'} f_j(\hat{t}_l - r_j) \cdot x_l"),
    constraints=(
        Row(
            r"\sum_{l \colon t \in T(l)} y_{l,c,w} \cdot x_l \le C_{cw}, \quad "
            r"\sum_{l \colon t \in T(l)} z_{l,c,p} \cdot x_l \le C_{cp}",
            every="c, w, p, t",
            note=(
                "Servers of a class are interchangeable: averaging over permutations shows that their rows can "
                "be added."
            ),
            parts=("within",),
        ),
        Row(r"\sum_{l \in L_j'} x_l \le 1", every="j", parts=("once",)),
    ),
    duals=(
        "Prices of workers and PSs by class and slot. At any prices the cost of all capacity and the largest payoff of "
        "every job add up to a bound on the ILP."
    ),
    solved=f"By column generation with exact pricing; schedules are on real servers. {SEARCH}",
    implied=_columns("admission.utility"),
)

for _formulation in (
    OFFLINE,
    replace(OFFLINE, id="admission.offline.from_arrival", variant_of=OFFLINE.id, difference=FROM_ARRIVAL),
    DUAL,
    MASTER,
    replace(
        MASTER,
        id="admission.columns.from_arrival",
        implied=_columns("admission.from_arrival"),
        variant_of=MASTER.id,
        difference=FROM_ARRIVAL,
    ),
):
    FORMULATIONS.register(_formulation)
