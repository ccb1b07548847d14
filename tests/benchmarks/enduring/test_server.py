"""Tests of benchmarks/enduring/server.py, with a server that answers at once."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from enduring import server

from qanet.datasets.squad import Example

EXAMPLES = [Example(str(i), f"Who is {i}?", f"It is {i}.", ()) for i in range(5)]


@pytest.fixture
def address():
    """A server that needs more memory each time it is asked how much, and loses one."""
    memory, lock = iter((100, 106)), threading.Lock()
    lost = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            told = f"# HELP\nprocess_resident_memory_bytes {next(memory)}.0e+06\nx 1\n"
            self.send(200, told.encode())

        def do_POST(self):
            size = int(self.headers["Content-Length"])
            asked = json.loads(self.rfile.read(size))
            with lock:
                if asked["questions"] == ["Who is 3?"] and not lost:
                    lost.append(asked)
                    self.close_connection = True
                    return
            self.send(200, b"{}")

        def send(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http.server_address
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def measured_load(monkeypatch):
    """The server is asked only while it is measured."""
    load = server.load
    monkeypatch.setattr(
        server, "load", lambda *asked: load(*asked) if asked[3] == 0.5 else None
    )


def test_losses_and_memory_are_told(address):
    requests, memory = server.endure(address, EXAMPLES, 2, 0.5)

    (lost,) = requests.wrong
    assert lost.startswith("1 lost: ")
    assert requests.tries > 1
    assert memory.wrong == ["grew by 6.0%"]
    assert memory.remark == "95 MiB before, 101 after"
