r"""The admission example: moldable jobs with utilities and deadlines, on servers with room for workers and PSs.

- :math:`j`: jobs.
- :math:`s, w, p, t`: servers, worker types, the type of parameter servers (PSs), slots from 0.
- :math:`r_j`: arrival of j; its deadline is the last slot in which it may complete.
- :math:`f_j(\Delta)`: utility of completing :math:`\Delta` slots after the arrival.
- :math:`C_{sw}, C_{sp}`: workers, and PSs, that server s holds.
- :math:`l \in L_j`: schedules of j: a start :math:`a > r_j` (or :math:`a \ge r_j` if the arrival slot may be used), a
  number :math:`D_w` of workers, and one or several servers. These determine the duration :math:`d = \lceil E_j D_j M_j
  / (k D_w) \rceil`, with k the rate of a worker.
- :math:`T(l) = \{a, \ldots, a + d - 1\}`: slots of schedule l.
- :math:`\hat{t}_l = a + d`: completion of j in schedule l, at most its deadline.
- :math:`y_{l,s,w}, z_{l,s,p}`: workers of type w, and PSs, that l has on server s in each of its slots.

*Errata.* The text calls its total of 431.33 optimal. Its schedule is worth 430.51 (exponentials were rounded), and the
optimum is 435.01: jobs 1 and 2 run concurrently on the same servers, and job 3 need not be spread. Its half-open slots
[4, 6] and [6, 8] overlap. The text changes :math:`\theta` on the way (37.4, 36.7, 18.9); here it is fixed beforehand.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
