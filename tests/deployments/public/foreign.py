"""Modules of a user that have the names of rag-assay's packages."""

from pathlib import Path

MODULE = """from pathlib import Path as opening  # the name of a submodule of rag-assay, too

print("executed")


def send_mail():
    return opening.__name__
"""


def write_modules(folder: Path) -> Path:
    """Write `tasks.py`, `flows.py` and `deployments/` into a folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    for name in ("tasks.py", "flows.py"):
        (folder / name).write_text(MODULE, encoding="utf-8")
    write_package(folder, "deployments", mail="ADDRESS = 'ops'\n")
    return folder


def write_package(folder: Path, name: str, **modules: str) -> Path:
    """Write a package with the given modules, and return its folder."""
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    for module, text in modules.items():
        (package / f"{module}.py").write_text(text, encoding="utf-8")
    return package
