"""The parameters of flow runs are described and written as Prefect would describe and write them."""

import pytest
from fastapi.encoders import jsonable_encoder
from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema

from flows.config.run_config import RunConfig
from flows.evaluate import evaluate


def test_a_configuration_is_written_as_prefect_would_write_it() -> None:
    config = RunConfig.model_validate(
        {
            "source": "rows.jsonl",
            "metrics": ["faithfulness", "noise_sensitivity(mode=irrelevant)"],
            "judge": {"backend": "server", "server": {"urls": ["http://127.0.0.1:1/v1"], "api_key": "env:KEY"}},
            "deploy": {"gate": {"absolute": ["faithfulness >= 0.5"]}},
            "slices": ["topic"],
        }
    )
    written = evaluate.serialize_parameters({"config": config, "index": "i", "version": "1"})
    assert written == {"config": jsonable_encoder(config), "index": "i", "version": "1"}
    assert RunConfig.model_validate(written["config"]) == config


def test_parameters_are_described_when_they_are_read() -> None:
    assert evaluate.parameters == parameter_schema(evaluate.fn)
    assert list(evaluate.parameters.properties) == ["config", "index", "version"]
    assert evaluate.with_options(name="other").parameters == evaluate.parameters
    assert isinstance(evaluate, Flow)


def test_a_deployment_has_the_parameters() -> None:
    assert parameter_schema(evaluate) == evaluate.parameters
    assert parameter_schema(evaluate.with_options(name="other")) == evaluate.parameters


def test_a_parameter_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="config"):
        evaluate.validate_parameters({"config": 3, "index": "i", "version": "1"})
