"""Declare the options of the judge, of its panel, and of judges of groups of questions."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.question_kinds import KindGroup
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.options.load_profile import load_profile, profile_names
from tasks.options.model_backends import PLUGIN, Backend, JudgeBackend, PluginOptions, describe_backends, find_backend
from tasks.options.model_words import parse_judge
from tasks.options.option import Flag, ModelOptions, Option, OptionGroup
from tasks.options.text_forms import list_from_text, split_commas
from tasks.options.verifier_options import VerifierOptions
from tasks.plugins.load_object import Group

J = TypeVar("J", bound="SingleJudgeSettings")


class SingleJudgeSettings(ModelOptions, affects_scores=True):
    """A judge alone: its backend, and the options of that backend."""

    backend: Annotated[
        JudgeBackend,
        Option(
            describe_backends(Group.JUDGES),
            holds="secret",
        ),
    ] = "builtin"
    server: Annotated[
        ServerJudgeOptions | None,
        Option(
            "For server: its address, and how requests are made.", examples=[{"urls": ["http://localhost:8000/v1"]}]
        ),
    ] = None
    profile: Annotated[
        str | None,
        Option(
            "For server and verifier: the profile of a model that only verifies, which describes how it is asked: "
            "the name of a packaged one, or a file that ends with .toml.",
            holds="path",
            words=profile_names(),
            examples=["minicheck-7b"],
        ),
    ] = None
    canaries: Annotated[
        bool,
        Option(
            "With a profile: end the run if the model wrongly answers questions whose answers are beyond doubt. False "
            "only warns.",
            affects_scores=False,
        ),
    ] = True
    verifier: Annotated[
        VerifierOptions | None,
        Option(
            "For verifier: its model, and the library that runs it.",
            examples=[{"model": "models/factcg", "runtime": "onnx"}],
        ),
    ] = None
    launch: Annotated[
        LaunchSettings | None,
        Option(
            "For server: launch one for the run and stop it afterwards; server.urls is not needed then.",
            examples=[{"python": ".venv-vllm/bin/python", "model": "Qwen/Qwen3-8B"}],
        ),
    ] = None
    script: Annotated[
        str | None, Option("For scripted: the JSON file with the answers.", holds="path", examples=["answers.json"])
    ] = None
    max_concurrent_stages: Annotated[
        int | None,
        Option(
            "Maximum number of stages, across all runs on a Prefect server, that ask it at the same time.",
            affects_scores=False,
            ge=1,
            examples=[4],
        ),
    ] = None
    options: Annotated[
        PluginOptions, Option("For a plugin: its arguments, with secrets as env:NAME or block:NAME.", holds="secret")
    ] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _launch_as_profile_says(cls, content: Any) -> Any:
        """Take what a launched server needs from the profile, unless it is configured."""
        if not isinstance(content, Mapping) or not isinstance(content.get("launch"), Mapping):
            return content
        if not isinstance(name := content.get("profile"), str):
            return content
        profile = load_profile(name)
        named = {"model": profile.model} if profile.model else {}
        launch = named | {"dtype": profile.serving.dtype} | dict(content["launch"])
        if profile.serving.max_model_len is not None:
            launch.setdefault("max_model_len", profile.serving.max_model_len)
        launch.setdefault("extra_args", profile.serving.extra_args)
        return {**content, "launch": launch}

    @model_validator(mode="after")
    def _check_profile(self) -> Self:
        if self.profile is not None and self.server is not None and self.server.extra_body:
            raise ValueError(
                "with a profile, requests contain what the profile says: put the fields of extra_body into a profile "
                "of your own (form.extra_body), and name its file in profile"
            )
        return self

    @property
    def is_plugin(self) -> bool:
        """Whether it is a plugin."""
        return self.facts is PLUGIN

    @property
    def facts(self) -> Backend:
        """The facts about its backend."""
        return find_backend(Group.JUDGES, self.backend)

    @property
    def answering_facts(self) -> Backend:
        """The facts about the backend that answers in a run: a server, if one is launched."""
        return self.facts if self.launch is None else find_backend(Group.JUDGES, "server")


_read_list = list_from_text(split_commas)


def _parse_single(value: Any) -> Any:
    """Return the options of a judge that is given as a word, a table or settings, without groups that are not set."""
    value = parse_judge(value)
    if isinstance(value, JudgeSettings) and not value.by_group:
        return {name: getattr(value, name) for name in value.model_fields_set - set(KindGroup)}
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if name not in set(KindGroup) or each is not None}
    return value


SingleJudge: TypeAlias = Annotated[SingleJudgeSettings, BeforeValidator(_parse_single)]
"""A judge that is given as a word, a URL or a table."""


def _parse_models(value: Any) -> Any:
    """Return the options of models given as `builtin,http://gpu2:8000/v1`, or as a list of words and tables."""
    value = _read_list(value)
    return [_parse_single(model) for model in value] if isinstance(value, list | tuple) else value


def _check_panel(panel: tuple[SingleJudgeSettings, ...]) -> tuple[SingleJudgeSettings, ...]:
    if any(member.launch is not None for member in panel):
        raise ValueError(
            "a run launches the lead of a panel only; start the others with `assay judge start`, and give their URLs"
        )
    if any(isinstance(member, JudgeSettings) and member.by_group for member in panel):
        raise ValueError("a judge of a panel answers all kinds of questions; name judges of groups in [judge] only")
    return panel


Panel: TypeAlias = Annotated[
    tuple[SingleJudgeSettings, ...], BeforeValidator(_parse_models), AfterValidator(_check_panel)
]


class GroupJudgeSettings(SingleJudgeSettings, affects_scores=True):
    """The judge of a group of questions; with a panel, its lead."""

    panel: Annotated[
        Panel,
        Option(
            "Further judges of the same questions: the majority decides a label, this judge decides a tie.",
            examples=[["http://gpu2:8000/v1", "builtin"]],
        ),
    ] = ()


GroupJudge: TypeAlias = Annotated[GroupJudgeSettings | None, BeforeValidator(_parse_single)]


class JudgeSettings(SingleJudgeSettings, affects_scores=True):
    """The judge of a run, and the judges that answer groups of questions in its place."""

    verdicts: Annotated[
        GroupJudge,
        Option(
            "Another judge for verdicts, such as a model that only verifies. It inherits nothing from [judge], which "
            "gets the questions that it cannot answer.",
            cli=Flag(long="--judge-verdicts", metavar="builtin|URL", help="Another judge for verdicts on passages."),
            examples=["http://gpu2:8000/v1"],
        ),
    ] = None
    writing: Annotated[
        GroupJudge,
        Option(
            "Another judge for claims, regenerated questions and explanations. Where no judge writes, each sentence "
            "is a claim.",
            cli=Flag(long="--judge-writing", metavar="builtin|URL", help="Another judge for claims and other texts."),
            examples=["builtin"],
        ),
    ] = None
    ratings: Annotated[
        GroupJudge,
        Option(
            "Another judge for ratings, criteria, refusals and the questions of plugins.",
            cli=Flag(long="--judge-ratings", metavar="builtin|URL", help="Another judge for ratings and criteria."),
            examples=["http://gpu3:8000/v1"],
        ),
    ] = None

    @property
    def by_group(self) -> dict[KindGroup, GroupJudgeSettings]:
        """The judges of groups of questions.

        >>> JudgeSettings(verdicts="builtin").by_group.keys()
        dict_keys([<KindGroup.VERDICTS: 'verdicts'>])
        """
        named = {group: getattr(self, group) for group in KindGroup}
        return {group: judge for group, judge in named.items() if judge is not None}


class CascadeSettings(ModelOptions, affects_scores=True):
    """A cheaper judge, which gives the verdicts that it is sure enough of; the judge gives the others."""

    first: Annotated[SingleJudge, Option("The cheaper judge.", examples=["builtin"])]
    most_disagreement: Annotated[
        float,
        Option(
            "Highest accepted share of its answers that people disagree with. How sure it must be follows from "
            "labels, with a confidence of 95 %.",
            gt=0,
            lt=0.5,
        ),
    ] = 0.1
    thresholds: Annotated[
        tuple[SureThreshold, ...] | None,
        Option(
            "Least probability at which its verdicts are accepted, for each set of verdicts. Default: from the "
            "calibrations on this machine when the run begins; run.json has them.",
            holds="text",
        ),
    ] = None


class JudgeOptions(OptionGroup, affects_scores=True):
    """Options that say who answers the judge questions."""

    judge: Annotated[
        JudgeSettings,
        BeforeValidator(parse_judge),
        Option(
            "The judge.",
            holds="text",
            cli=Flag(
                long="--judge",
                metavar="builtin|URL",
                help="The built-in judge, a /v1 URL, PROFILE or PROFILE@URL.",
                default="builtin",
            ),
        ),
    ] = JudgeSettings()
    panel: Annotated[
        Panel,
        Option(
            "Further judges: the majority of judge and panel decides a label, the judge decides a tie.",
            examples=[["http://gpu2:8000/v1", "builtin"]],
        ),
    ] = ()
    cascade: Annotated[
        CascadeSettings | None,
        Option(
            "A cheaper judge, which gives the verdicts that it is sure of. Or two judges, the cheaper one first: the "
            "other one gives the rest, and is the judge.",
            examples=[{"first": "builtin"}],
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _read_cascade(cls, content: Any) -> Any:
        """Divide two judges into the judge of the run and the cheaper one."""
        if not isinstance(content, Mapping):
            return content
        named = _read_list(content.get("cascade"))
        if not isinstance(named, list | tuple):
            return content
        if len(named) != 2:
            raise ValueError(f"a cascade has two judges, the cheaper one first; got {len(named)}")
        if content.get("judge") is not None:
            raise ValueError(
                "the second judge of a cascade is the judge of the run: leave `judge` out, or name the cheaper one "
                'alone: cascade = {first = "builtin"}'
            )
        return {**content, "judge": named[1], "cascade": {"first": named[0]}}

    @property
    def others(self) -> tuple[SingleJudgeSettings, ...]:
        """The judges beside the judge, without those of groups: its panel, or the cheaper one of a cascade."""
        return self.panel if self.cascade is None else (self.cascade.first,)

    @property
    def judges(self) -> tuple[SingleJudgeSettings, ...]:
        """All judges that the options name: the judge, its panel or cascade, and the judges of groups with theirs.

        >>> [judge.backend for judge in JudgeOptions(judge={"writing": "http://localhost:8000/v1"}).judges]
        ['builtin', 'server']
        """
        named: list[SingleJudgeSettings] = [self.judge, *self.others]
        for judge in self.judge.by_group.values():
            named += [judge, *judge.panel]
        return tuple(named)

    @property
    def can_rate(self) -> bool:
        """Whether a judge of ratings may be a language model: all but the packaged one and models that only verify.

        >>> JudgeOptions().can_rate, JudgeOptions(judge={"ratings": "http://localhost:8000/v1"}).can_rate
        (False, True)
        """
        judges = self.judges_of(KindGroup.RATINGS)
        return any(judge.profile is None and judge.answering_facts.may_rate for judge in judges)

    def judges_of(self, group: KindGroup) -> tuple[SingleJudgeSettings, ...]:
        """Return the judges that a group of questions goes to: those named for it, else the judge with its panel.

        A cascade gives verdicts only.

        >>> JudgeOptions(judge={"verdicts": "builtin"}).judges_of(KindGroup.VERDICTS)[0].backend
        'builtin'
        """
        judge = self.judge.by_group.get(group)
        others = self.others if group is KindGroup.VERDICTS else self.panel
        return (self.judge, *others) if judge is None else (judge, *judge.panel)

    @property
    def launches(self) -> dict[KindGroup | None, LaunchSettings]:
        """The judges that a run launches: that of each group of questions, and under None the judge of the others.

        >>> table = {"verdicts": {"launch": {"python": "python3", "model": "verifier"}}}
        >>> {group: launch.model for group, launch in JudgeOptions(judge=table).launches.items()}
        {<KindGroup.VERDICTS: 'verdicts'>: 'verifier'}
        """
        named: list[tuple[KindGroup | None, SingleJudgeSettings]] = [(None, self.judge), *self.judge.by_group.items()]
        return {group: judge.launch for group, judge in named if judge.launch is not None}

    def with_launched_judges(self, urls: Mapping[KindGroup | None, str]) -> Self:
        """Return the options with the launched judges at their URLs.

        Args:
            urls: URL of each launched judge, as `launches` names them.
        """
        if not urls:
            return self
        changed: dict[str, SingleJudgeSettings] = {
            group: _served_at(self.judge.by_group[group], url) for group, url in urls.items() if group is not None
        }
        judge = _served_at(self.judge, urls[None]) if None in urls else self.judge
        return self.model_copy(update={"judge": judge.model_copy(update=changed)})


def _served_at(judge: J, url: str) -> J:
    options = judge.server.model_dump() if judge.server else {}
    server = ServerJudgeOptions.model_validate({**options, "urls": [url]})
    return judge.model_copy(update={"backend": "server", "server": server, "launch": None})
