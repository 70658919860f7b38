"""HadarE (§V): every job is forked into one copy per node, and its copies run at the same time.

Every round plans all copies anew. "All copies of the job are sent to Hadar for scheduling" (§V-A), each as its own job.
At the start of a round the steps left are divided "into n portions according to their respective throughput values",
one for each copy (§V-B). So all portions of a job take equally long, and a copy has the payoff of a job in Hadar (line
31): the utility at that end, in whole rounds, less the cost of a round::

    μ(copy) = U_j(now + rounds of a portion · L) − cost                 payoff="portion"

The copy of highest payoff is placed next, until none fits; of equal ones, the copy of larger throughput. If nodes have
one GPU, no plan of Algorithm 2 has a larger total. No node idles while a job has a copy left, even if the copy's payoff
is negative (Corollary); on the mixes of §VI, no node would idle under Algorithm 2 either. Two settings are not the
paper's. In one, a copy has all steps of its job, which it runs alone; in the other, copies have the payoff of a job in
Hadar together, with the summed throughput ``X`` and the summed cost, in continuous time because most copies save no
whole round, and the one that adds most to it is placed next::

    μ(copy)   = U_j(now + rounds left alone · L) − rounds left alone · cost       payoff="copy"
    μ(copies) = U_j(now + remaining / X) − remaining / (X · L) · cost             payoff="job"

``docs/experiments.md`` has the measured effects.

The last round "may involve β nodes" (§V-A), the fastest of those that completed their steps in the round before; how
many, the paper leaves open. Here all nodes take part; `last` is another β.

A copy takes ``min(W_j, free GPUs)`` of its server (the paper's nodes have one GPU). A server can hold copies of several
jobs; a server with GPUs of several types is one node per type. The Job Tracker divides the remaining steps "into n
portions", one per node, by the throughputs it knows: (10) at first, the measured rate after a round on that
type. Portions of nodes that train another job stay undone, and a wrong split costs time; see :func:`pace`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedgap.heuristics.hadar.online import in_rounds
from schedgap.heuristics.hadar.planning import price_list
from schedgap.heuristics.hadar.prices import prices
from schedgap.heuristics.simulator import Assignment, State
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.model_catalogue import PCIE, CatalogueModel, find, gpu_type, pcie_version
from schedgap.instances.schema import GpuType, Instance
from schedgap.instances.views.hadar import HadarView

BATCH_SIZE = 64
GRADIENT_MB = (50.0, 200.0, 500.0)
MODEST = 2
DATASETS = {"S": 1, "M": 2, "L": 3, "XL": 4}
DATASET = {
    "ResNet-50": "XL",
    "ResNet-18": "S",
    "LSTM": "L",
    "CycleGAN": "M",
    "Transformer": "L",
    "Autoencoder": "XL",
    "MiMa": "M",
}
"""Dataset size by model or model family (Tables II and III)."""


class HadarE:
    """The scheduler HadarE, which may run a job as several copies on different servers.

    Jobs with several copies lose `overhead_s` seconds per round to aggregation and consolidation. A job has at most
    `copies` of them, where 0 means one per node (§V, f and n); f copies get the portions of the job's f fastest nodes.
    `payoff` says what a copy is worth, and `last` is β, where 0 means all nodes. `pcie` is that of :func:`initial`.
    `dispatched` holds the Job Tracker's orders of every round.

    See Also
    --------
    schedgap.heuristics.hadar.hadare : the payoff of copies, and the order in which they are placed.
    schedgap.heuristics.hadar.hadare.initial : the throughput (10), with which the Job Tracker starts.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        overhead_s: float = 0.0,
        copies: int = 0,
        payoff: Literal["portion", "copy", "job"] = "portion",
        last: int = 0,
        pcie: float = 1.0,
    ) -> None:
        self._instance, self._overhead_s = instance, overhead_s
        self._copies, self._payoff, self._last = copies, payoff, last
        self._initial = initial(instance, pcie)
        self._measured = np.zeros(self._initial.shape, bool)
        self._view: HadarView | None = None
        self.dispatched: list[Dispatch] = []

    def __call__(self, state: State) -> Assignment:
        """Return the copies that run this round."""
        if not 0 <= self._overhead_s < state.round_s:
            value = f"HadarE: overhead_s = {self._overhead_s:g}"
            raise UsageError(f"{value}: it must be at least 0 and less than a round of {state.round_s:g} s")
        if self._view is None:
            self._view = in_rounds(self._instance, state)
            self._hosts = price_list(self._view.servers, prices(self._view))
        rates = estimate(self._initial[state.jobs], state.rates, self._measured[state.jobs])
        nodes = self._nodes(state)
        by_node = np.minimum(state.gpus[:, None], state.servers.gpus) * rates[:, state.servers.gpu_type] * nodes
        total = np.sort(by_node, axis=1)[:, -self._copies :].sum(axis=1)
        row, server, gpus = self._place(state, self._view, rates, total)
        row, server, gpus = row[nodes[server]], server[nodes[server]], gpus[nodes[server]]
        if not row.size:
            return Assignment.of(())
        kind = state.servers.gpu_type[server]
        throughput = gpus * rates[row, kind]
        steps = split(row, state.remaining, throughput, total)
        speed = pace(row, steps, gpus * state.rates[row, kind], state.round_s, self._overhead_s)
        job = state.jobs[row]
        copy = copy_id(state.workload.size, server + 1, job)
        self.dispatched.append(Dispatch(copy, job, server, gpus, steps))
        self._measured[job, kind] = True
        return Assignment(job, server, gpus, speed)

    def _nodes(self, state: State) -> Bools:
        """Return which servers take part in this round: all, or in the last round the β fastest (`last`).

        It is the last round if one job is left and β nodes can do its steps: those which were the first to complete
        their steps in the round before.
        """
        everywhere = np.ones(state.servers.size, bool)
        if not self._last or state.jobs.size > 1 or not self.dispatched:
            return everywhere
        before, round_s = self.dispatched[-1], state.round_s - self._overhead_s
        mine = before.job == state.jobs[0]
        rate = before.gpus[mine] * state.rates[0, state.servers.gpu_type[before.server[mine]]]
        took = before.steps[mine] / rate
        first = np.argsort(took, kind="stable")[: min(self._last, np.count_nonzero(took <= round_s))]
        if state.remaining[0] > rate[first].sum() * round_s:
            return everywhere
        return np.isin(np.arange(state.servers.size), before.server[mine][first])

    def _place(self, state: State, view: HadarView, rates: Array, portions: Array) -> tuple[Ints, Ints, Ints]:
        """Choose the copies of this round; return the row of the job, the server and the GPUs of each.

        Copies are sorted by row, then by server. `portions` ``(a,)`` is the throughput of all portions of each job.
        """
        from schedgap.heuristics.hadar._kernels import ADDED, ALL, PORTION, Forking, fork

        waited_s = np.asarray((state.round - view.arrival[state.jobs]) * view.slot_s, float)
        worth, most = view.utilities.of(state.jobs), self._copies or state.servers.size
        about = {"portion": PORTION, "copy": ALL, "job": ADDED}[self._payoff]
        jobs = Forking(state.gpus, state.remaining, waited_s, rates, portions, worth, most, about)
        row, server, gpus = fork(self._hosts, jobs, view.slot_s).T
        order = np.argsort(row * state.servers.size + server)
        return row[order], server[order], gpus[order]


@dataclass(frozen=True, eq=False)
class Dispatch:
    """The Job Tracker's orders to the copies of a round, one entry per copy.

    `copy` is the copy's identity (§V-A), `steps` are the iterations it has to do.
    """

    copy: Ints
    job: Ints
    server: Ints
    gpus: Ints
    steps: Array


def copy_id(max_job_count: int, i: Ints, parent: Ints) -> Ints:
    """Return the identity ``max_job_count · i + parent`` of the `i`-th copy (from 1) of the job `parent` (§V-A)."""
    return np.asarray(max_job_count * i + parent)


def split(job: Ints, remaining: Array, throughput: Array, total: Array) -> Array:
    """Split the remaining steps of jobs among their copies in proportion to throughput (§V-B); return copies' steps.

    `job` ``(copies,)`` is the row of each copy's job in `remaining` and in `total`, the throughput of all portions of a
    job. `throughput` ``(copies,)`` is the tracker's estimate for each copy and positive.
    """
    return np.asarray(remaining[job] * throughput / total[job])


def pace(job: Ints, steps: Array, rate: Array, round_s: float, overhead_s: float) -> Array:
    """Return how fast each job is in a round, as a factor on the summed rate of its copies, by ascending job.

    A copy that has done its steps waits for the next round. A copy that is too slow to do all its steps leaves the rest
    to the next round. Jobs with two or more copies lose `overhead_s` to aggregation and consolidation. `job`, `steps`
    and `rate` ``(copies,)`` are the row of a copy's job, its steps, and its true iterations per second.
    """
    _, row, copies = np.unique(job, return_inverse=True, return_counts=True)
    overhead = np.where(copies > 1, overhead_s, 0.0)
    total = np.bincount(row, rate)
    needed = np.zeros(copies.size)
    np.maximum.at(needed, row, steps / rate)
    done = np.bincount(row, np.minimum(steps, rate * (round_s - overhead)[row]))
    assigned = np.bincount(row, steps)
    finishes = needed <= round_s - overhead
    return np.asarray(np.where(finishes, assigned / (needed + overhead), done / round_s) / total)


def utilisation(rounds: int, nodes: int, copies: int) -> float:
    """Return the fraction of the cluster that one job uses with a number of copies (Theorem 3).

    Case II: a job that takes `rounds` rounds on one node takes ``⌈rounds / copies⌉`` with copies. The theorem's strict
    inequalities (11) fail if two numbers of copies take equally long: 3 rounds of work on 5 nodes take one round, 60 %
    of the cluster, with 3, 4 or 5 copies.

    `rounds` is ``R_1``, without forking; more than `nodes` copies make no difference (Case IV).
    """
    return rounds / (nodes * math.ceil(rounds / min(copies, nodes)))


def pmi(gpu: GpuType) -> float | None:
    """Return the performance-memory index ``TFLOPS / √(GB)`` of a GPU type, ``None`` if one of the two is unknown."""
    catalogue = gpu_type(gpu.name)
    tflops, memory_gb = gpu.tflops or catalogue.tflops, gpu.memory_gb or catalogue.memory_gb
    return tflops / math.sqrt(memory_gb) if tflops and memory_gb else None


def scale(model: CatalogueModel | None) -> float:
    """Return ``batch_size / (model_weight · dataset_size)`` of a catalogue model, or of an unknown one (``None``)."""
    if model is None:
        return BATCH_SIZE / (MODEST * DATASETS["M"])
    weight = 1 + int(np.searchsorted(GRADIENT_MB, model.gradient_mb)) if model.gradient_mb > 0 else MODEST
    dataset = DATASET.get(model.name) or DATASET.get(model.family, "M")
    return (model.batch_size or BATCH_SIZE) / (weight * DATASETS[dataset])


def initial(instance: Instance, pcie: float = 1.0) -> Array:
    """Return the ``(n, k)`` initial throughput of every job on every type, (10), in iterations per second of one GPU.

    ::

        throughput = PMI · batch_size · pcie_scaling / (model_weight · dataset_size),   PMI = TFLOPS / √(GB of memory)

    The paper prints neither scales nor units, and says of PMI only that it is the "ratio" of the two "in a square root
    fashion". Factors of the model cancel when a job's steps are split among nodes; they matter only between jobs. This
    implementation uses

    ==================  =======================================================================================
    ``batch_size``      of the catalogue model; 64 if that is unknown
    ``model_weight``    small, modest, high, extra high = 1, 2, 3, 4, by the size of the model's gradients: up to 50,
                        200, 500 MB, or more; modest if that is unknown
    ``dataset_size``    S, M, L, XL = 1, 2, 3, 4 for the models of Tables II and III, M for others
    ``pcie_scaling``    `pcie` to the power of the catalogue GPU's PCIe version above 3.0: 1, the default, ignores the
                        version; 2 follows the bandwidth, which doubles with each version. The paper means the version
                        of a node's board but does not print the versions; three of the testbed's nodes have 3.0
                        (§VI-D), as do three of its GPUs and all GPUs of the AWS cluster
    ``TFLOPS``, memory  of the instance, otherwise of the catalogue's GPU; a type without either has the mean PMI of the
                        other types, or 1. The catalogue lists FP32; the paper's values are "aided by tensor cores" and
                        not printed
    ==================  =======================================================================================
    """
    indices = [pmi(gpu) for gpu in instance.cluster.gpu_types]
    usual = float(np.mean([index for index in indices if index] or [1.0]))
    versions = np.array([pcie_version(gpu.name) for gpu in instance.cluster.gpu_types])
    by_type = np.array([index or usual for index in indices]) * pcie ** (versions - PCIE)
    by_model = {name: scale(find(name) if name else None) for name in {job.model for job in instance.jobs}}
    return np.outer([by_model[job.model] for job in instance.jobs], by_type)


def estimate(initial_rates: Array, true_rates: Array, measured: Bools) -> Array:
    """Return the Job Tracker's estimate of the ``(a, k)`` rates of jobs on GPU types.

    A rate that has been `measured` is the true one. The others are those of (10), scaled by the mean ratio of the job's
    measured rates to (10).
    """
    ratio = np.where(measured, true_rates / initial_rates, 0.0).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
    guess = initial_rates * np.where(ratio > 0, ratio, 1.0)[:, None]
    return np.where(true_rates > 0, np.where(measured, true_rates, guess), 0.0)
