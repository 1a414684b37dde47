"""Find the judges that a run launches, and put the addresses of the running ones in their place."""

from collections.abc import Mapping
from typing import TypeVar

from metric_core.judge_questions import KindGroup
from tasks.options.judge_options import JudgeOptions, SingleJudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings

J = TypeVar("J", bound=SingleJudgeSettings)
Options = TypeVar("Options", bound=JudgeOptions)


def launches(options: JudgeOptions) -> dict[KindGroup | None, LaunchSettings]:
    """Return the judges that a run launches: that of each group of questions, and under None the judge of the others.

    >>> table = {"verdicts": {"launch": {"python": "python3", "model": "verifier"}}}
    >>> {group: launch.model for group, launch in launches(JudgeOptions(judge=table)).items()}
    {<KindGroup.VERDICTS: 'verdicts'>: 'verifier'}
    """
    named: list[tuple[KindGroup | None, SingleJudgeSettings]] = [(None, options.judge), *options.judge.by_group.items()]
    return {group: judge.launch for group, judge in named if judge.launch is not None}


def with_launched_judges(options: Options, urls: Mapping[KindGroup | None, str]) -> Options:
    """Return the options with the launched judges at their URLs.

    Args:
        options: Options that name the judges.
        urls: URL of each launched judge, as `launches` names them.
    """
    if not urls:
        return options
    changed: dict[str, SingleJudgeSettings] = {
        group: _served_at(options.judge.by_group[group], url) for group, url in urls.items() if group is not None
    }
    judge = _served_at(options.judge, urls[None]) if None in urls else options.judge
    return options.model_copy(update={"judge": judge.model_copy(update=changed)})


def _served_at(judge: J, url: str) -> J:
    options = judge.server.model_dump() if judge.server else {}
    server = ServerJudgeOptions.model_validate({**options, "urls": [url]})
    return judge.model_copy(update={"backend": "server", "server": server, "launch": None})
