"""Tests of jobs/, as far as they go without a cloud."""

import configparser
import json
import os
import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from qanet import cli
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


def server_image():
    """The instructions of the server's image: their names and arguments."""
    text = (JOBS / "server.Containerfile").read_text(encoding="utf-8")
    lines = text.replace("\\\n", " ").splitlines()
    return [
        line.split(maxsplit=1) for line in lines if line and not line.startswith("#")
    ]


def test_the_server_s_image_copies_what_exists_and_what_setup_needs():
    copied = [
        source
        for name, arguments in server_image()
        if name == "COPY"
        for source in arguments.split()[:-1]
    ]
    for source in copied:
        assert (ROOT / source).exists(), source
    # The build reads the settings and what these name.
    assert {"pyproject.toml", "setup.cfg", "README.md", "LICENSE", "qanet"} <= {*copied}


def test_the_server_s_image_runs_a_command_that_there_is():
    instructions = dict(server_image())
    _, *command = json.loads(instructions["ENTRYPOINT"])
    options = cli.make_parser().parse_args(command[command.index("serve") :])
    assert options.host == "0.0.0.0"
    assert str(options.port) == instructions["EXPOSE"]


def test_the_server_s_image_has_an_ordinary_user_and_asks_how_it_is():
    instructions = server_image()
    names = [name for name, _ in instructions]
    # The last of them counts, and after it nothing is installed.
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")
    assert dict(instructions)["USER"] != "root"
    check = dict(instructions)["HEALTHCHECK"]
    _, _, program = json.loads(check.partition("CMD ")[2])
    compile(program, "HEALTHCHECK", "exec")
    port = dict(instructions)["EXPOSE"]
    assert f":{port}/healthz" in program


@pytest.fixture
def on_tpu(tmp_path):
    """Runs what the script does on a TPU, with programs of our own."""
    script = (JOBS / "tpu_vm.sh").read_text(encoding="utf-8")
    _, _, commands = script.partition("<<'ON_TPU'\n")
    commands, _, _ = commands.partition("\nON_TPU\n")
    (tmp_path / "job").mkdir()

    def run(stubs):
        return subprocess.run(
            ["bash", "-c", stubs + commands],
            cwd=tmp_path,
            env=os.environ | {"HOME": str(tmp_path), "BUCKET": "gs://bucket"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


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


def test_a_copy_that_fails_is_not_the_last_one(on_tpu, tmp_path):
    shell = on_tpu(STUBS.replace("copies", "$HOME/copies"))

    assert shell.returncode == 0, shell.stderr
    # One more at the end.
    assert len((tmp_path / "copies").read_text().splitlines()) >= 4


# Says what is done, and fails at some of it. A process of its own has no uv.
FAILING = """
gcloud() {
  echo "gcloud $*" >> "$HOME/done"
  [[ $* != *" ls "* ]] || echo gs://bucket/runs/qanet/config.json
  [[ $* != *"FAILING"* ]]
}
sleep() { true; }
python3() {
  if [[ $* == *venv* ]]; then
    mkdir -p environment/bin
    echo 'python3() { echo "python3 $*" >> "$HOME/done"; [[ $* != *uv* ]]; }' \\
      > environment/bin/activate
  fi
}
"""


def test_a_run_in_another_directory_of_the_bucket_is_not_taken_for_this_one(
    on_tpu, tmp_path
):
    stubs = FAILING.replace("gs://bucket/runs/", "gs://bucket/old/runs/")
    shell = on_tpu(stubs.replace("FAILING", "nothing"))
    assert shell.returncode == 0, shell.stderr
    done = (tmp_path / "done").read_text()
    assert "gs://bucket/runs/qanet runs/qanet" not in done
    assert "python3 train.py --preset qanet" in done


@pytest.mark.parametrize(
    ("says", "done"),
    [
        ("NOT_FOUND: no such resource", ["describe", "create", "delete"]),
        # One that is there may be at work for somebody.
        ("the network is down", ["describe"]),
    ],
)
def test_a_machine_is_deleted_although_its_making_failed(tmp_path, says, done):
    script = (JOBS / "tpu_vm.sh").read_text(encoding="utf-8")
    begin = script.index("NAME=${NAME"), script.index("\ntar -czf")
    stub = (
        f'gcloud() {{ echo "$*" >> "$DONE"; echo "{says}"; [[ $* == *delete* ]]; }}\n'
    )
    shell = subprocess.run(
        ["bash", "-c", f"set -e\n{stub}{script[slice(*begin)]}"],
        env=os.environ | {"DONE": str(tmp_path / "done")},
        timeout=60,
    )
    assert shell.returncode != 0
    lines = (tmp_path / "done").read_text().splitlines()
    assert [line.split()[3] for line in lines] == done


def test_a_saved_run_that_cannot_be_fetched_is_not_overwritten(on_tpu, tmp_path):
    shell = on_tpu(FAILING.replace("FAILING", "rsync"))
    assert shell.returncode != 0
    done = (tmp_path / "done").read_text()
    assert "rsync --recursive gs://bucket/runs/qanet runs/qanet" in done
    assert "python3 train.py" not in done
    assert "runs/qanet gs://" not in done


def test_former_checkpoints_go_only_when_the_last_ones_are_there(on_tpu, tmp_path):
    shell = on_tpu(FAILING.replace("FAILING", "nothing"))
    assert shell.returncode == 0, shell.stderr
    done = (tmp_path / "done").read_text().splitlines()
    saved = [line for line in done if "runs/qanet gs://" in line]
    assert ["--delete-unmatched" in line for line in saved[-2:]] == [False, True]
    assert not any("--delete-unmatched" in line for line in saved[:-1])
    assert all(r"--exclude .*\.tmp$" in line for line in saved)

    (tmp_path / "done").unlink()
    on_tpu(FAILING.replace("FAILING", "runs/qanet gs://"))
    assert "--delete-unmatched" not in (tmp_path / "done").read_text()


def test_the_configuration_is_copied_when_the_rest_is_there(on_tpu, tmp_path):
    # Nothing is saved meanwhile, only at the end.
    stubs = FAILING.replace("FAILING", "nothing").replace("{ true; }", "{ false; }")
    shell = on_tpu(
        "mkdir -p job/runs/qanet && touch job/runs/qanet/config.json\n" + stubs
    )
    assert shell.returncode == 0, shell.stderr
    saved = [
        line
        for line in (tmp_path / "done").read_text().splitlines()
        if "gs://bucket/runs/qanet" in line.split()[-1]
    ]
    for rest, configuration in pairwise(saved):
        if "config.json gs" not in rest:
            assert "rsync" in rest
            assert "|^config" in rest
            assert "cp runs/qanet/config.json" in configuration
    assert "cp runs/qanet/config.json" in saved[-1]


def test_a_run_that_cannot_be_saved_is_told(on_tpu, tmp_path):
    shell = on_tpu(FAILING.replace("FAILING", "runs/qanet gs://"))
    assert shell.returncode == 1
    assert "the run could not be copied" in shell.stderr
    assert "python3 train.py" in (tmp_path / "done").read_text()


def test_a_mistake_is_not_tried_again_by_a_cluster():
    job = yaml.safe_load((JOBS / "tpu-job.yaml").read_text(encoding="utf-8"))
    taken_away, mistake = job["spec"]["podFailurePolicy"]["rules"]
    assert mistake["action"] == "FailJob"
    # The exit code of qanet.errors.
    assert mistake["onExitCodes"]["values"] == [2]
    # The first rule that fits decides, and one that is taken away may exit with 2 too.
    assert taken_away["action"] == "Ignore"
    # Without it Kubernetes refuses the policy.
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
