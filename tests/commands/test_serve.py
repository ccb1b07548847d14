"""Tests of qanet.commands.serve."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from qanet import cli
from qanet.commands import serve


def test_serve_answers_on_loopback_until_it_is_told_to_stop(trained, trained_reader):
    command = [sys.executable, "-m", "qanet", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--model", str(trained.directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "-1"},
    ) as process:
        try:
            address = re.search(
                r"http://(127\.0\.0\.1):(\d+)", process.stdout.readline()
            )
            # The socket is open before the reader is loaded: who comes early waits.
            connection = http.client.HTTPConnection(*address.groups(), timeout=300)
            question, passage = "Where does Zoë live?", "Zoë lives in São Paulo."
            body = json.dumps({"questions": [question], "passages": [passage]})
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/answer", body, headers)
            ((answer,),) = json.load(connection.getresponse())["answers"]
            connection.close()
            assert answer["text"] == trained_reader.answer(question, passage).text
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)


def test_connections_send_at_once():
    with serve._listening("127.0.0.1", 0) as bound:
        client = socket.create_connection(bound.getsockname())
        accepted, _ = bound.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_serve_refuses_an_address_in_use(refused):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused(cli.main, "serve", "--model", "run", "--port", port)
    assert f"--port {port}" in line
    assert "cannot be listened on" in line


def test_serve_refuses_a_host_that_is_none(refused):
    line = refused(cli.main, "serve", "--model", "x", "--host", "no such host")
    assert "cannot be listened on" in line


@pytest.mark.parametrize("port", ["-1", "70000", "http"])
def test_serve_refuses_a_port_that_is_none(port, capsys):
    with pytest.raises(SystemExit) as exit:
        cli.main(["serve", "--model", "x", "--port", port])
    assert exit.value.code == 2
    assert "port" in capsys.readouterr().err


def test_serve_without_its_libraries(refused, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    line = refused(cli.main, "serve", "--model", tmp_path)
    assert "pip install 'qanet[serve]'" in line


def test_serve_without_a_run(refused, tmp_path):
    line = refused(cli.main, "serve", "--model", tmp_path, "--port", 0)
    assert "not a run directory" in line
