"""Files of every kind that qanet reads, damaged or odd, read as its commands do."""

import contextlib
import gzip
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

from enduring import grammars
from enduring.base import QUESTION
from enduring.commands import complaint, new_directory, nothing_long, refusal
from enduring.mutations import damaged, of_bytes, of_json
from enduring.watching import Attempt
from qanet.errors import UserError
from qanet.files import pack_json, unpack_json

READERS = ("export", "dev.json", "context.txt", "questions.jsonl")


@contextlib.contextmanager
def data_files(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Data files and predictions, which are scored, packed, or made cloze questions."""
    os.environ["XDG_CACHE_HOME"] = str(scratch)
    good = json.loads((base / "dev.json").read_bytes())
    taken = json.loads((base / "predictions.json").read_bytes())

    def attempt(random: Random) -> str:
        document, predictions = good, taken
        if random.random() < 0.4:
            document = grammars.data_file(random)
            predictions = dict.fromkeys(grammars.ids(document), grammars.text(random))
        data = grammars.as_json(document, random)
        fine = random.random() < 0.3
        if not fine:
            data = damaged(data, random, (base / "train.json").read_bytes())
        predicted = json.dumps(predictions).encode()
        if random.random() < 0.2:
            predicted, fine = damaged(predicted, random, data), False
        way = random.random()
        with new_directory(base, scratch, "dev.json"):
            Path("data.json").write_bytes(data)
            Path("predictions.json").write_bytes(predicted)
            if way < 0.7:
                command = "evaluate --predictions predictions.json --data data.json"
            elif way < 0.85:
                command, fine = "cloze --input data.json --output new.json", False
            else:
                command = (
                    "pack --train data.json --dev dev.json --output new.npz "
                    "--set vocabulary.word_min_count=1"
                )
            return complaint(command.split(), fine=fine)

    with nothing_long():
        yield attempt


@contextlib.contextmanager
def vectors_files(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Vectors files, plain and gzipped, read for the words of a data set."""
    from qanet.text.vectors import read_vectors

    os.environ["XDG_CACHE_HOME"] = str(scratch)
    good = (base / "vectors.txt").read_bytes()
    words = [line.split()[0] for line in good.decode().splitlines()]

    def attempt(random: Random) -> str:
        data = good if random.random() < 0.5 else grammars.vectors(random, words)
        fine, is_gzip = random.random() < 0.2, random.random() < 0.3
        if not fine and random.random() < 0.1:
            counts = random.choices((0, 1, 2, 3, 4, 5, 10**6, 10**12, 10**25), k=2)
            data = b"%d %d\n" % tuple(counts) + data
        if not fine and (not is_gzip or random.random() < 0.5):
            data = damaged(data, random, good)
        if is_gzip:
            data = gzip.compress(data, 1, mtime=0)
            if not fine and random.random() < 0.7:
                data = of_bytes(data, random, gzip.compress(good, mtime=0))
        name = "vectors.txt.gz" if is_gzip else "vectors.txt"
        with new_directory(base, scratch, "train.json", "dev.json"):
            Path(name).write_bytes(data)
            if random.random() < 0.1:
                command = (
                    "pack --train train.json --dev dev.json --output new.npz "
                    f"--vectors {name} --set vocabulary.word_min_count=1"
                )
                return complaint(command.split())
            try:
                read_vectors(name, words, random.choice((0, 1, 1000)))
            except UserError as error:
                return f"refused: {error}" if fine else refusal(error)
        return ""

    with nothing_long():
        yield attempt


@contextlib.contextmanager
def packed_data_sets(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Packed data sets, read up to the first batches of a training."""
    from qanet.config import load_preset
    from qanet.datasets.batches import BatchMaker, training_batches
    from qanet.datasets.features import build_features
    from qanet.datasets.plans import plan_training
    from qanet.datasets.training_files import read_training_data
    from qanet.datasets.windows import training_windows

    good = (base / "packed.npz").read_bytes()
    places = ["data.packed=packed.npz"]
    sizes = "data.context_limit=64 data.buckets=[64] data.no_answer=true"
    config = load_preset("qanet-tiny", [*places, *sizes.split()])

    def first_batches() -> None:
        data = read_training_data(config, scratch)
        build_features(data.dev_examples, data.vocabulary.tokens)
        windows = training_windows(data.train, config.data, 1)
        table = data.vocabulary.table(data.train.words)
        maker = BatchMaker(data.train, table, windows, True, data.teacher)
        plan = plan_training(windows, data.sources, config.data, 4, 3, 1)
        for _ in training_batches(maker, plan):
            pass

    def attempt(random: Random) -> str:
        if random.random() < 0.2:
            data = of_bytes(good, random, (base / "soft.npz").read_bytes())
        else:
            data = of_arrays(good, random)
        with new_directory(base, scratch):
            Path("packed.npz").write_bytes(data)
            try:
                first_batches()
            except UserError as error:
                return refusal(error)
        return ""

    yield attempt


def of_arrays(data: bytes, random: Random) -> bytes:
    """An `.npz` file with other arrays in it, and right checksums."""
    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice([*arrays] or ["new"])
        array = arrays.pop(name, np.zeros(1))
        way = random.random()
        if way < 0.1:
            continue
        try:
            document = unpack_json(array)
        except ValueError:
            arrays[name] = _other_array(array, random)
        else:
            text = of_json(document, random) if array.ndim else b"1"
            arrays[name] = np.frombuffer(text, np.uint8)
        if way > 0.95:
            arrays[name] = pack_json(random.choice((None, [], {}, 1, "x")))
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _other_array(array: np.ndarray, random: Random) -> np.ndarray:
    """An array of another type or shape, or with other numbers."""
    way = random.randrange(8)
    if way == 0:
        kinds = (
            "float64",
            "int8",
            "int64",
            "uint8",
            "bool",
            "U3",
            "complex64",
            "M8[s]",
        )
        with np.errstate(all="ignore"):
            return array.astype(random.choice(kinds))
    if way == 1:
        shapes = ((), (0,), (1,), (0, 2), (2, 0), (1, 1, 1), (3, 2))
        return np.zeros(random.choice(shapes), array.dtype)
    if way == 2 and array.ndim:
        return array[: random.randrange(len(array) + 1)]
    if way == 3 and array.ndim:
        return np.concatenate([array, array[: random.randrange(1, 4)]])
    if way == 4:
        return array.T[..., None] if random.random() < 0.5 else array.ravel()[::-1]
    array = array.copy()
    if array.size:
        odd = (-1, 1, 2, 7, 127, 10**4, 2**31 - 1, -(2**31), 2**62, np.nan, np.inf)
        with np.errstate(all="ignore"):
            value = np.array(random.choice(odd)).astype(array.dtype)
        array.flat[random.randrange(array.size)] = value
    return array


RUN_FILES = (
    *("config.json", "config.json", "vocabulary/vocabulary.json", "weights.npz"),
    *("vocabulary/vectors.npy", "metrics.json", "no_answer.json", "history.csv"),
)


@contextlib.contextmanager
def run_directories(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Run directories, read up to where Keras would be waited for."""
    from qanet.run import Run

    commands = (
        "export --model run --format onnx --output new",
        "evaluate --model run --data dev.json --output run",
        "train --resume --output run",
        "answer --model run --question Who? --context-file context.txt",
    )

    def attempt(random: Random) -> str:
        with new_directory(base, scratch, "run", "dev.json", "context.txt"):
            _damage(Path("run"), RUN_FILES, random, base)
            said = complaint(random.choice(commands).split())
            try:
                Run("run").load_vocabulary()
                Run("run").load_threshold()
            except UserError as error:
                said = said or refusal(error)
        return said

    with nothing_long():
        yield attempt


@contextlib.contextmanager
def loaded_runs(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Run directories, loaded with Keras and asked."""
    from qanet.backend import load_keras

    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    load_keras()

    import keras

    from qanet.reader import Reader

    context = (base / "context.txt").read_text("utf-8")

    def attempt(random: Random) -> str:
        keras.backend.clear_session()
        # Most damage to other files ends before the model is built.
        names = random.choice((RUN_FILES, ("weights.npz",)))
        with new_directory(base, scratch, "run"):
            _damage(Path("run"), names, random, base)
            try:
                Reader.load("run").answer(QUESTION, context, 3)
            except UserError as error:
                return refusal(error)
        return ""

    yield attempt


def _damage(
    directory: Path, names: tuple[str, ...], random: Random, base: Path
) -> None:
    """Damages one of some files, seldom two, or removes it."""
    for _ in range(random.choice((1, 1, 1, 2))):
        path = directory / random.choice(names)
        data = path.read_bytes() if path.is_file() else b""
        way = random.random()
        if way < 0.03:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        elif way < 0.06:
            path.unlink(missing_ok=True)
            path.mkdir(exist_ok=True)
        elif path.is_dir():
            continue
        elif path.suffix == ".npz" and way < 0.8 and data[:2] == b"PK":
            # What is damaged already stays so.
            with contextlib.suppress(Exception):
                data = of_arrays(data, random)
            path.write_bytes(data)
        elif path.suffix == ".npy" and way < 0.6 and data[:6] == b"\x93NUMPY":
            file = io.BytesIO()
            with contextlib.suppress(Exception):
                np.save(file, _other_array(np.load(io.BytesIO(data)), random))
                data = file.getvalue()
            path.write_bytes(data)
        elif path.suffix in (".onnx", ".npy", ".npz"):
            other = base / directory / random.choice(names)
            other = other if other.is_file() else base / "packed.npz"
            path.write_bytes(of_bytes(data, random, other.read_bytes()))
        else:
            path.write_bytes(damaged(data, random, data))


EXPORT_FILES = (
    *("reader.json", "vocabulary.json", "word_table.npy", "word_scales.npy"),
    *("words.onnx", "words.onnx", "model.onnx", "model.onnx", "SHA256SUMS"),
)


@contextlib.contextmanager
def exports(base: Path, scratch: Path) -> Iterator[Attempt]:
    """ONNX exports, which are asked."""
    commands = (
        *("answer --model export --question Who? --context-file context.txt --top-k 3",)
        * 5,
        "answer --model export --input questions.jsonl --output new.jsonl",
        "evaluate --model export --data dev.json --output new",
        "evaluate --model export good --data dev.json --output new",
        "teach --model export --train dev.json --output new.npz",
        "filter --model export --input dev.json --output new.json",
    )

    def attempt(random: Random) -> str:
        with new_directory(base, scratch, *READERS):
            if random.random() < 0.1:
                shutil.copytree(base / "export", "good")
            # Who has no checksums is to be as safe, if not as well told.
            if random.random() < 0.5:
                Path("export", "SHA256SUMS").unlink()
            _damage(Path("export"), EXPORT_FILES, random, base)
            command = random.choice(commands)
            if "good" in command and not Path("good").exists():
                command = commands[0]
            return complaint(["--quiet", *command.split()])

    with nothing_long():
        yield attempt


@contextlib.contextmanager
def question_files(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Files of questions, and of answers that were interrupted."""
    good = (base / "questions.jsonl").read_bytes()
    finished = b'{"row": 1, "id": 1, "question": "a", "answers": []}\n{"row": 2}\n'

    def attempt(random: Random) -> str:
        data = good if random.random() < 0.4 else grammars.questions(random)
        fine = random.random() < 0.2
        if not fine:
            lines = data.splitlines(keepends=True) or [b"{}\n"]
            place = random.randrange(len(lines))
            lines[place] = damaged(lines[place].rstrip(), random, good) + b"\n"
            data = b"".join(lines)
        command = ["--quiet", "answer", "--model", "export", "--input", "questions"]
        if random.random() < 0.2:
            count = random.choice(("2", "100", "1000000", "9" * 20))
            command += ["--top-k", count]
            fine = fine and len(count) < 20
        with new_directory(base, scratch, "export"):
            Path("questions").write_bytes(data)
            if random.random() < 0.4:
                command += ["--output", "new"]
                if random.random() < 0.5:
                    _write_key(command)
                    part = damaged(finished, random, good)
                    Path("new.part").write_bytes(part)
                    fine = False
            return complaint(command, fine=fine)

    with nothing_long():
        yield attempt


def _write_key(command: list[str]) -> None:
    """What says that interrupted answers are of this reader to these questions."""
    from qanet.question_file import key_of

    top_k = command[command.index("--top-k") + 1] if "--top-k" in command else "1"
    key = key_of(Path("export"), int(top_k), Path("questions"))
    Path("new.part.key").write_text(key, "utf-8")
