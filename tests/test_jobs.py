"""Tests of jobs/, as far as they go without a cloud."""

import configparser
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
# What a training from a features file does without.
NOT_NEEDED = ("tensorflow", "tensorflow-datasets", "importlib_resources")


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
    assert values.keys() == {"--preset", "--features", "--output", "--set"}
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
    (line,) = [line for line in text.splitlines() if "pip install" in line]
    installed = line[line.index("pip install") :].split()[2:]
    names = {re.match(r"[\w-]+", word.strip("\"'"))[0] for word in installed}
    names = {name for name in names if not name.startswith("-")}
    assert names - {"jax"} == required - set(NOT_NEEDED)
