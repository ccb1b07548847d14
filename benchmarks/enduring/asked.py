"""Requests: to the application itself, and bytes to a server's socket."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from enduring import grammars
from enduring.mutations import ODD_VALUES, damaged, of_bytes
from enduring.watching import Attempt

PATHS = (
    *(b"/v1/answer", b"/v1/answer", b"/v1/answer", b"/v1/explain", b"/v1/models"),
    *(b"/v1/model", b"/healthz", b"/metrics", b"/openapi.json", b"/", b"/page.css"),
)
ODD_PATHS = (
    *(b"", b"*", b"//", b"/v1/answer/", b"/v1/../v1/answer", b"/%00", b"/%ff", b"/%"),
    *(b"/v1/answer?a=%ff&a=b", b"/\xff", b"/page.css/../../server.py", b"/" * 3000),
    *(b"/v1/answer%2f", b"/docs", b"/V1/ANSWER", b"http://a/v1/answer", b"/v1/answer#"),
)
METHODS = ("POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get")
TYPES = (
    *(b"application/json; charset=utf-16", b"text/plain", b"", b"json", b"\xff"),
    *(b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x"),
    *(b"application/json;" * 500, b"multipart/form-data", b"application/problem+json"),
)
HEADERS = (
    *((b"accept-encoding", b"gzip;q=x"), (b"content-encoding", b"gzip")),
    *((b"range", b"bytes=9-1"), (b"range", b"bytes=0-1,3-4"), (b"range", b"x")),
    *((b"if-modified-since", b"yesterday"), (b"if-none-match", b"*"), (b"host", b"")),
    *((b"cookie", b"\xff=;;=" * 99), (b"x" * 5000, b"y"), (b"content-length", b"-1")),
    *((b"content-length", b"9" * 30), (b"expect", b"100-continue"), (b"te", b"x")),
    *((b"transfer-encoding", b"chunked"), (b"connection", b"upgrade"), (b"", b"")),
    *((b"upgrade", b"websocket"), (b"if-range", b"x"), (b"authorization", b"Basic \0")),
)


def question(random: Random) -> dict:
    """What may be asked."""
    some = [grammars.text(random)[:300] for _ in range(random.choice((1, 1, 2)))]
    asked = {"questions": some, "passages": [grammars.text(random)]}
    if random.random() < 0.3:
        asked |= {"top_k": random.choice((1, 3, 50))}
    if random.random() < 0.2:
        asked |= {"max_answer_tokens": random.choice((1, 100, None)), "model": "export"}
    return asked


def body(random: Random, path: bytes) -> bytes:
    """The body of a request, which is or is not what may be asked."""
    asked = question(random)
    if path == b"/v1/explain":
        asked = {"question": "Who lives?", "passage": grammars.text(random)[:500]}
    data = json.dumps(asked, ensure_ascii=random.random() < 0.5).encode()
    way = random.random()
    if way < 0.15:
        return data
    return random.choice(ODD_VALUES).encode() if way < 0.2 else damaged(data, random)


@contextlib.contextmanager
def requests(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Requests to the application within this process."""
    from qanet.reader import Reader
    from qanet.serving.readers import Readers
    from qanet.serving.served import Loaded
    from qanet.serving.server import make_app

    readers = Readers({"export": lambda: Loaded(Reader.load(base / "export", 1))})
    readers.load()
    app = make_app(readers)

    def attempt(random: Random) -> str:
        scope, data = _scope(random)
        status, answered = loop.run_until_complete(_ask(app, scope, data, random))
        shown = f"{scope['method']} {scope['raw_path'][:80]!r}"
        if status >= 500:
            return f"status {status} of {shown}"
        # The files of the page are refused in other words.
        is_ours = scope["raw_path"].startswith(b"/v1/")
        if status >= 400 and is_ours and scope["method"] != "HEAD":
            error = json.loads(answered)["error"]
            if not error["code"] or not error["message"]:
                return f"nothing is said of {shown}"
        return ""

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        at_work = app.router.lifespan_context(app)
        runner.run(at_work.__aenter__())
        try:
            yield attempt
        finally:
            runner.run(at_work.__aexit__(None, None, None))


def _scope(random: Random) -> tuple[dict, bytes]:
    """A request as the application gets it from a server, and its body."""
    path = random.choice(PATHS if random.random() < 0.9 else ODD_PATHS)
    asks = path.endswith((b"answer", b"explain"))
    method = "POST" if asks and random.random() < 0.9 else random.choice(METHODS)
    kind = b"application/json" if random.random() < 0.9 else random.choice(TYPES)
    headers = [(b"content-type", kind)]
    headers += random.choices(HEADERS, k=random.choice((0, 0, 0, 1, 2)))
    random.shuffle(headers)
    raw, _, query = path.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method.upper(),
        "path": raw.decode("utf-8", "replace").replace("%00", "\0"),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    return scope, body(random, path) if method == "POST" else b""


async def _ask(app, scope: dict, data: bytes, random: Random) -> tuple[int, bytes]:
    """Status and body of the answer; 0 where the client goes away before it."""
    parts = [data[: len(data) // 2], data[len(data) // 2 :]]
    messages = [
        {"type": "http.request", "body": parts[0], "more_body": True},
        {"type": "http.request", "body": parts[1], "more_body": False},
    ]
    if random.random() < 0.05:
        messages[random.randrange(2)] = {"type": "http.disconnect"}
    begun, answered = 0, b""

    async def receive() -> dict:
        if not messages:
            # It waits for the answer.
            await asyncio.Event().wait()
        if messages[0]["type"] == "http.disconnect":
            return messages[0]
        return messages.pop(0)

    async def send(message: dict) -> None:
        nonlocal begun, answered
        begun = message.get("status", begun)
        answered += message.get("body", b"")

    await app(scope, receive, send)
    return begun, answered


# Seconds that a client waits for an answer to what may be none of a request.
PATIENCE = 0.2


@contextlib.contextmanager
def sockets(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Bytes to a server, which is asked something usual after them."""
    log = scratch / "log"
    command = [sys.executable, "-m", "qanet", "serve", "--model", str(base / "export")]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        line = process.stdout.readline()
        address = "127.0.0.1", int(re.search(r":(\d+)$", line)[1])
        _ask_usual(address, 600)
        seen = 0

        def attempt(random: Random) -> str:
            nonlocal seen
            sent = _message(random)
            for status in _statuses(address, sent):
                if status >= 500:
                    return f"status {status} of {sent[:200]!r}"
            status = _ask_usual(address, 20)
            told = log.read_bytes()[seen:]
            seen += len(told)
            if status != 200:
                return f"status {status} of what is usual, after {sent[:200]!r}"
            return f"a traceback of {sent[:200]!r}" if b"Traceback" in told else ""

        try:
            yield attempt
        finally:
            process.terminate()
            process.wait()


def _message(random: Random) -> bytes:
    """A request or several, as bytes, mostly damaged."""
    if random.random() < 0.1:
        return random.choice(
            (
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(500),
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + random.randbytes(50),
                b"\0" * 1000,
                b"GET",
                b"\r\n\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
                b"POST /v1/answer HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\n{",
            )
        )
    messages = [_request(random) for _ in range(random.choice((1, 1, 1, 3)))]
    data = b"".join(messages)
    return data if random.random() < 0.2 else of_bytes(data, random, messages[0])


def _request(random: Random) -> bytes:
    path = random.choice(PATHS if random.random() < 0.8 else ODD_PATHS)
    method = random.choice(("POST", "POST", "POST", *METHODS)).encode()
    data = body(random, path)[:5000] if method == b"POST" else b""
    lines = [b"%s %s HTTP/1.1" % (method, path), b"host: a"]
    lines.append(b"content-type: application/json")
    for name, value in random.choices(HEADERS, k=random.choice((0, 0, 1))):
        lines.append(name + b": " + value)
    way = random.random()
    if way < 0.2:
        lines.append(b"transfer-encoding: chunked")
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    else:
        length = len(data) if way < 0.9 else random.choice((0, 1, len(data) + 9, 10**7))
        lines.append(b"content-length: %d" % length)
    return b"\r\n".join([*lines, b"", data])


def _statuses(address: tuple[str, int], sent: bytes) -> list[int]:
    """What a server answers to some bytes, until it closes or waits for more."""
    answered = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(address, timeout=20) as connection,
    ):
        connection.sendall(sent)
        connection.settimeout(PATIENCE)
        while part := connection.recv(65536):
            answered += part
    return [int(found) for found in re.findall(rb"^HTTP/1\.1 (\d{3})", answered, re.M)]


def _ask_usual(address: tuple[str, int], seconds: float) -> int:
    """The status of the answer to a usual request."""
    connection = http.client.HTTPConnection(*address, timeout=seconds)
    with contextlib.closing(connection):
        asked = json.dumps({"questions": ["Who lives?"], "passages": ["Bo lives."]})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/answer", asked, headers)
        return connection.getresponse().status
