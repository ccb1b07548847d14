"""Reads what a configuration names: SQuAD files and vectors, or a packed data set."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from qanet.config import ORIGINAL, Config, TrainingConfig
from qanet.console import log
from qanet.datasets.batches import read_contextual
from qanet.datasets.features import (
    Features,
    cached_features,
    join_features,
)
from qanet.datasets.soft_targets import (
    TeacherTargets,
    aligned,
    load_targets,
)
from qanet.datasets.sources import is_name, load_examples
from qanet.datasets.squad import Example
from qanet.datasets.training_data import TrainingData, load_packed
from qanet.errors import UserError
from qanet.files import check_readable
from qanet.frozen import open_encoder
from qanet.models.bert_weights import check_pretrained, check_sizes
from qanet.models.registry import MODELS, contextual_of, pretrained_of
from qanet.text.encoders import StoredEncoder
from qanet.text.pieces import WordPieces
from qanet.text.tokenizer import words_of
from qanet.text.vectors import (
    WordVectors,
    join_vectors,
    load_vectors,
)
from qanet.text.vocabulary import Vocabulary, plain


def check_files(config: Config, resume: bool = False, weights: bool = True) -> None:
    """Refuses files that cannot be used, before anything else is waited for.

    Args:
        config: the configuration.
        resume: whether a run goes on, which has what it began with.
        weights: whether those of `model.pretrained` are wanted, not its sizes alone.

    Raises:
        UserError: one of them is missing, or is nothing for this reader.
    """
    data, vectors = config.data, config.vocabulary.vectors
    if vectors and not resume and MODELS[config.model.name].text == "pieces":
        raise UserError(
            f"{vectors[0]}: {config.model.name} reads word pieces, which have no word "
            "vectors; leave --vectors out"
        )
    names = [data.train, data.dev, *data.augmented.values()]
    files = [name for name in names if not is_name(name)]
    if not resume and not config.training.start_from:
        files += vectors
    files += [config.training.teacher] if config.training.teacher else []
    check_readable([data.packed] if data.packed else files)
    if resume:
        return
    model = config.model
    if MODELS[model.name].limits.one_word and config.training.teacher:
        # A word's places share one logit, and a teacher tells them apart.
        raise UserError(
            f"training.teacher: {model.name} chooses among words, not places, and "
            "learns from no teacher; leave it out"
        )
    if pretrained_of(model):
        check = check_pretrained if weights else check_sizes
        check(model)
    if contextual_of(model):
        open_encoder(Path(model.contextual), model.contextual_layers)


def read_training_data(
    config: Config, cache: Path, vocabulary: StoredEncoder | None = None
) -> TrainingData:
    """Reads what the configuration names.

    Args:
        config: the configuration.
        cache: directory for tokens and vectors, which a second start finds there, such
            as `qanet.files.cache_directory()`.
        vocabulary: that of a run which goes on; by default the one that belongs to
            the data.

    Raises:
        UserError: a file cannot be read, or something is wrong in it.
    """
    if config.data.packed:
        data = _read_packed(config, vocabulary)
    else:
        data = _read_files(config, cache, vocabulary)
    if not data.teacher:
        _check_untaught(config.training)
    return data


def _check_untaught(training: TrainingConfig) -> None:
    """Refuses settings that say how to learn from a teacher where there is none."""
    usual = TrainingConfig()
    for name, unused in (
        # 0.5 was the default of former runs, which may be resumed.
        ("teacher_share", (usual.teacher_share, 0.5, 0.0)),
        ("temperature", (usual.temperature,)),
    ):
        value = getattr(training, name)
        if value not in unused:
            raise UserError(
                f"training.{name}={value}: there is no teacher; name its soft targets "
                "with training.teacher, or pack them with the data set"
            )


def _read_packed(config: Config, vocabulary: StoredEncoder | None) -> TrainingData:
    """What a packed data set holds, where that goes with the settings."""
    path = config.data.packed
    if contextual_of(config.model):
        raise UserError(
            f"{path}: a packed data set has no texts, which model.contextual reads; "
            "train with --train and --dev"
        )
    if config.training.teacher:
        raise UserError(
            f"training.teacher: {path} brings its own soft targets or none; leave this "
            "out, or pack it anew with --set training.teacher=FILE"
        )
    data = load_packed(path, MODELS[config.model.name].text)
    _check_sources(config, data)
    _check_soft_targets(config, data)
    _check_pieces(config, data, vocabulary)
    return replace(data, vocabulary=vocabulary or data.vocabulary)


def _check_sources(config: Config, packed: TrainingData) -> None:
    """Refuses weights of training sets that are not there; tells of sets without."""
    path, weighed, there = config.data.packed, config.data.mix, packed.sources
    for name in weighed.keys() - there.keys():
        raise UserError(
            f"{path}: has no training set {name!r}, which data.mix names; it has "
            f"{', '.join(there)}"
        )
    for name in there.keys() - weighed.keys():
        log.warning(
            f"{path}: its training set {name!r} takes no part; to draw from it, give "
            "it a weight in data.mix"
        )


def _check_soft_targets(config: Config, packed: TrainingData) -> None:
    """Refuses soft targets from which this reader cannot learn."""
    path, model = config.data.packed, config.model.name
    if not packed.teacher:
        return
    if config.training.teacher_share and MODELS[model].limits.one_word:
        raise UserError(
            f"{path}: has soft targets, from which {model} does not learn; set "
            "training.teacher_share=0, or pack it without them"
        )
    if packed.teacher.none_first != config.data.no_answer:
        raise UserError(
            f"{path}: its soft targets are of another data.no_answer than "
            f"{config.data.no_answer}; pack it anew with this setting"
        )


def _check_pieces(
    config: Config, packed: TrainingData, vocabulary: StoredEncoder | None
) -> None:
    """Refuses word pieces that are not those of the model's weights."""
    path, pretrained = config.data.packed, pretrained_of(config.model)
    if vocabulary and vocabulary.key != packed.vocabulary.key:
        raise UserError(
            f"{path}: is split into other word pieces than those of the run that goes "
            "on; train with --train and --dev"
        )
    if vocabulary or not pretrained:
        return
    if WordPieces.load(Path(pretrained)).key != packed.vocabulary.key:
        raise UserError(
            f"{path}: is split into other word pieces than those of "
            f"model.pretrained={pretrained}; pack it anew with this setting"
        )


def _read_files(
    config: Config, cache: Path, vocabulary: StoredEncoder | None
) -> TrainingData:
    """What the configured files hold."""
    counts, examples, features = {}, {}, {}
    files = {"train": config.data.train, **config.data.augmented}
    for name, file in {**files, "dev": config.data.dev}.items():
        squad = load_examples(file, "dev" if name == "dev" else "train")
        examples[name], counts[name] = squad.examples, squad.counts
    if vocabulary is None and MODELS[config.model.name].text == "pieces":
        vocabulary = make_pieces(config, [examples[name] for name in files])
    split, key = (vocabulary.tokens, vocabulary.key) if vocabulary else (words_of, "")
    for name in examples:
        features[name] = cached_features(examples[name], cache, split, key)
        counts[name] = counts[name] | {"answers_snapped": features[name].snapped}
    sources = {name: len(features[name]) for name in files}
    sources = {ORIGINAL: sources.pop("train"), **sources}
    train, dev = join_features([features[name] for name in files]), features["dev"]
    trained_on = [example for name in files for example in examples[name]]
    if vocabulary is None:
        vocabulary = build_vocabulary(config, train, dev, cache)
    if contextual_of(config.model):
        # That of a run which goes on is a copy of the configured one.
        directory = Path(config.model.contextual)
        encoder = vocabulary.contextual or open_encoder(
            directory, config.model.contextual_layers
        )
        encoder.cache = cache
        vocabulary = replace(vocabulary, contextual=encoder)
        # Dev's go into the cache too before the first step: an encoder or a disk that
        # fails is told now, not at the first evaluation. (Without a cache each
        # evaluation encodes dev again.)
        read_contextual(examples["dev"], dev, vocabulary)
    return TrainingData(
        train,
        sources,
        examples["dev"],
        dev,
        vocabulary,
        counts,
        teacher=read_teacher(config, trained_on, train, sources[ORIGINAL]),
        contextual=read_contextual(trained_on, train, vocabulary),
    )


def read_teacher(
    config: Config, examples: Sequence[Example], features: Features, originals: int
) -> TeacherTargets | None:
    """What the configured teacher says of the training sets; `None` without one.

    Args:
        config: names the teacher.
        examples: the original training set, and after it augmented ones.
        features: their tokens.
        originals: how many examples are of the original set.

    Raises:
        UserError: the file cannot be read, or is of other data.
    """
    file = config.training.teacher
    if not file:
        return None
    names = (file, config.data.train)
    targets = load_targets(file)
    none_first = config.data.no_answer
    return aligned(targets, examples, features, none_first, originals, names)


def make_pieces(config: Config, sets: Sequence[Sequence[Example]]) -> WordPieces:
    """The word pieces of the pretrained model, or else those of the training sets.

    Raises:
        UserError: the model's file cannot be read, or is none.
    """
    if config.model.pretrained:
        return WordPieces.load(Path(config.model.pretrained))
    # Each context once, in order.
    texts = dict.fromkeys(example.context for examples in sets for example in examples)
    questions = [example.question for examples in sets for example in examples]
    return WordPieces.train([*texts, *questions], config.vocabulary.pieces)


def build_vocabulary(
    config: Config, train: Features, dev: Features, cache: Path
) -> Vocabulary:
    """The words of the vectors files that matter, or else the frequent ones of train.

    Vectors are kept for the words of dev too, since they are given and not learned;
    everything that is learned comes from train.

    Raises:
        UserError: a file cannot be read, is damaged, or has none of the words.
    """
    settings = config.vocabulary
    vectors = None
    if settings.vectors:
        words = {*train.words[1:], *dev.words[1:]}
        words |= {plain(word) for word in words}
        vectors = join_vectors(
            [
                _load_useful_vectors(path, words, settings.extra_vectors, cache)
                for path in settings.vectors
            ]
        )
    texts = np.concatenate([train.context_words, train.question_words])
    return Vocabulary.build(_count_words(train, texts), vectors, settings)


def _load_useful_vectors(
    path: str, words: set[str], extra: int, cache: Path
) -> WordVectors:
    vectors = load_vectors(path, words, extra, cache)
    if words.isdisjoint(vectors.words) and {word.lower() for word in words}.isdisjoint(
        vectors.words
    ):
        raise UserError(
            f"{path}: has none of the data's {len(words):,} words; give vectors of the "
            "data's language"
        )
    return vectors


def _count_words(features: Features, numbers: np.ndarray) -> Counter[str]:
    """How often each word of the features occurs among these numbers of words."""
    counts = np.bincount(numbers, minlength=len(features.words)).tolist()
    return Counter(dict(zip(features.words[1:], counts[1:], strict=True)))
