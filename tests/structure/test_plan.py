"""The configuration of a run ends at the planner: what is below takes the parts of the plan that it needs."""

import ast
from pathlib import Path

from tests.structure.house import PACKAGES, modules_with, text_of

LOADERS = frozenset(
    {
        "deployments/cli/_support/options.py",
        "deployments/cli/doctor.py",
        "deployments/cli/init.py",
        "deployments/eval_hub/job_config.py",
        "deployments/public/rag_assay/prefect_flows.py",
        "flows/config/loading.py",
    }
)
"""Modules that load, make or describe configurations, or hand the class on."""

PLANNERS = frozenset(
    {"deployments/cli/_support/doctor_checks.py", "deployments/registry/specs.py", "flows/planning/planner.py"}
)
"""Modules that turn a configuration into the plan of its run or of its deployments."""

VERBS = frozenset(
    f"deployments/{name}.py"
    for name in (
        *("cli/calibrate", "cli/deploy", "cli/monitor", "cli/plan", "cli/run", "cli/serve"),
        *("eval_hub/job_verb", "index_questions/questions_verb"),
    )
)
"""Commands that receive a configuration: they have it planned, and pass it to a flow."""

FLOWS = frozenset(f"flows/{name}.py" for name in ("calibrate", "evaluate", "index_rebuilt", "monitor"))
"""Modules of the flows that have a configuration as their parameter."""

OTHERS = frozenset(
    {
        "deployments/registry/apply.py",  # deployments of an empty configuration have the names of all others
        "flows/config/calibration_request.py",  # a parameter of a flow, with the configuration in it
        "flows/execution/rerun_plan.py",  # reads that of an earlier run
        "flows/planning/rerun_request.py",  # its options are made of those of a run
    }
)


def takes_configuration(path: Path) -> bool:
    """Return whether a module imports the configuration of a run, for its types only or to use it."""
    imports = (node for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.ImportFrom))
    return any(name.name == "RunConfig" for node in imports for name in node.names)


def parameters(path: Path) -> list[str]:
    """Return the names of the functions of a module that have a configuration as a parameter."""
    functions = [node for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.FunctionDef)]
    return [
        function.name
        for function in functions
        if any(
            "RunConfig" in ast.unparse(each.annotation).strip("\"'").split(" | ")
            for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            if each.annotation is not None
        )
    ]


def test_only_who_loads_plans_or_passes_on_a_configuration_takes_one() -> None:
    takers = {path.as_posix() for path in modules_with("RunConfig", *PACKAGES) if takes_configuration(path)}
    assert takers == LOADERS | PLANNERS | VERBS | FLOWS | OTHERS


def test_functions_with_a_configuration_plan_it_or_pass_it_to_a_flow() -> None:
    taking = {path.as_posix(): found for path in modules_with("RunConfig", *PACKAGES) if (found := parameters(path))}
    assert taking.keys() == PLANNERS | VERBS | FLOWS - {"flows/calibrate.py"}
    assert all(len(taking[path]) == 1 for path in VERBS)
