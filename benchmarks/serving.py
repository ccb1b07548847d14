"""Throughput and latency of the server under load, with and without batching.

    python benchmarks/serving.py --model DIR --data dev-v1.1.json [--seconds 30] \
        [--workers 1 2] [--batch-sizes 1 32] \
        [--output benchmarks/results/serving-onnx.json]

Clients on the same machine each ask one question after the other for some seconds, over
connections that stay open. Without batching means `--batch-size 1`: a thread reads one
question at a time, in the order in which they came. Workers are threads that read at a
time, which only ONNX exports have more than one of. A request that is not answered with
status 200 is lost.
"""

import argparse
import http.client
import itertools
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from machine import machine

from qanet.datasets.squad import Example, read_squad
from qanet.files import write_text

CLIENTS = (1, 8, 32)
HEADERS = {"Content-Type": "application/json"}


class Server:
    """A server process, from its start to its end.

    Args:
        model: the run directory or the export.
        options: more options of the command.
    """

    def __init__(self, model: str, *options: str):
        command = [sys.executable, "-m", "qanet", "serve", "--quiet", "--model", model]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options],
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> tuple[str, int]:
        line = self.process.stdout.readline()
        found = re.search(r"http://([\d.]+):(\d+)", line)
        if not found:
            sys.exit(self.process.wait())
        host, port = found.groups()
        connection = http.client.HTTPConnection(host, int(port), timeout=600)
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        connection.close()
        return host, int(port)

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def load(
    address: tuple[str, int], examples: list[Example], clients: int, seconds: float
) -> dict:
    """What some clients see who ask for some seconds."""
    end = time.perf_counter() + seconds
    milliseconds, answers, lock = [], Counter(), threading.Lock()

    def ask(client):
        connection = http.client.HTTPConnection(*address, timeout=600)
        mine, statuses, number = [], Counter(), client
        while time.perf_counter() < end:
            example = examples[number % len(examples)]
            number += clients
            body = json.dumps(
                {"questions": [example.question], "passages": [example.context]}
            )
            begin = time.perf_counter()
            try:
                connection.request("POST", "/v1/answer", body, HEADERS)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                statuses[type(error).__name__] += 1
                # The next request connects anew.
                connection.close()
                continue
            statuses[response.status] += 1
            if response.status == 200:
                mine.append(1000 * (time.perf_counter() - begin))
        connection.close()
        with lock:
            milliseconds.extend(mine)
            answers.update(statuses)

    begin = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - begin
    if not milliseconds:
        raise SystemExit("the server answered nothing")
    p50, p95, p99 = np.quantile(milliseconds, [0.5, 0.95, 0.99])
    return {
        "clients": clients,
        "requests_per_second": round(len(milliseconds) / elapsed, 1),
        "p50_ms": round(float(p50), 1),
        "p95_ms": round(float(p95), 1),
        "p99_ms": round(float(p99), 1),
        "statuses": dict(answers),
        "lost": answers.total() - answers[200],
    }


def read_examples(path: str) -> list[Example]:
    """Questions of a data set, spread over the passages, as those of strangers are."""
    examples = read_squad(path).examples
    order = np.random.default_rng(0).permutation(len(examples))
    return [examples[i] for i in order[:2000]]


def main() -> None:
    """Parses the options, measures, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--data", required=True, help="SQuAD file with the questions")
    parser.add_argument("--seconds", type=float, default=30.0, help="a measurement")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    examples = read_examples(options.data)
    rows = []
    for workers, size in itertools.product(options.workers, options.batch_sizes):
        server = Server(
            *(options.model, "--workers", str(workers), "--batch-size", str(size))
        )
        with server as address:
            load(address, examples, max(CLIENTS), min(5.0, options.seconds))
            for clients in CLIENTS:
                found = load(address, examples, clients, options.seconds)
                rows.append({"workers": workers, "batch_size": size, **found})
                print(rows[-1], flush=True)
    result = {
        "data": Path(options.data).name,
        **machine(),
        "seconds": options.seconds,
        "rows": rows,
    }
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
