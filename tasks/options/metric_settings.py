"""Define the settings by which stages receive a metric."""

from typing import Any

from pydantic import Field

from metric_core.declarations.metric import MetricRequest
from metric_core.errors import PluginError
from tasks.options.settings import Settings
from tasks.plugins.metric_lookup import find_metric


class MetricSettings(Settings):
    """A metric with its parameters, by name.

    Args:
        name: Name under which the metric is found.
        key: Name of its scores.
        code: Digest of the code of a user-defined metric; empty for a built-in one.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    key: str
    code: str = ""

    @classmethod
    def from_request(cls, request: MetricRequest) -> "MetricSettings":
        """Return the settings that describe a request."""
        metric = request.metric
        name = metric.origin or metric.name
        return cls(name=name, parameters=dict(request.parameters), key=request.key, code=metric.code)

    def request(self) -> MetricRequest:
        """Return the request that the settings describe.

        Raises:
            PluginError: A user-defined metric has different code here than where the run was planned.
        """
        metric = find_metric(self.name)
        if self.code not in ("", metric.code):
            raise PluginError(
                f"the metric {self.name} has different code here than where the run was planned; install the same "
                "version on every machine, and restart workers after a change"
            )
        return metric.request(self.parameters, self.key)
