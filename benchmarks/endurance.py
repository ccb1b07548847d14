"""Whether a server under load loses requests or keeps memory.

    python benchmarks/endurance.py --model DIR --data dev-v1.1.json [--clients 32] \
        [--minutes 5] [--output benchmarks/results/endurance.json]

The clients are those of benchmarks/serving.py. The memory is what the server's process
occupies, after a first tenth of the time and at the end.
"""

import argparse
import json
import re
import urllib.request
from pathlib import Path

from serving import Server, load, read_examples

from qanet.datasets.squad import Example
from qanet.files import write_text


def memory(address: tuple[str, int]) -> float:
    """Bytes that the server's process occupies, as it tells itself."""
    host, port = address
    with urllib.request.urlopen(f"http://{host}:{port}/metrics") as response:
        text = response.read().decode()
    (found,) = re.findall(r"^process_resident_memory_bytes (.+)$", text, re.MULTILINE)
    return float(found)


def endure(
    address: tuple[str, int], examples: list[Example], clients: int, seconds: float
) -> dict:
    """What clients see of a server in some time, and what its memory is after it."""
    load(address, examples, clients, seconds / 10)
    before = memory(address)
    seen = load(address, examples, clients, seconds)
    after = memory(address)
    return {
        **seen,
        "memory_before_mib": round(before / 2**20, 1),
        "memory_after_mib": round(after / 2**20, 1),
        "memory_growth": round(after / before - 1.0, 4),
    }


def main() -> None:
    """Parses the options, measures, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--data", required=True, help="SQuAD file with the questions")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    examples = read_examples(options.data)
    with Server(options.model) as address:
        found = endure(address, examples, options.clients, 60.0 * options.minutes)
    result = {
        "data": Path(options.data).name,
        "minutes": options.minutes,
        **found,
    }
    print(result)
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
