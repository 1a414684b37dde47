"""Find words, docstrings and names that the tests refuse: `python -m tests.structure.words [FOLDER ...]`."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.structure.house import files, text_of

EXEMPT = {Path("tests/structure/words.py"), Path("tests/structure/test_words.py")}
EXEMPT |= {Path("benchmarks/everyday_pairs.py"), Path("examples/handbook")}
"""Files and folders that are not read: this list of refused words, and data of models and examples."""
CONVENTIONAL_NAMES = {"Score.scored", "Score.labelled", "Score.undefined", "Score.failed"}
"""Factories that plugin authors call, named by the status of the score that they make."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUESTION = "docstring opens with What, Which, Who, How"
_OPENING = "docstring opens in the third person"
_ARGUMENTS = "elliptical argument"
_PARTICIPLE = "function named by a participle"
_PREPOSITION = "function named by a preposition"
_WORDS = {
    "can not": r"\bcan\s+(?:#\s+)?not\b(?!\s+only)",
    "anew": r"\banew\b",
    "at hand": r"\bat\s+(?:#\s+)?hand\b",
    "of one's own": r"\bof\s+(?:one's|the\s+user's)\s+own\b",
    "somebody": r"\bsomebody\b",
    "recogniser": r"recognis",
    "normalise": r"normalis",
    "Has the": r"\bHas the ",
    "See to it": r"\bsee to it\b",
}
_PATTERNS = {word: re.compile(pattern, 0 if word == "Has the" else re.IGNORECASE) for word, pattern in _WORDS.items()}
RULES = (*(f"word: {word}" for word in _WORDS), _QUESTION, _OPENING, _ARGUMENTS, _PARTICIPLE, _PREPOSITION)
"""Names of the rules."""
_QUESTION_WORD = re.compile(r"(?:What|Which|Who|Whom|Whose|How)\b")
_THIRD_PERSON = _words(
    """
    Accepts Adds Adjusts Aggregates Allows Answers Appends Applies Asks Asserts Assigns Attaches Avoids Awaits Begins
    Binds Blocks Breaks Brings Builds Calculates Calls Cancels Carries Catches Changes Checks Chooses Cleans Clears
    Closes Collects Combines Compares Completes Composes Computes Configures Connects Converts Copies Counts Creates
    Cuts Decides Declares Decodes Defines Delegates Deletes Describes Detects Determines Discards Divides Does Downloads
    Draws Drops Embeds Emits Empties Encodes Ends Ensures Enters Estimates Evaluates Executes Exits Expands Explains
    Extracts Fails Fetches Fills Filters Finds Finishes Fits Follows Forgets Formats Forwards Frees Gathers Generates
    Gets Gives Goes Groups Guards Handles Happens Has Hashes Hides Holds Ignores Imports Informs Inserts Is Iterates
    Joins Judges Keeps Kills Launches Leaves Lets Limits Links Lists Loads Locks Logs Looks Maintains Makes Maps Marks
    Matches Measures Meets Merges Moves Names Normalizes Notes Notifies Opens Orders Parses Passes Pauses Performs Picks
    Points Polls Prepares Presents Prevents Prints Produces Provides Prunes Puts Queries Raises Ranks Rates Reads
    Receives Records Refuses Registers Rejects Releases Reloads Remembers Removes Renames Renders Repeats Replaces
    Replies Reports Requests Requires Resets Resolves Restores Resumes Retries Retrieves Returns Rewrites Rounds Runs
    Samples Saves Says Scales Scans Scores Searches Selects Sends Serializes Serves Sets Shows Shuts Signals Skips
    Sleeps Sorts Spawns Splits Stands Starts Stays Stops Stores Streams Strips Submits Suggests Sums Supplies Swaps
    Takes Tells Tests Throws Tokenizes Tracks Translates Tries Truncates Turns Unpacks Updates Uploads Uses Validates
    Verifies Waits Walks Warns Wants Watches Weighs Works Wraps Writes Yields
    """
)
_ELLIPTICAL = re.compile(r"(?:of|as|where|how|what|whether)\b", re.IGNORECASE)
_ARGUMENT = re.compile(r"(?P<indent> *)(?P<name>\*{0,2}\w+)(?: \([^)]*\))?: ?(?P<text>.*)")
_SECTION = re.compile(r"(?P<indent> *)(?:Args|Arguments|Attributes):\s*")
_PARTICIPLES = _words(
    """
    begun bought bound broken brought built caught chosen done drawn fallen forgotten found given gone gotten grown
    heard held hidden kept known laid led left lent lost made meant met paid risen said seen sent shown slept sold spent
    spoken stood stolen struck sung taken taught thought thrown told torn understood woken won worn written
    """
)
_NOT_PARTICIPLES = _words("embed exceed feed need proceed seed shed speed succeed")
_PREPOSITIONS = _words(
    "about above after among as as_ at before below between by for_ from_ in_ into of on per to with_ within"
)
_PROPERTIES = {"property", "cached_property", "computed_field", "getter", "setter", "overload"}


@dataclass(frozen=True)
class Offender:
    """A place that breaks a rule.

    Args:
        rule: Name of the rule.
        path: File, relative to the root of the repository.
        line: Line number, from 1.
        text: The words that break the rule.
    """

    rule: str
    path: Path
    line: int
    text: str

    @property
    def package(self) -> str:
        """Folder at the top of the repository; "." for a file at its root."""
        return self.path.parts[0] if len(self.path.parts) > 1 else "."

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def find_offenders(path: Path) -> list[Offender]:
    """Return everything in a file that breaks a rule, by line."""
    if path.suffix not in {".py", ".md"} or not EXEMPT.isdisjoint({path, *path.parents}):
        return []
    text = text_of(path)
    found = list(_bad_words(path, text))
    if path.suffix == ".py":
        tree = ast.parse(text)
        found += [*_bad_docstrings(path, tree), *_bad_names(path, tree)]
    return sorted(found, key=lambda offender: offender.line)


def _bad_words(path: Path, text: str) -> Iterator[Offender]:
    for word, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Offender(f"word: {word}", path, line, text.splitlines()[line - 1].strip())


def _bad_docstrings(path: Path, tree: ast.Module) -> Iterator[Offender]:
    for node, of_function in docstrings(tree):
        text = str(node.value).strip()
        first = text.splitlines()[0] if text else ""
        if _QUESTION_WORD.match(first):
            yield Offender(_QUESTION, path, node.lineno, first)
        if of_function and first.partition(" ")[0].rstrip(".,:") in _THIRD_PERSON:
            yield Offender(_OPENING, path, node.lineno, first)
        for line, entry in _arguments(str(node.value)):
            description = entry.partition(": ")[2]
            if description[:1].islower() or len(description.split()) < 2 or _ELLIPTICAL.match(description):
                yield Offender(_ARGUMENTS, path, node.lineno + line, entry)


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, bool]]:
    """Yield the docstrings of a module, its attributes included, and whether each is of a function (not a property)."""
    for parent in _blocks(tree):
        body: list[ast.stmt] = parent.body  # type: ignore[attr-defined]
        for i, node in enumerate(body):
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            if not isinstance(node.value.value, str):
                continue
            if i > 0 and not isinstance(body[i - 1], ast.Assign | ast.AnnAssign):
                continue
            is_function = isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and i == 0
            yield node.value, is_function and not _is_property(parent)


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and every one below it that has a list of statements as its body; looks into no expression."""
    yield node
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, field, ()):
            if hasattr(child, "body"):
                yield from _blocks(child)


def _arguments(docstring: str) -> Iterator[tuple[int, str]]:
    """Yield the entries of the Args section, each as "name: first line", with its line number from 0."""
    section: str | None = None
    level: str | None = None
    for number, line in enumerate(docstring.splitlines()):
        if match := _SECTION.fullmatch(line):
            section, level = match["indent"], None
        elif section is not None and line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            if len(indent) <= len(section):
                section = None
                continue
            level = level or indent
            if indent == level and (entry := _ARGUMENT.fullmatch(line)):
                yield number, f"{entry['name']}: {entry['text']}"


def _bad_names(path: Path, tree: ast.Module) -> Iterator[Offender]:
    parents: list[ast.Module | ast.ClassDef] = [tree]
    parents += [node for node in _blocks(tree) if isinstance(node, ast.ClassDef)]
    for parent in parents:
        owner = f"{parent.name}." if isinstance(parent, ast.ClassDef) else ""
        for node in parent.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_property(node):
                continue
            name = f"{owner}{node.name}"
            if name in CONVENTIONAL_NAMES:
                continue
            if is_participle(node.name):
                yield Offender(_PARTICIPLE, path, node.lineno, name)
            if node.name in _PREPOSITIONS:
                yield Offender(_PREPOSITION, path, node.lineno, name)


def is_participle(name: str) -> bool:
    """Return whether a public name is a bare participle.

    >>> [name for name in ("kept", "finished", "open", "finish_run", "_told", "embed") if is_participle(name)]
    ['kept', 'finished']
    """
    if name.startswith("_") or name in _NOT_PARTICIPLES:
        return False
    return name in _PARTICIPLES or ("_" not in name and name.endswith("ed"))


def _is_property(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    names = {part for decorator in decorators for part in re.findall(r"\w+", ast.unparse(decorator))}
    return bool(names & _PROPERTIES)


def main(folders: list[str]) -> int:
    """Print the offenders below the folders (all, if none is named), by file, then their number by rule and package."""
    paths = [path for path in files() if not folders or any(path.is_relative_to(folder) for folder in folders)]
    found = [offender for path in paths for offender in find_offenders(path)]
    for offender in found:
        print(offender)
    counts = Counter((offender.rule, offender.package) for offender in found)
    packages = sorted({package for _, package in counts})
    if found:
        print("\n" + " ".join([f"{'':46}", *(f"{package:>11}" for package in packages)]))
    for rule in sorted({rule for rule, _ in counts}):
        print(" ".join([f"{rule:46}", *(f"{counts[rule, package]:11}" for package in packages)]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
