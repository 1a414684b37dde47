"""Define the settings by which stages receive a metric."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from metric_core.declarations.metric import Metric, MetricRequest
from metric_core.errors import PluginError
from tasks.options.settings import Settings
from tasks.plugins.load_object import LoadedObject, digest_with
from tasks.plugins.metric_lookup import find_metric, load_functions


class MetricSettings(Settings):
    """A metric with its parameters, by name.

    Args:
        name: Name under which the metric is found.
        key: Name of its scores.
        code: Digest of the code of a user-defined metric and of functions that parameters name; empty without any.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    key: str
    code: str = ""

    @classmethod
    def from_request(cls, request: MetricRequest) -> "MetricSettings":
        """Return the settings that describe a request."""
        name = request.metric.origin or request.metric.name
        code = _code(request.metric, load_functions(request))
        return cls(name=name, parameters=dict(request.parameters), key=request.key, code=code)

    def request(self) -> MetricRequest:
        """Return the request that the settings describe.

        Raises:
            PluginError: A user-defined metric has different code here than where the run was planned.
        """
        request = find_metric(self.name).request(self.parameters, self.key)
        functions = load_functions(request)
        if self.code not in ("", _code(request.metric, functions)):
            raise PluginError(
                f"the metric {self.name} has different code here than where the run was planned; install the same "
                "version on every machine, and restart workers after a change"
            )
        return replace(request, functions={name: loaded.obj for name, loaded in functions.items()})


def _code(metric: Metric, functions: Mapping[str, LoadedObject]) -> str:
    codes = [loaded.code for loaded in functions.values()]
    return digest_with(metric.code, codes) if codes else metric.code
