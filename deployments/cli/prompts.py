"""`assay prompts`: write the packaged prompts to a folder, show labels as examples, and check prompts of your own."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from deployments.cli.report import RunFolder
from metric_core.errors import ConfigError
from metric_core.prompts.examples import Examples
from metric_core.prompts.prompt_set import load_prompts, packaged_languages
from tasks.opening.token_estimates import estimate_tokens
from tasks.reports.calibration.prompts_text import prompt_check_lines
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.atomic_files import write_output

app = VerbGroup(help="Export the packaged prompts, or check your own.", no_args_is_help=True)

Language = Annotated[str, typer.Option("--language", help="Language of the packaged prompts.")]


@app.command("export")
def export_prompts(
    folder: Annotated[Path, typer.Argument(help="Folder to write, which must not exist or be empty.")],
    language: Language = "en",
) -> None:
    """Write the packaged prompts to a folder, one file per kind of question."""
    if language not in packaged_languages():
        raise ConfigError(f"there are no prompts in {language!r}; there are: {', '.join(packaged_languages())}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; name another folder, or empty it")
    prompts = load_prompts(language)
    files = {folder / f"{name}.txt": f"{wording}\n" for name, wording in prompts.wordings.items()}
    try:
        for path, text in files.items():
            write_output(path, text, "the prompt", ConfigError)
    except ConfigError:
        for path in files:  # a folder with some of the prompts would be taken for one's own, and refused next time
            path.unlink(missing_ok=True)
        raise
    stdout.print(f"{len(prompts.wordings)} prompts in {folder}")
    stdout.print(f'use them with: [judge.server] prompts = "{folder}"')


@app.command("examples")
def write_examples(
    folder: Annotated[Path, typer.Argument(help="Folder with prompts, as `export` writes it.")],
    run: RunFolder,
    metric: Annotated[str, typer.Option("--metric", "-m", help="Metric whose claims people have labelled.")],
    count: Annotated[int, typer.Option("--count", min=2, max=20, help="Number of examples, half of them yes.")] = 6,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the examples that the folder has.")] = False,
) -> None:
    """Show people's labels to the judge as examples; they then measure nothing."""
    from flows.prompt_examples import write_examples as write  # noqa: PLC0415 loads Prefect

    found = write(folder, FinishedRun(run), metric, count, replace=replace)
    stdout.print(f"{folder}: {_describe(found)}")
    stdout.print(f"see whether they help: assay prompts check {folder} --run {run} --metric {metric}")


@app.command("check")
def check_prompts(
    folder: Annotated[Path, typer.Argument(help="Folder with prompts.")],
    language: Language = "en",
    run: Annotated[
        Path | None, typer.Option("--run", help="Run with labelled claims, whose judge is asked with these prompts.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", "-m", help="Metric whose claims are labelled. Default: that of the examples."),
    ] = None,
) -> None:
    """Check the prompts of a folder; with --run, whether they help its judge."""
    packaged, own = load_prompts(language), load_prompts(folder)
    changed = [name for name, wording in own.wordings.items() if wording != packaged.wordings[name]]
    stdout.print(
        f"{folder}: {len(own.wordings)} prompts, {len(changed)} differ from {language!r}"
        + (f": {', '.join(changed)}" if changed else ""),
    )
    if {"system", "answer_choice", "answer_json"}.intersection(changed):
        stdout.print("a common part differs, so all questions are asked again")
    if own.examples is not None:
        stdout.print(_describe(own.examples))
        for kind, text in own.shown.items():
            stdout.print(f"about {estimate_tokens(text):,} tokens before each question {kind!r}, the same in all")
    if run is not None:
        from flows.prompt_examples import check_prompts_of_run  # noqa: PLC0415 loads Prefect

        metric = metric or (own.examples.metric if own.examples is not None else "")
        for line in prompt_check_lines(check_prompts_of_run(folder, FinishedRun(run), metric)):
            stdout.print(line)


def _describe(examples: Examples) -> str:
    items, questions = len(examples.aside.items), len(examples.aside.questions)
    return (
        f"{len(examples.examples)} labels of {examples.metric} are examples; {items} labels of {questions} questions "
        "measure nothing, so that the others stay a random sample"
    )
