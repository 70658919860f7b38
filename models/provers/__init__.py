"""Provers find the multipliers that prove a bound; each problem has one prover, whichever method claims the bound.

A model claims a bound. The prover takes multipliers, from the model if it has some and otherwise from a relaxation of
the problem, and rounds them. The rule of the problem (:mod:`schedgap.certificates`) then derives the bound that follows
by weak duality, from the raw instance. The multipliers are, for packing problems (Hadar, Zhou, admission), prices of
capacity in slots, with every job's best response to them; for fluids, prices over intervals; for single machines,
constant prices; for linear programs, the duals of the rows; and for placements, the values of whole jobs on a server.

Each paper's `provers` file registers the provers of its problems in :data:`PROVERS`, and so may a plug-in. This folder
has what they share.
"""

from schedgap.models.provers.registry import PROVERS, Content, ProverSpec, prove

__all__ = ["PROVERS", "Content", "ProverSpec", "prove"]
