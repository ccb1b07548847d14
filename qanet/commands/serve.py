"""`python -m qanet serve`: readers behind HTTP."""

import argparse
import os
import re
import signal
import socket
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qanet.commands.options import check_readers, load_backend, path_of, positive
from qanet.console import log, say
from qanet.cores import own_cores
from qanet.errors import UserError, needing
from qanet.shipped import shipped_reader

if TYPE_CHECKING:
    from qanet.serving.readers import Readers

# Bytes of an answer that the system holds for a client.
SEND_BUFFER = 2**16


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "serve",
        help="answer questions over HTTP",
        description="Answers questions over HTTP, and on a page to try it. "
        "Stopped by SIGTERM, Ctrl-C or the end of its terminal, it finishes what it "
        "has accepted. On SIGHUP, while its terminal is there or where it has none, "
        "it loads all readers anew, and answers meanwhile.",
        epilog="examples:\n"
        "  python -m qanet serve\n"
        "  python -m qanet serve --model runs/qanet-tiny\n"
        "  python -m qanet serve --model small=runs/qanet-small large=runs/qanet",
    )
    parser.add_argument(
        "--model",
        type=_named,
        nargs="+",
        default=[],
        metavar="[NAME=]DIR",
        help="directory of a training, or an ONNX export; of several readers a "
        "request names one, by default the first; without NAME a reader is called as "
        "its directory (default: the reader that is part of the package)",
    )
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
    parser.add_argument(
        "--workers",
        type=partial(positive, most=1000),
        default=own_cores(),
        metavar="N",
        help="threads that read at a time with an ONNX export; one reads with a run "
        "directory, on all cores (default: as many as the cores that it may use, "
        "%(default)s)",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    _check_libraries()
    # Windows has no such signal.
    if hasattr(signal, "SIGHUP"):
        # There is no reader yet that could be loaded anew. `nohup` ignores it before.
        is_kept = signal.signal(signal.SIGHUP, signal.SIG_IGN) == signal.SIG_IGN
    named = options.model or [_named(str(shipped_reader()))]
    directories = _by_name(named)
    with _listening(options.host, options.port) as bound:
        check_readers(directories.values())

        from qanet.serving.connections import make_server
        from qanet.serving.readers import Readers
        from qanet.serving.server import make_app

        loaders = {
            name: partial(_load, path, options.workers)
            for name, path in directories.items()
        }
        readers = Readers(loaders, batch_size=options.batch_size)
        host, port = bound.getsockname()[:2]
        paths = ", ".join(map(str, directories.values()))
        say(f"loading {paths}; then at {address_of(host, port)}", flush=True)
        if hasattr(signal, "SIGHUP"):
            _reload_at_hang_up(readers, is_kept)
        readers.load()
        # uvicorn finishes what it has accepted, and then sends the signal once more.
        # Not before: the first process of a container ignores it where nothing
        # handles it, so a server that still loads would not end.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        make_server(make_app(readers), log.level).run(sockets=[bound])


def _check_libraries() -> None:
    with needing(
        "the server needs fastapi, prometheus-client and uvicorn", "qanet[serve]"
    ):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401


def _reload_at_hang_up(readers: "Readers", is_kept: bool) -> None:
    """Lets SIGHUP load the readers anew, or end a server whose terminal is closed.

    Args:
        readers: the server's.
        is_kept: whether it was started to outlive its terminal.
    """
    is_attended = not is_kept and _has_terminal()

    def hang_up(*_):
        # A terminal that is closed sends it too.
        if is_attended and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        else:
            readers.reload_soon()

    signal.signal(signal.SIGHUP, hang_up)


def _has_terminal() -> bool:
    """Whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True


def address_of(host: str, port: int) -> str:
    """What a browser opens; an address of IPv6 stands in brackets there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _load(directory: Path, workers: int):
    """The reader of a directory, and its model where that explains answers."""
    from qanet.files import digest_of
    from qanet.memory import return_large_blocks
    from qanet.onnx_reader import is_export, reader_files
    from qanet.reader import Reader
    from qanet.run import Run
    from qanet.serving.served import Loaded

    # All files are of the reader that a link leads to now.
    directory = directory.resolve()
    digest = digest_of(reader_files(directory))
    if is_export(directory):
        return_large_blocks()
        # Each worker on one core: threads that share a batch wait for each other.
        reader = Reader.load(directory, threads=1)
        return Loaded(reader, workers=workers, digest=digest)
    load_backend([directory])
    trained = Run(directory).load()
    return Loaded(Reader.of(trained, as_they_come=True), trained, digest=digest)


def _named(text: str) -> tuple[str, Path]:
    """A name and a directory; a path with "=" in it that begins with "./" has none."""
    named = re.fullmatch(r"([\w.-]+)=(.+)", text)
    if named:
        return named[1], Path(named[2])
    # Not of what a link leads to, which changes with every upgrade.
    return os.path.basename(os.path.abspath(text)), path_of(text)


def _by_name(named: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    directories: dict[str, Path] = {}
    for name, directory in named:
        if name in directories:
            raise UserError(
                f"--model {directory}: another reader is called {name} too; "
                f"give one of them another name: --model NAME={directory}"
            )
        directories[name] = directory
    return directories


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number up to 65535")
    return int(text)


def _listening(host: str, port: int) -> socket.socket:
    if not host:
        raise UserError("--host: is empty; 0.0.0.0 listens on all addresses")
    try:
        # What cannot be a name would leave the socket open.
        host.encode("idna")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"--host {host} --port {port}: cannot be listened on ({error}); give others"
        ) from None
    # Inherited by each connection. Without it the second part of an answer waits for
    # the client to confirm the first, which takes 40 ms.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Else the system holds megabytes of an answer, and whether its client takes it
    # shows late.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    return bound
