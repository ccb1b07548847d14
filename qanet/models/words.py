"""What every reader of words begins with: a vector for each word of both texts.

Importing this imports no Keras, see `qanet.models.registry`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from qanet.settings import Depth, Rate, Section, Size, SizeOrZero

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class EmbeddingSizes:
    """What a model must know of the vocabulary.

    Attributes:
        rows: rows of the vector table, padding and unknown included.
        width: size of a word vector.
        characters: size of the alphabet, padding and unknown included.
        characters_per_word: characters that a word is cut or padded to.
        pretrained: whether the vectors were given; otherwise they are trained.
        lowercase: for each character the number of its lower case; empty where no
            character has one.
        contextual: layers and width of the contextual vectors, where there are any.
    """

    rows: int
    width: int
    characters: int
    characters_per_word: int
    pretrained: bool
    lowercase: tuple[int, ...] = ()
    contextual: tuple[int, int] | None = None

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """A model's inputs for each text, and their shape at each word."""
        columns = {"words": (), "characters": (self.characters_per_word,)}
        return columns | ({"contextual": self.contextual} if self.contextual else {})


def word_sizes(vocabulary, config) -> EmbeddingSizes:
    """What a model of words must know of them.

    Args:
        vocabulary: a `qanet.text.vocabulary.Vocabulary`.
        config: settings of the vocabulary.
    """
    pretrained = vocabulary.vectors is not None
    contextual = vocabulary.contextual
    return EmbeddingSizes(
        rows=len(vocabulary.words),
        width=vocabulary.vectors.shape[1] if pretrained else config.word_width,
        characters=len(vocabulary.characters),
        characters_per_word=vocabulary.characters_per_word,
        pretrained=pretrained,
        lowercase=vocabulary.lowercase,
        contextual=contextual and (contextual.layers, contextual.width),
    )


class WordReaderConfig(Section):
    """Settings that all readers of words have.

    Default sizes and dropout rates are the QANet paper's.

    Attributes:
        width: size of the vectors of every layer above the embeddings.
        character_width: size of a character vector; 0 leaves the characters out of a
            word's vector.
        character_filters: size of a word's character feature; 0 takes the maximum of
            the character vectors without a convolution, as the QANet paper's text says.
        character_kernel: characters that a filter sees.
        highway_layers: layers of the highway network.
        highway_before_projection: run the highway network at the width of the joined
            embeddings, as the QANet paper does, instead of at the model's width.
        embedding_norm: normalise each word's embedding before the encoder; the QANet
            paper has false.
        word_dropout: dropout rate of the word vectors.
        character_dropout: dropout rate of each word's character feature.
        dropout: dropout rate in the highway network, of the outputs of QANet's
            sub-layers and passes, and of the inputs of each LSTM and the pointer.
        contextual: directory of a frozen language model, whose vectors, projected, are
            added to each word's (Peters et al., 2018, section 3.3, join them instead):
            a public BERT model, or an ELMo model with its `options.json` and
            `weights.hdf5`.
        contextual_layers: how many of its last layers are mixed.
        question_match: add to each word's embedding whether the other text has the
            word too, and how frequent it is in its own (`qanet.layers.text_match`).
    """

    width: Size = 128
    character_width: SizeOrZero = 200
    character_filters: SizeOrZero = 0
    character_kernel: Size = 5
    highway_layers: Depth = 2
    highway_before_projection: bool = True
    embedding_norm: bool = True
    word_dropout: Rate = 0.1
    character_dropout: Rate = 0.05
    dropout: Rate = 0.1
    contextual: str | None = None
    contextual_layers: int = Field(default=3, ge=1, le=100)
    question_match: bool = False


@dataclass(frozen=True)
class EmbeddedTexts:
    """Both texts as vectors, and what they come from.

    Attributes:
        inputs: the model's inputs by name, see `qanet.models.inputs`.
        context, question: float `(batch, length, width)`.
        context_mask, question_mask: boolean `(batch, length)`, true where real.
    """

    inputs: "dict[str, keras.KerasTensor]"
    context: "keras.KerasTensor"
    question: "keras.KerasTensor"
    context_mask: "keras.KerasTensor"
    question_mask: "keras.KerasTensor"


def embed_words(config: WordReaderConfig, sizes: EmbeddingSizes) -> EmbeddedTexts:
    """Words and characters, highway, and what else the settings add to each word.

    `word_embedding`, `word_side` and `above_words` find the layers again by their
    names.

    Args:
        config: the reader's settings.
        sizes: sizes of the vocabulary.
    """
    import keras

    from qanet.layers.spelling import Spelling
    from qanet.layers.text_match import TextMatch
    from qanet.models.inputs import mask_of, reading_inputs

    inputs = reading_inputs(sizes.columns)
    context = inputs["context_words"], inputs["context_characters"]
    question = inputs["question_words"], inputs["question_characters"]

    embedding = _input_embedding(config, sizes)
    if config.question_match:
        spelling = Spelling(sizes.lowercase, name="spelling")
        match = TextMatch(name="match")
        match_projection = keras.layers.Dense(
            config.width, use_bias=False, name="match_projection"
        )

    mix = contextual_mix(config, "language_model") if sizes.contextual else None

    # Exports begin above these: what a word alone decides is computed once.
    def vectors_of(text, name):
        return keras.layers.Identity(name=f"{name}_vectors")(embedding(*text))

    def spellings_of(text, name):
        return keras.layers.Identity(name=f"{name}_spellings")(spelling(*text))

    context_vectors = vectors_of(context, "context")
    question_vectors = vectors_of(question, "question")
    if mix:
        context_vectors += mix(inputs["context_contextual"])
        question_vectors += mix(inputs["question_contextual"])
    if config.question_match:
        spellings = spellings_of(context, "context"), spellings_of(question, "question")
        context_vectors += match_projection(match(*spellings))
        question_vectors += match_projection(match(*spellings[::-1]))

    return EmbeddedTexts(
        inputs,
        context=context_vectors,
        question=question_vectors,
        context_mask=mask_of(context[0]),
        question_mask=mask_of(question[0]),
    )


def _input_embedding(config: WordReaderConfig, sizes: EmbeddingSizes):
    """The layer from a word's row and characters to its vector."""
    from qanet.layers.input_embedding import InputEmbedding

    characters = None
    if config.character_width:
        characters = {
            "characters": sizes.characters,
            "width": config.character_width,
            "filters": config.character_filters,
            "kernel_size": config.character_kernel,
        }
    return InputEmbedding(
        config.width,
        words={
            "rows": sizes.rows,
            "width": sizes.width,
            "trainable_rows": not sizes.pretrained,
        },
        characters=characters,
        highway_layers=config.highway_layers,
        highway_first=config.highway_before_projection,
        norm=config.embedding_norm,
        word_dropout=config.word_dropout,
        character_dropout=config.character_dropout,
        dropout=config.dropout,
        name="embedding",
    )


def contextual_mix(
    config: WordReaderConfig, name: str
) -> "Callable[[keras.KerasTensor], keras.KerasTensor]":
    """Mixes the layers of contextual vectors and projects them to the model's width.

    Returns:
        A function of vectors `(batch, length, layers, width)`; with each call it has
        the same weights.
    """
    import keras

    from qanet.layers.dropout import Dropout
    from qanet.layers.scalar_mix import ScalarMix

    mix = ScalarMix(name=f"{name}_mix")
    dropout = Dropout(config.dropout, name=f"{name}_dropout")
    projection = keras.layers.Dense(
        config.width, use_bias=False, name=f"{name}_projection"
    )
    return lambda vectors: projection(dropout(mix(vectors)))


def word_embedding(model: "keras.Model") -> "keras.layers.Layer":
    """The layer from rows and characters to vectors of a model on `embed_words`."""
    return model.get_layer("embedding")


def word_side(model: "keras.Model") -> "keras.Model":
    """What a word alone decides, as a model of its own.

    Args:
        model: a reading model on `embed_words`.

    Returns:
        A model of the inputs `folded`, rows of `InputEmbedding.fold`, `(batch, length,
        width)`, `words` and `characters`. Its outputs are `vectors` and, where the
        model compares texts, `spellings`: with `words`, the inputs of `above_words`.
    """
    import keras

    from qanet.layers.unfold import Unfold

    embedding = word_embedding(model)
    spelling = model.input["context_characters"].shape[1:]
    folded = keras.Input((None, embedding.folded_width), name="folded")
    words = keras.Input((None,), dtype="int32", name="words")
    characters = keras.Input(spelling, dtype="int32", name="characters")
    outputs = {"vectors": Unfold(embedding, name="vectors")(folded, characters)}
    if _compares_texts(model):
        outputs["spellings"] = model.get_layer("spelling")(words, characters)
    inputs = {"folded": folded, "words": words, "characters": characters}
    return keras.Model(inputs, outputs)


def above_words(model: "keras.Model") -> "keras.Model":
    """The layers above what a word alone decides.

    Args:
        model: a reading model on `embed_words`.

    Returns:
        A model with the same outputs. Its inputs are, for both texts,
        `{text}_words`, `{text}_characters`, `{text}_vectors` and, where the model
        compares texts, `{text}_spellings`: `(batch, length, ...)` each.
    """
    import keras

    columns = ["vectors", "spellings"] if _compares_texts(model) else ["vectors"]
    tensors = {}
    for text in ("context", "question"):
        for name in (f"{text}_words", f"{text}_characters"):
            tensors[name] = model.input[name]
        for name in (f"{text}_{column}" for column in columns):
            tensors[name] = model.get_layer(name).output
    above = keras.Model(list(tensors.values()), model.output)
    # Keras wants the inputs of a model to be called as their keys are.
    inputs = {
        name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name)
        for name, tensor in tensors.items()
    }
    return keras.Model(inputs, above(list(inputs.values())))


def _compares_texts(model: "keras.Model") -> bool:
    return any(layer.name == "spelling" for layer in model.layers)


def word_flops(config: WordReaderConfig, sizes: EmbeddingSizes) -> int:
    """Multiply-adds of a word's vector, see `qanet.models.registry.forward_flops`.

    The character convolution is left out: the layer turns it into look-ups.
    """
    joined = sizes.width
    if config.character_width:
        joined += config.character_filters or config.character_width
    highway = joined if config.highway_before_projection else config.width
    count = joined * config.width + config.highway_layers * 2 * highway**2
    if config.question_match:
        from qanet.layers.text_match import TextMatch

        count += TextMatch.FEATURES * config.width
    if sizes.contextual:
        count += mix_flops(config, sizes)
    return count


def mix_flops(config: WordReaderConfig, sizes: EmbeddingSizes) -> int:
    """Multiply-adds of `contextual_mix` for a word."""
    layers, width = sizes.contextual
    return width * (layers + config.width)
