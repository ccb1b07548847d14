"""Small files of every kind that qanet reads: what damaged ones are made of.

python -m enduring.base DIRECTORY
"""

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from qanet.config import load_preset
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import Example, write_squad
from qanet.files import write_text
from qanet.text.tokenizer import tokenize

SETTINGS = """
    data.train=train.json data.dev=dev.json vocabulary.vectors=vectors.txt
    data.context_limit=64 data.question_limit=16 data.buckets=[64] data.answer_limit=8
    data.no_answer=true vocabulary.word_min_count=1 vocabulary.character_min_count=1
    vocabulary.characters_per_word=4 vocabulary.extra_vectors=0
    model.width=8 model.heads=2 model.feed_forward=8
    model.embedding_encoder.blocks=1 model.embedding_encoder.convolutions=1
    model.embedding_encoder.kernel_size=3
    model.model_encoder.blocks=1 model.model_encoder.convolutions=0
    model.character_width=4 model.character_filters=0 model.highway_layers=0
    training.steps=6 training.batch_size=4
""".split()
PASSAGES, WORDS = 3, 40
QUESTION = "Who was raised in Kelburg?"


def make(directory: Path) -> None:
    """Writes them all; needs what training and export to ONNX do."""
    os.chdir(directory)
    make_texts()
    _make_readers()


def make_texts() -> None:
    """Writes into the working directory what no model is needed for."""
    for split in ("train", "dev"):
        write_squad(f"{split}.json", _few(split))
    examples = _few("dev")
    predictions = {example.id: _gold(example) for example in examples}
    write_text(Path("predictions.json"), json.dumps(predictions))
    contexts = [example.context for example in _few("train")]
    words = Counter(word for context in contexts for word in tokenize(context))
    lines = [
        f"{word} {i / 10} {-i} 0.5 1e-2\n"
        for i, (word, _) in enumerate(words.most_common(WORDS))
    ]
    write_text(Path("vectors.txt"), "".join(lines))
    rows = [{"id": 1, "question": QUESTION, "context": contexts[0]}]
    rows.append({"question": QUESTION, "context": [*dict.fromkeys(contexts)][:2]})
    lines = [json.dumps(row) + "\n" for row in rows]
    write_text(Path("questions.jsonl"), "".join(lines))
    write_text(Path("context.txt"), contexts[0])


def _few(split: str) -> list[Example]:
    """Some questions on a few passages of the sample, one without an answer."""
    examples = load_examples("sample", split).examples
    contexts = [*dict.fromkeys(example.context for example in examples)][:PASSAGES]
    few = [example for example in examples if example.context in contexts]
    none = Example("none", QUESTION, contexts[0], (), few[0].title, impossible=True)
    return [*few[:12], none]


def _gold(example: Example) -> str:
    return example.answers[0].text if example.answers else ""


def _make_readers() -> None:
    """An untrained run, its export, a packed data set and soft targets."""
    # Here, for they take long.
    import keras

    from qanet.checksums import write_checksums
    from qanet.datasets.training_data import save_packed
    from qanet.datasets.training_files import read_training_data
    from qanet.ensemble import load_readers
    from qanet.export.portable import export_onnx
    from qanet.run import Run, TrainedModel, build_run_model
    from qanet.teacher import key_of, teach

    keras.utils.set_random_seed(0)
    config = load_preset("qanet-tiny", SETTINGS)
    cache = Path("cache")
    data = read_training_data(config, cache)
    trained = TrainedModel(
        build_run_model(config, data.vocabulary), data.vocabulary, config
    )
    run = Run("run")
    run.save_config(config)
    data.vocabulary.save(run.vocabulary_directory)
    run.save_weights(trained.model)
    run.save_threshold(0.5)
    run.save_metrics({"exact_match": 1.5, "f1": 2.5, "total": 13, "threshold": 0.5})
    write_text(
        run.history_path, "step,loss,f1,seconds\n3,4.5,1.25,2.0\n6,4.1,2.5,4.5\n"
    )
    export = Path("export")
    export_onnx(trained, export, bits=8)
    write_checksums(export)
    examples = _few("train")
    key = key_of([export], examples)
    teach(load_readers([export]), examples, "train.json", Path("soft.npz"), key)
    config = load_preset("qanet-tiny", [*SETTINGS, "training.teacher=soft.npz"])
    save_packed(Path("packed.npz"), read_training_data(config, cache))
    shutil.rmtree(cache)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
