"""Where the command line prints: results on stdout, progress and messages on stderr, no colour when piped."""

import os
import sys

from rich.console import Console

WIDE = 160
"""Columns of a line that no terminal will show: piped tables are for other programs, and need not fit 80."""

_piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")

stdout = Console(highlight=False, width=WIDE if _piped else None)
stderr = Console(stderr=True, highlight=False)
