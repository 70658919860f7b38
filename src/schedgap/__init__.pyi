"""Public names, each with the module that defines it; ``__init__.py`` imports them on first use."""

from . import certificates as certificates
from . import harness as harness
from . import heuristics as heuristics
from . import instances as instances
from . import models as models
from .harness.ask import lessons as lessons
from .harness.ask.explain import Explanation as Explanation
from .harness.ask.explain import explain as explain
from .harness.ask.graphs import envy as envy
from .harness.ask.graphs import flow as flow
from .harness.ask.graphs import support as support
from .harness.ask.graphs import windows as windows
from .harness.engine.task import Limits as Limits
from .harness.show import plot as plot
from .harness.show.drawing import figures as figures
from .harness.show.figure import figure as figure
from .harness.show.page import to_html as to_html
from .harness.show.text import at_most as at_most
from .harness.studies.adversary.families import worst_cases as worst_cases
from .harness.studies.adversary.row import Adversary as Adversary
from .harness.studies.adversary.run import adversary as adversary
from .harness.studies.audit.row import Audit as Audit
from .harness.studies.audit.run import audit as audit
from .harness.studies.certify import certify as certify
from .harness.studies.compare.row import Comparison as Comparison
from .harness.studies.compare.run import compare as compare
from .harness.studies.compare.run import compare_here as compare_here
from .harness.studies.compare.run import read_run as read_run
from .harness.studies.simulate.row import Simulation as Simulation
from .harness.studies.simulate.run import simulate as simulate
from .harness.studies.statistics import Statistics as Statistics
from .harness.studies.statistics import statistics as statistics
from .harness.studies.sweep import sweep as sweep
from .harness.studies.whatif.row import WhatIf as WhatIf
from .harness.studies.whatif.run import what_if as what_if
from .heuristics.registry import heuristic as heuristic
from .heuristics.simulator.policies import policy as policy
from .instances.catalogue import load as load
from .instances.fitting import Fit as Fit
from .instances.fitting import fit as fit
from .instances.importers import Options as Options
from .instances.importers import import_trace as import_trace
from .instances.plugins import load_plugin as load_plugin
from .models.registry import model as model

__version__: str
