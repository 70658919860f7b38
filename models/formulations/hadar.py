"""Statements of Hadar's P1, P2 and P3, and of the bound for copies (Sultana et al., §III)."""

from __future__ import annotations

from dataclasses import replace

from schedgap.models.columns import SEARCH
from schedgap.models.counting import gang_schedules
from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol

FIG1 = "paper/hadar-fig1"

SHORT = "paper/hadar-fig1?slot_s=2"
"""In half as many slots; in 8 there are 214,000 schedules."""

SETS = (
    Symbol(r"j \in J", "jobs that can complete"),
    Symbol(r"t, f \in \{a_j, \ldots, T\}", "slots, from a job's arrival on"),
    Symbol(r"r, k \in R", "GPU types"),
)

DATA = (
    Symbol(r"W_j", "GPUs that the gang of $j$ needs, all of them or none"),
    Symbol(r"E_j N_j", "work: epochs times iterations per epoch"),
    Symbol(r"X_j^r", "iterations per second of one GPU of type $r$"),
    Symbol(r"a_j", "slot in which the job arrives"),
    Symbol(r"L", "seconds of a slot"),
    Symbol(r"C^r", "GPUs of type $r$"),
    Symbol(r"U_j(f)", "utility of completing in slot $f$, after $f - a_j + 1$ slots; non-increasing"),
)

TIMES = (
    "The paper counts $f_j - a_j$ slots until completion, which is 0 for a job that finishes in its arrival slot: "
    "effective throughput then divides by zero. Here it is $f_j - a_j + 1$."
)

SAME_RULE = (
    "As printed, (1a) makes every job complete while P2 may reject jobs: P1 and P2 are equivalent only under the same "
    "rule, so both rules are offered for both."
)


def _constraints(place: str = "r", room: str = "C^r", rate: str = "X_j^r") -> tuple[Row, ...]:
    """Return the rows of P1 where GPUs are counted by type, or by server."""
    return (
        Row(
            r"D_{j,f} \ge E_j N_j \cdot \sum_{g \le f} v_{j,g}",
            "1a",
            "j, f",
            "The paper's row is the one of the last slot. With that alone the relaxation finishes part of a job before "
            "its work is begun: 20 jobs in 72 slots are not solved in two minutes, with all rows in one.",
            ("work_1a",),
        ),
        Row(
            r"D_{j,t} = D_{j,t-1} + x_{j,t} \cdot W_j \cdot L",
            every="j, t",
            note="Work adds up: the left-hand side of (1a), as a recursion.",
            parts=("done_by",),
        ),
        Row(
            r"x_{j,t} = \sum_k X_j^k \cdot z_{j,t,k}",
            "1b",
            "j, t",
            "The pace of the gang: the rate of its slowest type.",
            ("rate_1b",),
        ),
        Row(
            rf"w_{{j,t,{place}}} \le \min(W_j, {room}) \cdot \sum_{{k \colon X_j^k \le {rate}}} z_{{j,t,k}}",
            "1b",
            f"j, t, {place}",
            "A type is used only where the gang's pace is at most its own: the minimum over types, linear and without "
            "big-M. Naming a slower type than the slowest in use only loses progress, so this is exact at an optimum.",
            ("slowest_1b",),
        ),
        Row(
            r"\sum_k z_{j,t,k} \le P_{j,t}",
            "1c",
            "j, t",
            "A job runs no later than in its last slot.",
            ("until_last_1c",),
        ),
        Row(
            r"P_{j,t} = P_{j,t+1} + v_{j,t}",
            every="j, t",
            note=r"With $P_{j,T+1} = 0$ and $P \le 1$: a job has at most one last slot.",
            parts=("pending_from",),
        ),
        Row(
            r"v_{j,f} \le \sum_k z_{j,f,k}",
            every="j, f",
            note="Not in the paper: a job runs in its last slot, so that no incumbent counts it as later than it is.",
            parts=("runs_last",),
        ),
        Row(
            rf"\sum_j w_{{j,t,{place}}} \le {room}",
            "1d",
            f"t, {place}",
            "Left out where all gangs fit at once.",
            ("capacity_1d",),
        ),
        Row(
            rf"\sum_{place} w_{{j,t,{place}}} = W_j \cdot \sum_k z_{{j,t,k}}",
            "1e",
            "j, t",
            "The gang: all or none.",
            ("gang_1e",),
        ),
    )


P1 = Formulation(
    id="hadar.p1",
    decides="How many GPUs of which types every job's gang holds in every slot, and which jobs complete when.",
    sets=SETS,
    data=DATA,
    variables=(
        Symbol(r"z_{j,t,k} \in \{0, 1\}", "job $j$ runs in slot $t$, and its slowest type is $k$", "z"),
        Symbol(r"x_{j,t} \ge 0", "iterations per second of one of the job's GPUs in slot $t$", "x"),
        Symbol(r"w_{j,t,r} \in \{0, \ldots, \min(W_j, C^r)\}", "GPUs of type $r$ that it holds then", "w"),
        Symbol(r"v_{j,f} \in \{0, 1\}", "its last slot is $f$", "v"),
        Symbol(r"P_{j,t} \in [0, 1]", "whether its last slot is $t$ or later", "pending"),
        Symbol(r"D_{j,t} \ge 0", r"work done by the end of slot $t$ (at full speed $W_j \cdot L \cdot X_j^k$)", "done"),
    ),
    objective=Row(r"\sum_j \sum_f U_j(f) \cdot v_{j,f}", "1"),
    constraints=_constraints(),
    duals=(
        "Of the relaxation: the price of (1d) is what one more GPU of type $r$ in slot $t$ would add to the utility. "
        "Hadar's online prices (5) play its part."
    ),
    errata=(
        TIMES,
        SAME_RULE,
        "P1 has no cost of spreading a gang over servers, so capacity adds up by type without changing the optimum; "
        "hadar.p1.per_server counts servers apart.",
        "Fig. 1: under (1e) no schedule of its three jobs finishes in 5 rounds, 6 is the least; and gangs of 3, 2 and "
        "2 never use 6 of 6 GPUs, so that 100 % utilisation in round 1 is out of reach.",
    ),
    example=FIG1,
)

P2 = Formulation(
    id="hadar.p2.enumerated",
    decides="Which of its schedules every job follows, if any.",
    sets=(
        SETS[0],
        Symbol(r"s \in S_j", "schedules of a job: slots, with the GPUs by type that the gang holds in each"),
        Symbol(r"t \in \{1, \ldots, T\}", "slots"),
        Symbol(r"r \in R", "GPU types"),
    ),
    data=(
        Symbol(r"U_{j,s}", "utility of completing in the last slot of $s$"),
        Symbol(r"n_{j,s,t,r}", "GPUs of type $r$ that schedule $s$ holds in slot $t$"),
        Symbol(r"C^r", "GPUs of type $r$"),
    ),
    variables=(
        Symbol(r"x_{j,s} \in \{0, 1\}", "job $j$ follows schedule $s$", "x"),
        Symbol(r"o_j \in [0, 1]", "job $j$ is rejected", "rejected"),
    ),
    objective=Row(r"\sum_j \sum_s U_{j,s} \cdot x_{j,s}", "2"),
    constraints=(
        Row(r"\sum_j \sum_s n_{j,s,t,r} \cdot x_{j,s} \le C^r", "2a", "t, r", parts=("capacity_2a",)),
        Row(
            r"\sum_s x_{j,s} + o_j = 1",
            "2b",
            "j",
            r"The paper's $\le 1$, with the rejection as a column of its own.",
            ("one_2b",),
        ),
    ),
    duals=(
        "They are the variables of P3 (hadar.p3): the price of (2a) is what a GPU of type $r$ in slot $t$ is worth, "
        "that of (2b) the payoff of job $j$: utility of its best schedule less what its GPUs cost."
    ),
    errata=(TIMES, SAME_RULE),
    solved=(
        "In two steps: the relaxation over schedules of extreme mixes, then the integer program over the schedules "
        "whose payoff at its prices is near enough to the best; what is left out cannot be in a better solution."
    ),
    example=SHORT,
)

P3 = Formulation(
    id="hadar.p3",
    sense="min",
    decides="Prices of GPUs and payoffs of jobs at which no schedule is worth more than it costs: the dual of P2.",
    sets=P2.sets,
    data=P2.data,
    variables=(
        Symbol(r"k^r_t \ge 0", "price of a GPU of type $r$ in slot $t$", "price"),
        Symbol(r"\mu_j \ge 0", "payoff of job $j$", "payoff"),
    ),
    objective=Row(r"\sum_j \mu_j + \sum_t \sum_r C^r \cdot k^r_t", "3"),
    constraints=(
        Row(
            r"\mu_j \ge U_{j,s} - \sum_t \sum_r n_{j,s,t,r} \cdot k^r_t",
            "3a",
            "j, s",
            r"At an optimum $\mu_j = \max(0, \max_s \varphi_j(s))$ with $\varphi_j(s)$ the right-hand side.",
            ("payoff_3a",),
        ),
    ),
    duals=(
        "The dual of (3a) is the share of schedule $s$ in the relaxation of P2. The value at any feasible prices "
        "bounds "
        "P2 and P1: weak duality."
    ),
    errata=(
        "Definition 1 asks prices to rise by the factor "
        r"$\alpha = \ln(U_{\max}/U_{\min})$ with every step of the allocation; for whole GPUs no price function does.",
    ),
    example=SHORT,
)

COLUMNS = Formulation(
    id="hadar.p2.columns",
    decides="The same as hadar.p2.enumerated, over exponentially many schedules that are made as prices ask for them.",
    sets=(
        SETS[0],
        Symbol(r"s \in S_j' \subseteq S_j", "schedules of a job that are known so far: the columns"),
        *P2.sets[2:],
    ),
    data=P2.data,
    variables=(Symbol(r"x_{j,s} \ge 0", "share of schedule $s$", "x"),),
    objective=P2.objective,
    constraints=(
        Row(r"\sum_j \sum_{s \in S_j'} n_{j,s,t,r} \cdot x_{j,s} \le C^r", "2a", "t, r", parts=("within",)),
        Row(r"\sum_{s \in S_j'} x_{j,s} \le 1", "2b", "j", parts=("once",)),
    ),
    duals=(
        r"The prices $k^r_t$ of (2a) go to the pricing problem, a shortest path over (slot, progress) for every "
        r"job, which "
        r"finds the schedule of largest payoff $\varphi_j(s) = U_{j,s} - \sum_t \sum_r n_{j,s,t,r} \cdot k^r_t$. "
        r"At any "
        r"prices $\sum_t \sum_r C^r \cdot k^r_t + \sum_j \max(0, \max_s \varphi_j(s))$ is a bound on P1 and P2."
    ),
    errata=(TIMES, SAME_RULE),
    solved=(
        f"By column generation with smoothed prices until bound and master agree beside the grid of progress. {SEARCH}"
    ),
    implied=gang_schedules,
    example=FIG1,
)

_COMPLETE = Row(r"P_{j,a_j} = 1", "1a", "j", "Every job completes, as (1a) has it in print.", ("everybody",))

for _formulation in (
    P1,
    replace(
        P1,
        id="hadar.p1.complete",
        constraints=(*P1.constraints, _COMPLETE),
        variant_of=P1.id,
        difference=r"Every job completes: $\sum_f v_{j,f} = 1$.",
    ),
    replace(
        P1,
        id="hadar.p1.per_server",
        sets=(*SETS[:2], Symbol(r"k \in R, h \in H", "GPU types, and servers; $r(h)$ is the type of server $h$")),
        data=(*DATA[:5], Symbol(r"c_h", "GPUs of server $h$"), DATA[6]),
        variables=(
            P1.variables[0],
            Symbol(r"w_{j,t,h} \in \{0, \ldots, \min(W_j, c_h)\}", "GPUs that it holds on server $h$", "w"),
            *P1.variables[2:],
        ),
        constraints=_constraints("h", "c_h", "X_j^{r(h)}"),
        variant_of=P1.id,
        difference="Capacity is counted by server instead of by type; the optimum is the same.",
    ),
    P2,
    replace(
        P2,
        id="hadar.p2.enumerated.complete",
        variables=(P2.variables[0], replace(P2.variables[1], latex=r"o_j = 0")),
        variant_of=P2.id,
        difference="Every job completes: $o_j = 0$.",
    ),
    replace(
        P2,
        id="hadar.p2.relaxed",
        variables=(Symbol(r"x_{j,s} \ge 0", "share of schedule $s$", "x"), P2.variables[1]),
        solved="",
        variant_of=P2.id,
        difference="Schedules may be followed in part; those of extreme mixes of GPU types are then enough.",
        example=SHORT,
    ),
    P3,
    COLUMNS,
    replace(
        COLUMNS,
        id="hadar.p2.columns.complete",
        constraints=(COLUMNS.constraints[0], replace(COLUMNS.constraints[1], latex=r"\sum_{s \in S_j'} x_{j,s} = 1")),
        variant_of=COLUMNS.id,
        difference="Every job completes: (2b) is an equation.",
    ),
    replace(
        COLUMNS,
        id="hadar.forked_bound",
        decides=(
            "How much of which GPUs the copies of every job hold in every slot, if GPUs could be divided "
            "(HadarE, §V)."
        ),
        sets=(
            SETS[0],
            Symbol(r"s \in S_j'", "columns: ways to do all work of a job by a last slot with up to $m_j^r$ GPUs "
            "of a type"),
            *P2.sets[2:],
        ),
        data=(
            *P2.data,
            Symbol(r"m_j^r = \sum_{h \colon r(h) = r} \min(W_j, c_h)", "GPUs of a type that all copies of a job "
            "hold at most"),
        ),
        duals=COLUMNS.duals.replace(
            "a shortest path over (slot, progress) for every job, which", "which takes the cheapest progress first and"
        ).replace("a bound on P1 and P2", "a bound on every schedule with copies, and so on P1"),
        errata=(
            TIMES,
            "Theorem 3 claims that utilisation grows strictly with the number of copies; it can be equal (R1 = "
            "3, n = 5: "
            "3, 4 and 5 copies alike).",
        ),
        solved="By column generation until bound and master agree to 1e-4; there is no schedule to decode.",
        implied=None,
    ),
):  # fmt: skip
    FORMULATIONS.register(_formulation)
