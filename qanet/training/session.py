"""A whole training from files to scores: what `train.py` does between its prints."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qanet.config import Config
from qanet.datasets.features import Features, cached_features
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import Example
from qanet.decoding import Answer
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_text
from qanet.reader import Reader
from qanet.run import Run
from qanet.text.vectors import load_vectors
from qanet.text.vocabulary import Vocabulary
from qanet.training.trainer import Trainer, TrainingData


@dataclass
class Report:
    """What a training came to.

    Attributes:
        metrics: scores on the whole of dev, with the best averaged weights.
        examples: dev.
        answers: the best answer to each of `examples`.
    """

    metrics: dict[str, float]
    examples: list[Example]
    answers: list[Answer]

    def samples(self, count: int) -> list[tuple[Example, Answer]]:
        """Examples spread evenly over dev, with the reader's answers."""
        count = min(count, len(self.examples))
        chosen = [i * len(self.examples) // count for i in range(count)]
        return [(self.examples[i], self.answers[i]) for i in chosen]


def train_run(config: Config, run: Run, resume: bool = False) -> Report:
    """Trains, evaluates the best weights on the whole of dev, and stores it all.

    Args:
        config: the configuration.
        run: the run directory.
        resume: continue from its newest checkpoint.

    Raises:
        UserError: something is wrong with the data, the vectors or the directory.
    """
    cache = run.directory.parent / "cache"
    counts = {}
    features = {}
    for split, source in (("train", config.data.train), ("dev", config.data.dev)):
        squad = load_examples(source, split)
        features[split], cached = cached_features(squad.examples, cache)
        counts[split] = squad.counts | {"answers_snapped": features[split].snapped}
        print(f"{split}: {_describe(counts[split])}{' (cached)' * cached}")
        examples = squad.examples
    if resume:
        vocabulary = run.load_vocabulary()
    else:
        vocabulary = build_vocabulary(config, features["train"], features["dev"], cache)
        vocabulary.save(run.vocabulary_directory)
        run.save_config(config)
    print(
        f"vocabulary: {len(vocabulary.words):,} word vectors, "
        f"{len(vocabulary.characters):,} characters"
    )
    data = TrainingData(features["train"], examples, features["dev"])
    trainer = Trainer(config, vocabulary, data, run)
    counts["train"]["left_out"] = trainer.left_out
    write_text(run.directory / "data.json", json.dumps(counts, indent=2) + "\n")
    if trainer.left_out:
        print(
            f"left out of training: {trainer.left_out:,} questions without an answer "
            f"of at most {config.data.answer_limit} tokens"
        )
    if resume:
        found = trainer.resume()
        print(
            f"resumed at step {trainer.progress.step:,}"
            if found
            else "there is no whole checkpoint of this configuration: starting anew"
        )
    print(
        f"model: {config.model.name}, {trainer.model.count_params():,} parameters, "
        f"{trainer.trainable_parameters:,} trained"
    )
    trainer.fit()

    reader = Reader.load(run.directory)
    result = evaluate(reader, examples, features["dev"], progress="evaluating")
    run.save_metrics(result.metrics)
    answers = [result.answers[example.id][0] for example in examples]
    return Report(result.metrics, examples, answers)


def build_vocabulary(
    config: Config, train: Features, dev: Features, cache: Path
) -> Vocabulary:
    """The words of the vectors file that matter, or else the frequent ones of train.

    Vectors are kept for the words of dev too, since they are given and not learned;
    everything that is learned comes from train.
    """
    settings = config.vocabulary
    vectors = None
    if settings.vectors:
        words = set(train.words[1:]) | set(dev.words[1:])
        vectors = load_vectors(
            Path(settings.vectors), words, settings.extra_vectors, cache
        )
    return Vocabulary.build(_count_words(train), vectors, settings)


def _count_words(features: Features) -> Counter[str]:
    numbers = np.concatenate([features.context_words, features.question_words])
    counts = np.bincount(numbers, minlength=len(features.words)).tolist()
    return Counter(dict(zip(features.words[1:], counts[1:], strict=True)))


def _describe(counts: dict[str, int]) -> str:
    """The counts as words: always the questions, the rest where there is any."""
    shown = {
        "paragraphs": "paragraphs",
        "impossible": "without an answer",
        "answers_snapped": "answers widened to whole tokens",
        "offsets_repaired": "answer offsets repaired",
        "answers_not_found": "answers not found in their context",
    }
    parts = [f"{counts['questions']:,} questions"]
    parts += [f"{counts[key]:,} {name}" for key, name in shown.items() if counts[key]]
    return ", ".join(parts)
