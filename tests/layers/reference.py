"""The formulas of the papers in plain NumPy, float64, written to be read.

Every function takes one text without padding, `(length, width)`, so that no masks
are needed: what a batch of padded texts gives must equal what each gives alone.
Weights come as a dictionary by path.
"""

import numpy as np


def below(weights, path):
    """The weights under a path."""
    start = f"{path}/"
    return {
        key.removeprefix(start): value
        for key, value in weights.items()
        if key.startswith(start)
    }


def relu(x):
    return np.maximum(x, 0.0)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def layer_norm(x, weights):
    """Each position alone: mean 0 and variance 1 over its features."""
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + 1e-6)
    return normal * weights["gamma"] + weights["beta"]


def highway(x, weights, layers):
    for i in range(layers):
        transform, gate = below(weights, f"transform_{i}"), below(weights, f"gate_{i}")
        h = relu(x @ transform["kernel"] + transform["bias"])
        g = sigmoid(x @ gate["kernel"] + gate["bias"])
        x = g * h + (1.0 - g) * x
    return x


def character_embedding(words, weights, filters, kernel_size):
    """The maximum over windows of each word's real characters, a word at a time."""
    table = weights["table"]
    result = np.zeros((len(words), filters or table.shape[1]))
    before = (kernel_size - 1) // 2
    for i, word in enumerate(words):
        vectors = [table[character] for character in word if character != 0]
        if not vectors:
            continue
        if filters:
            outputs = []
            for position in range(len(vectors)):
                total = weights["bias"].copy()
                for column in range(kernel_size):
                    neighbour = position + column - before
                    if 0 <= neighbour < len(vectors):
                        total += vectors[neighbour] @ weights["kernel"][column]
                outputs.append(total)
            vectors = outputs
        result[i] = np.max(vectors, axis=0)
    return result


def input_embedding(
    words,
    characters,
    weights,
    filters,
    kernel_size,
    highway_layers,
    highway_first,
    norm,
):
    """Vectors of words, 1 being the unknown one, beside those of their characters."""
    table, unknown = weights["words/table"], weights["words/unknown"]
    vectors = [unknown if word == 1 else table[word] for word in words]
    spelled = character_embedding(
        characters, below(weights, "characters"), filters, kernel_size
    )
    x = np.concatenate([vectors, spelled], axis=1)
    kernel, gates = weights["projection/kernel"], below(weights, "highway")
    if highway_first:
        x = highway(x, gates, highway_layers) @ kernel
    else:
        x = highway(x @ kernel, gates, highway_layers)
    return layer_norm(x, below(weights, "norm")) if norm else x


def spellings(words, characters, letters=None):
    """The first letters of words, and the word itself where a letter is unknown."""
    result = []
    for word, spelled in zip(words, characters[:, :letters], strict=True):
        if 1 not in spelled:
            result.append(tuple(spelled))
        else:
            # Of an unknown word nothing is known: it is like no other.
            result.append((word, *spelled) if word != 1 else object())
    return result


def text_match(text, other):
    """Which words the other text has, in any case, by their stem; and how often its own
    has them.

    Texts are pairs of words and characters, none of which has a lower case.
    """
    columns = []
    for letters in (None, None, 5):
        own, others = spellings(*text, letters), spellings(*other, letters)
        columns.append([word in others for word in own])
    own = spellings(*text)
    columns.append([np.log(own.count(word)) for word in own])
    return np.array(columns, "float64").T


def embed_words(example, weights, config):
    """Context and question of an example as every reader of words begins."""
    context, question = (
        (example[f"{text}_words"], example[f"{text}_characters"])
        for text in ("context", "question")
    )

    def embed(text, other):
        x = input_embedding(
            *text,
            below(weights, "embedding"),
            config.character_filters,
            config.character_kernel,
            config.highway_layers,
            config.highway_before_projection,
            config.embedding_norm,
        )
        if config.question_match:
            x = x + text_match(text, other) @ weights["match_projection/kernel"]
        return x

    return embed(context, question), embed(question, context)


def convolution(x, weights):
    depthwise = weights["depthwise_kernel"]
    before = (len(depthwise) - 1) // 2
    y = np.zeros_like(x)
    for position in range(len(x)):
        for tap in range(len(depthwise)):
            neighbour = position + tap - before
            if 0 <= neighbour < len(x):
                y[position] += x[neighbour] * depthwise[tap]
    return relu(y @ weights["pointwise_kernel"] + weights["bias"])


def self_attention(x, weights, heads):
    """softmax(Q K^T / sqrt(size)) V for each head, then one more product."""
    query, key, value = np.split(x @ weights["query_key_value/kernel"], 3, axis=1)
    size = x.shape[1] // heads
    results = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        logits = query[:, part] @ key[:, part].T / np.sqrt(size)
        results.append(softmax(logits, axis=1) @ value[:, part])
    return np.concatenate(results, axis=1) @ weights["output/kernel"]


def attention(x, memory, weights, heads, mask):
    """Query by query and head by head; `mask` says which keys each query sees."""
    query = x @ weights["query/kernel"]
    keys, values = memory @ weights["key/kernel"], memory @ weights["value/kernel"]
    size = query.shape[1] // heads
    rows = []
    for i, q in enumerate(query):
        parts = []
        for head in range(heads):
            columns = slice(head * size, (head + 1) * size)
            seen = np.flatnonzero(mask[i])
            logits = keys[seen, columns] @ q[columns] / size**0.5
            shares = np.exp(logits) / np.exp(logits).sum()
            parts.append(shares @ values[seen, columns])
        rows.append(np.concatenate(parts))
    return np.array(rows) @ weights["output/kernel"]


def feed_forward(x, weights):
    inner = relu(x @ weights["expand/kernel"] + weights["expand/bias"])
    return inner @ weights["contract/kernel"] + weights["contract/bias"]


def position_signal(length, width):
    """Sines, then cosines, of wavelengths from 2 pi to 20,000 pi."""
    half = width // 2
    signal = np.zeros((length, width))
    for position in range(length):
        for i in range(half):
            angle = position / 10000.0 ** (i / max(half - 1, 1))
            signal[position, i] = np.sin(angle)
            signal[position, half + i] = np.cos(angle)
    return signal


def plain_convolution(x, weights):
    width = x.shape[1]
    kernel = weights["kernel"].reshape(-1, width, weights["bias"].size)
    size = len(kernel)
    before = (size - 1) // 2
    x = np.pad(x, ((before, size - 1 - before), (0, 0)))
    windows = (x[i : i + size] for i in range(len(x) - size + 1))
    sums = [np.einsum("kw,kwf->f", window, kernel) for window in windows]
    return np.maximum(np.array(sums) + weights["bias"], 0)


def encoder(
    x,
    weights,
    blocks,
    convolutions,
    heads,
    survival=1.0,
    position_per_block=False,
    final_norm=True,
    residual_scale=1.0,
    position_scale=1.0,
):
    """Without heads there is no self-attention; convolutions are as their weights."""
    depth = blocks * (convolutions + bool(heads) + 1)
    level = 0
    for block in range(blocks):
        if block == 0 or position_per_block:
            x = x + position_scale * position_signal(*x.shape)
        names = [f"block_{block}_convolution_{i}" for i in range(convolutions)]
        names += [f"block_{block}_attention"] if heads else []
        for name in [*names, f"block_{block}_feed_forward"]:
            level += 1
            residual = below(weights, f"residual_{name}")
            inner = below(residual, name)
            y = layer_norm(x, below(residual, "norm"))
            if name.endswith("attention"):
                y = self_attention(y, inner, heads)
            elif name.endswith("feed_forward"):
                y = feed_forward(y, inner)
            elif "kernel" in inner:
                y = plain_convolution(y, inner)
            else:
                y = convolution(y, inner)
            share = 1.0 - level / depth * (1.0 - survival)
            x = x + share * residual_scale * y
    return layer_norm(x, below(weights, "norm")) if final_norm else x


def lstm(x, kernel, recurrent, bias):
    """The states of one direction, from zero on."""
    units = len(recurrent)
    h = c = np.zeros(units)
    states = []
    for vector in x:
        i, f, o, g = np.split(vector @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states).reshape(-1, units)


def bidirectional_lstm(x, weights):
    """The forward state and the backward one side by side."""
    recurrent = weights["recurrent_kernel"]
    kernels, biases = np.split(weights["kernel"], 2, 1), np.split(weights["bias"], 2)
    forward = lstm(x, kernels[0], recurrent[0], biases[0])
    backward = lstm(x[::-1], kernels[1], recurrent[1], biases[1])[::-1]
    return np.concatenate([forward, backward], axis=1)


def trilinear_similarity(context, question, weights):
    """With [c; q; c * q] written out for every pair."""
    w = np.concatenate(
        [weights[f"{name}_weight"] for name in ("context", "question", "product")]
    )
    return np.array(
        [[w @ np.concatenate([c, q, c * q]) for q in question] for c in context]
    )


def context_query_attention(context, question, weights):
    similarity = trilinear_similarity(context, question, weights)
    rows, columns = softmax(similarity, axis=1), softmax(similarity, axis=0)
    a = rows @ question
    b = rows @ columns.T @ context
    return np.concatenate([context, a, context * a, context * b], axis=1)


def bidirectional_attention(context, question, weights):
    """[h; u; h * u; h * s], word by word, with the same s for all of them."""
    similarity = trilinear_similarity(context, question, weights)
    summed = softmax(similarity.max(axis=1), axis=0) @ context
    rows = []
    for h, row in zip(context, similarity, strict=True):
        attended = softmax(row, axis=0) @ question
        rows.append(np.concatenate([h, attended, h * attended, h * summed]))
    return np.array(rows)


def attention_over_attention(context, question):
    """What each word of the question attends to, by how much it is attended to."""
    pairs = context @ question.T
    importance = np.mean([softmax(row, axis=0) for row in pairs], axis=0)
    return sum(
        share * softmax(column, axis=0)
        for share, column in zip(importance, pairs.T, strict=True)
    )


def co_attention(context, question, weights):
    """What each word of the context attends to, and each of the question."""
    kernel = weights["projection/kernel"]
    c, q = relu(context @ kernel), relu(question @ kernel)
    of_context = [softmax(q @ word, axis=0) @ question for word in c]
    of_question = [softmax(c @ word, axis=0) @ context for word in q]
    return np.array(of_context), np.array(of_question)


def gated_fusion(x, y, weights):
    """Word by word, with one gate for all of a word."""
    rows = []
    for a, b in zip(x, y, strict=True):
        pair = np.concatenate([a, b, a * b, a - b])
        m = np.tanh(pair @ weights["fused/kernel"] + weights["fused/bias"])
        g = sigmoid(pair @ weights["gate/kernel"] + weights["gate/bias"])
        rows.append(g * m + (1.0 - g) * a)
    return np.array(rows)


def self_alignment(x, weights):
    """Word by word, with x W y written out for every pair."""
    rows = []
    for word in x:
        logits = [word @ weights["bilinear/kernel"] @ other for other in x]
        rows.append(softmax(np.array(logits), axis=0) @ x)
    return np.array(rows)


def attention_pooling(x, weights):
    return softmax(x @ weights["score/kernel"][:, 0], axis=0) @ x


def bilinear_pointer(context, question, weights):
    """The question is one vector."""
    start = context @ (question @ weights["start/kernel"])
    end = context @ (question @ weights["end/kernel"])
    return start, end


def span_pointer(m0, m1, m2, weights):
    start = np.concatenate([m0, m1], axis=1) @ weights["start/kernel"]
    end = np.concatenate([m0, m2], axis=1) @ weights["end/kernel"]
    return start[:, 0], end[:, 0]
