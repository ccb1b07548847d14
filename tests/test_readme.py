"""The README's promises that a machine can check."""

import configparser
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from qanet import cli, shipped
from qanet.commands.settings import tables
from qanet.config import Config, preset_names
from qanet.models.registry import MODELS
from qanet.pretraining.config import BiLMPretrainingConfig, MLMPretrainingConfig
from qanet.reader import Reader
from qanet.translation.config import TranslationConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
QUICK_START = [
    "pip install -e . && python train.py",
    "pip install -e '.[test]' && pytest",
]


def test_quick_start_is_the_two_commands():
    block = README.split("<!-- quick start -->")[1].split("<!-- end -->")[0]
    assert [line.strip() for line in block.strip().splitlines()] == QUICK_START


def test_ci_runs_the_commands_as_the_readme_prints_them():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (extraction,) = re.findall(r"^commands=\$\((.*)\)$", script, re.MULTILINE)
    printed = subprocess.run(
        ["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines() == QUICK_START
    assert 'eval "$command"' in script


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_explained(name):
    assert f"`{name}`" in README


def test_the_page_of_settings_is_what_the_command_prints():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page.endswith(f"\n\n{tables()}\n")


def test_the_example_of_a_question_works_as_it_stands(
    trained, trained_reader, tmp_path, monkeypatch, capsys
):
    section = README.split("\nThen, without a network:\n\n")[1].split("\n\n")[0]
    lines = [line.removeprefix("    ") for line in section.splitlines()]
    command = lines.index(next(line for line in lines if line.startswith("python ")))
    monkeypatch.chdir(tmp_path)
    subprocess.run(["bash", "-c", "\n".join(lines[:command])], check=True)
    # The reader is another one, which is there already.
    monkeypatch.setattr(shipped, "SHIPPED", trained.directory)
    monkeypatch.setattr(Reader, "load", lambda run: trained_reader)
    python, m, package, *arguments = shlex.split(
        "\n".join(lines[command:]).replace("\\\n", "")
    )
    assert (python, m, package) == ("python", "-m", "qanet")
    cli.main(arguments)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_all_files_of_the_package_are_installed():
    files = [
        path.relative_to(ROOT / "qanet")
        for path in (ROOT / "qanet").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    patterns = SETUP["options.package_data"]["qanet"].split()
    left_out = [str(path) for path in files if not any(path.match(p) for p in patterns)]
    assert left_out == ["sample/README.md"]
    assert Path("py.typed") in files


def test_every_extra_that_is_named_exists():
    extras = SETUP["options.extras_require"]
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    texts += [path.read_text(encoding="utf-8") for path in ROOT.rglob("qanet/**/*.py")]
    found = re.findall(r"(?:qanet|'\.)\[([a-z0-9,]+)\]", "\n".join(texts))
    named = set(",".join(found).split(","))
    assert {"onnx", "plot", "serve", "tensorboard"} <= named <= set(extras)
    # What the examples import.
    assert "onnxruntime" in SETUP["options"]["install_requires"]


def test_the_installation_without_tensorflow_has_all_other_packages():
    (line,) = re.findall(r"^    pip install (jax .*)$", README, re.MULTILINE)
    required = SETUP["options"]["install_requires"].split("\n")
    names = {re.split(">=", name)[0] for name in required if name and "#" not in name}
    # The last is what tensorflow-datasets wants.
    tensorflow = {"tensorflow", "tensorflow-datasets", "importlib_resources"}
    assert set(line.split()) == (names - tensorflow) | {"jax"}


def test_the_packages_for_reading_are_those_of_the_whole_without_the_heavy_ones():
    def listed(lines):
        return {line for line in lines if line and not line.startswith("#")}

    reading = listed((ROOT / "requirements-reading.txt").read_text("utf-8").split("\n"))
    required = listed(SETUP["options"]["install_requires"].split("\n"))
    # What trains, and reads what training wrote. The tests of reading do without.
    training = ("h5py", "importlib_resources", "keras", "tensor")
    light = {line for line in required if not line.startswith(training)}
    extras = SETUP["options.extras_require"]
    assert reading == light | listed(extras["serve"].split("\n"))
    command = "pip install -r requirements-reading.txt && pip install --no-deps ."
    assert f"    {command}\n" in README


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_linked_files_exist(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        assert target.startswith("http") or (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_linked_headings_exist(path):
    """As GitHub makes anchors of headings."""
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text(encoding="utf-8"))
    for target, anchor in links:
        page = (path.parent / target if target else path).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
        anchors = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
        assert anchor in [name.replace(" ", "-") for name in anchors], (target, anchor)


def test_every_layer_that_tells_its_paper_is_on_the_page_of_papers():
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for path in (ROOT / "qanet" / "layers").glob("*.py"):
        summary = path.read_text(encoding="utf-8").split('"""')[1]
        if re.search(r"\(.*(19|20)\d\d|QANet, section", summary):
            assert f"(../qanet/layers/{path.name})" in page, path.name


def test_the_example_of_shapes_works_as_it_stands(capsys):
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})
    assert "embedding_encoder" in capsys.readouterr().out


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_every_setting_that_is_shown_exists(path):
    sections = {name: set(values) for name, values in Config().model_dump().items()}
    sections["model"].update(
        *(entry.settings.model_fields for entry in MODELS.values())
    )
    for config in (TranslationConfig, MLMPretrainingConfig, BiLMPretrainingConfig):
        for name, field in config.model_fields.items():
            if name in sections:
                sections[name].update(getattr(field.annotation, "model_fields", ()))
    shown = re.findall(
        rf"\b({'|'.join(sections)})\.([a-z0-9_]+)\S*?=",
        path.read_text(encoding="utf-8"),
    )
    for section, key in shown:
        assert key in sections[section], f"{section}.{key}"
