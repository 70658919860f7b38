"""Reads the jobs and servers of a simulation in continuous time; the rules of the run say how long rounds are."""

from __future__ import annotations

from dataclasses import dataclass

from ..basics import Data
from .jobs import Jobs
from .sensitive import Sensitive, sensitive_of
from .servers import RawServers
from .utility import RawUtilities, utilities_of


@dataclass(frozen=True, eq=False)
class Simulated:
    """The jobs and servers of a simulation; utilities are by the seconds since a job's arrival."""

    read: Sensitive
    utilities: RawUtilities

    @property
    def jobs(self) -> Jobs:
        """The jobs."""
        return self.read.jobs

    @property
    def servers(self) -> RawServers:
        """The servers."""
        return self.read.servers


def simulated_of(data: Data) -> Simulated:
    """Return the jobs and servers of an instance."""
    read = sensitive_of(data)
    return Simulated(read, utilities_of(data["jobs"], read.jobs.arrival_s, read.jobs.rates.max(axis=1)))
