r"""Column generation for packing problems with one column per block, free of any paper.

Hadar's P2, Zhou's schedules and the admission example have one shape: a job (*block*) takes at most one of its
exponentially many schedules (*columns*), which use GPUs in slots (*capacities*).

.. math:: \max \sum_c v_c x_c, \quad \sum_c u_{ic} x_c \le C_i, \quad \sum_{c \in b} x_c \le 1, \quad x_c \in \{0, 1\}

A paper gives an *oracle* that finds the best columns at given prices of the capacities. Here are the rest:

- :func:`generate` solves the LP relaxation: restricted master in HiGHS (primal simplex from the last basis), Wentges
  smoothing, column clean-up, and a Lagrangian bound :math:`\sum_i C_i k_i + \sum_b \max(0, \max_c v_c - k u_c)`
  in every round, valid at any prices;
- :class:`Windows` of time have the rows of a master at first, and are split where that matters; from its second domain
  on, single capacities have some as soon as they are broken;
- :class:`Domain` is what branching decides: when blocks end, which is another table of what columns are worth, and what
  they take of rows. :class:`Tree` is branch and bound over domains with the columns of all nodes; profits by end at a
  node's prices also close the ends that no better solution has;
- :class:`Covers` are rows that cut off fractions of big blocks beside small ones, for pricing that takes their prices;
- :class:`Dive` fixes columns one after another and prices the rest anew;
- :class:`Packer` improves integer solutions: ruin and recreate by simulated annealing with the paper's own insertion
  (:class:`Inserting`, or compiled moves), from known decisions and from the relaxations of nodes;
- :func:`solve_in_phases` does all of it within one time limit, for an exact answer or a gap that is true;
- :func:`statement` is the master in Pyomo, for teaching and for the test that both agree.
"""

from schedgap.models.columns.branching import Branch, Close, Tree
from schedgap.models.columns.covers import Covers
from schedgap.models.columns.diving import Dive
from schedgap.models.columns.domain import Domain, Use, children
from schedgap.models.columns.generation import Generated, GenerationOptions, Oracle, Price, Priced, generate, lagrangian
from schedgap.models.columns.integer import Choice, Insert, Inserting, Packed, Packer, PackingOptions, Start
from schedgap.models.columns.master import Master, Relaxation, choose
from schedgap.models.columns.packing import Columns, Packing, statement
from schedgap.models.columns.phases import Answer, PackingProblem, solve_in_phases
from schedgap.models.columns.windows import Windows

__all__ = [
    "Answer", "Branch", "Choice", "Close", "Columns", "Covers", "Dive", "Domain", "Generated", "GenerationOptions",
    "Insert", "Inserting", "Master", "Oracle", "Packed", "Packer", "Packing", "PackingOptions", "PackingProblem",
    "Price", "Priced", "Relaxation", "Start", "Tree", "Use", "Windows", "children", "choose", "generate",
    "lagrangian", "solve_in_phases", "statement",
]  # fmt: skip
