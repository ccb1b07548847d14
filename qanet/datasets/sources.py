"""Where a data set comes from: a file in the SQuAD format, or a name."""

import contextlib
import logging
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from importlib import resources
from operator import itemgetter
from pathlib import Path

from qanet.backend import load_tensorflow
from qanet.console import is_quiet, is_verbose
from qanet.datasets.squad import SquadFile, parse_squad, read_json, read_squad
from qanet.errors import UserError, first_line, needing
from qanet.files import cache_directory

# The small data set that is part of the package.
SAMPLE = "sample"
TFDS_NAMES = {"squad": "squad/v1.1", "squad_v2": "squad/v2.0"}
TFDS_SPLITS = {"train": "train", "dev": "validation"}

# Where its authors publish it, and the SHA-256 of each file.
SQUAD_URL = "https://rajpurkar.github.io/SQuAD-explorer/dataset/"
SQUAD_FILES = {
    ("squad", "train"): (
        "train-v1.1.json",
        "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
    ),
    ("squad", "dev"): (
        "dev-v1.1.json",
        "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
    ),
    ("squad_v2", "train"): (
        "train-v2.0.json",
        "68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002",
    ),
    ("squad_v2", "dev"): (
        "dev-v2.0.json",
        "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8",
    ),
}


def load_examples(source: str | os.PathLike, split: str) -> SquadFile:
    """Reads a data set.

    Args:
        source: path of a SQuAD v1.1 or v2.0 file, or `sample` for the data set that is
            part of the package, or `squad` for SQuAD 1.1 and `squad_v2` for SQuAD 2.0,
            which is downloaded once and its checksum checked: by tensorflow-datasets
            where that is installed, otherwise from its authors.
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
    load = _load_tfds if _has_tfds() else _download
    return load(str(source), split)


def is_name(source: str | os.PathLike) -> bool:
    """Whether this names a data set; a file of that name goes before it."""
    return str(source) in {SAMPLE, *TFDS_NAMES} and not Path(source).is_file()


def _has_tfds() -> bool:
    try:
        load_tensorflow()
        import tensorflow_datasets  # noqa: F401
    except ImportError:
        return False
    return True


def _download(source: str, split: str) -> SquadFile:
    name, checksum = SQUAD_FILES[source, split]
    advice = "give the path of a SQuAD file, or install Keras, which downloads it"
    with needing(f"{source}: {advice}", "keras"):
        import keras

    with _downloading(f"{source}: {SQUAD_URL}{name} could not be downloaded"):
        cache = cache_directory()
        # Where it is missing, Keras takes a directory below /tmp.
        cache.mkdir(parents=True, exist_ok=True)
        path = keras.utils.get_file(
            name,
            f"{SQUAD_URL}{name}",
            file_hash=checksum,
            cache_dir=cache,
            cache_subdir="squad",
        )
    # In the order in which tensorflow-datasets gives it below.
    return parse_squad(_sorted(read_json(path)), name)


def _load_tfds(source: str, split: str) -> SquadFile:
    import tensorflow_datasets as tfds

    name = TFDS_NAMES[source]
    with _downloading(f"{source}: tensorflow-datasets could not provide {name}"):
        if is_quiet():
            tfds.disable_progress_bar()
        if not is_verbose():
            # It warns of a data set that is not there yet.
            logging.getLogger("absl").setLevel(logging.ERROR)
        builder = tfds.builder(name)
        if not builder.is_prepared():
            _reach(SQUAD_URL + SQUAD_FILES[source, split][0])
            builder.download_and_prepare()
        dataset = builder.as_dataset(split=TFDS_SPLITS[split])
        document = _to_document(tfds.as_numpy(dataset))
    return parse_squad(_sorted(document), name)


def _reach(url: str) -> None:
    """Raises an `OSError` at once where tensorflow-datasets would try for minutes."""
    request = urllib.request.Request(url, method="HEAD")
    # Whoever refuses the request was reached.
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=10).close()


@contextlib.contextmanager
def _downloading(failure: str) -> Iterator[None]:
    """Within this context whatever goes wrong is a `UserError` that begins so."""
    try:
        with contextlib.ExitStack() as stack:
            # Libraries say what they download where results go.
            quiet = is_quiet() or sys.stderr is None
            to = stack.enter_context(open(os.devnull, "w")) if quiet else sys.stderr
            stack.enter_context(contextlib.redirect_stdout(to))
            yield
    except Exception as error:  # Whatever the layers below a download raise.
        raise UserError(
            f"{failure} ({first_line(error)}); check the network, or give the path of "
            "a SQuAD file instead"
        ) from None


def _to_document(records: Iterable[dict]) -> dict:
    """The records as a SQuAD document, each with its own article."""

    def article(record: dict) -> dict:
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
        context = record["context"].decode()
        paragraph = {"context": context, "qas": [question]}
        return {"title": record["title"].decode(), "paragraphs": [paragraph]}

    return {"data": [article(record) for record in records]}


def _sorted(document: dict) -> dict:
    """The same, paragraphs together, by title, context and id.

    So the order depends neither on the shards of tensorflow-datasets, which shuffles,
    nor on who downloaded the file.
    """
    articles: dict[str, dict[str, list]] = {}
    for article in document["data"]:
        paragraphs = articles.setdefault(article["title"], {})
        for paragraph in article["paragraphs"]:
            paragraphs.setdefault(paragraph["context"], []).extend(paragraph["qas"])
    data = [
        {
            "title": title,
            "paragraphs": [
                {"context": context, "qas": sorted(qas, key=itemgetter("id"))}
                for context, qas in sorted(paragraphs.items())
            ],
        }
        for title, paragraphs in sorted(articles.items())
    ]
    return {"data": data}
