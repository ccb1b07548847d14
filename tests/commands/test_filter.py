"""Tests of qanet.commands.filter."""

from dataclasses import replace

import pytest

from qanet import cli
from qanet.datasets.squad import Span, read_squad, write_squad
from qanet.ensemble import Ensemble
from qanet.evaluation.metrics import f1_score
from qanet.reader import Reader


def is_right(answer, example):
    """Of an answer without a letter, such as a full stop, the F1 is 0."""
    gold = example.answers[0].text
    return answer.text == gold or f1_score(answer.text, [gold]) == 1


def test_what_the_reader_answers_rightly_is_kept(
    loaded, trained_reader, tiny_files, tmp_path, capsys
):
    examples = read_squad(tiny_files.dev).examples
    pairs = [(example.question, example.context) for example in examples]
    answers = [ranked[0] for ranked in trained_reader.answer_many(pairs)]
    # Every other gold answer is what the reader says.
    for i in range(0, len(examples), 2):
        gold = Span(answers[i].text, answers[i].start)
        examples[i] = replace(examples[i], answers=(gold,))
    data, output = tmp_path / "data.json", tmp_path / "kept.json"
    write_squad(data, examples)

    arguments = ["filter", "--model", "run", "--input", str(data), "--least-f1", "1"]
    cli.main([*arguments, "--output", str(output)])

    right = [
        example.id
        for example, answer in zip(examples, answers, strict=True)
        if is_right(answer, example)
    ]
    assert 0 < len(right) < 10
    assert [example.id for example in read_squad(output).examples] == right
    assert capsys.readouterr().out == (
        f"{output}: {len(right)} of 10 questions kept ({len(right) / 10:.1%})\n"
    )


def test_half_of_an_answer_is_enough_by_default(
    loaded, tiny_files, tmp_path, monkeypatch
):
    least = []

    def answered(reader, examples, least_f1):
        least.append(least_f1)
        return examples

    monkeypatch.setattr("qanet.augmentation.filtering.answered", answered)
    arguments = ["filter", "--model", "run", "--input", str(tiny_files.dev)]
    cli.main([*arguments, "--output", str(tmp_path / "kept.json")])
    assert least == [0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--least-f1", "0"], "--least-f1 0: must be above 0"),
        (["--least-f1", "1.5"], "--least-f1 1.5: must be above 0 and at most 1"),
        (["--least-f1", "nan"], "--least-f1 nan: must be above 0"),
        (["--input", "missing.json"], "missing.json: cannot be read"),
        (["--output", "{dev}"], "is given for something else"),
        (["--model", "missing"], "missing: not a run directory"),
    ],
)
def test_mistakes_are_told_before_anything_is_read(
    refused, loaded, tiny_files, monkeypatch, options, message
):
    monkeypatch.setattr(Reader, "load", None)
    arguments = ["filter", "--model", "run", "--input", tiny_files.dev]
    options = [option.format(dev=tiny_files.dev) for option in options]
    line = refused(cli.main, *arguments, "--output", "kept.json", *options)
    assert message in line


def test_several_readers_filter_as_one(two_readers, tiny_files, tmp_path):
    examples = read_squad(tiny_files.dev).examples
    pairs = [(example.question, example.context) for example in examples]
    both, alone = (
        [ranked[0] for ranked in reader.answer_many(pairs)]
        for reader in (Ensemble(two_readers), two_readers[0])
    )
    # Every other gold answer is what both of them say together.
    for i in range(0, len(examples), 2):
        gold = Span(both[i].text, both[i].start)
        examples[i] = replace(examples[i], answers=(gold,))
    data, output = tmp_path / "data.json", tmp_path / "kept.json"
    write_squad(data, examples)

    arguments = ["filter", "--model", "run", "other", "--least-f1", "1"]
    cli.main([*arguments, "--input", str(data), "--output", str(output)])

    of_both, of_first = (
        [
            example.id
            for example, answer in zip(examples, answers, strict=True)
            if is_right(answer, example)
        ]
        for answers in (both, alone)
    )
    assert [example.id for example in read_squad(output).examples] == of_both
    assert of_both != of_first


def test_nothing_is_written_where_nothing_is_kept(
    refused, loaded, tiny_files, tmp_path, monkeypatch
):
    monkeypatch.setattr("qanet.augmentation.filtering.agrees", lambda *_: False)
    output = tmp_path / "kept.json"
    arguments = ["filter", "--model", "run", "--input", tiny_files.dev, "--quiet"]
    line = refused(cli.main, *arguments, "--output", output)
    assert "finds the answer to none of its 10 questions" in line
    assert not output.exists()
