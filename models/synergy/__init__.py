r"""Synergy: CPUs and memory for the jobs of a round, their placement, and bounds on a whole run (Mohan et al.).

- :math:`j \in J_t`: jobs that the policy picked for the round.
- :math:`i`: GPU types, each a super-machine (left out for one type, as in the paper's LP1 and ILP1); in LP2, servers.
- :math:`[c,m]`: configurations, CPUs and memory on the levels of the job's table. They end at what as many servers
  have as the gang's GPUs need, :math:`\lceil g_j / G \rceil` of the largest, on which the job is profiled: also on the
  one machine of ILP1, a gang of one GPU holds no more CPUs or memory than one server has. This is an assumption; the
  paper does not print where its tables end.
- :math:`W_j[c,m,i]`: iterations per second of j with c CPUs and m GB on type i.
- :math:`g_j`: GPUs of the gang.
- :math:`G_i, C_i, M_i`: GPUs, CPUs and memory of all servers of type i; in LP2, of server i.
- :math:`F_j[i]`: rate of j with its GPU-proportional share on type i.
- :math:`u_j`: weight that makes rates of different models comparable. Progress counts in units of the job's rate at its
  share. The raw sums that the paper prints have :math:`u_j = 1` (``instances.views.synergy.view(instance, raw=True)``).

The share itself may lie between two levels of the table. It is rounded down, because rounding up can make LP1
infeasible.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
