"""Whether what should hold under kills, damage, full disks and bad input holds.

    python benchmarks/endurance.py [PART ...] [--seed 0] \
        [--output benchmarks/results/endurance.json]

Without a PART all are run. Each prints the rows of its table, with what went wrong and
how to repeat it; exit code 1 where something did.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from enduring import damaged, disks, inputs, killed, server, texts

from qanet.files import write_text

PARTS = {
    "trainings": killed.run,
    "checkpoints": damaged.run,
    "disks": disks.run,
    "inputs": inputs.run,
    "texts": texts.run,
    "server": server.run,
}


def main() -> None:
    """Parses the options, runs the parts, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name}; choose of {', '.join(PARTS)}")
    result = {}
    for name in options.parts or PARTS:
        begin = time.monotonic()
        findings = PARTS[name](options.seed)
        seconds = round(time.monotonic() - begin, 1)
        result[name] = {"seconds": seconds, "rows": [asdict(row) for row in findings]}
        for row in findings:
            print(f"| {row.what} | {row.tries} | {len(row.wrong)} | {row.remark} |")
            for line in row.wrong:
                print(f"  wrong: {line}")
        print(f"{name}: {seconds} s", flush=True)
        # A part takes long; what is there is kept if a later one is stopped.
        if options.output:
            write_text(options.output, json.dumps(result, indent=1) + "\n")
    rows = [row for part in result.values() for row in part["rows"]]
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
