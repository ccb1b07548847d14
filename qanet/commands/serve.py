"""`python -m qanet serve`: a reader behind HTTP."""

import argparse
import socket
from pathlib import Path

from qanet.commands.options import add_reader, check_reader, load_backend, positive
from qanet.console import log, say
from qanet.errors import UserError
from qanet.shipped import shipped_reader


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "serve",
        help="answer questions over HTTP",
        description="Answers questions over HTTP, and on a page to try it. "
        "Stopped by SIGTERM or Ctrl-C, it finishes what it has accepted.",
        epilog="examples:\n"
        "  python -m qanet serve\n"
        "  python -m qanet serve --model runs/qanet-tiny",
    )
    add_reader(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; the default, %(default)s, is seen by this machine "
        "alone, 0.0.0.0 by all others too",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=8000,
        help="0 takes a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=32,
        metavar="N",
        help="the most questions that are read together (default: %(default)s)",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UserError(
            "the server needs fastapi and uvicorn: pip install 'qanet[serve]'"
        ) from None
    with _listening(options.host, options.port) as bound:
        options.model = options.model or shipped_reader()
        check_reader(options.model)
        load_backend([options.model])

        from qanet.serving.connections import make_server
        from qanet.serving.server import make_app

        reader, trained = _load(options.model)
        app = make_app(reader, trained, batch_size=options.batch_size)
        host, port = bound.getsockname()[:2]
        say(f"loading {options.model}; then at http://{host}:{port}", flush=True)
        make_server(app, log.level).run(sockets=[bound])


def _load(directory: Path):
    """The reader of a directory, and its model where that explains answers."""
    from qanet.onnx_reader import is_export
    from qanet.reader import Reader
    from qanet.run import Run

    if is_export(directory):
        return Reader.load(directory), None
    trained = Run(directory).load()
    return Reader.of(trained, as_they_come=True), trained


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number up to 65535")
    return int(text)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UserError(
            f"--host {host} --port {port}: cannot be listened on ({error}); give others"
        ) from None
    # Inherited by each connection. Without it the second part of an answer waits for
    # the client to confirm the first, which takes 40 ms.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound
