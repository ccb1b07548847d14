"""Tests of qanet.commands.cloze."""

import pytest

from qanet import cli
from qanet.datasets.squad import read_squad


def test_a_data_set_of_cloze_questions(tmp_path, capsys):
    output = tmp_path / "cloze.json"
    arguments = ["cloze", "--input", "sample", "--split", "dev", "--output"]
    cli.main([*arguments, str(output)])
    examples = read_squad(output).examples
    told = capsys.readouterr().out
    assert told.startswith(f"{output}: {len(examples)} questions; the commonest")
    assert all("XXXXX" in example.question for example in examples)
    again, other = tmp_path / "again.json", tmp_path / "other.json"
    cli.main([*arguments, str(again)])
    assert again.read_bytes() == output.read_bytes()
    cli.main([*arguments, str(other), "--seed", "7"])
    assert other.read_bytes() != output.read_bytes()


def test_sources_by_what_they_are(tmp_path, capsys, monkeypatch):
    (tmp_path / "cnn").mkdir()
    (tmp_path / "cnn" / "a.question").write_text(
        "x\n\n@entity1 met @entity2\n\n@placeholder met @entity2\n\n@entity1\n"
    )
    lines = [f"{i} Anna saw Bo ." for i in range(1, 21)]
    lines.append("21 XXXXX laughed .\tBo\t\tAnna|Bo")
    (tmp_path / "books.txt").write_text("\n".join(lines))
    # A data set's name goes before a directory's.
    (tmp_path / "sample").mkdir()
    monkeypatch.chdir(tmp_path)
    cli.main(["cloze", "--input", "sample", "--output", "of-sample.json"])
    for source in ("cnn", "books.txt"):
        output = tmp_path / f"{source}.json"
        cli.main(["cloze", "--input", str(tmp_path / source), "--output", str(output)])
        assert len(read_squad(output).examples) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "missing.json"], "missing.json: cannot be read"),
        (["--input", "sample", "--seed", "-1"], "--seed -1: must not be below 0"),
        (["--input", "."], "holds no .question files"),
        (["--input", ".", "--seed", "1"], "--seed: "),
        (["--input", "a.json", "--split", "dev"], "--split: changes nothing"),
    ],
)
def test_mistakes_are_told_in_a_line(refused, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(cli.main, "cloze", *options, "--output", "cloze.json")
    assert not (tmp_path / "cloze.json").exists()


def test_a_name_that_is_no_text_is_not_taken_for_an_id(refused, tmp_path):
    (tmp_path / "a\udcff.question").write_text("src")
    line = refused(cli.main, "cloze", "--input", tmp_path, "--output", tmp_path / "c")
    assert r"a\udcff.question': has a name that is no text; rename it" in line
    assert not (tmp_path / "c").exists()


def test_an_output_that_cannot_be_written(refused, tmp_path):
    options = ["--input", "sample", "--output", tmp_path]
    assert "is a directory" in refused(cli.main, "cloze", *options)
