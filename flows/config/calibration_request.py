"""The parameters of the flow `calibrate`."""

from pydantic import Field

from flows.config.run_config import RunConfig
from metric_core.calibration.labels import LabelRules
from metric_core.statistics.resampling import SEED
from tasks.options.settings import Settings


class CalibrationRequest(Settings):
    """Parameters of a calibration."""

    config: RunConfig = Field(description="Configuration of the evaluation; its source is the labelled data.")
    label: str = Field(description="Column with the labels of people.")
    metric: str | None = Field(
        None, description="Metric, as on the command line. Default: by the name of the label column."
    )
    positive: str | None = Field(None, description="Label that means yes. Default: 1, yes or true.")
    span: tuple[float, float] | None = Field(None, description="Lowest and highest grade.")
    sampling: str | None = Field(
        None,
        description="random if the labelled rows are a random sample of all; unknown; or the column with the "
        "probability with which each row was drawn. Default: the column label_probability; without it, unknown.",
    )
    run: str | None = Field(
        None, description="Finished run that the labels are about; its scores are used, and no judge is asked."
    )
    seed: int = Field(SEED, ge=0, description="Seed of the resampling.")
    keep: bool = Field(True, description="Save the calibration in ASSAY_HOME, for later runs of this judge.")
    replace: bool = Field(False, description="Replace a calibration, or labels of a run, by one with fewer labels.")

    @property
    def rules(self) -> LabelRules:
        """The rules for reading the labels."""
        return LabelRules(self.label, self.positive, self.span)
