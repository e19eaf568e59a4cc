"""Runs and applies in the admin: looked at, decided on; every decision is one of the package's verbs."""

from evolution.admin.apply_pages import EvolutionApplyAdmin
from evolution.admin.run_pages import EvolutionRunAdmin
from evolution.admin.scenario_pages import RegressionScenarioAdmin

__all__ = ["EvolutionApplyAdmin", "EvolutionRunAdmin", "RegressionScenarioAdmin"]
