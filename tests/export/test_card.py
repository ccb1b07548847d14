"""Tests of qanet.export.card."""

import json
import re
import shutil

import pytest
import yaml
from tiny_runs import ROOT

from qanet.errors import UserError
from qanet.export.card import Facts, model_card, read_facts
from qanet.run import Run

FACTS = """
name: "Bo's reader"
licence: CC BY-SA 4.0
data: "homes | towns,\\n  written by hand"
vectors: none
command: python train.py --preset qanet-tiny
hardware: 2 cores
use: Questions on homes.
weaknesses: [Reads no poems., It guesses.]
scores:
  other homes: {exact_match: 12.34, f1: 56.78}
"""


@pytest.fixture
def facts(tmp_path):
    path = tmp_path / "card.yaml"
    path.write_text(FACTS, "utf-8")
    return path


@pytest.fixture
def copy(trained, tmp_path):
    return Run(shutil.copytree(trained.directory, tmp_path / "run"))


def rows(card):
    """The rows of all tables by their first cell."""
    lines = [line for line in card.splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_a_card_tells_what_the_run_knows(trained):
    run = Run(trained.directory)
    text = model_card(run, Facts())
    card = rows(text)
    assert card["model"] == ["qanet"]
    assert card["trained on"] == ["train.json"]
    assert card["word vectors"] == ["its own"]
    assert card["seed"] == ["42"]
    assert card["no answer"] == ["never given"]
    assert re.fullmatch(r"6 steps of 4 questions in \d+\.\d minutes", *card["training"])
    metrics = json.loads(run.metrics_path.read_bytes())
    assert card["dev: dev.json, 10 questions, before the export"] == [
        f"{metrics['exact_match']:.1f}",
        f"{metrics['f1']:.1f}",
    ]
    for unknown in ("licence", "data", "hardware", "their origin"):
        assert f"| {unknown} | not stated |" in text


def test_a_card_of_packed_data_does_not_know_their_vectors(copy):
    config = copy.load_config()
    data = config.data.model_copy(update={"packed": "squad.npz"})
    copy.save_config(config.model_copy(update={"data": data}))
    card = rows(model_card(copy, Facts()))
    assert card["trained on"] == ["squad.npz"]
    assert card["word vectors"] == ["as packed"]


def test_a_card_tells_the_facts(trained, facts):
    card = model_card(Run(trained.directory), read_facts(facts))
    assert card.startswith("# Bo's reader\n")
    # A line break or a bar of a text does not end a cell.
    assert r"| data | homes \| towns, written by hand |" in card
    assert rows(card)["licence"] == ["CC BY-SA 4.0"]
    assert rows(card)["other homes"] == ["12.3", "56.8"]
    assert "\n- Reads no poems.\n- It guesses.\n" in card
    assert "\n\n```\npython train.py --preset qanet-tiny\n```\n" in card


def test_the_facts_of_several_runs_come_before_those_of_the_last(trained):
    facts = Facts(training="two runs, 3 days", seed="1 and 42")
    card = rows(model_card(Run(trained.directory), facts))
    assert card["training"] == ["two runs, 3 days"]
    assert card["seed"] == ["1 and 42"]


def test_a_card_holds_the_configuration_without_paths(trained, tiny_files):
    card = model_card(Run(trained.directory), Facts())
    assert str(tiny_files.train.parent) not in card
    configuration = yaml.safe_load(card.split("```yaml\n")[1].removesuffix("```\n"))
    assert configuration["data"]["dev"] == "dev.json"
    assert configuration["training"]["learning_rate"] == 0.01


def test_a_run_that_is_not_finished_has_a_card(copy):
    copy.metrics_path.unlink()
    copy.history_path.unlink()
    card = rows(model_card(copy, Facts()))
    assert card["training"] == ["not stated"]
    assert not [name for name in card if name.startswith("dev:")]


def test_no_answer_is_told_with_its_threshold(copy):
    config = copy.load_config()
    data = config.data.model_copy(update={"no_answer": True})
    copy.save_config(config.model_copy(update={"data": data}))
    copy.save_threshold(0.25)
    card = rows(model_card(copy, Facts()))
    assert card["no answer"] == ["given where its probability is above 0.25"]


@pytest.mark.parametrize("content", ["", "step\n2\n", "step,seconds\n2,x\n"])
def test_a_damaged_history_is_told(copy, content):
    copy.history_path.write_text(content)
    with pytest.raises(UserError, match=r"history\.csv: damaged; remove it"):
        model_card(copy, Facts())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("colour: red", "unknown key colour; see the list of keys in docs/export.md"),
        ("scores: {x: {exact_match: 101, f1: 1}}", r"scores\.x\.exact_match=101"),
        ("scores: {x: {f1: 1}}", r"scores\.x\.exact_match is missing"),
        ("weaknesses: English only", "weaknesses=.English only.: must be a list"),
        ("", "the configuration=None: must have keys"),
        ("{", "not valid YAML or JSON"),
    ],
)
def test_wrong_facts_are_refused(tmp_path, content, message):
    path = tmp_path / "card.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        read_facts(path)
    assert str(caught.value).startswith(str(path))


def test_absent_facts_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"card\.yaml: cannot be read"):
        read_facts(tmp_path / "card.yaml")


def test_the_documented_facts_are_all_there_are(tmp_path):
    page = (ROOT / "docs" / "export.md").read_text("utf-8")
    path = tmp_path / "card.yaml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0], "utf-8")
    assert read_facts(path).model_fields_set == set(Facts.model_fields)
