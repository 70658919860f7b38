"""Gavel (Narayanan et al., OSDI 2020): bounds on completion times in simulations of gangs, and of jobs as copies."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
