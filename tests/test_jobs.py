"""Tests of jobs/, as far as they go without a cloud."""

import configparser
import os
import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from qanet.config import load_preset

ROOT = Path(__file__).parents[1]
JOBS = ROOT / "jobs"
# What a training from a packed data set does without.
NOT_NEEDED = (
    *("tensorflow", "tensorflow-datasets", "importlib_resources"),
    "onnxruntime",
)


def manifest_script():
    job = yaml.safe_load((JOBS / "tpu-job.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (script,) = container["args"]
    return script


def scripts():
    return {
        "tpu_vm.sh": (JOBS / "tpu_vm.sh").read_text(encoding="utf-8"),
        "tpu-job.yaml": manifest_script(),
    }


@pytest.mark.parametrize("name", scripts())
def test_scripts_are_valid_for_the_shell(name):
    shell = subprocess.run(
        ["bash", "-n"], input=scripts()[name], text=True, capture_output=True
    )
    assert shell.returncode == 0, shell.stderr


@pytest.mark.parametrize("name", scripts())
def test_the_training_that_a_job_starts_is_a_valid_one(name):
    commands = scripts()[name].replace("\\\n", " ").splitlines()
    starts = [shlex.split(line) for line in commands if "train.py --preset" in line]
    (command,) = starts
    options = command[command.index("train.py") + 1 :]
    values = dict(zip(options[::2], options[1::2], strict=True))
    assert values.keys() == {"--preset", "--packed", "--output", "--set"}
    settings = [value for option, value in pairwise(options) if option == "--set"]
    config = load_preset(values["--preset"], settings)
    assert config.distribution.strategy == "mirrored"
    # Four chips share a batch.
    assert config.training.batch_size % 4 == 0


@pytest.mark.parametrize("name", ["Containerfile", "tpu_vm.sh"])
def test_jobs_install_what_a_training_without_tensorflow_needs(name):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    required = {
        re.match(r"[\w-]+", line)[0]
        for line in setup["options"]["install_requires"].splitlines()
        if line and not line.startswith("#")
    }
    text = (JOBS / name).read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if "--constraint" in line]
    installed = line.partition("constraints.txt ")[2].split()
    names = {re.match(r"[\w-]+", word.strip("\"'"))[0] for word in installed}
    assert names - {"jax"} == required - set(NOT_NEEDED)


# The bucket refuses the first copy. Waiting takes no time, and a training goes on until
# the third copy has been tried.
STUBS = """
gcloud() {
  [[ $* == *"runs/qanet gs://"* ]] || return 0
  echo saved >> copies
  [ "$(wc -l < copies)" -gt 1 ]
}
sleep() { true; }
python3() {
  case "$*" in
    *venv*) mkdir -p environment/bin && touch environment/bin/activate ;;
    *train.py*) for _ in {1..1000}; do [ "$(cat copies | wc -l)" -ge 3 ] && break; done
  esac
}
touch copies
"""


def test_a_copy_that_fails_is_not_the_last_one(tmp_path):
    script = (JOBS / "tpu_vm.sh").read_text(encoding="utf-8")
    _, _, on_tpu = script.partition("<<'ON_TPU'\n")
    on_tpu, _, _ = on_tpu.partition("\nON_TPU\n")
    (tmp_path / "job").mkdir()

    shell = subprocess.run(
        ["bash", "-c", STUBS.replace("copies", "$HOME/copies") + on_tpu],
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path), "BUCKET": "gs://bucket"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert shell.returncode == 0, shell.stderr
    # One more at the end.
    assert len((tmp_path / "copies").read_text().splitlines()) >= 4


def test_a_mistake_is_not_tried_again_by_a_cluster():
    job = yaml.safe_load((JOBS / "tpu-job.yaml").read_text(encoding="utf-8"))
    mistake, taken_away = job["spec"]["podFailurePolicy"]["rules"]
    assert mistake["action"] == "FailJob"
    # The exit code of qanet.errors.
    assert mistake["onExitCodes"]["values"] == [2]
    assert taken_away["action"] == "Ignore"
    # Without it Kubernetes refuses the policy.
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
