"""A SOCKS5 proxy on a free port that connects every name to this machine."""

import socket
import struct
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self


class SocksProxy:
    """A proxy that runs while its context is entered, and records the names that it was asked for."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            methods = client.recv(2)[1]
            client.recv(methods)
            client.sendall(b"\x05\x00")  # no authentication
            kind = client.recv(4)[3]
            assert kind == 3, "the proxy must resolve the name"
            host = client.recv(client.recv(1)[0]).decode()
            (port,) = struct.unpack("!H", client.recv(2))
            self.hosts.add(host)
            with socket.create_connection(("127.0.0.1", port)) as server:
                client.sendall(b"\x05\x00\x00\x01" + bytes(6))
                back = Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join(5)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)
