"""A deterministic, round-based cluster simulation: one engine for every paper's policies.

At the start of each round a *policy* sees a :class:`State` and returns an :class:`Assignment` of whole GPUs
to jobs. The engine checks it, advances the work and records what happened::

    trace = simulate(workload(instance), servers(instance), policy, round_s=300.0)
    trace.jct_s.mean(), trace.utilisation

Rules
-----
- A job that arrives within a round waits for the next one. It is removed when its work is done, within the
  round to the second, or when its tenant leaves.
- A gang runs with all its GPUs or not at all. All its GPUs run at the rate of the slowest type among them, so
  its rate is ``gpus · min rate``; :attr:`Assignment.speed` changes it further (fewer CPUs, contention).
- Where jobs may fork (HadarE), every entry of an assignment is a copy of the job on a server of its own: it advances
  at its own rate, and the copies' work adds up.
- Where rates are *sensitive* (Synergy), policies also give out CPUs and memory (:class:`Shares`), and a gang runs at
  the rate that its table (:mod:`schedgap.instances.sensitivity`) has for the least of each per GPU; it keeps to one GPU
  type. CPUs and memory change from round to round at no cost. While a job is profiled, policies do not see it.
- A gang that spans servers runs at `spread_factor` of its rate.
- A job that has run before and holds other GPUs than in the previous round loses `restart_s` seconds of the
  round (checkpoint and restore). A first start costs nothing.

- A job that no allocation could run is never offered to a policy; every job that does not complete is named with its
  reason in :attr:`Trace.unfinished`.

Policies that think in types find options of gangs and servers for them in :mod:`schedgap.heuristics.simulator.gangs`;
what a history is judged by is in :mod:`schedgap.heuristics.simulator.metrics`. Loops over entries are compiled
(``_kernels``).

To add a policy, write a function (or an object with ``__call__`` where it remembers things) from
:class:`State` to :class:`Assignment` and register a :class:`PolicySpec`. Jobs are named by their index in the
workload everywhere, so that what a policy remembers stays valid. The arrays a policy sees are not to be
written to. Programs of other languages are asked by :mod:`schedgap.heuristics.simulator.program`.
"""

from schedgap.heuristics.simulator.engine import runnable, simulate
from schedgap.heuristics.simulator.policies import POLICIES, PolicySpec
from schedgap.heuristics.simulator.program import Program, ProgramError
from schedgap.heuristics.simulator.state import NOTHING, Assignment, InvalidAssignmentError, Policy, Shares, State
from schedgap.heuristics.simulator.trace import Rules, Trace
from schedgap.instances.workload import Servers, Workload, servers, workload

__all__ = [
    "NOTHING", "POLICIES", "Assignment", "InvalidAssignmentError", "Policy", "PolicySpec", "Program",
    "ProgramError", "Rules", "Servers", "Shares", "State", "Trace", "Workload", "runnable", "servers", "simulate",
    "workload",
]  # fmt: skip
