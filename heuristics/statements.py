r"""What the algorithms do, in steps: the statement of every heuristic, as ``harness explain`` prints it.

A statement is a tuple of sentences with formulas in LaTeX between dollars. Whole runs of Synergy's mechanisms are those
of a policy and a mechanism.
"""

from __future__ import annotations

Statement = tuple[str, ...]

_HADAR: Statement = (
    r"Prices (5): a GPU of type $r$ on server $h$, of which $\gamma$ of $c_h^r$ are in use, costs "
    r"$k_h^r(\gamma) = U_{\min}^r \cdot (U_{\max}^r/U_{\min}^r)^{\gamma/c_h^r}$ per round, with $U_{\max}$ and "
    r"$U_{\min}$ of the workload, (6) and (7).",
    "In every round, all unfinished jobs are planned from an empty cluster (Algorithm 1).",
    "FIND_ALLOC: for every pace that a gang can have, the highest first, its cheapest packed and its cheapest spread "
    "allocation; "
    "the one of "
    r"largest payoff counts: $\mu_j = U_j(\hat{f}) - \sum_t k_h^r(\gamma_t) \cdot w_{j,t,h}$, the utility at the "
    r"expected "
    "completion less the cost of all rounds until then.",
    "DP_allocation (Algorithm 2): every job is taken with its best allocation or left out, whichever leads to "
    "the larger "
    "total payoff; exactly in short queues, by a beam of best states in longer ones.",
    "Line 20 as printed compares costs and schedules nothing: erratum. Lines 6, 7, 28–31 as printed are settings.",
)

_TRADING = "Jobs keep one GPU type in a round, unless no single type could ever hold the gang."

STATEMENTS: dict[str, Statement] = {
    "hadar.online": _HADAR,
    "hadar.hadare": (
        "Every job is forked to a copy per node; copies of a job run at once (HadarE, §V).",
        r"A set of copies is worth $\mu = U_j(now + left/X) - left/(X \cdot L) \cdot cost$ with $X$ their rate "
        r"together.",
        "The copy that adds most to its job's payoff is placed next, until none fits: no node idles while a job "
        "has a copy.",
        "The Job Tracker splits the steps that are left in proportion to the rates it knows: (10) first, "
        "measured later.",
    ),
    "hadar.gavel": (
        r"Shares of time $Y_{j,o}$ that maximise the least $(W_j/w_j) \cdot \sum_o X_{j,o} \cdot Y_{j,o} / "
        r"X_j^{eq}$, the "
        "throughput beside that of an equal share of the cluster, by a linear program (Gavel, §4.1).",
        r"In every round the pairs of job and GPU type go by $Y_{j,o}$ over the rounds received (§5); what does "
        r"not fit "
        "is passed over, and GPUs that are left go to jobs without a share of their type.",
    ),
    "hadar.gavel_throughput": (
        r"Shares of time $Y_{j,o}$ of the largest total throughput $\sum_j \sum_o W_j \cdot X_{j,o} \cdot Y_{j,o}$.",
        "Rounds as in hadar.gavel.",
    ),
    "hadar.tiresias": (
        "Two queues by attained service (GPUs times seconds): a job falls into the second one at a threshold and "
        "stays.",
        "The first queue goes before the second, each first in, first out; a job that does not fit is passed over, and "
        "running jobs may be preempted.",
        f"It does not know types: jobs go where most GPUs are free, of equal types to any. {_TRADING}",
    ),
    "hadar.yarn_cs": (
        "First in, first out, without preemption; an application that cannot be served is passed over.",
        f"It does not know types: a job starts where most GPUs are free, of equal types on any. {_TRADING}",
    ),
    "hadar.allox": (
        r"Jobs to (device, position from the end) by a least-cost matching: in position $p$ from the end a job costs "
        r"$p \cdot time$, so that single-GPU jobs have the least sum of completion times on unrelated devices.",
        "A gang counts with its GPU seconds on one device, an approximation: AlloX knows no gangs.",
    ),
    "hadar.fifo": (
        "In the order of arrival, each on the fastest type that has room; one that fits nowhere stops those behind it.",
    ),
    "hadar.srtf": (
        r"The least $left/(W_j \cdot \max_r X_j^r)$ first, each on the fastest type with room; others are passed over.",
    ),
    "oef.rounding": (
        r"Shares of oef.cooperative; for every type, what is owed is $dev_l = \sum ideal_l - \sum real_l$ (§4.3).",
        "Everybody gets the whole devices owed, then devices go one by one to whoever is owed most: the paper's "
        "independent rounding exceeds capacity (erratum).",
        "Less than a tenant's smallest job needs is kept for later rounds.",
    ),
    "oef.rounding_tijdeman": (
        r"As oef.rounding, but one device at a time to the earliest deadline among tenants with a debt, the "
        r"deadline being "
        r"when the debt would reach one device (Tijdeman): $|dev_l| < 1$ at all times while shares do not change.",
    ),
    "oef.gandiva_fair": (
        "Every tenant starts with an equal split, by weight.",
        "For a slow and a fast type, the holder of slow devices with the highest ratio of speedups buys from the "
        "holder "
        "of fast devices with the lowest one, at a second price between the two, as much as either has.",
        "The pair with the greatest gap is traded to the end first; rounds over all pairs until nothing moves.",
    ),
    "admission.online": (
        r"A unit of a type costs $\eta = \theta^{h(t)/C} - 1$ in slot $t$, where $h$ of $C$ are in use and "
        r"$\theta$ is the "
        "largest utility per slot of any schedule, plus 1.",
        "For every arriving job, every start and number of workers: the cheapest schedule on one server "
        "(COST_C), and one "
        "on several (COST_D).",
        "The schedule of largest payoff $f - cost$ is admitted if that is positive; then usage and prices are updated.",
    ),
}

_COMPLETION: Statement = (
    r"At $\tau_i = 2^{i-1}$ the jobs that have arrived and are not scheduled become batch $i$ (Algorithm 1).",
    r"A_dual (Algorithm 2) plans $\alpha$ windows of $\tau_i$ slots, A_maxweight on what is left in each. They run in "
    r"$[\alpha \tau_i, \alpha \tau_{i+1})$; jobs not scheduled then belong to the next batch (line 10).",
    r"Lemma 1 promises $4\alpha$ where each batch gets at least the weight that any schedule completes by $\tau_i$.",
    r"Rows state it where a run is shown to: a fractional knapsack bounds that weight. Few runs with $\alpha = 1$ are.",
)
_WEIGHT: Statement = (
    r"A_maxweight (Algorithm 3): jobs by descending weight, at prices (11) $\lambda^{\beta/C} - 1$ with "
    r"$\lambda = 2 (T H R F) + 1$; a job runs by its cheapest schedule if that costs less than its weight.",
)
_COST: Statement = (
    "A_mincost (Algorithms 4 to 7): for every types, duration and start, workers on the cheapest servers, and with PSs "
    "every host for them with as many workers beside it as fit; repaired, so that no worker goes missing.",
    "As printed (printed=true), Algorithm 4 may ask for no PS at all, and Algorithm 7 places as many workers as slots.",
)

_ZHOU: dict[str, Statement] = {
    "online": (*_COMPLETION, *_WEIGHT, *_COST),
    "amaxweight": (*_WEIGHT, *_COST),
    "amincost": _COST,
    "jain": (
        "By weight per resource and slot, each with the schedule that takes least by the deadline (Jain et al.).",
    ),
    "fifo": (
        "In the order of arrival, without interruption, with a number of workers drawn between 1 and 30 and cut to the "
        "largest that fits on the empty cluster.",
    ),
    "drf": ("Numbers of workers that make dominant shares max-min fair among waiting jobs, without interruption.",),
    "antman": (
        "Guaranteed jobs, the heavier half, first; opportunistic ones on what is left, and interrupted for them.",
    ),
    "tiresias": ("Least remaining work times GPUs first, slot by slot, with interruptions.",),
}

STATEMENTS |= {f"zhou.{arch}.{name}": steps for arch in ("ps", "ra") for name, steps in _ZHOU.items()}

_PLACED = ("A gang that no server holds is spread over the fewest, CPUs and memory in proportion to the GPUs on each.",)

_MECHANISMS: dict[str, Statement] = {
    "proportional": ("Every picked job gets its GPU-proportional share of CPUs and memory (§2).", *_PLACED),
    "greedy": (
        "In the policy's order, each job with its whole demand on the first server that holds it; one that fits "
        "nowhere is "
        "passed over (§3.3).",
    ),
    "tune": (
        "Picked jobs by descending GPUs, CPUs and memory, each on the fullest server that holds its demand (§4.2); "
        "with order=policy and fit=first, in the policy's order, each on the first such server (the paper's artefact).",
        "One that fits nowhere falls back to the elementwise least of demand and share; if that does not fit, "
        "jobs above "
        "their shares on its server do, the most above first. Elementwise, so that nobody grows in another dimension.",
        *_PLACED,
    ),
    "refill": (
        "As synergy.tune; then what servers have left goes to jobs that fell back, in the policy's order. Not "
        "the paper's.",
    ),
    "opt": (
        "CPUs and memory by ILP1 (1)–(5), placed by the vertex of LP2 (15)–(19); fractions of GPUs are rounded "
        "by largest "
        "remainder, and where servers are overfull jobs fall back (§4.1).",
        "Or by best fit, where that makes more progress.",
    ),
    "drf": (
        "The queue goes by the smallest dominant share of a job's demand, as in the paper's artefact; with by=tenant, "
        "of a tenant's jobs together (progressive filling).",
        "Static demands are met as a whole, on the first server that holds them, or not at all.",
    ),
    "tetris": (r"Always the job and server of the largest alignment $free \cdot demand$, with whole demands.",),
}

_POLICIES: dict[str, str] = {
    "fifo": "The queue goes by arrival.",
    "srtf": "The queue goes by shortest remaining time.",
    "las": "The queue goes by least attained service.",
    "ftf": r"The queue goes by the largest (or smallest) $\rho$, finish time shared over finish time alone (Themis).",
    "static": "In every round, with static demands.",
    "tune": "In every round, placed with Synergy-Tune (§5.7).",
}


def statement(name: str) -> Statement:
    """Return the statement of a heuristic, nothing if there is none.

    Parameters
    ----------
    name
        Its id.
    """
    if name in STATEMENTS:
        return STATEMENTS[name]
    paper, _, rest = name.partition(".")
    mechanism, _, policy = rest.partition(".")
    if paper != "synergy" or mechanism not in _MECHANISMS or policy not in {"", *_POLICIES}:
        return ()
    return (*((_POLICIES[policy],) if policy else ()), *_MECHANISMS[mechanism])
