"""Tests of benchmarks/endurance.py, with a server that answers at once."""

import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qanet.datasets.squad import Example

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
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


def test_losses_and_memory_are_told(address, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    script = runpy.run_path(str(BENCHMARKS / "endurance.py"))
    # All that is asked in the first tenth is not counted.
    monkeypatch.setitem(
        script["endure"].__globals__,
        "load",
        lambda *asked: script["load"](*asked) if asked[3] == 0.5 else None,
    )

    told = script["endure"](address, EXAMPLES, 2, 0.5)

    assert told["clients"] == 2
    assert told["lost"] == 1
    assert sum(told["statuses"].values()) == told["statuses"][200] + 1
    assert told["memory_growth"] == 0.06
    assert told["memory_after_mib"] == round(106e6 / 2**20, 1)
