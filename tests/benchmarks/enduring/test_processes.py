"""Tests of benchmarks/enduring/processes.py."""

import os
import sys
from types import SimpleNamespace

import pytest
from enduring import processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs process groups")


@pytest.fixture(autouse=True)
def commands(monkeypatch, tmp_path):
    """Its commands are Python, which finds its plan in front."""
    script = tmp_path / "script.py"
    script.write_text("import sys\nexec(sys.argv[2])\n")
    monkeypatch.setattr(processes, "moments", SimpleNamespace(__file__=str(script)))


def test_a_command_and_its_surroundings(tmp_path):
    said = "E0000 00:00:1.2 3 cpu_aot_loader.cc:1] x\\nerror: it\\n"
    told = "import os\nprint(sys.argv[1], os.environ['XDG_CACHE_HOME'])\n"
    end = f"sys.stderr.write('{said}')\nsys.exit(2)"
    process = processes.run_command([told + end], {"kind": "a"}, tmp_path / "cache")
    assert process.stdout == f'{{"kind": "a"}} {tmp_path / "cache"}\n'
    assert process.stderr == "error: it\n"
    assert processes.ending(process) == "exit code 2: error: it"


def test_a_program_in_front(tmp_path):
    prefix = [
        sys.executable,
        "-c",
        "import os, sys; os.execv(sys.argv[1], sys.argv[1:])",
    ]
    process = processes.run_command(["print(5)"], {}, tmp_path / "cache", prefix)
    assert process.stdout == "5\n"


def test_a_process_that_is_left_behind_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "LONGEST", 2)
    begun = "import subprocess\nsubprocess.Popen(['sleep', '1000'])"
    process = processes.run_command([begun], {}, tmp_path / "cache")
    assert processes.ending(process) == "exit code -9: not ended in 2 s"
