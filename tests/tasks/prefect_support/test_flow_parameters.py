"""The parameters of flow runs are written as Prefect would write them."""

from fastapi.encoders import jsonable_encoder

from flows.config.run_config import RunConfig
from flows.evaluate import evaluate


def test_a_configuration_is_written_as_prefect_would_write_it() -> None:
    config = RunConfig.model_validate(
        {
            "source": "rows.jsonl",
            "metrics": ["faithfulness", "noise_sensitivity(mode=irrelevant)"],
            "judge": {"backend": "server", "server": {"urls": ["http://127.0.0.1:1/v1"], "api_key": "env:KEY"}},
            "anchor": {"source": "anchor.jsonl"},
            "slices": ["topic"],
        }
    )
    written = evaluate.serialize_parameters({"config": config, "index": "i", "version": "1"})
    assert written == {"config": jsonable_encoder(config), "index": "i", "version": "1"}
    assert RunConfig.model_validate(written["config"]) == config
