"""Compose the options of the models of a run, of the cache of their answers, and of what they cost."""

from tasks.options.cache_options import CacheOptions
from tasks.options.cost_options import CostOptions, Prices
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judge_options import JudgeOptions
from tasks.options.judged_settings import JudgedSettings
from tasks.options.language_options import LanguageOptions
from tasks.options.narrow import narrow


class RunModelOptions(CostOptions, CacheOptions, LanguageOptions, EmbedderOptions, JudgeOptions):
    """Options of the models of a run, of the cache of their answers, and of what they cost."""

    @property
    def all_prices(self) -> tuple[Prices, ...]:
        """All prices: those of all judges, and those of single judges."""
        own = [judge.server.prices for judge in self.judges if judge.server is not None]
        return (self.prices, *(prices for prices in own if prices is not None))

    @property
    def judged(self) -> JudgedSettings:
        """The settings with which a stage asks the judge."""
        return narrow(self, JudgedSettings, refresh=False)
