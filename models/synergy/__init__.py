r"""Synergy: CPUs and memory for the jobs of a round, their placement, and how fast a whole run can be (Mohan et al.).

Sets: jobs :math:`j \in J_t` of a round, configurations :math:`[c,m]`, GPU types :math:`i` (each a super-machine),
servers. Data: rates :math:`W_j[c,m,i]`, gangs :math:`g_j`, totals :math:`G_i, C_i, M_i` of a type; weights
:math:`u_j` that make rates of different models add up (1 to print the paper's sum).

**LP1, ILP1** (1)–(5), and on several types (22)–(25) with the row of GPUs that the paper forgets. ``y[c,m,i,j]`` = j
holds [c, m] on type i, a part of j in LP1 and 0 or 1 in ILP1::

    max Σ_j u_j Σ_{c,m,i} W_j[c,m,i]·y[c,m,i,j]                                 (1), (22)
    Σ_j Σ_{c,m} c·y[c,m,i,j] ≤ C_i                                              (2), (23)
    Σ_j Σ_{c,m} m·y[c,m,i,j] ≤ M_i                                              (3), (24)
    Σ_j Σ_{c,m} g_j·y[c,m,i,j] ≤ G_i                                            not in the paper
    Σ_{c,m,i} y[c,m,i,j] = 1, or ≤ 1 where jobs may be left out                 (4), (25)
    Σ_{c,m} W_j[c,m,i]·y[c,m,i,j] ≥ Fair_j[i]·Σ_{c,m} y[c,m,i,j]                (5), for the type where j runs
    or Σ_{c,m,i} W_j[c,m,i]·y[c,m,i,j] ≥ W^Fair_j                               (26), with W^Fair from an oracle

Equal jobs are counted, not named, and dominated configurations are dropped: neither changes an optimum. With integers
(5) and (26) say which configurations there are.

**LP2** (15)–(19) puts the configurations (c*, m*) of ILP1 onto servers, a part ``x[i,j] ≥ 0`` of job j on server i (the
paper's ``x > 0`` is no LP; two stray sums over [c, m] in (16) and (17) are dropped)::

    Σ_j g_j·x[i,j] ≤ G_i,  Σ_j c*_j·x[i,j] ≤ C_i,  Σ_j m*_j·x[i,j] ≤ M_i        (15)–(17), for every server i
    Σ_i x[i,j] = 1                                                              (18); the paper's ≥ asks for no more

A *vertex* has at most 3s fragmented jobs (Theorem A.2); the MILP counts them::

    min Σ_j split[j]   s.t.  Σ_i whole[i,j] + split[j] = 1,  Σ_i x[i,j] = split[j],  (15)–(17) for whole + x

**The run**: lower bounds on the mean completion time, from relaxations to one machine
(:mod:`schedgap.models.synergy.jct`), and on the end of the last job, from a fluid
(:mod:`schedgap.models.synergy.makespan`).
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
