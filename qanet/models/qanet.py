"""QANet (Yu et al., "QANet: Combining Local Convolution with Global Self-Attention
for Reading Comprehension", ICLR 2018)."""

from collections.abc import Callable

import keras

from qanet.config import QANetConfig
from qanet.layers.context_query_attention import ContextQueryAttention
from qanet.layers.dropout import Dropout, StepSeed
from qanet.layers.encoder import EncoderStack
from qanet.layers.input_embedding import InputEmbedding
from qanet.layers.no_answer import NoAnswerLogit
from qanet.layers.pointer import SpanPointer
from qanet.layers.text_match import TextMatch
from qanet.models.inputs import EmbeddingSizes, reading_inputs

# Rows of the vector table before those of words: padding and unknown.
RESERVED_ROWS = 2


def build_qanet(
    config: QANetConfig,
    sizes: EmbeddingSizes,
    encoder: Callable[..., keras.layers.Layer] = EncoderStack,
) -> keras.Model:
    """Builds the model of the paper's figure 1, from bottom to top.

    Args:
        config: sizes, passes, dropout rates and start.
        sizes: sizes of the vocabulary that the embeddings stand on.
        encoder: makes each of the two stacks, from the arguments of `EncoderStack`; to
            compare it with stacks of another kind.

    Returns:
        A functional model from the inputs of `reading_inputs` to `start_logits` and
        `end_logits`, float32 `(batch, context_length)`, or with `config.no_answer`
        `(batch, 1 + context_length)`, see `NoAnswerLogit`.
    """
    inputs = reading_inputs(sizes.characters_per_word)

    everywhere = config.dropout if config.dropout_everywhere else 0.0
    stack_settings = {
        "heads": config.heads,
        "feed_forward": config.feed_forward,
        "dropout": config.dropout,
        "inner_dropout": everywhere,
        "survival": config.survival,
        "residual_scale": config.residual_scale,
        "position_scale": config.position_scale,
        "position_per_block": config.position_per_block,
        "final_norm": config.final_norm,
    }

    # What embedding dropout drops. Context and question are embedded by a call each;
    # with a seed in common both lose the same types.
    rates, none = (config.word_dropout, config.character_dropout), (0.0, 0.0)
    if config.embedding_dropout == "types":
        type_rates, element_rates = rates, none
        seeds = [
            StepSeed(name="word_seed")(inputs.context_words),
            StepSeed(name="character_seed")(inputs.context_words),
        ]
    else:
        type_rates, element_rates = none, rates
        seeds = []

    embedding = InputEmbedding(
        config.width,
        words={
            "rows": sizes.rows,
            "width": sizes.width,
            "trainable_rows": not sizes.pretrained,
            "tuned_rows": min(config.tuned_words, sizes.rows - RESERVED_ROWS)
            if sizes.pretrained
            else 0,
            "type_dropout": type_rates[0],
        },
        characters={
            "characters": sizes.characters,
            "width": config.character_width,
            "filters": config.character_filters,
            "kernel_size": config.character_kernel,
            "type_dropout": type_rates[1],
        },
        highway_layers=config.highway_layers,
        highway_first=config.highway_before_projection,
        norm=config.embedding_norm,
        word_dropout=element_rates[0],
        character_dropout=element_rates[1],
        dropout=config.dropout,
        carry_dropout=everywhere,
        name="embedding",
    )
    embedding_encoder = encoder(
        **config.embedding_encoder.model_dump(),
        **stack_settings,
        name="embedding_encoder",
    )

    encoder_dropout = Dropout(everywhere, name="encoder_dropout")
    if config.question_match:
        match = TextMatch(sizes.lowercase, name="match")
        match_projection = keras.layers.Dense(
            config.width, use_bias=False, name="match_projection"
        )

    def encode(text, other, mask, name):
        # An export begins here: known words' vectors are looked up.
        x = keras.layers.Identity(name=f"{name}_vectors")(embedding(*text, *seeds))
        if config.question_match:
            x = x + match_projection(match(*text, *other))
        return encoder_dropout(embedding_encoder(x, mask=mask))

    context_text = (inputs.context_words, inputs.context_characters)
    question_text = (inputs.question_words, inputs.question_characters)
    context = encode(context_text, question_text, inputs.context_mask, "context")
    question = encode(question_text, context_text, inputs.question_mask, "question")

    # Context-query attention, and projection to the width of the model encoder.
    attended = ContextQueryAttention(name="context_query_attention")(
        context, question, inputs.context_mask, inputs.question_mask
    )
    x = keras.layers.Dense(config.width, use_bias=False, name="attended")(attended)
    x = Dropout(config.dropout, name="attended_dropout")(x)

    # Model encoder: one stack, applied several times.
    model_encoder = encoder(
        **config.model_encoder.model_dump(),
        **stack_settings,
        name="model_encoder",
    )
    between_passes = Dropout(config.dropout, name="pass_dropout")
    before_pointer = Dropout(everywhere, name="output_dropout")
    outputs = []
    for _ in range(config.passes):
        x = model_encoder(x, mask=inputs.context_mask)
        outputs.append(before_pointer(x))
        x = between_passes(x)

    # Output: start from the first two of the last three passes, end from the first
    # and the third.
    m0, m1, m2 = outputs[-3:]
    start_logits, end_logits = SpanPointer(name="pointer")(
        m0, m1, m2, inputs.context_mask
    )
    if config.no_answer:
        # In single precision, as logits are.
        none = NoAnswerLogit(dtype="float32", name="no_answer")
        start_logits, end_logits = none(start_logits), none(end_logits)
    model = keras.Model(
        inputs.tensors,
        {"start_logits": start_logits, "end_logits": end_logits},
        name="qanet",
    )
    if config.initializer == "truncated_normal":
        _redraw_matrices(model)
    return model


def _redraw_matrices(model: keras.Model) -> None:
    """Draws the matrices above the embeddings from one truncated normal distribution.

    Its deviation of 0.02, cut at twice that, is the same for matrices of any size
    (Devlin et al., 2019). Done on the whole model, so that layers need not know of it.
    """
    embeddings = ("embedding/words/", "embedding/characters/")
    for variable in model.trainable_variables:
        if len(variable.shape) > 1 and not variable.path.startswith(embeddings):
            # A new one each time: one alone would give equal shapes equal values.
            initializer = keras.initializers.TruncatedNormal(stddev=0.02)
            variable.assign(initializer(variable.shape, dtype=variable.dtype))


def qanet_flops(
    config: QANetConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`.

    The character convolution is left out: the layer turns it into look-ups.
    """
    width = config.width

    def stack(stack_config, length):
        block = stack_config.convolutions * (width + stack_config.kernel_size) * width
        attention = 4 * width * width + 2 * length * width
        feed_forward = 2 * width * config.feed_forward
        return stack_config.blocks * length * (block + attention + feed_forward)

    joined = sizes.width + (config.character_filters or config.character_width)
    highway = joined if config.highway_before_projection else width
    word = joined * width + config.highway_layers * 2 * highway**2
    if config.question_match:
        word += TextMatch.FEATURES * width
    total = 0
    for length in (context, question):
        total += length * word + stack(config.embedding_encoder, length)
    total += 4 * context * question * width  # similarity, A, and the two of B
    total += context * 4 * width * width
    total += config.passes * stack(config.model_encoder, context)
    total += 2 * context * 2 * width
    return 2 * total
