"""Launch, find and stop a judge server: vLLM in a separate environment, as a process or in a container.

vLLM and Prefect cannot share an environment, so vLLM always runs in another process. A judge that is launched here
either runs until someone stops it or belongs to a run and ends with it, however the run ends. A home has one judge at a
time, because a judge uses a whole GPU; its record, lock and log are in `home/judge`.
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
