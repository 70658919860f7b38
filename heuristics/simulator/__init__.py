"""A deterministic, round-based cluster simulator: one engine for the policies of every paper.

At the start of each round a *policy* sees a :class:`State` and returns an :class:`Assignment` of whole GPUs
to jobs. The engine checks the assignment, advances the work and records the round::

    trace = simulate(workload(instance), servers(instance), policy, round_s=300.0)
    trace.jct_s.mean(), trace.utilisation

Rules
-----
- A job that arrives during a round waits for the next one. It leaves when its work is done, to the second within
  the round, or when its tenant leaves.
- A gang runs with all its GPUs or not at all. All its GPUs run at the rate of the slowest type among them, so
  its rate is ``gpus · min rate``; :attr:`Assignment.speed` scales it further (fewer CPUs, contention).
- If jobs may fork (HadarE), every entry of an assignment is a copy of the job on its own server: it advances at its
  own rate, and the work of the copies adds up.
- If rates are *sensitive* (Synergy), policies also give out CPUs and memory (:class:`Shares`). A gang then uses one GPU
  type and at most the CPUs and memory of as many of the largest servers as its GPUs need. Its table
  (:mod:`schedgap.instances.sensitivity`) gives its rate at the least CPUs and the least memory that any of its GPUs
  has. Changing CPUs and memory costs nothing. Policies do not see a job while it is profiled.
- A gang that spans servers runs at `spread_factor` of its rate. With `network`, it also exchanges its gradients after
  each iteration, at the bandwidth of the servers.
- A job that has run before and now holds other GPUs than in the previous round loses `restart_s` seconds of the
  round (checkpoint and restore). A first start costs nothing.
- A job that no allocation could run is never offered to a policy. :attr:`Trace.unfinished` gives the reason for every
  job that does not complete.

For policies that decide only the GPU types of gangs, :mod:`schedgap.heuristics.simulator.gangs` lists the options of a
gang and finds servers; :mod:`schedgap.heuristics.simulator.metrics` evaluates histories. Loops over the entries of
assignments are compiled (``_kernels``).

To add a policy, write a function (or an object with ``__call__`` if it keeps state) from :class:`State` to
:class:`Assignment` and register a :class:`PolicySpec`. Jobs are identified by their index in the workload everywhere,
so a policy's own state stays valid between rounds. Policies must not write to the arrays they see.
:mod:`schedgap.heuristics.simulator.program` connects schedulers written in other languages.
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
