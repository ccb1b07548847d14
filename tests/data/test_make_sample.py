import calendar
import importlib.util
import json
import re
from pathlib import Path

import pytest

from qanet.datasets.features import build_features
from qanet.datasets.squad import read_squad

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"
SPLITS = ("train", "dev")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location(
        "make_sample", ROOT / "data" / "make_sample.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sample():
    return {split: read_squad(SAMPLE / f"{split}.json") for split in SPLITS}


def test_the_generator_reproduces_the_committed_files(generator, tmp_path):
    generator.main(["--output", str(tmp_path)])
    for split in SPLITS:
        made = (tmp_path / f"{split}.json").read_bytes()
        assert made == (SAMPLE / f"{split}.json").read_bytes()


def test_another_seed_gives_other_files(generator, tmp_path):
    generator.main(["--output", str(tmp_path), "--seed", "1"])
    made = (tmp_path / "dev.json").read_bytes()
    assert made != (SAMPLE / "dev.json").read_bytes()
    assert read_squad(tmp_path / "dev.json").counts["offsets_repaired"] == 0


def test_size_is_at_most_one_megabyte():
    assert sum(file.stat().st_size for file in SAMPLE.glob("*.json")) <= 1_000_000


def test_questions_and_answers_are_sound(sample):
    for split in SPLITS:
        counts = sample[split].counts
        assert counts["offsets_repaired"] == counts["answers_not_found"] == 0
        assert counts["impossible"] == 0
        assert build_features(sample[split].examples).snapped == 0
        for example in sample[split].examples:
            (answer,) = example.answers
            assert example.context.count(answer.text) == 1
    assert sample["train"].counts["questions"] >= 2000
    assert sample["dev"].counts["questions"] >= 300


def names(examples):
    """Capitalised words within sentences, but months and kinds: the made-up names."""
    found = set()
    for example in examples:
        for text in (example.context, example.question):
            found.update(re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))
    return found - set(calendar.month_name) - {"Lake", "Mount"}


def words(examples):
    texts = [f"{example.context} {example.question}" for example in examples]
    return set(re.findall(r"\w+", " ".join(texts)))


def test_no_entity_of_dev_occurs_in_train(sample):
    dev = names(sample["dev"].examples)
    assert len(dev) > 200
    assert not dev & words(sample["train"].examples)


def test_the_question_decides_and_not_the_position(sample):
    """The place of the answer among the sentences is spread over the passage."""
    for split in SPLITS:
        examples = sample[split].examples
        first_half = sum(
            2 * example.answers[0].start < len(example.context) for example in examples
        )
        assert 0.35 < first_half / len(examples) < 0.65
        # Questions of one passage have different answers.
        answers = {}
        for example in examples:
            answers.setdefault(example.context, []).append(example.answers[0].text)
        assert all(len(set(texts)) == len(texts) for texts in answers.values())
        assert min(map(len, answers.values())) >= 3


def test_every_passage_has_several_things_with_the_same_facts(sample):
    """Years show it best: no question for a year has only one year to choose from."""
    for split in SPLITS:
        asked = [
            example
            for example in sample[split].examples
            if re.fullmatch(r"1\d{3}", example.answers[0].text)
        ]
        assert len(asked) > 40
        for example in asked:
            assert len(re.findall(r"\b1\d{3}\b", example.context)) >= 3


def test_files_are_squad_1_1():
    for split in SPLITS:
        document = json.loads((SAMPLE / f"{split}.json").read_text(encoding="utf-8"))
        assert document["version"] == "1.1"
