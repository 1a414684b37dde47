"""`assay prompts`: write the packaged prompts to a folder, and check a folder with prompts of your own."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError
from metric_core.prompts.prompt_set import load_prompts, packaged_languages
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


@app.command("check")
def check_prompts(
    folder: Annotated[Path, typer.Argument(help="Folder with prompts.")], language: Language = "en"
) -> None:
    """Check the files of a folder, and list the prompts that differ from the packaged ones."""
    packaged, own = load_prompts(language), load_prompts(folder)
    changed = [name for name, wording in own.wordings.items() if wording != packaged.wordings[name]]
    stdout.print(
        f"{folder}: {len(own.wordings)} prompts, {len(changed)} differ from {language!r}"
        + (f": {', '.join(changed)}" if changed else ""),
    )
    if {"system", "answer_choice", "answer_json"}.intersection(changed):
        stdout.print("a common part differs, so all questions are asked again")
