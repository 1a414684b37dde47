"""Record the commands of a first session, with what they print, as a picture.

    python -m tests.browser.terminal_recording

The picture is never edited, so it shows what a user sees who types the same.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
COLUMNS = 100
SESSION = (
    "assay example",
    "assay run examples/handbook.jsonl --out runs/first",
    "assay run examples/handbook_v2.jsonl --out runs/second",
    "assay compare runs/first runs/second --top 3",
)
"""Commands of the recording; the first one writes the data."""


def print_of(command: str, folder: Path) -> str:
    """Return what a command prints on a terminal, without its progress."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "ASSAY_HOME": str(folder / "home"), "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    program = Path(sys.executable).with_name("assay")
    words = [str(program), *command.split()[1:]]
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 65536):
                printed += part
        except OSError:  # the terminal is closed
            pass
    os.close(ours)
    if process.returncode not in (0, 10, 11):
        sys.exit(f"{command} ended with exit code {process.returncode}")
    return printed.decode().replace("\r\n", "\n")


def record() -> str:
    """Return the picture of the session."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            for command in SESSION:
                console.print(Text(f"$ {command}", style="bold"))
                console.print(Text.from_ansi(print_of(command, folder)))
        finally:
            print_of("assay server stop", folder)
    picture = console.export_svg(title="assay", theme=MONOKAI, unique_id="terminal")
    from_elsewhere = r"@font-face \{.*?\}\s*|<!--.*?-->"  # the fonts would come from another server
    return re.sub(from_elsewhere, "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(record(), encoding="utf-8")
