r"""Smith 1956 as a plug-in: jobs run one after another on the whole cluster, with the least mean completion time.

W. E. Smith, Various optimizers for single-stage production, Naval Research Logistics Quarterly 3, 1956. All jobs are
available at the start; job :math:`j` takes :math:`p_j` hours at its best rate. The decision is an order. Its cost is

.. math::
    \min \sum_j \sum_k (n - k + 1)\, p_j\, x_{jk}

because the job in position :math:`k` of :math:`n` delays itself and all jobs after it. The matrix of the two families
of constraints is totally unimodular, so the linear program has integral optima.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

import schedgap as sg
from schedgap.certificates import register
from schedgap.certificates.basics import Data, require
from schedgap.harness.check import VERIFIERS, Verdict, VerifierSpec, differ
from schedgap.harness.show.plots.results import Compared
from schedgap.harness.show.plots.style import rows
from schedgap.harness.studies.audit.lab import ClaimLab, certified
from schedgap.harness.studies.audit.row import claim
from schedgap.heuristics.registry import Context
from schedgap.heuristics.simulator import Assignment, Policy, State
from schedgap.heuristics.simulator.gangs import GangOptions, in_order
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.generate import FAMILIES, Family, GeneratorSpec, Streams, generate
from schedgap.instances.importers import IMPORTERS, ImporterSpec, Options
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.random_instances import RANDOM, RandomSpec
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Cluster, GpuType, Instance, Job, ServerGroup, rule
from schedgap.instances.workload import servers, workload
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.provers import PROVERS, Content, ProverSpec
from schedgap.models.provers.rounding import duals, listed, unit_of, whole
from schedgap.models.registry import Outcome

WAITING = Problem("smith.waiting", "least mean completion time, one job after another", "min", "h")


@dataclass(frozen=True, eq=False)
class View:
    """An instance, and the hours ``(n,)`` that each job takes at its best rate."""

    instance: Instance
    hours: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Order:
    """A decision: the jobs ``(n,)`` in the order in which they run."""

    jobs: NDArray[np.int64]


def view(instance: Instance) -> View:
    """Return the view of an instance: the hours of its jobs."""
    if not instance.jobs:
        raise NotApplicableError(f"{instance.name}: there are no jobs to order")
    work = workload(instance)
    best = work.rates.max(axis=1)
    if not (best > 0).all():
        raise NotApplicableError(f"{instance.name}: a job runs on no GPU type")
    return View(instance, work.work / (work.gpus * best) / 3600)


PAPERS.register(
    PaperSpec(
        id="smith",
        title="Various optimizers for single-stage production (Smith, Naval Research Logistics Quarterly 1956)",
        view=view,
        problems=(WAITING,),
        decision=Order,
        describe=lambda view: f"{view.hours.size} jobs, {view.hours.sum():.4g} h of work",
    )
)


def read(data: Mapping[str, Any]) -> NDArray[np.float64]:
    """Read the hours of the jobs from a raw instance, for the checker, which shares no code with :func:`view`."""
    best = [job["gpus"] * max(job["rates"].values()) for job in data["jobs"]]
    work = [job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1) for job in data["jobs"]]
    return np.array(work) / np.array(best) / 3600


def check(hours: NDArray[np.float64], decision: Order, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check that every job runs once, and compute the mean completion time."""
    jobs = np.asarray(decision.jobs)
    if jobs.dtype.kind != "i" or not np.array_equal(np.sort(jobs), np.arange(hours.size)):
        return Verdict(None, ("an order must contain every job once",))
    completed = hours[jobs].cumsum()
    best = float(np.sort(hours).cumsum().mean())
    wrong = () if "shortest first" not in claims or not differ(completed.mean(), best) else ("not the best",)
    return Verdict(float(completed.mean()), wrong, {"makespan": float(completed[-1])})


def exact_hours(data: Data) -> list[Fraction]:
    """Return the exact hours of the jobs of a raw instance, for the rule that checks certificates."""
    best = [job["gpus"] * Fraction(max(job["rates"].values())) for job in data["jobs"]]
    work = [job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1) for job in data["jobs"]]
    return [Fraction(amount) / rate / 3600 for amount, rate in zip(work, best, strict=True)]


def in_turn(instance: Data, proof: Data) -> tuple[int, Fraction]:
    r"""Return a lower bound from multipliers of jobs: a position costs at least its cheapest job less the multiplier.

    At multipliers :math:`u_j` of (2), a solution of (1) costs :math:`\sum_j u_j` plus, for each position :math:`k`, at
    least :math:`\min_j (n - k + 1) p_j / n - u_j`.
    """
    hours, unit = exact_hours(instance), Fraction(proof["unit"])
    own = [unit * Fraction(number) for number in proof["jobs"]]
    require(len(own) == len(hours), "there must be one multiplier for each job")
    delayed = range(len(hours), 0, -1)
    rest = (min(k * h / len(hours) - u for h, u in zip(hours, own, strict=True)) for k in delayed)
    return -1, sum(own, Fraction(0)) + sum(rest, Fraction(0))


register(WAITING.id, in_turn, reads=("jobs",))


def multipliers(view: View, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return the shadow prices of the jobs as whole numbers of a unit, for the certificate."""
    if outcome.solution.row_duals is None:
        return None
    own = duals(outcome.solution, "job", (view.hours.size,))
    unit = unit_of(float(np.abs(own).max()))
    return {"unit": unit, "jobs": listed(whole(own, unit))}


PROVERS.register(ProverSpec(WAITING.id, multipliers))

VERIFIERS.register(VerifierSpec("smith", read, check, quantities=lambda problem: ("makespan",)))


def decode(view: View, model: pyo.ConcreteModel, solution: Solution) -> Order:
    """Read the order of the jobs from a solution of the model."""
    chosen = solution.array(model.x).reshape(view.hours.size, -1)
    return Order(chosen.argmax(axis=0))


@sg.model("smith.assignment", decode=decode, source="Smith 1956, as an assignment of jobs to positions")
def assignment(view: View) -> pyo.ConcreteModel:
    r"""Return the model that assigns jobs to positions.

    .. math::
        \min \frac{1}{n} \sum_j \sum_k (n - k + 1)\, p_j\, x_{jk} \tag{1}

    .. math::
        \sum_k x_{jk} = 1 \quad \forall j \tag{2} \label{job}

    .. math::
        \sum_j x_{jk} = 1 \quad \forall k \tag{3} \label{place}

    - :math:`x_{jk} \ge 0`, ``x``: job :math:`j` is in position :math:`k`.
    """
    m, n = pyo.ConcreteModel(), view.hours.size
    m.J, m.K = pyo.RangeSet(0, n - 1), pyo.RangeSet(0, n - 1)
    m.x = pyo.Var(m.J, m.K, bounds=(0, 1))
    m.waiting = pyo.Objective(expr=sum((n - k) * view.hours[j] / n * m.x[j, k] for j in m.J for k in m.K))

    @m.Constraint(m.J)
    def job(m: pyo.ConcreteModel, j: int) -> Any:
        return sum(m.x[j, k] for k in m.K) == 1

    @m.Constraint(m.K)
    def place(m: pyo.ConcreteModel, k: int) -> Any:
        return sum(m.x[j, k] for j in m.J) == 1

    return m


@sg.heuristic("smith.spt", kind="online", source="Smith 1956, the shortest job first", claims=("shortest first",))
def spt(view: View, context: Context) -> Order:
    """Return the jobs in order of their hours, which is optimal."""
    return Order(np.argsort(view.hours, kind="stable"))


@sg.heuristic("smith.as_given", source="the order of the instance, as a baseline")
def as_given(view: View, context: Context) -> Order:
    """Return the jobs in the order of the instance."""
    return Order(np.arange(view.hours.size))


@sg.policy("smith.spt", source="Smith 1956, as a policy: the shortest job first, alone", reference="smith.spt")
def alone(instance: Instance, oracle: Any) -> Policy:
    """Return the policy that runs only one job at a time, the shortest active one."""
    gangs = GangOptions(workload(instance), servers(instance))

    def shortest_alone(state: State) -> Assignment:
        left_s = state.remaining / (state.gpus * gangs.best_rate[state.jobs])
        return gangs.assignment(state, gangs.take_fastest(in_order(state, left_s)[:1]))

    return shortest_alone


@sg.figure("smith.completed", "Jobs completed", of="instance")
def completed(data: Compared) -> tuple[alt.Chart, str]:
    """Jobs completed over time (h)."""
    steps = [
        {"method": method, "h": hour, "jobs": count}
        for method, order in data.decisions.items()
        for count, hour in enumerate(data.view.hours[order.jobs].cumsum(), start=1)
    ]
    chart = alt.Chart(rows(steps)).mark_line(interpolate="step-after").encode(x="h:Q", y="jobs:Q", color="method:N")
    return chart, data.sample(data.rows)


class Drawn(GeneratorSpec):
    """A family of instances of single-GPU jobs with exponentially distributed hours."""

    jobs: int = rule("one or more jobs", ge=1, default=6)
    mean_h: float = rule("a positive number of hours", gt=0, default=2.0)


def build(spec: Drawn, streams: Streams) -> Mapping[str, Any]:
    """Draw the hours of the jobs."""
    return parts(-spec.mean_h * np.log1p(-streams.uniform("hours", spec.jobs)))


def parts(hours: NDArray[np.float64]) -> Mapping[str, Any]:
    """Return the fields of an instance with one GPU and jobs that take these hours on it."""
    work = np.maximum(1, hours * 3600).round().astype(int).tolist()
    host = ServerGroup(name="s", count=1, gpu_type="G", gpus=1)
    return {
        "cluster": Cluster(gpu_types=(GpuType(name="G"),), servers=(host,)),
        "jobs": tuple(Job(id=f"J{j}", gpus=1, epochs=n, rates={"G": 1.0}) for j, n in enumerate(work)),
    }


FAMILIES.register(Family("smith", Drawn, build))


def small(rng: np.random.Generator) -> Instance:
    """Return an instance of two to five random jobs, for ``harness adversary``."""
    document = {"generator": {"family": "smith", "jobs": int(rng.integers(2, 6)), "seed": int(rng.integers(1000))}}
    return generate(document, {}, name="small")


RANDOM.register(RandomSpec("smith", small))


@claim(
    "smith.shortest-first",
    "Smith 1956, theorem 3",
    how="the order against the optimum of the assignment, on random instances",
)
def shortest_first(lab: ClaimLab) -> str:
    """The shortest job first minimises the mean completion time."""
    rng = lab.rng()
    for _ in range(lab.times(3)):
        instance = small(rng)
        rows = certified(instance, ["smith.spt", "smith.assignment"])
        gap = rows["smith.spt"].gap or 0.0
        lab.add(not differ(1.0 + gap, 1.0), instance, ["smith.*"], f"smith.spt has a gap of {gap:.2g}")
    return f"{lab.tested} random instances"


def hours_of(rows: FileRows, options: Options) -> Instance:
    """Read an instance from a file that has the hours of one job per line."""
    hours = [float(line) for line in rows.path.read_text().splitlines()]
    return Instance(name=options.name or rows.path.stem, **parts(np.array(hours)))


IMPORTERS.register(
    ImporterSpec(
        "hours", "hours of jobs", "a number in each line", "nowhere", "none", hours_of, recognise=lambda line: 0
    )
)
