"""The training of ELMo's language model, and how well it predicts (Peters et al., 2018,
section 3.1)."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import keras
from keras import ops

from qanet.backend import set_seed
from qanet.console import log
from qanet.models.bilm import build_language_model
from qanet.models.elmo_weights import save_bilm
from qanet.pretraining.bilm_batches import SentenceBatches
from qanet.pretraining.config import BiLMLearningConfig, BiLMPretrainingConfig
from qanet.pretraining.run import BiLMRun
from qanet.pretraining.texts import Document, read_documents, split_held_out
from qanet.pretraining.word_vocabulary import WordVocabulary
from qanet.text.tokenizer import words_of
from qanet.text.vocabulary import plain
from qanet.training.distribution import make_distribution
from qanet.training.errors import diverged
from qanet.training.learner import Learner
from qanet.training.loop import Loop, Task

# Of the training, and of what is held out.
LEAST_DOCUMENTS = 1


def pretrain_bilm(
    config: BiLMPretrainingConfig, run: BiLMRun, resume: bool = False
) -> dict[str, float] | None:
    """Trains, and stores the model in the layout of public ELMo models.

    Args:
        config: the configuration.
        run: the directory.
        resume: continue from its newest checkpoint.

    Returns:
        The step and the perplexity on what was held out of the best weights; of several
        workers the first one's alone.

    Raises:
        UserError: something is wrong with the texts, the directory or the devices.
    """
    distribution = make_distribution(config.distribution)
    with distribution.scope(), run.held(distribution.is_chief):
        digests = run.digest_of_texts(config.data.text, resume, distribution.replicas)
        loop, vocabulary = _make_loop(config, run, resume, distribution)
        save = partial(vocabulary.save, run.words_path)
        loop.fit(partial(run.begin, config, save, resume, digests))
        if not distribution.is_chief:
            return None
        model = loop.task.learner.model
        run.load_weights(model)
        save_bilm(run.encoder_directory, model, config.model)
        best = max(loop.progress.history, key=loop.task.score)
        metrics = {name: best[name] for name in ("step", "perplexity")}
        run.save_metrics(metrics)
    return metrics


def _make_loop(
    config: BiLMPretrainingConfig, run: BiLMRun, resume: bool, distribution
) -> tuple[Loop, WordVocabulary]:
    """The loop, and the words that are predicted."""
    training = config.training
    set_seed(training.seed)
    documents = read_documents(config.data.text)
    train, held_out = (
        split_words(part)
        for part in split_held_out(documents, config.data.held_out, LEAST_DOCUMENTS)
    )
    if resume:
        vocabulary = WordVocabulary.load(run.words_path)
    else:
        vocabulary = WordVocabulary.count(train, config.data.words)
    batches, held_out_batches = (
        SentenceBatches(part, vocabulary, training) for part in (train, held_out)
    )
    model = build_language_model(config.model, len(vocabulary))
    predict = distribution.predictor(model)
    task = Task(
        learner=bilm_learner(model, training),
        maker=batches,
        plan=batches.plan(training.steps, distribution.replicas),
        measure=lambda: {"perplexity": perplexity(predict, held_out_batches)},
        score=lambda measured: -measured["perplexity"],
        headline=("perplexity", "perplexity"),
    )
    loop = Loop(task, training, run, distribution)
    if resume:
        loop.resume()
    if distribution.is_chief:
        log.info(
            f"{sum(map(len, train)):,} words to train on, {sum(map(len, held_out)):,} "
            f"held out, {len(vocabulary):,} that are predicted, "
            f"{model.count_params():,} parameters"
        )
    return loop, vocabulary


def split_words(documents: list[Document]) -> list[list[str]]:
    """The plain words of each paragraph, each different one once in memory."""
    known: dict[str, str] = {}
    return [
        [known.setdefault(word, word) for word in map(plain, words_of(text)[0])]
        for document in documents
        for text in document
    ]


def bilm_learner(model: keras.Model, config: BiLMLearningConfig) -> Learner:
    """What trains the model: the mean of -log p of a prediction is made small.

    Each replica takes the mean of its own share, which has about as many words.
    """

    def loss(targets, outputs):
        total, count = sum_of_predictions(targets, outputs)
        return total / ops.maximum(count, 1.0)

    return Learner(model, loss, config)


def sum_of_predictions(targets: Mapping[str, Any], outputs: Mapping[str, Any]):
    """What a language model's predictions of a batch cost, in both directions.

    Args:
        targets: those of `SentenceBatches`.
        outputs: those of `build_language_model`.

    Returns:
        The sum of -log p, and how many predictions there are.
    """
    real = targets["real"]
    total = ops.sum((outputs["next"] + outputs["previous"]) * real)
    return total, 2.0 * ops.sum(real)


def perplexity(
    predict: Callable[[dict], Mapping[str, Any]], batches: SentenceBatches
) -> float:
    """exp of the mean of -log p of the next and of the previous word.

    Args:
        predict: from inputs to the outputs of a model that is not in training.
        batches: the text.

    Raises:
        UserError: it is more than a number can hold.
    """
    total, count = 0.0, 0.0
    for batch in batches.reading():
        outputs = predict(batches.inputs(batch))
        sums = sum_of_predictions(batches.targets(batch), outputs)
        total, count = total + float(sums[0]), count + float(sums[1])
    try:
        return math.exp(total / count)
    except OverflowError:
        raise diverged(f"the held-out loss is {total / count:.0f}") from None
