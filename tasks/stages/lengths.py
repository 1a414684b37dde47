"""Count the characters of each response: the stage `lengths`."""

from metric_core.stages import Stage
from tasks.models.protocol import Models
from tasks.options.settings import Settings
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.tables.records import build_table, read_samples_table


class LengthsSettings(Settings):
    """Settings of the stage `lengths`, which has none."""


@stage(Stage.LENGTHS, version=1, reads=(Stage.SAMPLES,), always=True)
def lengths(tables: Tables, settings: LengthsSettings, models: Models, progress: Progress) -> StageOutput:
    """Count the characters of each response."""
    del settings, models
    samples = read_samples_table(tables[Stage.SAMPLES])
    progress(0, len(samples))
    rows = [{"row_id": sample.row_id, "characters": len(sample.response or "")} for sample in samples]
    progress(len(samples), 0)
    return StageOutput(build_table(Stage.LENGTHS, rows))
