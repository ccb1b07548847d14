"""What a reader answers, and how fast, in each of its exported forms.

    python benchmarks/export.py parity --model RUN_DIR --data dev-v1.1.json \
        [--questions 1000] [--forms saved_model onnx] \
        [--output benchmarks/results/export-parity.json]
    python benchmarks/export.py latency --model RUN_DIR --data dev-v1.1.json \
        [--preset qanet] [--output benchmarks/results/export-latency.json]
    python benchmarks/export.py processes --model RUN_DIR [--preset qanet] \
        [--output benchmarks/results/export-processes.json]

`parity` answers a data set with the reader and with its SavedModel and counts equal
answers; with the LiteRT files and with ONNX (words in 16 and in 8 bits) it compares
logits and scores. `latency` times one question on 150 and on 400 tokens and batches of
them in each form, from strings to answers, each time on other passages of the data set;
of ONNX also the network alone, and beside them an encoder of the size of BERT-base, in
single and in half precision (random weights; needs PyTorch, else it is left out).
`processes` tells time and memory of a process that loads one form, answers one question
and ends; for the forms that take text also on a text of a million characters. With
`--preset` the model is that preset, untrained, on the run's vocabulary.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from machine import machine

from qanet.config import load_preset
from qanet.cores import own_cores
from qanet.datasets.batches import BatchMaker
from qanet.datasets.features import build_features
from qanet.datasets.plans import plan_reading_any_shape
from qanet.datasets.squad import Example, read_squad, spread
from qanet.datasets.windows import reading_windows
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_text
from qanet.reader import Reader
from qanet.run import Run, TrainedModel, build_run_model

# Questions, and tokens of the context of each.
SHAPES = ((1, 150), (1, 400), (32, 160), (8, 400))
BOOK_CHARACTERS = 1_000_000
QUESTION = "Who opened the old museum by the sea in 1984 ?"
BATCH = 32
# Seconds before a call is timed: the threads of the form before wait for more work, and
# while they wait they take the cores.
REST = 0.05
Predict = Callable[[dict], dict]


def litert(path: Path) -> Predict:
    """Predicts with a LiteRT file, one row at a time."""
    from ai_edge_litert.interpreter import Interpreter

    read = Interpreter(str(path), num_threads=own_cores()).get_signature_runner()

    def predict(inputs):
        rows = [
            read(**{name: value[i : i + 1] for name, value in inputs.items()})
            for i in range(len(inputs["context_words"]))
        ]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

    return predict


def load(directory: Path) -> TrainedModel:
    """What a run holds, in the precision of its exported forms."""
    return Run(directory).load(precision="float32")


def reader_of(trained: TrainedModel) -> Reader:
    """Its reader, for texts as they come."""
    return Reader.of(trained, as_they_come=True)


def litert_reader(path: Path, trained: TrainedModel) -> Reader:
    """A reader whose network is a LiteRT file."""
    return Reader(
        litert(path),
        trained.vocabulary,
        trained.config,
        trained.threshold,
        any_shape=True,
    )


def onnx_reader(path: Path, trained: TrainedModel) -> Reader:
    """The reader that an ONNX export is."""
    return Reader.load(path)


READERS = {
    "litert": litert_reader,
    "litert_int8": litert_reader,
    "onnx": onnx_reader,
    "onnx_int8": onnx_reader,
}
FORMS = ("saved_model", *READERS)


def saved_model(path: Path) -> Callable[[list[str], list[str], int], dict]:
    """The signature of a SavedModel, strings in and answers out."""
    import tensorflow as tf

    signature = tf.saved_model.load(str(path)).signatures["serving_default"]

    def answer(contexts, questions, top_k=1):
        found = signature(
            context=tf.constant(contexts),
            question=tf.constant(questions),
            top_k=tf.constant(top_k),
        )
        return {name: value.numpy() for name, value in found.items()}

    return answer


def export_forms(
    trained: TrainedModel, directory: Path, forms=FORMS
) -> dict[str, Path]:
    """Exports to some forms; where each one is."""
    from qanet.export.portable import export_litert, export_onnx
    from qanet.export.saved_model import export_saved_model

    paths = {
        "saved_model": directory / "saved_model",
        "litert": directory / "litert" / "model.tflite",
        "litert_int8": directory / "litert" / "model.int8.tflite",
        "onnx": directory / "onnx",
        "onnx_int8": directory / "onnx_int8",
    }
    wanted = {form: paths[form] for form in forms}
    if "saved_model" in wanted:
        export_saved_model(trained, paths["saved_model"])
    if {"litert", "litert_int8"} & {*wanted}:
        paths["litert"].parent.mkdir()
        export_litert(trained, paths["litert"].parent)
    for name, bits in (("onnx", 16), ("onnx_int8", 8)):
        if name in wanted:
            paths[name].mkdir()
            export_onnx(trained, paths[name], bits)
    return wanted


def mebibytes(path: Path) -> float:
    """Size of a file or of a directory."""
    files = path.rglob("*") if path.is_dir() else [path]
    return round(sum(f.stat().st_size for f in files if f.is_file()) / 2**20, 1)


def parity(options: argparse.Namespace) -> dict:
    """Equal answers and scores of each form, on the same questions."""
    trained = load(options.model)
    reader = reader_of(trained)
    examples = read_squad(options.data).examples
    examples = spread(examples, options.questions or len(examples))
    features = build_features(examples, reader.vocabulary.tokens)
    with tempfile.TemporaryDirectory() as temporary:
        paths = export_forms(trained, Path(temporary), options.forms)
        expected = evaluate(reader, examples, features, progress="Keras")
        wanted = [expected.answers[example.id][0] for example in examples]
        result = {
            "data": Path(options.data).name,
            "questions": len(examples),
            "keras": expected.metrics,
        }
        if "saved_model" in paths:
            result["saved_model"] = _string_parity(
                paths.pop("saved_model"), examples, wanted
            )
        for name, path in paths.items():
            other = READERS[name](path, trained)
            found = evaluate(other, examples, features, progress=name)
            got = [found.answers[example.id][0] for example in examples]
            same = sum(
                (a.start, a.end) == (b.start, b.end)
                for a, b in zip(wanted, got, strict=True)
            )
            result[name] = {
                "mebibytes": mebibytes(path),
                "same_answer": same / len(examples),
                "largest_logit_difference": _logit_difference(
                    reader, other, features, min(len(examples), 200)
                ),
                **found.metrics,
            }
    return result


def _string_parity(path: Path, examples: list[Example], wanted: list) -> dict:
    answer = saved_model(path)
    differences = []
    for first in range(0, len(examples), BATCH):
        part = examples[first : first + BATCH]
        found = answer([e.context for e in part], [e.question for e in part], 2)
        for i, (example, want) in enumerate(
            zip(part, wanted[first : first + BATCH], strict=True)
        ):
            got = (
                found["answer"][i, 0].decode(),
                int(found["start"][i, 0]),
                int(found["end"][i, 0]),
            )
            if got != (want.text, want.start, want.end):
                scores = found["score"][i].tolist()
                differences.append(
                    {
                        "id": example.id,
                        "keras": want.text,
                        "graph": got[0],
                        "score": want.score,
                        "graph_scores": scores,
                    }
                )
    return {
        "mebibytes": mebibytes(path),
        "same_answer": 1 - len(differences) / len(examples),
        "differences": differences,
    }


def _logit_difference(one: Reader, other: Reader, features, count: int) -> float:
    """Largest difference of a real token's logits in the first examples."""
    windows = reading_windows(features, np.arange(count), one.limits)
    pairs = [
        (reader, BatchMaker(features, reader.vocabulary.table(features.words), windows))
        for reader in (one, other)
    ]
    lengths = features.question_lengths[windows.examples]
    largest = 0.0
    for batch in plan_reading_any_shape(windows, lengths, 1):
        a, b = (reader.predict(maker.inputs(batch)) for reader, maker in pairs)
        for name in ("start_logits", "end_logits"):
            largest = max(largest, float(np.abs(a[name] - b[name]).max()))
    return largest


def encoders_of_bert_base(rows: int, length: int) -> dict[str, Callable]:
    """Calls of 12 layers of width 768 in PyTorch, of any text; none without it."""
    try:
        import torch
    except ImportError:
        return {}

    def call_in(precision):
        layer = torch.nn.TransformerEncoderLayer(
            768, 12, 3072, activation="gelu", batch_first=True, dtype=precision
        )
        encoder = torch.nn.TransformerEncoder(layer, 12).eval()
        x = torch.randn(rows, length, 768, dtype=precision)

        def call(pairs):
            with torch.inference_mode():
                return encoder(x)

        return call

    return {
        "bert_base_size": call_in(torch.float32),
        "bert_base_size_bfloat16": call_in(torch.bfloat16),
    }


def latency(options: argparse.Namespace) -> dict:
    """Milliseconds of a call of each form, all of them in turn."""
    with tempfile.TemporaryDirectory() as temporary:
        made, paths = _made(options, Path(temporary))
        trained = load(made.directory)
        result = {
            "preset": options.preset,
            "parameters": int(trained.model.count_params()),
            **machine(),
            "mebibytes": {name: mebibytes(path) for name, path in paths.items()},
            "milliseconds": _milliseconds(trained, paths, options),
        }
    return result


def _made(options: argparse.Namespace, directory: Path) -> tuple[Run, dict[str, Path]]:
    """The run, or one with another model on its vocabulary, and its forms."""
    run = Run(options.model)
    if options.preset:
        vocabulary, config = run.load_vocabulary(), load_preset(options.preset)
        run = Run(directory / "run")
        run.save_config(config)
        vocabulary.save(run.vocabulary_directory)
        run.save_weights(build_run_model(config, vocabulary))
    return run, export_forms(load(run.directory), directory)


def context_of(vocabulary, tokens: int) -> str:
    """So many words, nine in ten of them known."""
    rng = np.random.default_rng(0)
    words = rng.choice(vocabulary.words[2:20_000], tokens)
    return " ".join(
        f"{word}qx" if i % 10 == 9 else word for i, word in enumerate(words)
    )


def questions_on(
    data: str, tokens: Callable, rows: int, length: int, rounds: int
) -> list[list[tuple[str, str]]]:
    """Questions of a data set with passages that are cut to so many tokens.

    Args:
        data: the data set.
        tokens: splits a text, see `qanet.text.encoders.TextEncoder`.
        rows: questions of a round.
        length: tokens of each passage.
        rounds: how many rounds, each of other questions as far as there are any.

    Returns:
        For each round pairs of a question and a passage.
    """
    pairs = []
    for example in read_squad(data).examples:
        _, spans = tokens(example.context)
        if len(spans) >= length:
            pairs.append((example.question, example.context[: spans[length - 1][1]]))
    count = rows * rounds
    chosen = [pairs[i * len(pairs) // count] for i in range(count)]
    return [chosen[first : first + rows] for first in range(0, count, rows)]


class _Timed:
    """A function, and the milliseconds of its calls."""

    def __init__(self, function: Callable):
        self.function = function
        self.milliseconds = 0.0

    def __call__(self, *arguments):
        begin = time.perf_counter()
        result = self.function(*arguments)
        self.milliseconds += 1000 * (time.perf_counter() - begin)
        return result


def _milliseconds(
    trained: TrainedModel, paths: dict[str, Path], options: argparse.Namespace
) -> dict:
    """For each shape and form the time from strings to answers."""
    readers = {"keras": reader_of(trained)}
    readers |= {name: make(paths[name], trained) for name, make in READERS.items()}
    network = readers["onnx"].predict = _Timed(readers["onnx"].predict)
    strings = saved_model(paths["saved_model"])
    forms = {name: reader.answer_many for name, reader in readers.items()}
    forms["saved_model"] = lambda pairs: strings(
        [context for _, context in pairs], [question for question, _ in pairs]
    )
    result = {}
    for rows, length in SHAPES:
        # The first round is not counted.
        rounds = questions_on(
            options.data, trained.vocabulary.tokens, rows, length, options.rounds + 1
        )
        calls = forms | encoders_of_bert_base(rows, length + len(QUESTION.split()))
        durations = {name: [] for name in [*calls, "onnx_network"]}
        for pairs in rounds:
            for name, call in calls.items():
                time.sleep(REST)
                timed, network.milliseconds = _Timed(call), 0.0
                timed(pairs)
                durations[name].append(timed.milliseconds)
                if name == "onnx":
                    durations["onnx_network"].append(network.milliseconds)
        result[f"{rows} x {length}"] = found = {
            name: {
                "median": round(statistics.median(values[1:]), 1),
                "p95": round(float(np.quantile(values[1:], 0.95)), 1),
            }
            for name, values in durations.items()
        }
        print(f"{rows} x {length}", found, flush=True)
    return result


def processes(options: argparse.Namespace) -> dict:
    """Start-up and memory of a process that asks one form once, also of a book."""
    with tempfile.TemporaryDirectory() as temporary:
        made, paths = _made(options, Path(temporary))
        texts = {"passage": " ".join(["The museum was opened by Anna Kov ."] * 20)}
        words = made.load_vocabulary()
        texts["book"] = context_of(words, BOOK_CHARACTERS // 4)[:BOOK_CHARACTERS]
        for name, text in texts.items():
            (Path(temporary) / name).write_text(text, encoding="utf-8")
        result = machine() | {"book_characters": BOOK_CHARACTERS}
        for form, path in {"keras": made.directory, **paths}.items():
            # Of the network alone a program splits the text.
            asked = ("passage",) if form.startswith("litert") else texts
            result[form] = {
                name: _process(form, path, Path(temporary) / name) for name in asked
            }
            print(form, result[form], flush=True)
    return result


def _process(form: str, path: Path, text: Path) -> dict:
    """Seconds to the answer and memory of a process of its own."""
    begin = time.perf_counter()
    arguments = ["first", "--form", form, "--path", path, "--text", text]
    process = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - begin
    return {
        "seconds": round(seconds, 1),
        "peak_mebibytes": round(float(process.stdout.splitlines()[-1])),
    }


def first(options: argparse.Namespace) -> float:
    """Loads one form, asks once, and tells the memory of the process."""
    text = options.text.read_text(encoding="utf-8")
    if options.form == "saved_model":
        saved_model(options.path)([text], [QUESTION])
    elif options.form == "keras":
        reader_of(load(options.path)).answer(QUESTION, text)
    elif options.form.startswith("onnx"):
        Reader.load(options.path).answer(QUESTION, text)
    else:
        inputs = {}
        for name, length in (("context", 150), ("question", 10)):
            inputs[f"{name}_words"] = np.ones((1, length), np.int32)
            inputs[f"{name}_characters"] = np.ones((1, length, 16), np.int32)
        litert(options.path)(inputs)
    # Not getrusage: its peak is that of the process which started this one.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main() -> None:
    """Parses the options, measures, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    actions = parser.add_subparsers(required=True)
    for action in (parity, latency, processes):
        command = actions.add_parser(action.__name__)
        command.add_argument("--model", required=True, metavar="RUN_DIR")
        command.add_argument("--output", type=Path)
        command.set_defaults(action=action)
        if action is not processes:
            command.add_argument("--data", required=True)
        if action is parity:
            command.add_argument("--questions", type=int, default=0)
            command.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
        else:
            command.add_argument("--preset")
        if action is latency:
            command.add_argument("--rounds", type=int, default=40)
    command = actions.add_parser("first", help="of one form; used by processes")
    command.add_argument("--form")
    command.add_argument("--path", type=Path)
    command.add_argument("--text", type=Path)
    command.set_defaults(action=first, output=None)
    options = parser.parse_args()
    text = json.dumps(options.action(options), ensure_ascii=False)
    print(text)
    if options.output:
        write_text(options.output, text + "\n")


if __name__ == "__main__":
    main()
