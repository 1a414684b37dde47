"""An option that does not exist is answered with the one that was meant, or with its place."""

import pytest

from flows.config.gate_file import parse_gate
from flows.config.loading import load_config
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model", r"model: there is no such option here; model is one of embedder, judge\.server, judge\.verifier"),
        ("api_key", r"api_key: there is no such option here; api_key is one of retriever, judge\.server,"),
        ("llm", r"llm: there is no such option\. Did you mean judge\?"),
        ("zzz", r"zzz: there is no such option$"),
    ],
)
def test_an_option_of_a_table_is_answered_with_its_tables(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(None, {name: "stub"})
