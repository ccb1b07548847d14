"""Where a data set comes from: a file in the SQuAD format, or SQuAD 1.1 by name."""

import os
from collections.abc import Iterable
from pathlib import Path

from qanet.datasets.squad import SquadFile, parse_squad, read_squad
from qanet.errors import UserError

SQUAD = "squad"
TFDS_NAME = "squad/v1.1"
TFDS_SPLITS = {"train": "train", "dev": "validation"}


def load_examples(source: str | os.PathLike, split: str) -> SquadFile:
    """Reads a data set.

    Args:
        source: path of a SQuAD v1.1 or v2.0 file, or `squad` for SQuAD 1.1 through
            tensorflow-datasets, which downloads it once and checks its checksum.
        split: `train` or `dev`; only `squad` has both under one name.

    Raises:
        UserError: the file cannot be read or is malformed, or the download failed.
    """
    if str(source) == SQUAD and not Path(SQUAD).is_file():
        return _load_tfds(split)
    return read_squad(source)


def _load_tfds(split: str) -> SquadFile:
    import tensorflow_datasets as tfds

    try:
        dataset = tfds.load(TFDS_NAME, split=TFDS_SPLITS[split])
        document = _to_document(tfds.as_numpy(dataset))
    except Exception as error:  # Whatever the layers below a download raise.
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{SQUAD}: tensorflow-datasets could not provide {TFDS_NAME} ({reason}); "
            "check the network, or give the path of a SQuAD file instead"
        ) from None
    return parse_squad(document, TFDS_NAME)


def _to_document(records: Iterable[dict]) -> dict:
    """The records as a SQuAD document, paragraphs together again and in order."""
    articles: dict[str, dict[str, list]] = {}
    for record in records:
        answers = zip(
            record["answers"]["text"], record["answers"]["answer_start"], strict=True
        )
        question = {
            "id": record["id"].decode(),
            "question": record["question"].decode(),
            "answers": [
                {"text": text.decode(), "answer_start": int(start)}
                for text, start in answers
            ],
        }
        paragraphs = articles.setdefault(record["title"].decode(), {})
        paragraphs.setdefault(record["context"].decode(), []).append(question)
    # tensorflow-datasets shuffles; sorting makes the order independent of its shards.
    data = [
        {
            "title": title,
            "paragraphs": [
                {"context": context, "qas": sorted(qas, key=lambda qa: qa["id"])}
                for context, qas in sorted(paragraphs.items())
            ],
        }
        for title, paragraphs in sorted(articles.items())
    ]
    return {"version": "1.1", "data": data}
