"""`assay prompts`: write the packaged prompts to a folder."""

from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from metric_core.errors import ConfigError
from metric_core.prompts.prompt_set import load_prompts, packaged_languages
from tasks.runtime.atomic_files import write_output

app = VerbGroup(no_args_is_help=True)

Language = Annotated[str, typer.Option("--language", help="Language of the packaged prompts.")]


@app.callback()
def prompts() -> None:
    """Export the packaged prompts."""


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
    packaged = load_prompts(language)
    files = {folder / f"{name}.txt": f"{wording}\n" for name, wording in packaged.wordings.items()}
    try:
        for path, text in files.items():
            write_output(path, text, "the prompt", ConfigError)
    except ConfigError:
        for path in files:  # a folder with some of the prompts would be taken for one's own, and refused next time
            path.unlink(missing_ok=True)
        raise
    stdout.print(f"{len(packaged.wordings)} prompts in {folder}")
    stdout.print(f'use them with: [judge.server] prompts = "{folder}"')
