"""A relay in front of a server on the loopback interface, which can go away and come back like a restarted server."""

import socket
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Relay:
    """A relay of TCP connections that serves while its context is entered.

    Args:
        url: URL of the server.
        path: Path of its Unix socket, if it has no port.
    """

    def __init__(self, url: str, path: Path | None = None) -> None:
        parts = urlsplit(url)
        self._path = path
        self._is_dark = False
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self._host, self._target_host = (f"ost: 127.0.0.1:{port}".encode() for port in (self._port, self._target[1]))
        self.url = f"http://127.0.0.1:{self._port}{parts.path}"

    def stop(self) -> None:
        """Go away: close all connections, and refuse new ones."""
        with self._lock:
            with suppress(OSError):  # it is closed already
                self._listener.shutdown(socket.SHUT_RDWR)  # or the thread that waits for a connection would accept one
            self._listener.close()
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def go_dark(self) -> None:
        """Drop what is sent from now on, and close nothing, like a firewall that has forgotten the connections."""
        self._is_dark = True

    def start(self) -> None:
        """Serve, at the same address as before."""
        if self._listener.fileno() < 0:
            self._listener = socket.create_server(("127.0.0.1", self._port))
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                near, _ = listener.accept()
                far = self._connect()
                with self._lock:
                    self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _connect(self) -> socket.socket:
        if self._path is None:
            return socket.create_connection(self._target)
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(self._path))
        return far

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(65536):
                if not self._is_dark:
                    sink.sendall(content.replace(self._host, self._target_host))
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source, sink}
        source.close()
