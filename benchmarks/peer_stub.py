"""Load the stub judge of the peer benchmark in `../shared/peer` beside the repository."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

STUB = Path(__file__).resolve().parents[2] / "shared" / "peer" / "judge_stub.py"


def load_stub() -> ModuleType:
    """Load the module of the stub judge, or exit if it is missing."""
    if not STUB.is_file():
        sys.exit(f"the stub judge is missing: no {STUB}")
    spec = importlib.util.spec_from_file_location("judge_stub", STUB)
    assert spec is not None
    assert spec.loader is not None
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    return stub
