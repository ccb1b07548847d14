"""Tests of qanet.run_directory, as readers have it."""

import json
import os

import pytest

from qanet.config import Config
from qanet.errors import UserError
from qanet.run import Run


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_two_trainings_in_one_directory_are_kept_apart(tmp_path):
    one, other = Run(tmp_path / "run"), Run(tmp_path / "run")
    with one.held():
        with pytest.raises(UserError, match="run: another process"), other.held():
            pass
        # Workers that leave writing to the first one read what it reads.
        with other.held(writes=False):
            pass
        one.metrics_path.touch()
    with other.held():
        pass
    assert one.metrics_path.exists()


def test_of_a_training_that_stored_nothing_no_directory_is_left(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    for directory in (tmp_path / "runs" / "new", there):
        with pytest.raises(UserError, match="a mistake"), Run(directory).held():
            raise UserError("a mistake")
    assert [*tmp_path.iterdir()] == [there]


def test_parts_of_files_are_removed_but_those_of_an_evaluation(tmp_path):
    names = ("", "checkpoints", "vocabulary", "vocabulary/contextual", "evaluation")
    names = (*names, "evaluation/dev")
    parts = [tmp_path / name / ".x.json.0123abcd.tmp" for name in names]
    for part in parts:
        part.parent.mkdir(exist_ok=True)
        part.touch()
    Run(tmp_path).remove_parts()
    Run(tmp_path / "absent").remove_parts()
    # Another process may be writing there.
    assert [part.exists() for part in parts] == [False] * 5 + [True]


def test_goes_on_with_the_data_it_began_with_alone(tmp_path):
    run = Run(tmp_path)
    digests = {"digest": "one", "dev_digest": "1"}
    run.check_data(digests)  # It ended before anything was stored.
    saved = []
    counts = {"train": {"questions": 3}}
    run.begin(Config(), lambda: saved.append(1), False, digests, counts)
    assert json.loads(run.data_path.read_bytes()) == digests | counts
    run.check_data(digests)
    run.begin(Config(), lambda: saved.append(2), True, digests)
    assert saved == [1]
    with pytest.raises(UserError, match="began with other training data") as caught:
        run.check_data(digests | {"digest": "other"})
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(UserError, match="began with another dev set"):
        run.check_data(digests | {"dev_digest": "2"})
    # Former versions told no digest of dev, or none at all.
    run.data_path.write_text('{"digest": "one"}')
    run.check_data(digests)
    run.data_path.write_text('{"train": {"questions": 3}}')
    run.check_data(digests)


def test_checkpoints_without_a_configuration_are_not_taken_over(tmp_path):
    run = Run(tmp_path)
    run.check_free()
    run.checkpoint_directory.mkdir()
    run.check_free()
    (run.checkpoint_directory / "step-00000004.npz").touch()
    with pytest.raises(UserError, match="checkpoints of a run without a configuration"):
        run.begin(Config(), lambda: None, False, {})
    assert not run.config_path.exists()


@pytest.mark.parametrize("name", ["metrics.json", "weights.npz", "reader.json"])
def test_scores_and_weights_of_others_are_not_taken_over(tmp_path, name):
    """Scores would tell a training that was stopped that it had finished."""
    (tmp_path / name).touch()
    with pytest.raises(UserError, match=f"holds {name}"):
        Run(tmp_path).check_free()


def test_texts_are_told_from_others_and_from_other_shares_of_batches(tmp_path):
    run, text = Run(tmp_path / "run"), tmp_path / "text"
    text.write_text("one")
    one, two, four = (run.digest_of_texts([text], False, n) for n in (1, 2, 4))
    assert len({each["digest"] for each in (one, two, four)}) == 3
    run.directory.mkdir()
    run.begin(Config(), lambda: None, False, two)
    assert run.digest_of_texts([text], True, 2) == two
    with pytest.raises(UserError, match="another number of devices"):
        run.digest_of_texts([text], True, 4)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"digest"', b"\xff"])
def test_damaged_account_of_the_data(content, tmp_path):
    run = Run(tmp_path)
    run.data_path.write_bytes(content)
    with pytest.raises(UserError, match=r"data\.json: damaged; remove it"):
        run.check_data({"digest": "one"})
