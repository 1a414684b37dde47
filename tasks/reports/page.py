"""Render a page as one HTML file that works offline and makes no request.

No text of the data becomes markup: templates escape everything, and the content security policy of the page forbids
every request and every script but the packaged ones.
"""

import base64
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemBytecodeCache, FileSystemLoader, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from tasks.documents.blocks import Block
from tasks.documents.html import to_html
from tasks.findings.parts import Templated

_PACKAGE, _TEMPLATES, _ROOMS = "tasks.reports", "templates", "tasks.findings"
_LAYOUT: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
_UNSAFE_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render_page(template: str, content: Mapping[str, Any], styles: Sequence[str], scripts: Sequence[str] = ()) -> str:
    """Render a page.

    Args:
        template: Name of a packaged template that extends `page.html.j2`.
        content: Variables of the template.
        styles: Names of the packaged style sheets, in order.
        scripts: Names of the packaged scripts, in order. The template places them as `{{ script }}`.
    """
    style, script = _read_packaged(styles), _read_packaged(scripts)
    script_source = f"script-src {_hash_source(script)}; " if scripts else ""
    return (
        open_templates()
        .get_template(template)
        .render(
            **content,
            policy=(
                f"default-src 'none'; style-src {_hash_source(style)}; {script_source}img-src data:; base-uri 'none'; "
                "form-action 'none'"
            ),
            style=Markup(style),  # noqa: S704 packaged with the project
            script=Markup(script),  # noqa: S704 packaged with the project
        )
    )


def render_document(title: str, about: str, blocks: Sequence[Block]) -> str:
    """Render blocks as a page of their own.

    Args:
        about: Kind of the document, above its title.
    """
    return render_page("document.html.j2", {"title": title, "about": about, "blocks": to_html(blocks)}, ("report.css",))


def render_part(part: Templated | Sequence[Block] | None, shared: Mapping[str, Any]) -> Markup:
    """Render a part of a page: a template of the room of a finding, or blocks.

    Args:
        shared: Variables of the page.
    """
    if part is None:
        return Markup()
    if isinstance(part, Templated):
        template = open_templates().get_template(part.template)
        return Markup(template.render({**shared, **part.content}))  # noqa: S704 escaped by the template
    return to_html(part)


def script_json(value: Any) -> str:
    r"""Return JSON that is safe in a script element: nothing in it can end the element or start a comment.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_UNSAFE_IN_SCRIPT)


@cache
def open_templates() -> Environment:
    """Return the packaged templates; each is compiled on first use and kept."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(_PACKAGE, _TEMPLATES), FileSystemLoader(str(files(_ROOMS)))]),
        autoescape=True,
        undefined=StrictUndefined,
        bytecode_cache=CompiledTemplates(Path(__file__).parent / "__pycache__"),
        **_LAYOUT,
    )


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept where Python keeps compiled modules: compiling them takes a tenth of a second.

    Nothing is written where Python itself writes no bytecode, or where the folder is read-only.

    Args:
        folder: Folder of the files; created when the first one is written.
    """

    def __init__(self, folder: Path) -> None:
        compiled_by = hashlib.sha256(repr((version("jinja2"), _LAYOUT)).encode()).hexdigest()[:16]
        super().__init__(str(folder), f"%s-{compiled_by}.jinja")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a compiled template; one that is damaged is compiled again."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001 damaged bytes raise many kinds of errors
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template, if possible."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


def _read_packaged(names: Sequence[str]) -> str:
    folder = files(_PACKAGE) / _TEMPLATES
    return "\n".join((folder / name).read_text(encoding="utf-8").strip() for name in names)


def _hash_source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
