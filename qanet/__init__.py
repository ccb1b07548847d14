"""Reading comprehension: a question and a passage in, the answer's span out."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Answer", "Reader", "UserError", "__version__"]

if TYPE_CHECKING:
    from qanet.decoding import Answer
    from qanet.errors import UserError
    from qanet.reader import Reader


def __getattr__(name: str) -> Any:
    """Imports the public names on first use, so that `import qanet` stays light."""
    if name == "Reader":
        from qanet.reader import Reader

        return Reader
    if name == "Answer":
        from qanet.decoding import Answer

        return Answer
    if name == "UserError":
        from qanet.errors import UserError

        return UserError
    raise AttributeError(f"module 'qanet' has no attribute {name!r}")
