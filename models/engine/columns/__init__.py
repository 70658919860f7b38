r"""Column generation and branch and price for packing problems with one column per block, independent of any paper.

Hadar's P2, Zhou's schedules and the admission example have the same structure: a job (*block*) takes at most one of its
exponentially many schedules (*columns*), which use GPUs in slots (*capacities*).

.. math:: \max \sum_c v_c x_c, \quad \sum_c u_{ic} x_c \le C_i, \quad \sum_{c \in b} x_c \le 1, \quad x_c \in \{0, 1\}

A paper supplies an *oracle* for the pricing problem: the best columns at given prices of the capacities. The rest is
here:

- :func:`generate` solves the LP relaxation: restricted master in HiGHS (primal simplex from the last basis),
  stabilisation by Wentges smoothing, column clean-up, and in every round a Lagrangian bound
  :math:`\sum_i C_i k_i + \sum_b \max(0, \max_c v_c - k u_c)`, valid at any prices;
- :class:`Windows` sum the capacity rows of consecutive slots in the first master and are split where that matters. Once
  a master has moved to a second domain, it also gets the rows of single capacities that its optimum violates;
- :func:`descend` finds prices without a master, by subgradient descent, where blocks are too many for one;
- :class:`Domain` holds branching decisions: when blocks end, which only changes the table of column values, and how
  much of a capacity they use. :class:`BranchAndPrice` is branch and bound over domains; its nodes share columns. At the
  prices of a node, reduced-cost fixing excludes further ends;
- :class:`Covers` and, where the pricing can pay any weights, :class:`Knapsacks` are cuts, which cut off fractional
  large blocks next to small ones; the pricing has to support their prices;
- :class:`Dive` is a diving heuristic: it fixes columns one after another and prices again;
- :class:`Packer` improves incumbents: ruin and recreate by simulated annealing with the paper's own insertion
  (:class:`Inserting`, or compiled moves), from known decisions and from the relaxations of nodes, or from lists in the
  order of relaxations, also of those with scarcer capacities; the best list is changed by chance;
- :func:`solve_in_phases` does all of this within one time limit, for an exact answer or a certified gap;
- :func:`statement` is the master in Pyomo, for teaching and for a test that both agree.
"""

from schedgap.models.engine.columns.branching import Branch, BranchAndPrice, Close
from schedgap.models.engine.columns.covers import Covers
from schedgap.models.engine.columns.descent import DescentOptions, descend
from schedgap.models.engine.columns.diving import Dive
from schedgap.models.engine.columns.domain import Domain, Use, children
from schedgap.models.engine.columns.generation import (
    Generated,
    GenerationOptions,
    Oracle,
    Price,
    Priced,
    generate,
    lagrangian,
)
from schedgap.models.engine.columns.integer import Choice, Insert, Inserting, Packed, Packer, PackingOptions, Start
from schedgap.models.engine.columns.knapsacks import Knapsacks
from schedgap.models.engine.columns.master import Master, Relaxation, choose
from schedgap.models.engine.columns.packing import Columns, Packing, statement
from schedgap.models.engine.columns.phases import PackingAnswer, PackingProblem, solve_in_phases
from schedgap.models.engine.columns.windows import Windows

__all__ = [
    "Branch", "BranchAndPrice", "Choice", "Close", "Columns", "Covers", "DescentOptions", "Dive", "Domain",
    "Generated", "GenerationOptions", "Insert", "Inserting", "Knapsacks", "Master", "Oracle", "Packed", "Packer",
    "Packing", "PackingAnswer", "PackingOptions", "PackingProblem", "Price", "Priced", "Relaxation", "Start", "Use",
    "Windows", "children", "choose", "descend", "generate", "lagrangian", "solve_in_phases", "statement",
]  # fmt: skip
