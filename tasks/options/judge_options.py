"""Declare the options of the judge and of its panel."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.options.model_backends import BUILT_IN, JudgeBackend, PluginOptions
from tasks.options.model_words import parse_model
from tasks.options.option import Flag, ModelOptions, Option, OptionGroup
from tasks.options.text_forms import list_from_text, split_commas
from tasks.plugins.load_object import Group


class JudgeSettings(ModelOptions):
    """A judge: its backend, and the options of that backend."""

    backend: Annotated[
        JudgeBackend,
        Option(
            "builtin (a small linear model without a server), server (a language model behind an OpenAI-compatible "
            "server), scripted (answers from a file, for tests) or a plugin: module:attribute or an entry point.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
        ),
    ] = "builtin"
    server: Annotated[
        ServerJudgeOptions | None,
        Option(
            "For server: its address, and how requests are made.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
            examples=[{"urls": ["http://localhost:8000/v1"]}],
        ),
    ] = None
    launch: Annotated[
        LaunchSettings | None,
        Option(
            "For server: launch one for the run and stop it afterwards; server.urls is not needed then.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
            examples=[{"python": ".venv-vllm/bin/python", "model": "Qwen/Qwen3-8B"}],
        ),
    ] = None
    script: Annotated[
        str | None,
        Option(
            "For scripted: the JSON file with the answers.",
            path=True,
            may_hold_secret=False,
            affects_scores=True,
            examples=["answers.json"],
        ),
    ] = None
    max_concurrent_stages: Annotated[
        int | None,
        Option(
            "Maximum number of stages, across all runs on a Prefect server, that ask it at the same time.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            renamed_from="slots",
            ge=1,
            examples=[4],
        ),
    ] = None
    options: Annotated[
        PluginOptions,
        Option(
            "For a plugin: its arguments, with secrets as env:NAME or block:NAME.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
        ),
    ] = Field(default_factory=dict)

    @property
    def is_plugin(self) -> bool:
        """Whether it is a plugin."""
        return self.backend not in BUILT_IN[Group.JUDGES]


_read_list = list_from_text(split_commas)


def _parse_models(value: Any) -> Any:
    """Return the options of models given as `builtin,http://gpu2:8000/v1`, or as a list of words and tables."""
    value = _read_list(value)
    return [parse_model(model) for model in value] if isinstance(value, list | tuple) else value


def _refuse_launched_panel(panel: tuple[JudgeSettings, ...]) -> tuple[JudgeSettings, ...]:
    if any(member.launch is not None for member in panel):
        raise ValueError(
            "a run launches its lead judge only; start the others with `assay judge start`, and give their URLs"
        )
    return panel


class JudgeOptions(OptionGroup):
    """Options that say who answers the judge questions."""

    judge: Annotated[
        JudgeSettings,
        BeforeValidator(parse_model),
        Option(
            "The judge.",
            path=False,
            may_hold_secret=False,
            affects_scores=True,
            cli=Flag(
                long="--judge",
                metavar="builtin|URL",
                help="The built-in judge, or the /v1 URL of a judge server.",
                default="builtin",
            ),
        ),
    ] = JudgeSettings()
    panel: Annotated[
        tuple[JudgeSettings, ...],
        BeforeValidator(_parse_models),
        AfterValidator(_refuse_launched_panel),
        Option(
            "Further judges: the majority of judge and panel decides a label, the judge decides a tie.",
            path=False,
            may_hold_secret=True,
            affects_scores=True,
            examples=[["http://gpu2:8000/v1", "builtin"]],
        ),
    ] = ()
