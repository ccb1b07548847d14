"""Five minutes of many clients: what the server loses, and what memory it keeps.

The clients are those of benchmarks/serving.py; they ask the reader of the package about
the sample. Before it is measured they have asked for half as long, because the memory
grows until the largest batches have come.
"""

import re
import urllib.request

from serving import Server, load

from enduring.findings import Finding
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import Example
from qanet.shipped import shipped_reader

CLIENTS = 32
SECONDS = 300.0
# Of memory, at most.
GROWTH = 0.05


def run(seed: int) -> list[Finding]:
    """Starts a server and asks it."""
    examples = load_examples("sample", "dev").examples
    with Server(str(shipped_reader())) as address:
        return endure(address, examples, CLIENTS, SECONDS)


def endure(
    address: tuple[str, int], examples: list[Example], clients: int, seconds: float
) -> list[Finding]:
    """What clients see of a server in some time, and what its memory is after it."""
    load(address, examples, clients, seconds / 2)
    before = memory(address)
    seen = load(address, examples, clients, seconds)
    after = memory(address)
    minutes = f"{seconds / 60:.3g} minutes of {clients} clients"
    requests = Finding(
        f"requests in {minutes}",
        sum(seen["statuses"].values()),
        remark=f"{seen['requests_per_second']} a second",
    )
    if seen["lost"]:
        requests.wrong.append(f"{seen['lost']} lost: {seen['statuses']}")
    told = f"{before / 2**20:.0f} MiB before, {after / 2**20:.0f} after"
    kept = Finding(f"memory after {minutes}", 1, remark=told)
    if after > (1.0 + GROWTH) * before:
        kept.wrong.append(f"grew by {after / before - 1.0:.1%}")
    return [requests, kept]


def memory(address: tuple[str, int]) -> float:
    """Bytes that the server's process occupies, as it tells itself."""
    host, port = address
    with urllib.request.urlopen(f"http://{host}:{port}/metrics") as response:
        text = response.read().decode()
    (found,) = re.findall(r"^process_resident_memory_bytes (.+)$", text, re.MULTILINE)
    return float(found)
