"""Tests of qanet.translation.ctranslate, with tiny models that are converted here."""

import io
import json
import shutil
import sys

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import yaml
from ctranslate2.converters import MarianConverter

from qanet.errors import UserError
from qanet.translation.ctranslate import LONGEST_SOURCE, LONGEST_TARGET
from qanet.translation.translator import open_translator

ENGLISH = ["the red house on the hill", "a river in the old town", "she reads a book"]
FRENCH = ["la maison sur la colline", "une rivière dans la ville", "elle lit un livre"]
LANGUAGES = ["eng_Latn", "fra_Latn", "spa_Latn"]
SENTENCES = [*ENGLISH, "a house", "the river reads", "red", "she", "hill " * 30]
WIDTH, INNER = 16, 32
OPTIONS = {
    "type": "transformer",
    "enc-depth": 1,
    "dec-depth": 1,
    "transformer-heads": 2,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-guided-alignment-layer": "last",
}
# As the converter for Transformers writes it, whose tokenizers end the source.
TRANSFORMERS = {"add_source_eos": False, "decoder_start_token": "</s>"}


def train_subwords(sentences):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(sentences * 3),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(*subwords):
    """Marian's vocabulary: its two marks, then the pieces of all models."""
    pieces = ["</s>", "<unk>"]
    for serialized in subwords:
        processor = sentencepiece.SentencePieceProcessor(model_proto=serialized)
        pieces += [processor.id_to_piece(i) for i in range(len(processor))]
    return [piece for piece in dict.fromkeys(pieces) if piece != "<s>"]


def random_weights(rng, vocabulary, bias):
    """The weights of a Marian model, by Marian's names."""
    size = len(vocabulary)
    weights = {
        "Wemb": rng.normal(size=(size, WIDTH)),
        "decoder_ff_logit_out_Wt": 0.6 * rng.normal(size=(size, WIDTH)),
        "decoder_ff_logit_out_b": np.zeros((1, size)),
    }
    for token, value in bias.items():
        weights["decoder_ff_logit_out_b"][0, vocabulary.index(token)] = value

    def dense(scope, suffix, rows, columns):
        weights[f"{scope}_W{suffix}"] = rng.normal(size=(rows, columns)) / rows**0.5
        weights[f"{scope}_b{suffix}"] = np.zeros((1, columns))

    def norm(scope):
        weights[f"{scope}_ln_scale"] = np.ones((1, WIDTH))
        weights[f"{scope}_ln_bias"] = np.zeros((1, WIDTH))

    for scope in ("encoder_l1_self", "decoder_l1_self", "decoder_l1_context"):
        for suffix in "qkvo":
            dense(scope, suffix, WIDTH, WIDTH)
        norm(f"{scope}_Wo")
    for scope in ("encoder_l1_ffn", "decoder_l1_ffn"):
        dense(scope, "1", WIDTH, INNER)
        dense(scope, "2", INNER, WIDTH)
        norm(f"{scope}_ffn")
    return {name: value.astype("float32") for name, value in weights.items()}


def convert(directory, weights, vocabulary):
    """Writes the files of a Marian model and converts them."""
    options = yaml.safe_dump(OPTIONS).encode() + b"\0"
    model, yml = directory.with_suffix(".npz"), directory.with_suffix(".yml")
    options = np.frombuffer(options, dtype="int8")
    np.savez(model, **weights, **{"special:model.yml": options})
    lines = [
        f"{json.dumps(t, ensure_ascii=False)}: {i}" for i, t in enumerate(vocabulary)
    ]
    yml.write_text("\n".join(lines) + "\n", encoding="utf-8")
    MarianConverter(str(model), [str(yml), str(yml)]).convert(str(directory))
    return directory


def change_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Threads that wait for each other at each tiny step are slow on a busy machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def opus(tmp_path_factory):
    """A model of two languages, each with its sub-words."""
    source, target = train_subwords(ENGLISH), train_subwords(FRENCH)
    vocabulary = pieces_of(source, target)
    bias = {"</s>": 2.0, "<unk>": 2.0}
    weights = random_weights(np.random.default_rng(1), vocabulary, bias)
    directory = tmp_path_factory.mktemp("models") / "opus-en-fr"
    convert(directory, weights, vocabulary)
    (directory / "source.spm").write_bytes(source)
    (directory / "target.spm").write_bytes(target)
    return directory


@pytest.fixture(scope="session")
def nllb(tmp_path_factory):
    """A model of many languages, which says their names in its translations too."""
    subwords = train_subwords(ENGLISH + FRENCH)
    vocabulary = pieces_of(subwords) + LANGUAGES
    bias = {"</s>": 2.0, "fra_Latn": 2.0, "spa_Latn": 2.0}
    weights = random_weights(np.random.default_rng(2), vocabulary, bias)
    directory = tmp_path_factory.mktemp("models") / "nllb"
    convert(directory, weights, vocabulary)
    change_config(directory, **TRANSFORMERS)
    (directory / "sentencepiece.bpe.model").write_bytes(subwords)
    return directory


@pytest.fixture(params=["opus", "nllb"])
def translator(request):
    """A translator of either kind."""
    directory = request.getfixturevalue(request.param)
    return open_translator(specification(directory))


@pytest.fixture
def broken(request, tmp_path):
    """Copies a model, to be damaged."""

    def copy(kind):
        return shutil.copytree(request.getfixturevalue(kind), tmp_path / kind)

    return copy


def specification(directory):
    languages = ":eng_Latn:fra_Latn" if directory.name == "nllb" else ""
    return f"ctranslate2:{directory}{languages}"


def search(directory, sources, count, prefix=None):
    """What the library itself finds: pairs of score and pieces for each source."""
    results = ctranslate2.Translator(str(directory), "auto").translate_batch(
        sources,
        prefix and [prefix] * len(sources),
        beam_size=max(count, 5),
        num_hypotheses=count,
        max_decoding_length=LONGEST_TARGET,
        disable_unk=True,
        return_scores=True,
    )
    return [list(zip(r.scores, r.hypotheses, strict=True)) for r in results]


def encode(path, sentences=SENTENCES):
    processor = sentencepiece.SentencePieceProcessor(str(path))
    return processor.encode(sentences, out_type=str)


def plain(pieces):
    """The text of some pieces, without SentencePiece."""
    return " ".join("".join(pieces).replace("\u2581", " ").split())


def different(texts):
    return [text for text in dict.fromkeys(texts) if text]


@pytest.mark.parametrize("count", [1, 3, 7])
def test_translations_differ_and_are_at_most_so_many(translator, count):
    found = translator.translate(SENTENCES, count)
    assert len(found) == len(SENTENCES)
    for texts in found:
        assert 1 <= len(texts) <= count
        assert texts == different(texts)
        assert all(text == " ".join(text.split()) for text in texts)
        # SentencePiece's texts for an unknown sub-word and for a blank.
        assert not any(sign in text for text in texts for sign in "\u2047\u2581")
    assert max(len(texts) for texts in found) == count
    assert len({tuple(texts) for texts in found}) > 1


@pytest.mark.parametrize("count", [1, 7])
def test_two_languages_best_first(opus, count):
    sources = encode(opus / "source.spm")
    expected = [
        different(plain(pieces) for _, pieces in sorted(row, key=lambda pair: -pair[0]))
        for row in search(opus, sources, count)
    ]
    assert (
        open_translator(f"ctranslate2:{opus}").translate(SENTENCES, count) == expected
    )


@pytest.mark.parametrize("count", [1, 7])
def test_many_languages_best_first_and_without_their_marks(nllb, count):
    pieces = encode(nllb / "sentencepiece.bpe.model")
    sources = [["eng_Latn", *row, "</s>"] for row in pieces]
    rows = search(nllb, sources, count, ["fra_Latn"])
    # Not only the mark at the beginning is there to be taken out.
    assert any(set(LANGUAGES) & set(p[1:]) for row in rows for _, p in row)
    expected = [
        different(
            plain(piece for piece in pieces if piece not in LANGUAGES)
            for _, pieces in sorted(row, key=lambda pair: -pair[0])
        )
        for row in rows
    ]
    translator = open_translator(f"ctranslate2:{nllb}:eng_Latn:fra_Latn")
    found = translator.translate(SENTENCES, count)
    assert found == expected
    assert not any("Latn" in text for texts in found for text in texts)


def test_both_languages_matter(nllb):
    pairs = ["eng_Latn:fra_Latn", "spa_Latn:fra_Latn", "eng_Latn:spa_Latn"]
    translators = [open_translator(f"ctranslate2:{nllb}:{pair}") for pair in pairs]
    found = [translator.translate(SENTENCES, 2) for translator in translators]
    assert found[0] != found[1]
    assert found[0] != found[2]


def test_a_source_ends_once_whoever_adds_the_mark(opus, broken):
    expected = open_translator(f"ctranslate2:{opus}").translate(SENTENCES, 3)
    other = broken("opus")
    change_config(other, **TRANSFORMERS)
    assert open_translator(f"ctranslate2:{other}").translate(SENTENCES, 3) == expected


def test_sentences_do_not_know_each_other(translator, monkeypatch):
    together = translator.translate(SENTENCES, 3)
    alone = [translator.translate([one], 3)[0] for one in SENTENCES]
    assert together == alone
    assert translator.translate(SENTENCES[::-1], 3) == together[::-1]
    monkeypatch.setattr("qanet.translation.ctranslate.BATCH_TOKENS", 40)
    assert translator.translate(SENTENCES, 3) == together


def test_the_same_again(translator):
    assert translator.translate(SENTENCES, 5) == translator.translate(SENTENCES, 5)


def test_what_cannot_be_translated_has_no_translation(translator):
    sentences = ["", "red", " \n\t\u00a0", "\u3000", "a " * 150, "a " * 2000, "she"]
    found = translator.translate(sentences, 2)
    assert [bool(texts) for texts in found] == [0, 1, 0, 0, 1, 0, 1]
    assert found[1] == translator.translate(["red"], 2)[0]
    assert found[6] == translator.translate(["she"], 2)[0]
    assert translator.translate(["", " "], 2) == [[], []]
    assert translator.translate([], 2) == []


def test_the_longest_sentence(opus):
    sentences = ["re " * LONGEST_SOURCE, "re " * (LONGEST_SOURCE + 1)]
    lengths = [len(pieces) for pieces in encode(opus / "source.spm", sentences)]
    assert lengths == [LONGEST_SOURCE, LONGEST_SOURCE + 1]
    found = open_translator(f"ctranslate2:{opus}").translate(sentences, 1)
    assert [len(texts) for texts in found] == [1, 0]


def test_any_text_is_taken(translator):
    odd = ["\ud800 she", "she\nreads", "中文 🙂", "<unk> </s> fra_Latn", "▁"]
    found = translator.translate(odd, 2)
    assert found[1] == translator.translate(["she reads"], 2)[0]
    assert all(texts for texts in found[:4])


def test_the_name_tells_the_languages(opus, nllb):
    assert open_translator(f"ctranslate2:{opus}").name.startswith(
        "ctranslate2:opus-en-fr "
    )
    names = [
        open_translator(f"ctranslate2:{nllb}:eng_Latn:{code}").name
        for code in ("fra_Latn", "spa_Latn")
    ]
    assert names[0].startswith("ctranslate2:nllb eng_Latn fra_Latn ")
    assert names[1] == names[0].replace("fra_Latn", "spa_Latn")


def change_weights(content):
    """A model.bin with other scales in one of its norms."""
    ones = np.ones(WIDTH, dtype="float32")
    return content.replace(ones.tobytes(), (2 * ones).tobytes(), 1)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("model.bin", change_weights),
        ("config.json", lambda content: content + b" "),
        ("shared_vocabulary.json", lambda content: content + b" "),
        ("source.spm", lambda _: train_subwords(FRENCH)),
        ("target.spm", lambda _: train_subwords(ENGLISH)),
    ],
)
def test_the_name_tells_the_content(opus, broken, file, change):
    directory = broken("opus")
    name = open_translator(f"ctranslate2:{directory}").name
    # The fixture's directory has another name.
    assert name.split()[1:] == open_translator(f"ctranslate2:{opus}").name.split()[1:]
    content = (directory / file).read_bytes()
    assert change(content) != content
    (directory / file).write_bytes(change(content))
    assert open_translator(f"ctranslate2:{directory}").name != name


def refuse(specification, message):
    with pytest.raises(UserError, match=message) as caught:
        open_translator(specification)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("which", ["models:", "models:eng_Latn", ":eng_Latn:fra_Latn"])
@pytest.mark.parametrize("end", ["", ":"])
def test_the_languages_are_two_or_none(which, end):
    refuse(f"ctranslate2:{which}{end}", "write it as .*ctranslate2:DIR:SOURCE:TARGET")


@pytest.mark.parametrize("library", ["ctranslate2", "sentencepiece"])
def test_without_the_library(opus, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    refuse(f"ctranslate2:{opus}", r"pip install 'qanet\[ctranslate2\]'")


@pytest.mark.parametrize("languages", ["", ":eng_Latn:fra_Latn"])
def test_no_such_directory(tmp_path, languages):
    missing = tmp_path / "missing"
    refuse(f"ctranslate2:{missing}{languages}", f"{missing}: no such directory; give")


@pytest.mark.parametrize("kind", ["opus", "nllb"])
def test_no_model_in_the_directory(broken, kind):
    directory = broken(kind)
    (directory / "model.bin").unlink()
    refuse(specification(directory), "has no model.bin; convert")


@pytest.mark.parametrize("name", ["source.spm", "target.spm"])
def test_no_sub_words_of_two_languages(broken, name):
    directory = broken("opus")
    (directory / name).unlink()
    refuse(f"ctranslate2:{directory}", f"{name}: missing; copy it from the original")


def test_which_sub_words_of_many_languages(broken):
    directory = broken("nllb")
    path = directory / "sentencepiece.bpe.model"
    shutil.copy(path, directory / "other.model")
    refuse(specification(directory), r"has 2 files \*\.model; it must have one")
    path.unlink()
    assert open_translator(specification(directory)).translate(["she"], 1)[0]
    (directory / "other.model").unlink()
    refuse(specification(directory), r"has 0 files \*\.model; it must have one")


def test_many_languages_must_be_said(nllb):
    refuse(f"ctranslate2:{nllb}", "source.spm: missing; .*nllb:SOURCE:TARGET")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.bin", b""),
        ("model.bin", bytes(1000)),
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("config.json", None),
        ("shared_vocabulary.json", b"{}"),
        ("shared_vocabulary.json", None),
    ],
)
@pytest.mark.parametrize("kind", ["opus", "nllb"])
def test_a_damaged_model(broken, kind, name, content):
    directory = broken(kind)
    if content is None:
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(content)
    refuse(specification(directory), f"{directory}: damaged .*; convert it again")


@pytest.mark.parametrize("key", ["add_source_eos", "eos_token"])
def test_a_setting_is_missing(broken, key):
    path = broken("opus") / "config.json"
    config = json.loads(path.read_text())
    del config[key]
    path.write_text(json.dumps(config))
    refuse(f"ctranslate2:{path.parent}", "damaged .*; convert it again")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_model_that_was_cut_off(broken, share):
    path = broken("opus") / "model.bin"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refuse(f"ctranslate2:{path.parent}", "damaged .*; convert it again")


@pytest.mark.parametrize(
    ("kind", "name"), [("opus", "target.spm"), ("nllb", "sentencepiece.bpe.model")]
)
@pytest.mark.parametrize("content", [b"", b"junk"])
def test_damaged_sub_words(broken, kind, name, content):
    directory = broken(kind)
    (directory / name).write_bytes(content)
    refuse(specification(directory), f"{name}: damaged; copy it")


@pytest.mark.parametrize("pair", ["fr:fra_Latn", "eng_Latn:fr", "</s>:fra_Latn"])
def test_no_such_language(nllb, pair):
    wrong = min(pair.split(":"), key=lambda code: code in LANGUAGES)
    refuse(f"ctranslate2:{nllb}:{pair}", f"no language '{wrong}'; write .* eng_Latn")


def test_languages_of_a_vocabulary_as_it_was_once_stored(nllb, broken):
    directory = broken("nllb")
    path = directory / "shared_vocabulary.json"
    lines = "".join(f"{token}\n" for token in json.loads(path.read_bytes()))
    path.unlink()
    (directory / "shared_vocabulary.txt").write_text(lines, encoding="utf-8")
    old, new = (open_translator(specification(each)) for each in (directory, nllb))
    assert old.translate(SENTENCES, 2) == new.translate(SENTENCES, 2)
    refuse(f"ctranslate2:{directory}:eng_Latn:fr", "no language 'fr'")


def test_a_model_that_fails_when_it_translates(broken):
    directory = broken("opus")
    # Tokens that the model's matrices have no rows for.
    (directory / "shared_vocabulary.json").write_text('["</s>", "<unk>"]')
    translator = open_translator(f"ctranslate2:{directory}")
    with pytest.raises(UserError, match=r"cannot translate .*; convert") as caught:
        translator.translate(["she"], 1)
    assert "\n" not in str(caught.value)
