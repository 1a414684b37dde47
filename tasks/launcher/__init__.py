"""Launches, finds and stops a judge server: vLLM in an environment of its own, as a process or in a container.

vLLM and Prefect can not share an environment, so vLLM is always another process, started here or elsewhere. One
started here is either kept, until somebody stops it, or owned by a run, and then ends with it, however the run ends.
A home has one judge at a time, because a judge takes a GPU whole; its record, lock and log lie in `home/judge`.
"""

from tasks.launcher.find_judge import JudgeStatus, judge_status, stop_judge
from tasks.launcher.scoped import launch_for_scope
from tasks.launcher.start import Progress, RunningJudge, launch_judge
from tasks.options.launch_options import LaunchSettings

__all__ = [
    "JudgeStatus",
    "LaunchSettings",
    "Progress",
    "RunningJudge",
    "judge_status",
    "launch_for_scope",
    "launch_judge",
    "stop_judge",
]
