"""Pages of other origins that send a server all that a browser lets a page send."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn

from deployments.web.http_guard import App, Receive, Send

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REBOUND = "rebound.example"
"""A name that the browser resolves to this machine, as a page's own name after DNS rebinding."""

LOCAL_NETWORK_CHECKS = "BlockInsecurePrivateNetworkRequests,LocalNetworkAccessChecks"
"""Features of this browser that other browsers lack: it lets no page of the internet send requests to this machine."""

ORIGINS = ("same site", "other site", "opaque", "rebound")
"""Origins of pages: another port of the same address, another name, a sandbox, and the server under a foreign name."""

_ATTACK = (Path(__file__).parent / "foreign_page.js").read_text(encoding="utf-8")
_OPEN_SANDBOX = """new Promise((done) => {
  const frame = Object.assign(document.createElement("iframe"), { onload: done, srcdoc: "<p>Sandbox" });
  frame.sandbox = "allow-scripts allow-forms";
  document.body.append(frame);
})"""
_OWN = "/foreign"
_PAGE = "<!doctype html><title>Foreign</title><p>Foreign</p>"


@dataclass(frozen=True)
class Attack:
    """The requests that a page sends to a server.

    Args:
        root: URL of the server.
        bodies: Path and JSON body of each request that would change something.
        reads: Paths of pages and listings.
        sockets: Paths of WebSockets.
        event: Message to send over each WebSocket.
    """

    root: str
    bodies: Sequence[tuple[str, Any]] = ()
    reads: Sequence[str] = ()
    sockets: Sequence[str] = ()
    event: Any = None

    def run(self, browser: "Browser", origin: str) -> list[str]:
        """Attack from a page of an origin, and return what the page could read."""
        port = urlsplit(self.root).port
        with foreign_site() as site, browser.new_context() as context:
            page = context.new_page()
            root = f"http://{REBOUND}:{port}" if origin == "rebound" else self.root
            if origin == "rebound":
                page.route(f"{root}{_OWN}", lambda route: route.fulfill(body=_PAGE, content_type="text/html"))
                page.goto(f"{root}{_OWN}")
            else:
                page.goto(f"http://{'localhost' if origin == 'other site' else '127.0.0.1'}:{site}/")
            return self._send(page, origin, root)

    def _send(self, page: "Page", origin: str, root: str) -> list[str]:
        target: Any = page
        if origin == "opaque":
            page.evaluate(_OPEN_SANDBOX)
            target = page.frames[-1]
        bodies = [{"path": path, "body": json.dumps(body)} for path, body in self.bodies]
        plan = {"root": root, "bodies": bodies, "reads": [*self.reads], "sockets": [*self.sockets], "event": self.event}
        read: list[str] = target.evaluate(_ATTACK, plan)
        if self.reads:  # at last, as this leaves the page
            page.evaluate("url => { location.href = url }", f"{root}{self.reads[0]}")
            page.wait_for_load_state()
        return read


@contextmanager
def foreign_site() -> Iterator[int]:
    """Serve an empty page on a port of its own, and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(_PAGE.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@dataclass
class Recorder:
    """An application that answers everything with a script, and records what reaches it.

    Args:
        reached: Kind and path of each connection, or its method and media type.
    """

    reached: set[tuple[str, str]] = field(default_factory=set)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Record a connection."""
        if scope["type"] == "websocket":
            self.reached.add(("websocket", scope["path"]))
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": "told"})
            await send({"type": "websocket.close"})
        elif scope["type"] == "http":
            headers = {name: value.decode() for name, value in scope["headers"]}
            media_type = headers.get(b"content-type", "none").partition(";")[0]
            self.reached.add(
                (scope["method"], headers.get(b"sec-fetch-dest", "") if scope["method"] == "GET" else media_type)
            )
            while (await receive()).get("more_body"):
                pass
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/javascript")]}
            )
            await send({"type": "http.response.body", "body": b"window.told = true"})


@contextmanager
def serving(make_app: Any) -> Iterator[str]:
    """Serve the application that a function makes for a port, and yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app: App = make_app(port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join()
