"""The configuration of a run ends at the planner: what is below takes the parts of the plan that it needs."""

import ast
from pathlib import Path

from tests.structure.house import modules, text_of

PLANNERS = ("flows/config/", "flows/planning/", "deployments/")
"""Folders that load a configuration, or turn it into a plan."""

FLOWS = frozenset({"calibrate", "compare_judges", "evaluate", "index_rebuilt", "monitor"})
"""Modules of the flows that have a configuration as their parameter."""

BELOW = frozenset({"flows/execution/rerun_plan.py"})
"""Modules below the planner that read configurations: that of an earlier run."""


def takes_configuration(path: Path) -> bool:
    """Return whether a module imports the configuration of a run, for its types only or to use it."""
    imports = (node for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.ImportFrom))
    return any(name.name == "RunConfig" for node in imports for name in node.names)


def test_only_the_planner_and_the_flows_take_a_configuration() -> None:
    takers = {path.as_posix() for path in modules("flows", "tasks", "metric_core") if takes_configuration(path)}
    flows = {f"flows/{name}.py" for name in FLOWS}
    assert {path for path in takers - flows if not path.startswith(PLANNERS)} == BELOW
    assert flows <= takers
