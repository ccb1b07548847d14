"""The bidirectional language model of ELMo (Peters et al., 2018, section 3.1).

Importing this imports no Keras, so that the configuration is read without it.
"""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, PositiveFloat, model_validator

from qanet.models.character_ids import (
    BEGIN_SENTENCE,
    CHARACTERS,
    END_SENTENCE,
    PLACES,
    sentence_mark,
)
from qanet.settings import Depth, Rate, Section, Size

if TYPE_CHECKING:
    import keras

FilterWidth = Annotated[int, Field(ge=1, le=PLACES)]


class BiLMConfig(Section):
    """Sizes of the model. The paper's has filters up to width 7 (2048 in all), 2
    highway layers, 4096 units projected to 512.

    Attributes:
        character_width: size of a character's vector.
        filters: pairs, how wide the filters are and how many of them there are.
        activation: of the filters.
        highway_layers: highway layers between the filters and their projection.
        units: cells of each direction of an LSTM.
        projection: size of a word's vector and of each direction's state.
        layers: LSTM layers.
        residual: add to the output of each LSTM but the first what it reads.
        cell_clip, projection_clip: bounds of the LSTMs' cells and states.
        dropout: dropout rate of what each LSTM and the softmax reads.
    """

    character_width: Size = 16
    filters: tuple[tuple[FilterWidth, Size], ...] = (
        (1, 32),
        (2, 32),
        (3, 64),
        (4, 128),
    )
    activation: Literal["relu", "tanh"] = "relu"
    highway_layers: Depth = 1
    units: Size = 512
    projection: Size = 128
    layers: int = Field(default=2, ge=1, le=100)
    residual: bool = True
    cell_clip: PositiveFloat = 3.0
    projection_clip: PositiveFloat = 3.0
    dropout: Rate = 0.1

    @model_validator(mode="after")
    def _check_projection(self) -> Self:
        # The layout of the public weights has projections only where they are smaller.
        sizes = {"units": self.units, "all filters": sum(n for _, n in self.filters)}
        for name, size in sizes.items():
            if size <= self.projection:
                raise ValueError(
                    f"{name}={size} must be more than projection={self.projection}"
                )
        return self


def build_bilm(config: BiLMConfig) -> "keras.Model":
    """Builds the model with untrained weights, as a source of word vectors.

    Returns:
        A model of characters, int32 `(batch, length, 50)`, 0 at words that are padding
        (see `qanet.models.character_ids`), to the vectors of each layer, float
        `(batch, length, layers + 1, 2 * projection)`, zero at padding: first the word's
        vector twice, then for each LSTM the forward state and the backward one. The
        marks around a sentence are read and left out of what is given.
    """
    import keras
    from keras import ops

    characters = keras.Input((None, PLACES), dtype="int32", name="characters")
    vectors = ops.stack(_read(config, characters), axis=2)[:, 1:-1]
    words = ops.any(ops.not_equal(characters, 0), axis=2)[:, :, None, None]
    return keras.Model(characters, ops.where(words, vectors, 0.0), name="bilm")


def build_language_model(config: BiLMConfig, words: int) -> "keras.Model":
    """The same with a softmax over words, which both directions share, to be trained.

    Args:
        config: its settings.
        words: size of the vocabulary.

    Returns:
        A model of the inputs of `SentenceBatches`. For each place of a sentence with
        its marks but the last, float32 `(batch, length + 1)`: `next`, -log p of the
        word after it, from the forward state, and `previous`, -log p of this word, from
        the backward state of the word after it. In training it is that of a sample.
    """
    import keras
    from keras import ops

    from qanet.layers.dropout import Dropout
    from qanet.layers.sampled_softmax_loss import SampledSoftmaxLoss

    inputs = {
        "characters": keras.Input((None, PLACES), dtype="int32", name="characters"),
        "words": keras.Input((None,), dtype="int32", name="words"),
        "log_counts": keras.Input((None,), name="log_counts"),
        "sample": keras.Input((None,), dtype="int32", name="sample"),
        "sample_log_counts": keras.Input((None,), name="sample_log_counts"),
    }
    top = _read(config, inputs["characters"])[-1]
    top = Dropout(config.dropout, name="softmax_dropout")(top)
    forward, backward = ops.split(top, 2, axis=-1)
    # Logits and losses are in single precision.
    softmax = SampledSoftmaxLoss(words, dtype="float32", name="softmax")

    def loss(states, which):
        right, log_counts = inputs["words"][:, which], inputs["log_counts"][:, which]
        sample = inputs["sample"], inputs["sample_log_counts"]
        return softmax(states, right, log_counts, *sample)

    outputs = {
        "next": loss(forward[:, :-1], slice(1, None)),
        "previous": loss(backward[:, 1:], slice(None, -1)),
    }
    return keras.Model(inputs, outputs, name="language_model")


def _read(config: BiLMConfig, characters) -> list:
    """The output of each layer with the marks around each sentence.

    Returns:
        Float tensors `(batch, length + 2, 2 * projection)`, zero at padding.
    """
    import keras
    from keras import ops

    from qanet.layers.character_cnn import CharacterCNN
    from qanet.layers.dropout import Dropout
    from qanet.layers.highway import Highway
    from qanet.layers.numerics import zero_padding
    from qanet.layers.projected_lstm import ProjectedLSTM
    from qanet.layers.sentence_marks import SentenceMarks

    marks = map(sentence_mark, (BEGIN_SENTENCE, END_SENTENCE))
    characters, mask = SentenceMarks(*marks, name="marks")(characters)
    x = CharacterCNN(
        CHARACTERS,
        config.character_width,
        config.filters,
        config.activation,
        name="character_cnn",
    )(characters)
    x = Highway(config.highway_layers, name="highway")(x)
    x = keras.layers.Dense(config.projection, name="projection")(x)
    x = zero_padding(ops.concatenate([x, x], axis=-1), mask)
    outputs = [x]
    for i in range(config.layers):
        x = Dropout(config.dropout, name=f"dropout_{i}")(x)
        y = ProjectedLSTM(
            config.units,
            config.projection,
            config.cell_clip,
            config.projection_clip,
            name=f"lstm_{i}",
        )(x, mask)
        x = x + y if config.residual and i else y
        outputs.append(x)
    return outputs
