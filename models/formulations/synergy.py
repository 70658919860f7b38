"""Statements of Synergy's LP1, ILP1 and LP2, and of the bounds on whole runs (Mohan et al., §4.1, A.1, A.2)."""

from __future__ import annotations

from dataclasses import replace

from schedgap.models.explain import FORMULATIONS, Formulation, Row, Symbol
from schedgap.models.formulations.single_machine import intervals

EXAMPLE = "paper/synergy-example"

RATES = (
    "Rates of different models do not add up: progress is counted in units of the job's rate at its GPU-proportional "
    "share. No instance asks for the raw sums that the paper prints; in Python, "
    "schedgap.instances.views.synergy.view(instance, raw=True) does."
)
FLOOR = (
    "The share itself may lie between two levels of the table; it is floored to the table, because ceiling can "
    "make LP1 "
    "infeasible."
)
FORGOTTEN = "The paper's models forget that GPUs of a type are limited: a row is added."
COUNTED = (
    "Equal jobs are counted, not named, and configurations are left out where another one has no more CPUs, no more "
    "memory and at least the rate: neither changes an optimum. One without progress may stay: a mix can hold it."
)
ABLE = "Jobs run on GPU types on which they progress with their share; elsewhere (5) would ask for nothing."

CPUS = Row(r"\sum_j \sum_{c,m} c \cdot y_{c,m,j} \le C", "2", note="CPUs of the super-machine.", parts=("cpus_2",))
MEMORY = Row(r"\sum_j \sum_{c,m} m \cdot y_{c,m,j} \le M", "3", parts=("memory_3",))
GPUS = Row(r"\sum_j \sum_{c,m} g_j \cdot y_{c,m,j} \le G", note=FORGOTTEN, parts=("gpus_per_type",))
ONE = Row(r"\sum_{c,m} y_{c,m,j} = 1", "4", "j", parts=("one_each_4",))
FAIR = Row(
    r"\sum_{c,m} W_j[c,m] \cdot y_{c,m,j} \ge F_j",
    "5",
    "j",
    "Divided by the floor, so that the share itself has a coefficient of 0. Only of jobs that could fall below.",
    ("fair_5",),
)

LP1 = Formulation(
    id="synergy.lp1",
    decides="How many CPUs and how much memory each job of a round would hold if the cluster were one machine.",
    sets=(
        Symbol(r"j \in J_t", "jobs that the policy picked for the round"),
        Symbol(r"[c,m]", "configurations: CPUs and memory on the levels of the job's table"),
    ),
    data=(
        Symbol(r"W_j[c,m]", "iterations per second of job $j$ with $c$ CPUs and $m$ GB"),
        Symbol(r"u_j", "weight that makes rates of different models add up"),
        Symbol(r"g_j", "GPUs of the gang"),
        Symbol(r"G, C, M", "GPUs, CPUs and memory of all servers together"),
        Symbol(r"F_j", "rate of the job with its GPU-proportional share"),
    ),
    variables=(Symbol(r"y_{c,m,j} \ge 0", "part of job $j$ that holds $[c,m]$", "y"),),
    objective=Row(r"\sum_j u_j \cdot \sum_{c,m} W_j[c,m] \cdot y_{c,m,j}", "1"),
    constraints=(CPUS, MEMORY, GPUS, ONE, FAIR),
    duals=(
        "Those of (2) and (3) are what another CPU and another gigabyte would add to the round's progress, that of (5) "
        "what fairness to job $j$ costs the others. The optimum bounds every feasible round (Theorem 4.1)."
    ),
    errata=(RATES, FLOOR, COUNTED, FORGOTTEN),
    example=EXAMPLE,
)

_WHOLE = (Symbol(r"y_{c,m,j} \in \{0, 1\}", "job $j$ holds $[c,m]$", "y"),)
_NO_FLOOR_ROWS = (
    "With integers (5) says which configurations there are, those with $W_j[c,m] \\ge F_j$; it needs no rows."
)

ILP1 = replace(
    LP1,
    id="synergy.ilp1",
    decides="Which CPUs and memory, $c^*$ and $m^*$, each job of a round holds if the cluster is one machine.",
    variables=_WHOLE,
    constraints=(CPUS, MEMORY, GPUS, ONE, replace(FAIR, note=_NO_FLOOR_ROWS, parts=())),
    duals="None, with integers; those of its relaxation are LP1's.",
    solved=(
        "As arrays: the relaxation first, then the few classes whose shares are fractional choose again, and what is "
        "left out cannot be in a better solution. The sizes are those of the whole program."
    ),
)

UNPRUNED = replace(
    LP1,
    id="synergy.ilp1.unpruned",
    decides=ILP1.decides,
    variables=_WHOLE,
    constraints=(CPUS, MEMORY, ONE, replace(FAIR, note="")),
    duals=ILP1.duals,
    errata=(RATES, FLOOR),
    variant_of=ILP1.id,
    difference="To the letter: a binary for every job and every cell of its table, and (5) as rows.",
)


def _by_type(row: Row, equation: str, every: str) -> Row:
    """Return a row of LP1 with GPU types ``i``."""
    latex = row.latex
    for old, new in (
        ("y_{c,m,j}", "y_{c,m,i,j}"), ("[c,m]", "[c,m,i]"), (r"\le C", r"\le C_i"), (r"\le M", r"\le M_i"),
        (r"\le G", r"\le G_i"), ("F_j", r"F_j[i] \cdot \sum_{c,m} y_{c,m,i,j}"),
    ):  # fmt: skip
        latex = latex.replace(old, new)
    return replace(row, latex=latex, equation=equation, every=every)


_TYPES = (
    LP1.sets[0],
    Symbol(r"i", "GPU types, each a super-machine"),
    Symbol(r"[c,m]", "configurations: CPUs and memory on the levels of the job's table"),
)
_TYPED_DATA = (
    Symbol(r"W_j[c,m,i]", "iterations per second of job $j$ with $c$ CPUs and $m$ GB on type $i$"),
    *LP1.data[1:3],
    Symbol(r"G_i, C_i, M_i", "GPUs, CPUs and memory of all servers with GPUs of type $i$"),
    Symbol(r"F_j[i]", "rate of the job with its GPU-proportional share on type $i$"),
)

HETERO_LP1 = replace(
    LP1,
    id="synergy.hetero.lp1",
    decides=(
        "On which GPU type each job of a round would run, and with which CPUs and memory, if each type were "
        "one machine."
    ),
    sets=_TYPES,
    data=_TYPED_DATA,
    variables=(Symbol(r"y_{c,m,i,j} \ge 0", "part of job $j$ that holds $[c,m]$ on type $i$", "y"),),
    objective=Row(r"\sum_j u_j \cdot \sum_{c,m,i} W_j[c,m,i] \cdot y_{c,m,i,j}", "22"),
    constraints=(
        replace(_by_type(CPUS, "23", "i"), note="(2) for every type."),
        replace(_by_type(MEMORY, "24", "i"), note="(3) for every type."),
        _by_type(GPUS, "", "i"),
        replace(ONE, latex=r"\sum_{c,m,i} y_{c,m,i,j} = 1", equation="25", note="(4) over all types."),
        replace(_by_type(FAIR, "5", "i, j"), note="(5) on the type where the job runs. " + FAIR.note),
    ),
    errata=(RATES, FLOOR, COUNTED, FORGOTTEN, ABLE),
    example="gen/20jobs",
)

HETERO_ILP1 = replace(
    HETERO_LP1,
    id="synergy.hetero.ilp1",
    variables=(Symbol(r"y_{c,m,i,j} \in \{0, 1\}", "job $j$ holds $[c,m]$ on type $i$", "y"),),
    constraints=(*HETERO_LP1.constraints[:4], replace(HETERO_LP1.constraints[4], note=_NO_FLOOR_ROWS, parts=())),
    duals=ILP1.duals,
    solved=ILP1.solved,
    variant_of=HETERO_LP1.id,
    difference="With integers; configurations below the floor are left out instead of (5).",
)

ORACLE = replace(
    HETERO_ILP1,
    id="synergy.hetero",
    decides="The same as synergy.hetero.ilp1 with the paper's fairness: as fast as an oracle says, on whatever type.",
    data=(*_TYPED_DATA[:-1], Symbol(r"F_j", "rate from an oracle: that of $1/n$ of every GPU type")),
    constraints=(
        *HETERO_LP1.constraints[:4],
        Row(
            r"\sum_{c,m,i} W_j[c,m,i] \cdot y_{c,m,i,j} \ge F_j",
            "26",
            "j",
            "With integers it says which configurations there are. A job for which there is none makes it infeasible.",
        ),
    ),
    errata=LP1.errata,
    solved="",
    variant_of="",
    difference="",
)

FREE = replace(
    HETERO_LP1,
    id="synergy.lp1.free",
    decides=(
        "Which jobs of a round would run, and with which CPUs and memory, where jobs may be left out and none is owed."
    ),
    constraints=(
        *HETERO_LP1.constraints[:3],
        replace(
            ONE,
            latex=r"\sum_{c,m,i} y_{c,m,i,j} \le 1",
            equation="25",
            note="(4), at most one.",
            parts=("at_most_one_4",),
        ),
    ),
    duals="As those of LP1; it bounds rounds that promise nobody a fair share (synergy.greedy, DRF, Tetris).",
)

_HELD = (
    Symbol(r"g_j, c_j^*, m_j^*", "GPUs, CPUs and memory of job $j$, at the optimum of ILP1"),
    Symbol(r"G_i, C_i, M_i", "GPUs, CPUs and memory of server $i$"),
)


def _room(held: str) -> Row:
    """Return the capacity rows of LP2."""
    return Row(
        rf"\sum_j g_j \cdot {held} \le G_i, \quad \sum_j c_j^* \cdot {held} \le C_i, "
        rf"\quad \sum_j m_j^* \cdot {held} \le M_i",
        "15–17",
        "i",
        "In parts of the server. Two stray sums over $[c,m]$ in (16) and (17) are dropped.",
        ("capacity_15_17",),
    )


VERTEX = Formulation(
    id="synergy.lp2.vertex",
    decides="On which servers the jobs of ILP1's optimum run, in parts where they must, at a vertex.",
    sets=(Symbol(r"j \in J_t", "jobs of the round; equal ones are counted"), Symbol(r"i", "servers")),
    data=_HELD,
    variables=(Symbol(r"x_{i,j} \ge 0", "part of job $j$ on server $i$", "x"),),
    objective=Row(r"\sum_i \sum_j i \cdot x_{i,j}", note="The paper has none; this one fills servers in their order."),
    constraints=(
        _room("x_{i,j}"),
        Row(r"\sum_i x_{i,j} = 1", "18", "j", r"The paper's $\ge 1$ asks for no more.", ("all_of_it_18",)),
    ),
    duals="Those of (15)–(17) say which resource of which server is full; zero for servers with room.",
    errata=(
        "The paper's $x > 0$ is no linear program; $x \\ge 0$ is.",
        "“At most $3s$ fragmented jobs” (Theorem A.2) is a property of a vertex: the simplex method gives one, an "
        "interior point without crossover fragments every job.",
    ),
    solved="As arrays, after ILP1, by the simplex method. The sizes are those of LP2.",
    example=EXAMPLE,
)

FEWEST = replace(
    VERTEX,
    id="synergy.lp2.min_fragments",
    decides="On which servers the jobs of ILP1's optimum run, so that as few as possible are spread over several.",
    variables=(
        Symbol(r"h_{i,j} \in \{0, 1\}", "the whole job $j$ is on server $i$", "whole"),
        Symbol(r"p_j \in \{0, 1\}", "it is split over several", "split"),
        Symbol(r"x_{i,j} \ge 0", "part of a split job $j$ on server $i$", "x"),
    ),
    objective=Row(r"\sum_j p_j"),
    constraints=(
        _room("(h_{i,j} + x_{i,j})"),
        Row(r"\sum_i h_{i,j} + p_j = 1", "18", "j", parts=("all_of_it_18",)),
        Row(r"\sum_i x_{i,j} = p_j", every="j", parts=("fragments",)),
    ),
    duals="None, with integers.",
    solved="After ILP1; what is split is placed by LP2. The sizes are those of the integer program.",
)

MAKESPAN = Formulation(
    id="synergy.makespan_fluid",
    decides="How long the jobs of each kind are in which configuration, so that all work is done as early as possible.",
    sets=(
        Symbol(r"k", "kinds of jobs"),
        Symbol(r"q \in Q_k", "their configurations: CPUs and memory on a GPU type"),
        Symbol(r"r", "resources: GPUs, CPUs and memory of every GPU type"),
    ),
    data=(
        Symbol(r"E_k", "iterations that all jobs of a kind have to do"),
        Symbol(r"W_q", "iterations per second in configuration $q$"),
        Symbol(r"u_{q,r}, U_r", "what $q$ holds of resource $r$, and what there is"),
        Symbol(r"a_j, p_j", "first round in which job $j$ may run, and its duration at its fastest"),
    ),
    variables=(
        Symbol(r"M \ge \max_j (a_j + p_j)", "the makespan", "makespan"),
        Symbol(r"x_q \ge 0", "time that jobs of the kind spend in configuration $q$, over all of them", "x"),
    ),
    objective=Row("M"),
    constraints=(
        Row(r"\sum_{q \in Q_k} W_q \cdot x_q \ge E_k", every="k", note="All work is done.", parts=("work_done",)),
        Row(
            r"\sum_q u_{q,r} \cdot x_q \le U_r \cdot (M - \min_j a_j)",
            every="r",
            note="Resource seconds, as (2) and (3) over the whole run.",
            parts=("resource_rounds",),
        ),
    ),
    duals="Those of the resources say which one makes the run as long as it is.",
    example=EXAMPLE,
)

JCT = intervals(
    "synergy.jct",
    volume=r"v_j = E_j \cdot \min_{i,c,m} \frac{\alpha_i \cdot (g_j/G_i, c/C_i, m/M_i)}{W_j[c,m,i]}",
    weights="GPUs, CPUs and memory of every GPU type",
    mean=True,
    example=EXAMPLE,
)

for _formulation in (
    LP1, HETERO_LP1, FREE, ORACLE, ILP1, HETERO_ILP1, JCT, MAKESPAN, VERTEX, FEWEST, UNPRUNED,
):  # fmt: skip
    FORMULATIONS.register(_formulation)
