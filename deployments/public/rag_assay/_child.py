"""Run a module of rag-assay in a separate process: `python -m rag_assay._child MODULE [ARGUMENT ...]`.

`python -m MODULE` would import the user's module where it has the same name.
"""

import runpy
import sys

from rag_assay._packages import NAMES, open_packages


def main() -> None:
    """Run the module that the first argument names, with the other arguments."""
    if len(sys.argv) < 2 or sys.argv[1].partition(".")[0] not in NAMES:
        sys.exit(f"usage: python -m rag_assay._child MODULE [ARGUMENT ...], with a module of {', '.join(NAMES)}")
    open_packages(alone=True)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
