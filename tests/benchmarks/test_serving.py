"""Tests of benchmarks/serving.py, with a server that answers at once."""

import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qanet.datasets.squad import Example

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serving.py"
EXAMPLES = [Example(str(i), f"Who is {i}?", f"It is {i}.", ()) for i in range(5)]


@pytest.fixture
def server():
    """Its address, and what it was asked. It refuses one question."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            size = int(self.headers["Content-Length"])
            asked.append(json.loads(self.rfile.read(size)))
            refused = asked[-1]["questions"] == ["Who is 3?"]
            self.send_response(429 if refused else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http.server_address, asked
        http.shutdown()
        thread.join()


def test_load_asks_each_question_in_turn_and_counts(server):
    address, asked = server
    load = runpy.run_path(str(SCRIPT))["load"]

    told = load(address, EXAMPLES, clients=2, seconds=0.2)

    assert told["clients"] == 2
    assert sum(told["statuses"].values()) == len(asked) > 0
    refused = sum(body["questions"] == ["Who is 3?"] for body in asked)
    assert told["statuses"].get(429, 0) == refused
    assert told["p50_ms"] <= told["p95_ms"] <= told["p99_ms"]
    for body in asked:
        number = int(body["questions"][0].split()[-1][:-1])
        assert body["passages"] == [EXAMPLES[number].context]
