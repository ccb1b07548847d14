"""Tests of qanet.commands.serve."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from qanet import cli, shipped
from qanet.commands import serve
from qanet.errors import UserError

QUESTION, PASSAGE = "Where does Zoë live?", "Zoë lives in São Paulo."
CLIENTS = 4
COMMAND = (sys.executable, "-m", "qanet", "serve")
TESTS = Path(__file__).parents[1]
PYTHONPATH = os.pathsep.join(map(str, (TESTS.parent, TESTS)))


@contextlib.contextmanager
def serving(directory, port=0, log=subprocess.DEVNULL, command=COMMAND):
    """A server in a process of its own, and its address."""
    with subprocess.Popen(
        [*command, "--model", str(directory), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": PYTHONPATH},
    ) as process:
        try:
            said = re.search(r"http://(127\.0\.0\.1):(\d+)", process.stdout.readline())
            yield process, said.groups()
        finally:
            process.kill()


def ask(address):
    """The text of one answer."""
    # The socket is open before the reader is loaded: who comes early waits.
    connection = http.client.HTTPConnection(*address, timeout=300)
    with contextlib.closing(connection):
        body = json.dumps({"questions": [QUESTION], "passages": [PASSAGE]})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/answer", body, headers)
        response = connection.getresponse()
        assert response.status == 200
        ((answer,),) = json.load(response)["answers"]
        return answer["text"]


class Client(threading.Thread):
    """Asks one question after the other until the server is gone."""

    def __init__(self, address):
        super().__init__()
        self.address = address
        self.answers = []
        self.busy = threading.Event()
        self.start()

    def run(self):
        try:
            while True:
                self.answers.append(ask(self.address))
                if len(self.answers) == 3:
                    self.busy.set()
        except (OSError, http.client.HTTPException) as error:
            self.error = error


def stopped_under_load(process, address, number):
    """Sends a signal while clients ask; gives what they were answered."""
    clients = [Client(address) for _ in range(CLIENTS)]
    for client in clients:
        assert client.busy.wait(60)
    process.send_signal(number)
    for client in clients:
        client.join(60)
        # Whoever got no answer was told so.
        assert client.error
    return {answer for client in clients for answer in client.answers}


def test_serve_stops_and_starts_under_load_and_no_client_is_left_without_word(
    trained, trained_reader
):
    expected = trained_reader.answer(QUESTION, PASSAGE).text
    with serving(trained.directory) as (process, address):
        assert ask(address) == expected
        with socket.create_connection(address) as slow:
            # Of its body one byte comes.
            slow.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
            assert stopped_under_load(process, address, signal.SIGTERM) == {expected}
            assert process.wait(30) in (0, -signal.SIGTERM)
    # At once, and at the same place.
    with serving(trained.directory, address[1]) as (process, again):
        assert again == address
        assert ask(address) == expected
        assert stopped_under_load(process, address, signal.SIGKILL) == {expected}


# Serves directories whose reader answers with what is in their file `version`.
VERSIONS = """
import sys
from qanet import cli
from qanet.commands import serve
from qanet.decoding import Answer
from qanet.errors import UserError
from qanet.serving.served import Loaded
from made_apps import Ready

class Version(Ready):
    def answer_many(self, pairs, *settings):
        return [[Answer(self.version, 0, 1, 1.0)] for _ in pairs]

def load(directory, workers):
    version = Version()
    version.version = (directory / "version").read_text()
    if not version.version.isdecimal():
        raise UserError(f"{directory}: damaged")
    return Loaded(version)

serve._load = load
serve.check_readers = serve.load_backend = lambda directories: None
cli.main(sys.argv[1:])
"""


def test_a_hang_up_loads_the_reader_anew_under_load(tmp_path):
    version, log = tmp_path / "version", tmp_path / "log"
    version.write_text("1")
    command = (sys.executable, "-c", VERSIONS, "serve")
    with (
        log.open("w") as file,
        serving(f"a={tmp_path}", log=file, command=command) as (process, address),
    ):
        assert ask(address) == "1"
        clients = [Client(address) for _ in range(CLIENTS)]
        for client in clients:
            assert client.busy.wait(60)

        version.write_text("2")
        process.send_signal(signal.SIGHUP)
        while ask(address) == "1":
            pass
        version.write_text("none")
        process.send_signal(signal.SIGHUP)
        while "not loaded anew" not in log.read_text():
            assert ask(address) == "2"

        # None of them has lost a request.
        assert all(client.is_alive() for client in clients)
        process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
            assert sorted(client.answers) == client.answers
        process.wait(30)
    lines = [line for line in log.read_text().splitlines() if "anew" in line]
    assert lines == [
        "a: loaded anew",
        f"error: a: not loaded anew: {tmp_path}: damaged; the reader of before goes on",
    ]


def test_connections_send_at_once():
    with serve._listening("127.0.0.1", 0) as bound:
        client = socket.create_connection(bound.getsockname())
        accepted, _ = bound.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_system_holds_little_of_an_answer():
    with serve._listening("127.0.0.1", 0) as bound:
        client = socket.create_connection(bound.getsockname())
        accepted, _ = bound.accept()
        with client, accepted:
            held = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            # Linux counts twice.
            assert held <= 2 * serve.SEND_BUFFER


def test_serve_refuses_an_empty_host(refused):
    line = refused(cli.main, "serve", "--model", "x", "--host", "")
    assert line.startswith("error: --host: is empty")


def test_serve_refuses_a_reader_without_a_name(capsys):
    """Else an unset variable would serve what lies in the working directory."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["serve", "--model", ""])
    assert stopped.value.code == 2
    assert "--model: is empty" in capsys.readouterr().err


def test_an_address_is_one_that_a_browser_opens():
    assert serve.address_of("127.0.0.1", 8000) == "http://127.0.0.1:8000"
    assert serve.address_of("::1", 80) == "http://[::1]:80"


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


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_a_server_that_still_loads_ends_when_told(monkeypatch, capsys):
    def load(self):
        signal.raise_signal(signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
        raise AssertionError

    monkeypatch.setattr("qanet.serving.readers.Readers.load", load)
    with pytest.raises(SystemExit) as exit:
        cli.main(["serve", "--port", "0"])
    assert exit.value.code == 128 + signal.SIGTERM
    assert capsys.readouterr().err.endswith("stopped\n")


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
@pytest.mark.parametrize(
    ("before", "terminals", "ends"),
    [
        (signal.SIG_DFL, [True, False], True),
        (signal.SIG_DFL, [True, True], False),
        (signal.SIG_DFL, [False, False], False),
        (signal.SIG_IGN, [True, False], False),  # nohup
    ],
)
def test_a_server_ends_with_its_terminal(monkeypatch, before, terminals, ends):
    told = []

    def load(readers):
        signal.raise_signal(signal.SIGHUP)
        raise UserError("loaded")

    monkeypatch.setattr("qanet.serving.readers.Readers.load", load)
    monkeypatch.setattr(
        "qanet.serving.readers.Readers.reload_soon", lambda readers: told.append(1)
    )
    seen = iter(terminals)
    monkeypatch.setattr(serve, "_has_terminal", lambda: next(seen))
    former = signal.signal(signal.SIGHUP, before)
    try:
        with pytest.raises(SystemExit) as exit:
            cli.main(["serve", "--port", "0"])
    finally:
        signal.signal(signal.SIGHUP, former)
    assert exit.value.code == (128 + signal.SIGTERM if ends else 2)
    assert bool(told) != ends


def test_serve_without_its_libraries(refused, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    line = refused(cli.main, "serve", "--model", tmp_path)
    assert "pip install 'qanet[serve]'" in line


def test_serve_without_a_run(refused, tmp_path):
    line = refused(cli.main, "serve", "--model", tmp_path, "--port", 0)
    assert "not a run directory" in line


def test_a_reader_is_called_as_its_directory_or_as_one_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert serve._named("runs/small") == ("small", Path("runs/small"))
    assert serve._named(".") == (tmp_path.name, Path("."))
    # The name of a link, not of what it leads to.
    Path("current").symlink_to("runs/small-2")
    assert serve._named("current") == ("current", Path("current"))
    assert serve._named("a-1.b=runs/x=y") == ("a-1.b", Path("runs/x=y"))
    assert serve._named("./lr=1") == ("lr=1", Path("lr=1"))


def test_a_link_is_followed_anew_and_the_digest_tells(
    trained, trained_reader, tmp_path
):
    other = shutil.copytree(trained.directory, tmp_path / "other")
    with np.load(other / "weights.npz") as file:
        weights = {name: 2 * array for name, array in file.items()}
    np.savez(other / "weights.npz", **weights)
    link = tmp_path / "current"
    digests = []
    for directory in (trained.directory, other, trained.directory):
        link.unlink(missing_ok=True)
        link.symlink_to(directory)
        digests.append(serve._load(link, 1).digest)
    first, second, third = digests
    assert first == third != second
    assert re.fullmatch("[0-9a-f]{64}", first)


def test_an_export_is_read_by_several_workers(session_threads, monkeypatch):
    told = []
    monkeypatch.setattr("qanet.onnx_reader.own_cores", lambda: 2)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("qanet.memory.return_large_blocks", lambda: told.append(1))
    assert serve._load(shipped.SHIPPED, 3).workers == 3
    assert told
    # Threads of several workers that share a batch would wait for each other.
    assert set(session_threads) == {1}


def test_options_reach_the_readers(monkeypatch, refused):
    made = []

    class Readers:
        def __init__(self, loaders, batch_size):
            made.append((loaders, batch_size))

        def load(self):
            raise UserError("enough")

    monkeypatch.setattr("qanet.serving.readers.Readers", Readers)
    arguments = ["serve", "--port", "0", "--batch-size", "5", "--workers", "3"]
    assert "enough" in refused(cli.main, *arguments)
    ((loaders, batch_size),) = made
    (loader,) = loaders.values()
    assert (loader.args[-1], batch_size) == (3, 5)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_of_ipv6_is_listened_on():
    try:
        bound = serve._listening("::1", 0)
    except UserError:
        pytest.skip("no IPv6 on this machine")
    with bound:
        assert bound.family == socket.AF_INET6


def test_a_run_without_keras_is_told_in_one_line_at_a_reload_too(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(UserError, match="Keras cannot be imported"):
        serve._load(trained.directory, 1)


def test_serve_refuses_two_readers_of_one_name(refused):
    line = refused(cli.main, "serve", "--model", "a/run", "x=y", "b/run")
    assert "b/run" in line
    assert "NAME=b/run" in line


def test_serve_names_the_directory_that_is_none(refused, trained, tmp_path):
    absent = tmp_path / "absent"
    models = (f"a={trained.directory}", f"b={absent}")
    line = refused(cli.main, "serve", "--port", 0, "--model", *models)
    assert f"{absent}: not a run directory" in line


@pytest.mark.parametrize("host", ["localhost..", "a" * 70])
def test_what_is_the_name_of_no_host(refused, host):
    line = refused(cli.main, "serve", "--host", host, "--port", "0")
    assert "cannot be listened on" in line
