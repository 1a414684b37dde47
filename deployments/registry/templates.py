"""Build the Jinja templates of the messages that the Prefect server sends and fills in for an event."""

import json
import re
from datetime import timedelta
from enum import Enum
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MARKED = re.compile(r"\\ue000(\w+)\\ue001")
_TIME = "firing.triggered"


class Field(Enum):
    """A part of a message that is known only when it is sent. Its value is a Jinja expression."""

    TITLE = "title"
    TEXT = "text"
    SHORT = "short"
    UNTIL = "until"
    ID = "firing.id"
    FLOW_RUN = "event.resource.id | replace('prefect.flow-run.', '')"
    TIME = f"{_TIME}.isoformat()"

    @property
    def mark(self) -> str:
        """The text that represents the part in content for `json_template`."""
        return f"\ue000{self.name}\ue001"


def json_template(content: Any, **variables: str) -> str:
    r"""Return a template that renders as JSON.

    Args:
        content: The content, whose texts may have marks of fields in them.
        variables: Templates of the variables that fields name.

    >>> print(json_template({"name": "{{ 7 * 7 }}", "text": f"{Field.TITLE.mark}!"}, title="a run"))
    {% set title %}a run{% endset %}{"name": "\u007b\u007b 7 * 7 }}", "text": "{{ (title | string | tojson)[1:-1] }}!"}
    """
    text = _STRING.sub(lambda string: string[0].replace("{", r"\u007b"), json.dumps(content))
    text = _MARKED.sub(lambda mark: f"{{{{ ({Field[mark[1]].value} | string | tojson)[1:-1] }}}}", text)
    return "".join(f"{{% set {name} %}}{each}{{% endset %}}" for name, each in variables.items()) + text


def time_after(duration: timedelta) -> str:
    """Return a template of the time that is some time after a message is sent.

    Args:
        duration: The time in between.
    """
    moment = f"{_TIME}.timestamp() + {duration.total_seconds()}"
    return f"{{{{ {_TIME}.fromtimestamp({moment}, {_TIME}.tzinfo).isoformat() }}}}"


def cut_template(template: str, limit: int) -> str:
    """Return a template that renders as the beginning of what another does.

    Args:
        limit: Greatest number of characters.
    """
    return f"{{% set whole %}}{template}{{% endset %}}{{{{ whole | truncate({limit}, true, '…', 0) }}}}"


def literal(text: str) -> str:
    """Return a template that renders as a text which people chose, whatever is in it.

    >>> literal("plain"), literal("{{ 7 * 7 }}")
    ('plain', '{{ "{{ 7 * 7 }}" }}')
    """
    return text if not {"{", "}", "%", "#"} & set(text) else f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}"
