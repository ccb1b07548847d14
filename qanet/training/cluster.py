"""Who this process is among several workers."""

import json
import os

from qanet.errors import UserError

EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


def is_first_worker() -> bool:
    """Whether this process is the first of the workers that `TF_CONFIG` lists.

    Raises:
        UserError: the environment variable `TF_CONFIG` is missing or names no worker.
    """
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        tasks = [
            (kind, index)
            for kind in ("chief", "worker")
            for index, _ in enumerate(config["cluster"].get(kind, []))
        ]
        return tasks.index((config["task"]["type"], config["task"]["index"])) == 0
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"TF_CONFIG={text!r}: distribution.strategy=multi_worker needs the list of "
            f"workers and this one's place in it, such as {EXAMPLE}"
        ) from None
