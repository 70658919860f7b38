r"""Bounds on gangs of fixed duration, and the search for good schedules.

Job j holds :math:`g_j` of the :math:`G` GPUs of its pool for a time :math:`p_j`, from its release :math:`r_j` on; it
completes at :math:`C_j`. Pools do not share jobs, so that sums over pools and the latest of them are bounds of all.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
