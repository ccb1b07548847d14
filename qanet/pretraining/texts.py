"""Texts that a language model is trained on."""

import hashlib
from collections.abc import Iterator, Sequence

from qanet.datasets.squad import read_json
from qanet.errors import UserError
from qanet.files import read_lines

# The paragraphs of a text, in order.
Document = list[str]


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Reads the documents of some files.

    Args:
        paths: `.json` is in the SQuAD format, each article a document and its contexts
            the paragraphs, of all files each context once. Anything else is text in
            UTF-8, plain or `.gz`, a paragraph a line; a blank line ends a document.

    Raises:
        UserError: a file cannot be read, is a table (`.tsv`) or no SQuAD file, or
            holds no text.
    """
    documents = []
    seen = set()
    for path in paths:
        read = _articles if str(path).endswith(".json") else _texts
        found = list(read(path))
        if not found:
            raise UserError(f"{path}: holds no text; give another file")
        if read is _articles:
            found = [_unseen(document, seen) for document in found]
        documents += filter(None, found)
    return documents


def _articles(path: str) -> Iterator[Document]:
    """The articles of a SQuAD file; questions are not looked at."""
    try:
        for article in read_json(path)["data"]:
            contexts = [paragraph["context"] for paragraph in article["paragraphs"]]
            if document := [text.strip() for text in contexts if text.strip()]:
                yield document
    except (KeyError, TypeError, AttributeError):
        raise UserError(
            f"{path}: is not a SQuAD file (data, paragraphs, context); give text "
            "another name than .json"
        ) from None


def _unseen(document: Document, seen: set[str]) -> Document:
    """The paragraphs that are not seen yet; they are from now on."""
    # A dictionary, because it keeps their order.
    new = [text for text in dict.fromkeys(document) if text not in seen]
    seen.update(new)
    return new


def _texts(path: str) -> Iterator[Document]:
    """The documents of a text file."""
    if str(path).endswith(".json.gz"):
        raise UserError(f"{path}: is packed JSON; unpack it with gunzip")
    if str(path).removesuffix(".gz").endswith(".tsv"):
        raise UserError(
            f"{path}: is a table; write one column to a file of its own, the first "
            "one with cut -f1"
        )
    document = []
    for line in read_lines(path):
        if text := line.strip():
            document.append(text)
        elif document:
            yield document
            document = []
    if document:
        yield document


def split_held_out(
    documents: Sequence[Document], share: float, least: int
) -> tuple[list[Document], list[Document]]:
    """Keeps some documents from the training.

    Which ones follows from the texts alone.

    Args:
        documents: all of them.
        share: what share of them is kept.
        least: documents that either part has at least.

    Returns:
        The documents to train on, and those that are held out.

    Raises:
        UserError: there are too few documents.
    """
    if len(documents) < 2 * least:
        raise UserError(
            f"--text: {len(documents)} documents are too few; give at least "
            f"{2 * least}, in plain text with a blank line after each"
        )
    count = round(share * len(documents))
    count = min(max(count, least), len(documents) - least)
    order = sorted(range(len(documents)), key=lambda i: _digest(documents[i]))
    held_out = set(order[:count])
    return (
        [text for i, text in enumerate(documents) if i not in held_out],
        [text for i, text in enumerate(documents) if i in held_out],
    )


def _digest(document: Document) -> bytes:
    # JSON may hold half a surrogate pair.
    text = "\n".join(document).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()
