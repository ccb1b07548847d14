"""`training.start_from`: what a training takes from another run, where that fits."""

import argparse
from pathlib import Path

from qanet.commands.options import check_reader, set_keys
from qanet.errors import UserError

# Settings of models that a training may change which starts from another run.
FREE = {
    "dropout",
    "word_dropout",
    "character_dropout",
    "attention_dropout",
    "survival",
    "pretrained",
    # A directory, which is compared by what it holds.
    "contextual",
}


def with_vocabulary(options: argparse.Namespace, config):
    """The configuration with the vocabulary of the run in `training.start_from`.

    Raises:
        UserError: there is no such run, or the vocabulary is set here too.
    """
    from qanet.onnx_reader import is_export

    start, where = _named(config)
    if is_export(start.directory):
        raise UserError(f"{where}: is an export; give the run that it was made from")
    check_reader(start.directory)
    sections = {key.partition(".")[0] for key in set_keys(options)}
    if options.vectors or "vocabulary" in sections:
        raise UserError(
            f"{where}: brings its vocabulary; leave out --vectors and vocabulary.*"
        )
    vocabulary = start.load_config().vocabulary
    return config.model_copy(update={"vocabulary": vocabulary})


def vocabulary_to_pack(config):
    """The vocabulary itself, for a data set that is packed for such a training.

    Raises:
        UserError: it is of words where this model reads pieces, or the other way, or
            belongs to a language model, for which a packed data set has no texts.
    """
    from qanet.models.registry import MODELS, contextual_of

    start, where = _named(config)
    theirs = start.load_config().model
    if MODELS[theirs.name].text != MODELS[config.model.name].text:
        raise UserError(
            f"{where}: is a {theirs.name}, which reads {MODELS[theirs.name].text}; "
            "give its --preset"
        )
    if contextual_of(theirs):
        raise UserError(
            f"{where}: has a language model, and a packed data set no texts for it to "
            "read; train with --train and --dev"
        )
    return start.load_vocabulary()


def check_weights(config) -> None:
    """Refuses to start from the weights of another model than the configured one.

    Raises:
        UserError: they are.
    """
    from qanet.models.registry import pretrained_of

    start, where = _named(config)
    if pretrained_of(config.model):
        raise UserError(f"{where}: brings its weights; leave out model.pretrained")
    theirs = start.load_config()
    if config.model.name == theirs.model.name:
        _check_language_model(config.model, theirs.model, start, where)
    ours = {"data.no_answer": config.data.no_answer, **_layers(config.model)}
    other = {"data.no_answer": theirs.data.no_answer, **_layers(theirs.model)}
    # The name first, with which all other settings change.
    for key in sorted(ours | other, key=lambda key: key != "model.name"):
        if ours.get(key) != other.get(key):
            raise UserError(
                f"{where}: has {key}={other.get(key)}, not {ours.get(key)}; set it so"
            )


def _named(config):
    """The run in `training.start_from`, and what names it in messages."""
    from qanet.run import Run

    start = Run(config.training.start_from)
    return start, f"training.start_from={start.directory}"


def _check_language_model(ours, theirs, start, where: str) -> None:
    """Refuses a frozen language model that is not the one of the run, or none."""
    from qanet.models.registry import contextual_of

    given = contextual_of(ours)
    if not contextual_of(theirs):
        if given:
            raise UserError(f"{where}: has no model.contextual; leave it out")
        return
    from qanet.frozen import open_encoder
    from qanet.text.vocabulary import CONTEXTUAL_DIRECTORY

    own = start.vocabulary_directory / CONTEXTUAL_DIRECTORY
    layers = theirs.contextual_layers
    if not given:
        raise UserError(f"{where}: has a language model; set model.contextual={own}")
    if open_encoder(Path(given), layers).key != open_encoder(own, layers).key:
        raise UserError(
            f"{where}: has another language model than {given}; set "
            f"model.contextual={own}"
        )


def _layers(model) -> dict[str, object]:
    """The settings of a model that its weights depend on, by key."""
    values = model.model_dump()
    return {f"model.{name}": values[name] for name in values.keys() - FREE}
