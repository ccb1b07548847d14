"""Where a data set comes from: a file in the SQuAD format, or a name."""

import contextlib
import os
import sys
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from qanet.console import is_quiet, load_tensorflow
from qanet.datasets.squad import SquadFile, parse_squad, read_squad
from qanet.errors import UserError

# The small data set that is part of the package.
SAMPLE = "sample"
TFDS_NAMES = {"squad": "squad/v1.1", "squad_v2": "squad/v2.0"}
TFDS_SPLITS = {"train": "train", "dev": "validation"}


def load_examples(source: str | os.PathLike, split: str) -> SquadFile:
    """Reads a data set.

    Args:
        source: path of a SQuAD v1.1 or v2.0 file, or `sample` for the data set that is
            part of the package, or `squad` for SQuAD 1.1 and `squad_v2` for SQuAD 2.0
            through tensorflow-datasets, which downloads it once and checks its
            checksum.
        split: `train` or `dev`; only the data sets by name have both.

    Raises:
        UserError: the file cannot be read or is malformed, or the download failed.
    """
    if not is_name(source):
        return read_squad(source)
    if str(source) == SAMPLE:
        file = resources.files("qanet").joinpath("sample", f"{split}.json")
        with resources.as_file(file) as path:
            return read_squad(path)
    return _load_tfds(str(source), split)


def is_name(source: str | os.PathLike) -> bool:
    """Whether this names a data set; a file of that name goes before it."""
    return str(source) in {SAMPLE, *TFDS_NAMES} and not Path(source).is_file()


def _load_tfds(source: str, split: str) -> SquadFile:
    import tensorflow_datasets as tfds

    name = TFDS_NAMES[source]
    try:
        load_tensorflow()
        if is_quiet():
            tfds.disable_progress_bar()
        # It says what it downloads where results go.
        with contextlib.redirect_stdout(sys.stderr):
            dataset = tfds.load(name, split=TFDS_SPLITS[split])
            document = _to_document(tfds.as_numpy(dataset))
    except Exception as error:  # Whatever the layers below a download raise.
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{source}: tensorflow-datasets could not provide {name} ({reason}); "
            "check the network, or give the path of a SQuAD file instead"
        ) from None
    return parse_squad(document, name)


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
    return {"data": data}
