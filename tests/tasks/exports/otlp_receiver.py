"""An OTLP endpoint on the loopback interface that keeps what it gets."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class OtlpReceiver:
    """An endpoint that serves while its context is entered.

    Args:
        status: Status of its replies.
        accepts: Number of requests that it accepts before it replies with 400.
    """

    def __init__(self, status: int = 200, accepts: int = 1_000_000) -> None:
        self.logs: list[Any] = []
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.headers.append(dict(self.headers))
                receiver._keep(self.path, content)
                self.send_response(status if len(receiver.headers) <= accepts else 400)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 the name in the base class
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _keep(self, path: str, content: bytes) -> None:
        if path == "/v1/logs":
            for logs in ExportLogsServiceRequest.FromString(content).resource_logs:
                self._note_service(logs.resource)
                self.logs += [record for scope in logs.scope_logs for record in scope.log_records]
        elif path == "/v1/traces":
            for spans in ExportTraceServiceRequest.FromString(content).resource_spans:
                self._note_service(spans.resource)
                self.spans += [span for scope in spans.scope_spans for span in scope.spans]

    def _note_service(self, resource: Any) -> None:
        self.services.add(str(attributes_of(resource)["service.name"]))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes_of(message: Any) -> dict[str, Any]:
    """Return the attributes of a resource, span or log record."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in message.attributes}
