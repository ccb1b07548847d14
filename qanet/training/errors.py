"""Errors that end a training, wherever it notices them."""

from qanet.errors import UserError


def diverged(what: str) -> UserError:
    """The error of a training that has come to what is no number."""
    return UserError(
        f"{what}; start a new run with a lower training.learning_rate "
        "(--set training.learning_rate=...)"
    )


def out_of_memory() -> UserError:
    """The error of a training that a device has no memory for."""
    return UserError(
        "out of memory; start a new run with a lower training.batch_size "
        "(training.batch_tokens where there is none) or shorter texts; of a reader "
        "also training.evaluation_batch_size and data.context_limit"
    )
