"""Tests of qanet.config."""

import json
import re
from importlib import resources

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from qanet.config import Config, load_preset, preset_names
from qanet.errors import UserError
from qanet.models.bidaf import BiDAFConfig
from qanet.models.qanet import StackConfig
from qanet.models.registry import MODELS
from qanet.run import Run
from qanet.settings import Section, load_settings

# Yu et al., 2018, sections 2.2, 3.1 and 4.1.
PAPER = {
    "data": {"context_limit": 400, "answer_limit": 30},
    "vocabulary": {"characters_per_word": 16},
    "model": {
        "name": "qanet",
        "width": 128,
        "heads": 8,
        "feed_forward": 128,
        "embedding_encoder": {"blocks": 1, "convolutions": 4, "kernel_size": 7},
        "model_encoder": {"blocks": 7, "convolutions": 2, "kernel_size": 5},
        "passes": 3,
        "character_width": 200,
        "character_filters": 0,
        "highway_layers": 2,
        "highway_before_projection": True,
        "word_dropout": 0.1,
        "character_dropout": 0.05,
        "dropout": 0.1,
        "survival": 0.9,
        "position_per_block": True,
        "final_norm": False,
    },
    "training": {
        "steps": 150_000,
        "batch_size": 32,
        "learning_rate": 0.001,
        "warmup_steps": 1000,
        "warmup": "logarithmic",
        "decay": "constant",
        "beta_1": 0.8,
        "beta_2": 0.999,
        "epsilon": 1e-7,
        "l2": 3e-7,
        "ema_decay": 0.9999,
        "precision": "float32",
    },
}


def leaves(section=Config, prefix=""):
    """The keys of all settings that are not sections, with dots."""
    for name, field in section.model_fields.items():
        # The model's section is known by its default.
        if isinstance(field.default, Section):
            yield from leaves(type(field.default), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


KEYS = list(leaves())


def refusal(*overrides, preset="qanet-paper"):
    """The one line that overrides are refused with."""
    with pytest.raises(UserError) as error:
        load_preset(preset, list(overrides))
    message = str(error.value)
    assert message.isprintable(), "one line"
    return message


# Presets.


def test_preset_names():
    assert preset_names() == [
        "aoa",
        "aoa-cloze",
        "bert",
        "bert-6",
        "bidaf",
        "qanet",
        "qanet-paper",
        "qanet-small",
        "qanet-tiny",
        "slqa",
    ]


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_survives_the_run_directory(tmp_path, name):
    config = load_preset(name)
    path = tmp_path / "config.json"
    path.write_text(config.model_dump_json(indent=2))
    assert load_settings(path, Config) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_says_what_its_file_says(name):
    text = resources.files("qanet").joinpath("presets", f"{name}.yaml").read_text()
    values = load_preset(name).model_dump(mode="json")
    assert subset_of(values, yaml.safe_load(text)) == yaml.safe_load(text)


def test_qanet_paper_is_the_paper():
    values = load_preset("qanet-paper").model_dump(mode="json")
    assert subset_of(values, PAPER) == PAPER


def subset_of(values, keys):
    """The part of nested `values` that has the keys of `keys`."""
    return {
        name: subset_of(values[name], inner)
        if isinstance(inner, dict)
        else values[name]
        for name, inner in keys.items()
    }


def test_unknown_preset_lists_the_known():
    message = refusal(preset="qanet-huge")
    assert "'qanet-huge'" in message
    assert all(name in message for name in preset_names())


def test_a_preset_is_not_a_path():
    assert "unknown preset" in refusal(preset="../presets/qanet")


def test_every_setting_has_a_reader():
    """A setting that no module reads would be one that does nothing."""
    package = resources.files("qanet")
    code = "\n".join(
        path.read_text("utf-8")
        for path in package.rglob("*.py")
        if path.name != "config.py"
    )
    keys = [
        *KEYS,
        *(key for model in MODELS.values() for key in leaves(model.settings)),
    ]
    names = {key.rpartition(".")[2] for key in keys}
    assert {name for name in names if not re.search(rf"\.{name}\b", code)} == set()


# Overrides.


def test_overrides_change_what_they_name_and_nothing_else():
    overrides = [
        "training.steps=7",
        "model.model_encoder.blocks=2",
        "data.train=my file.json",
        "vocabulary.vectors=glove.txt",
        "data.buckets=[100, 400]",
        "model.final_norm=true",
        "training.learning_rate=1e-4",
        "training.steps=9",
    ]
    expected = load_preset("qanet-paper").model_dump()
    expected["training"] |= {"steps": 9, "learning_rate": 1e-4}  # the later one wins
    expected["model"]["model_encoder"]["blocks"] = 2
    expected["model"]["final_norm"] = True
    expected["data"] |= {"train": "my file.json", "buckets": (100, 400)}
    expected["vocabulary"]["vectors"] = ("glove.txt",)
    assert load_preset("qanet-paper", overrides).model_dump() == expected


def test_an_override_may_name_what_the_preset_leaves_out():
    assert load_preset("qanet", ["data.dev=dev.json"]).data.dev == "dev.json"


def test_an_override_of_a_part_leaves_the_rest_as_it_is():
    stack = load_preset("qanet", ["model.model_encoder.blocks=2"]).model.model_encoder
    assert stack == StackConfig(blocks=2, convolutions=2, kernel_size=5)


def test_an_override_takes_all_after_the_first_equals_sign():
    assert load_preset("qanet", ["data.dev=a=b.json"]).data.dev == "a=b.json"


@pytest.mark.parametrize(
    "name", ["\U0001f600", "\x7f", "\x9b", "\x85", "\ufffe", "\xa0"]
)
def test_a_file_may_have_any_name(name, tmp_path):
    path = f"{name}.json"
    config = load_preset("qanet-tiny", [f"data.train={json.dumps(path)}"])
    assert config.data.train == path
    run = Run(tmp_path)
    run.save_config(config)
    assert run.load_config() == config


def test_vectors_can_be_taken_away():
    assert load_preset("qanet", ["vocabulary.vectors=null"]).vocabulary.vectors == ()


def test_several_files_of_vectors():
    config = load_preset("qanet", ["vocabulary.vectors=[a.txt, b.txt]"])
    assert config.vocabulary.vectors == ("a.txt", "b.txt")


def test_overrides_leave_no_trace():
    load_preset("qanet", ["training.steps=7"])
    assert load_preset("qanet").training.steps == 60_000


@pytest.mark.parametrize("text", ["", " "])
def test_an_override_has_a_value(text):
    """Else an unset variable would train from random weights, for example."""
    message = refusal(f"training.start_from={text}")
    assert message == (
        "--set training.start_from=: has no value; give one, or null for none"
    )
    assert load_preset("qanet-tiny", ["training.start_from=null"])
    assert "start_from=''" in refusal("training.start_from=''")


@pytest.mark.parametrize("override", ["", "training.steps", "=1", "training.=1", ".=1"])
def test_an_override_is_key_equals_value(override):
    message = refusal(override)
    assert f"--set {override!r}" in message
    assert "key=value" in message


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{a: b",
        "'",
        "*a",
        "!!python/none",
        # YAML takes these for a date and for numbers.
        "2024-13-01",
        "0x_",
        "9" * 5000,
        # The library fails at these by errors of other kinds than its own.
        "!!int ''",
        "!!bool x",
        "!!timestamp x",
        "[" * 3000,
    ],
)
def test_an_override_that_is_not_yaml(text):
    assert refusal(f"training.steps={text}").startswith("--set training.steps: ")


@given(
    st.one_of(st.sampled_from(KEYS), st.text("ab.", min_size=1)),
    st.one_of(st.text(), st.text("0123456789-:_xbe.[]{}!&*, '\"#~")),
)
@example("data.train", "&a [*a]")
@example("data.train", "1-2-3")
def test_any_override_is_taken_or_refused_in_one_line(key, text):
    override = f"{key}={text}"
    try:
        config = load_preset("qanet-tiny", [override])
    except UserError:
        assert key.split(".")[0] in refusal(override, preset="qanet-tiny")
    else:
        assert key in KEYS
        assert Config.model_validate_json(config.model_dump_json()) == config


# Models.


def test_a_model_has_its_own_settings_and_defaults():
    config = load_preset("bidaf", ["model.units=7"])
    assert config.model == BiDAFConfig(units=7, question_match=True)
    stored = Config.model_validate_json(config.model_dump_json())
    assert stored == config
    assert type(stored.model) is BiDAFConfig


def test_texts_longer_than_a_model_can_read_are_refused():
    message = refusal("data.question_limit=193", preset="bert")
    assert "data.context_limit=317 and data.question_limit=193 come to more" in message
    load_preset("bert", ["data.question_limit=192"])


@pytest.mark.parametrize(
    ("section", "key", "unused", "used"),
    [
        ("model", "initializer", "glorot", "truncated_normal"),
        ("model", "tuned_words", 0, 5),
        ("model", "dropout_everywhere", False, True),
        ("model", "embedding_dropout", "elements", "types"),
        ("training", "label_noise", 0.0, 0.2),
    ],
)
def test_a_setting_that_was_taken_out_may_be_stored_where_it_changed_nothing(
    section, key, unused, used
):
    values = {section: {key: unused}}
    assert Config.model_validate(values) == Config()
    # The caller's are left as they were.
    assert values == {section: {key: unused}}
    with pytest.raises(ValidationError, match=key):
        Config.model_validate({section: {key: used}})


def test_a_setting_of_another_model_is_refused():
    message = refusal("model.heads=4", preset="bidaf")
    assert message.startswith("preset bidaf: model: bidaf has no setting heads; ")
    message = refusal("model.name=bidaf", preset="qanet")
    assert message.startswith("preset qanet: model: bidaf has no setting heads; ")
    assert ": model: qanet has no setting colour; " in refusal("model.colour=1")


@pytest.mark.parametrize("name", ["elmo", "[1]", "null", "{a: 1}"])
def test_an_unknown_model_lists_the_known(name):
    message = refusal(f"model.name={name}")
    assert "there is no such model; choose one of qanet, bidaf" in message


# What is refused. Each message names the preset or the file, and the key.


@pytest.mark.parametrize(
    "key", ["colour", "model.model_encoder.colour", "training.Steps"]
)
def test_unknown_key(key):
    assert refusal(f"{key}=1").startswith(f"preset qanet-paper: unknown key {key};")


def test_a_key_below_a_single_value_is_unknown():
    assert "training.steps.more" in refusal("training.steps.more=1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.steps", "many"),
        ("training.steps", "1.5"),
        ("training.steps", "[1]"),
        ("training.steps", "null"),
        ("training.learning_rate", "fast"),
        ("training.precision", "1"),
        ("training.warmup", "exponential"),
        ("model.final_norm", "perhaps"),
        ("data.train", "5"),
        ("data.train", "null"),
        ("data.buckets", "400"),
        ("data.buckets", "{a: 400}"),
        ("vocabulary.vectors", "1"),
        ("model.model_encoder", "3"),
        ("model", "3"),
        ("training", "null"),
    ],
)
def test_wrong_type(key, value):
    message = refusal(f"{key}={value}")
    assert message.startswith(f"preset qanet-paper: {key}")


@pytest.mark.parametrize(
    "key",
    ["training.steps", "training.learning_rate", "model.heads", "model.survival"],
)
def test_true_is_not_a_number(key):
    assert refusal(f"{key}=true").startswith(f"preset qanet-paper: {key}")


@pytest.mark.parametrize(
    ("key", "value"),
    [("data.buckets", "[true, 400]"), ("data.mix", "{original: true}")],
)
def test_nor_is_it_within_a_list_or_a_mapping(key, value):
    assert "give a number" in refusal(f"{key}={value}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.dropout", "1.5"),
        ("model.dropout", "1"),
        ("model.word_dropout", "-0.1"),
        ("model.survival", "0"),
        ("model.survival", "1.1"),
        ("model.passes", "2"),
        ("model.heads", "-1"),
        ("model.character_filters", "-1"),
        ("model.embedding_encoder.kernel_size", "0"),
        ("data.context_limit", "0"),
        ("data.answer_limit", "0"),
        ("data.mix.original", "0"),
        ("data.mix.original", "-1"),
        ("vocabulary.characters_per_word", "0"),
        ("vocabulary.extra_vectors", "-1"),
        ("training.steps", "0"),
        ("training.batch_size", "-32"),
        ("training.learning_rate", "0"),
        ("training.learning_rate", ".nan"),
        ("training.learning_rate", ".inf"),
        ("training.beta_1", "1"),
        ("training.ema_decay", "1"),
        ("training.clip_norm", "0"),
        ("training.seed", "-1"),
        ("training.seed", "4294967296"),
        # What would never end, or fill the memory.
        ("training.batch_size", "99999999999999999999999"),
        ("training.evaluation_batch_size", "10001"),
        ("training.steps", "100000001"),
        ("training.evaluate_every", "100000001"),
        ("data.context_limit", "10001"),
        ("model.width", "10001"),
        ("model.embedding_encoder.blocks", "101"),
        ("model.model_encoder.convolutions", "101"),
        ("model.passes", "101"),
        ("vocabulary.extra_vectors", "100000001"),
    ],
)
def test_impossible_value(key, value):
    message = refusal(f"{key}={value}")
    assert message.startswith(f"preset qanet-paper: {key}=")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.heads=3"], "heads=3 does not divide width=128"),
        (["model.width=100"], "heads=8 does not divide width=100"),
        (["model.width=7", "model.heads=1"], "width must be even"),
        (["data.context_limit=300"], "the last bucket must equal context_limit"),
        (["data.buckets=[160, 240]"], "the last bucket must equal context_limit"),
        (["data.buckets=[]"], "buckets must rise strictly, and there must be one"),
        (["data.buckets=[240, 160, 400]"], "buckets must rise strictly"),
        (["data.buckets=[160, 400, 400]"], "buckets must rise strictly"),
        (["data.augmented.fr=fr.json"], "mix lacks fr"),
        (["data.mix.fr=1"], "augmented lacks fr"),
        (["data.augmented.original=fr.json"], "augmented: original is something else"),
        (["data.augmented.train=fr.json"], "augmented: train is something else"),
        (["data.augmented.digest=fr.json"], "augmented: digest is something else"),
        (
            ["data.augmented.dev=fr.json", "data.mix={original: 1, dev: 1}"],
            "augmented: dev is something else",
        ),
        (
            ["data.augmented.fr=fr.json", "data.mix={original: 1, fr: 1001}"],
            "mix: a weight is over 1,000 times that of original",
        ),
        (["training.temperature=101"], "training.temperature=101"),
        (
            ["training.steps=100000", "training.batch_size=1001"],
            "steps=100000 times batch_size=1001 is more than 100,000,000 questions",
        ),
        # A window of the context could not hold the answer.
        (["data.answer_limit=401"], "answer_limit"),
    ],
)
def test_values_that_do_not_fit_together(overrides, message):
    assert message in refusal(*overrides)


def test_a_model_that_answers_with_a_word_takes_no_longer_answers():
    with pytest.raises(UserError, match=r"data\.answer_limit=2 is more than 1, the"):
        load_preset("aoa-cloze", ["data.answer_limit=2"])
    with pytest.raises(UserError, match=r"data\.no_answer: aoa-cloze gives a distrib"):
        load_preset("aoa-cloze", ["data.no_answer=true"])


@pytest.mark.parametrize("heads", [1, 2, 4, 64, 128])
def test_heads_that_divide_the_width(heads):
    assert load_preset("qanet", [f"model.heads={heads}"]).model.heads == heads


def test_a_mix_of_training_sets():
    files = ["data.augmented.fr=fr.json", "data.augmented.de=de.json"]
    mix = "data.mix={original: 3, fr: 1, de: 1}"
    config = load_preset("qanet", [*files, mix]).data
    assert config.augmented == {"fr": "fr.json", "de": "de.json"}
    assert config.mix == {"original": 3, "fr": 1, "de": 1}
    # One weight at a time, too.
    single = ["data.mix.fr=1", "data.mix.de=1", "data.mix.original=3"]
    assert load_preset("qanet", [*files, *single]).data == config
    # A packed data set brings its own names.
    packed = load_preset("qanet", ["data.packed=squad.npz", mix]).data
    assert packed.mix == config.mix


def test_a_packed_data_set_by_its_former_name():
    former = load_preset("qanet", ["data.features=squad.npz"]).data
    assert former == load_preset("qanet", ["data.packed=squad.npz"]).data
    for stored in ({"features": "squad.npz"}, {"features": None}):
        assert Config.model_validate({"data": stored}).data.packed == stored["features"]


def test_a_mix_without_the_original():
    values = {"data": {"mix": {"fr": 1}, "augmented": {"fr": "fr.json"}}}
    with pytest.raises(ValidationError, match="no weight for original"):
        Config.model_validate(values)


def test_a_missing_value_is_named():
    message = refusal("model.model_encoder={blocks: 1, kernel_size: 5}")
    assert message.endswith("model.model_encoder.convolutions is missing; add it")


def test_a_configuration_does_not_change():
    config = Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.training.steps = 1


# The file in a run directory.


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff\xfe",
        b"\x00",
        b"",
        b"[]",
        b"3",
        b"- a",
        b'{"training": {"steps": 0}}',
        b'{"colour": 1}',
        b'{"training": null}',
        b'{"training": {"steps": 2024-13-01}}',
        b'{"data": &data {"train": a}, "vocabulary": *data}',
    ],
)
def test_a_damaged_file_is_one_line_with_its_name(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        load_settings(path, Config)
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).isprintable()


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"config\.json: cannot be read"):
        load_settings(tmp_path / "config.json", Config)
    with pytest.raises(UserError, match="cannot be read"):
        load_settings(tmp_path, Config)


@pytest.mark.parametrize("text", ['"a\\0"', '"\\udcff"', '{a: ["\\0"]}', '{"\\0": a}'])
def test_a_text_that_no_file_could_hold(text):
    message = refusal(f"data.augmented={text}")
    assert "data.augmented" in message
    assert "a NUL or half a surrogate pair" in message


def test_values_that_are_nested_without_end():
    nested = "[" * 30 + "]" * 30
    assert "data.augmented is nested too deeply" in refusal(f"data.augmented={nested}")
    assert "is not a value" in refusal("data.augmented=&a [*a]")


def test_a_long_value_is_not_shown_whole():
    assert len(refusal(f"training.steps={'long' * 1000}")) < 400


@pytest.mark.parametrize("key", ["training", "model"])
def test_a_key_of_several_lines(key):
    assert "a b" in refusal(f"{key}={{'a\\nb': 1}}".replace("'", '"'))
