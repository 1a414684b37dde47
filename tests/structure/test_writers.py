"""Files are written by `tasks.runtime.atomic_files`, so that a full disk never leaves half a file."""

import ast
from collections.abc import Iterator

import pytest

from tests.structure.house import PACKAGES, modules_with, text_of

EXCEPTIONS = {
    "tasks/rows/computed_tables.py": "writes into the temporary file that its caller names",
    "tasks/runtime/atomic_files.py": "the place that writes",
    "tasks/runtime/writable.py": "an empty file that shows whether a folder can be written",
    "tasks/processes/system_processes.py": "the log of another process",
    "tasks/rows/table_files.py": "the same for stores behind URLs; object stores show a file when it is whole",
}
TEMPORARY = {"temporary", "sink", "buffer"}
"""Names of what may be written: the path that `atomic_file` yields, and buffers in memory."""


def writes(code: str) -> Iterator[int]:
    """Yield the lines where a file is written other than by a name in TEMPORARY."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        words = {child.id for child in ast.walk(node.func) if isinstance(child, ast.Name)}
        words |= {argument.id for argument in node.args if isinstance(argument, ast.Name)}
        if _writes(method, node) and not words & TEMPORARY:
            yield node.lineno


def _writes(method: str, node: ast.Call) -> bool:
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    texts = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    if method in ("open", "fdopen"):
        flags = {child.attr for value in given for child in ast.walk(value) if isinstance(child, ast.Attribute)}
        return "O_CREAT" in flags or any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)
    if method == "write_table":
        return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "pq"
    return method in ("write_text", "write_bytes", "pipe_file", "write_to_textfile", "ParquetWriter")


def test_files_are_written_in_one_place() -> None:
    found = {
        str(path)
        for path in modules_with("open|write|pipe_file|ParquetWriter", *PACKAGES)
        if any(writes(text_of(path)))
    }
    assert found == set(EXCEPTIONS)


def test_a_write_is_found() -> None:
    for line in [
        "path.write_text(text)",
        "path.open('w')",
        "path.open(mode='ab')",
        "open(path, 'xb')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "pq.write_table(table, path)",
        "fs.open(path, 'wb')",
    ]:
        assert list(writes(line)) == [1], line


@pytest.mark.parametrize(
    "line",
    [
        "temporary.open('wb')",
        "fs.open(temporary, 'wb')",
        "pq.write_table(table, buffer)",
        "writer.write_table(table)",
        "path.open('rb')",
        "webbrowser.open(written.as_uri())",
    ],
)
def test_what_writes_no_file_of_its_own_is_not(line: str) -> None:
    assert list(writes(line)) == []
