"""Where the command line prints: results on stdout, progress and messages on stderr, no colour when piped."""

from rich.console import Console

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)
