"""Tests of benchmarks/machine.py."""

import json
import platform

import machine
import numpy as np


def test_a_processor_has_its_family_and_model_where_the_system_tells_them(
    monkeypatch,
):
    told = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 167\nmodel name\t: Fast (R)\n"
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: told + told)
    assert machine.processor() == "Fast (R), family 6, model 167"
    # As on other processors than Intel's and AMD's.
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: "processor : 0\n")
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert machine.processor() == platform.machine()


def test_what_a_result_tells():
    told = machine.machine()
    assert json.loads(json.dumps(told)) == told
    assert told["cores"] > 0
    assert told["versions"]["numpy"] == np.__version__
    assert told["versions"]["python"] == platform.python_version()
