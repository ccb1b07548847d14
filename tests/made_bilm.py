"""A bidirectional language model in NumPy, by the names of the public layout.

Written from the paper's equations (Peters et al., 2018, section 3.1) and those of the
layout's own implementation, allenai/bilm-tf, for one sentence after the other.
"""

import numpy as np

from qanet.models.bilm import BiLMConfig

SMALL = {
    "character_width": 3,
    "filters": ((1, 2), (3, 4)),
    "highway_layers": 2,
    "units": 6,
    "projection": 4,
    # So small that some numbers are clipped.
    "cell_clip": 0.5,
    "projection_clip": 0.4,
}

OPTIONS = {
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 3},
        "filters": [[1, 2], [3, 4]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 2,
    },
    "lstm": {
        "cell_clip": 0.5,
        "dim": 6,
        "n_layers": 2,
        "proj_clip": 0.4,
        "projection_dim": 4,
        "use_skip_connections": True,
    },
}


def small_config(**changes):
    """The settings that `OPTIONS` stand for."""
    return BiLMConfig(**{**SMALL, **changes})


def random_arrays(rng):
    """A file's data sets, all drawn at random."""
    shapes = {"char_embed": (261, 3), "CNN_proj/W_proj": (6, 4), "CNN_proj/b_proj": 4}
    for i, (size, count) in enumerate(((1, 2), (3, 4))):
        shapes[f"CNN/W_cnn_{i}"] = (1, size, 3, count)
        shapes[f"CNN/b_cnn_{i}"] = count
    for i in range(2):
        for role in ("carry", "transform"):
            shapes[f"CNN_high_{i}/W_{role}"] = (6, 6)
            shapes[f"CNN_high_{i}/b_{role}"] = 6
        for direction in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            shapes[f"{cell}/W_0"] = (8, 24)
            shapes[f"{cell}/B"] = 24
            shapes[f"{cell}/W_P_0"] = (6, 4)
    return {
        name: rng.uniform(-1, 1, size).astype("f4") for name, size in shapes.items()
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def characters_of(word):
    """A word's 50 characters, as bilm-tf's `Batcher` numbers them."""
    marks = {"<S>": [256], "</S>": [257]}
    content = marks.get(word, list(word.encode()))[:48]
    numbers = [258, *content, 259]
    return [number + 1 for number in numbers + [260] * (50 - len(numbers))]


def word_vector(word, arrays, activation):
    # bilm-tf puts a row for padding before the file's.
    table = np.concatenate([np.zeros((1, 3)), arrays["char_embed"]])
    x = table[characters_of(word)]
    features = []
    for i in range(2):
        kernel, bias = arrays[f"CNN/W_cnn_{i}"][0], arrays[f"CNN/b_cnn_{i}"]
        size = len(kernel)
        sums = [
            np.einsum("kd,kdf->f", x[first : first + size], kernel) + bias
            for first in range(50 - size + 1)
        ]
        features.append(activation(np.max(sums, axis=0)))
    x = np.concatenate(features)
    for i in range(2):
        high = {
            name: arrays[f"CNN_high_{i}/{name}"]
            for name in ("W_carry", "b_carry", "W_transform", "b_transform")
        }
        gate = sigmoid(x @ high["W_carry"] + high["b_carry"])
        h = np.maximum(x @ high["W_transform"] + high["b_transform"], 0)
        x = gate * h + (1 - gate) * x
    return x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]


def lstm(x, arrays, cell, lstm_options):
    kernel, bias, projection = (arrays[f"{cell}/{n}"] for n in ("W_0", "B", "W_P_0"))
    c, h = np.zeros(6), np.zeros(4)
    cell_clip, proj_clip = lstm_options["cell_clip"], lstm_options["proj_clip"]
    states = []
    for vector in x:
        i, j, f, o = np.split(np.concatenate([vector, h]) @ kernel + bias, 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
        c = np.clip(c, -cell_clip, cell_clip)
        h = (sigmoid(o) * np.tanh(c)) @ projection
        h = np.clip(h, -proj_clip, proj_clip)
        states.append(h)
    return np.array(states)


def layers_with_marks(sentence, arrays, options=OPTIONS):
    """Each layer of one sentence, `(words + 2, 3, 8)`, its marks included."""
    arrays = {name: array.astype("float64") for name, array in arrays.items()}
    activation = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}
    activation = activation[options["char_cnn"]["activation"]]
    marked = ["<S>", *sentence, "</S>"]
    tokens = np.array([word_vector(word, arrays, activation) for word in marked])
    directions = []
    for direction in range(2):
        turn = slice(None, None, -1) if direction else slice(None)
        x, found = tokens[turn], [tokens]
        for i in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            y = lstm(x, arrays, cell, options["lstm"])
            x = x + y if i and options["lstm"]["use_skip_connections"] else y
            found.append(x[turn])
        directions.append(found)
    both = [np.concatenate(pair, axis=1) for pair in zip(*directions, strict=True)]
    return np.stack(both, axis=1)
