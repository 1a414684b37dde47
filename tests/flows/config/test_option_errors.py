"""An option that does not exist is answered with the one that was meant, or with its place."""

import pytest

from flows.config.gate_file import parse_gate
from metric_core.errors import ConfigError


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"metric": ["faithfulness"]}, r"regression\.0\.metric: there is no such option\. Did you mean metrics\?"),
        ({"max_drp": 0.1}, r"regression\.0\.max_drp: there is no such option\. Did you mean max_drop\?"),
        ({"min_rows": 20}, r"regression\.0\.min_rows: there is no such option here; min_rows stands at the top"),
    ],
)
def test_options_in_lists_of_tables_are_suggested(rule: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_gate({"regression": [{"max_drop": 0.05, **rule}]}, "gate.toml")
