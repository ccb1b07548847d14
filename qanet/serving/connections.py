"""Serves an application over connections that do not wait for ever.

uvicorn has no limit for the head or the body of a request: its `timeout_keep_alive`
ends with the first byte, and its `timeout_graceful_shutdown` waits for all alike.
`Connection` sees to heads, `qanet.serving.gate.Gate` to bodies.
"""

import asyncio
import copy
import sys

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


def make_server(app: ASGIApp, log_level: int) -> uvicorn.Server:
    """A server that, once told to stop, finishes what it has accepted.

    Args:
        app: the application.
        log_level: what it logs from, a level of `logging`.
    """
    # Results alone are for standard output, where uvicorn writes one line a request.
    log_config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    log_config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    for formatter in log_config["formatters"].values():
        formatter["use_colors"] = is_terminal
    config = uvicorn.Config(
        app,
        log_config=log_config,
        http=Connection,
        ws="none",
        log_level=log_level,
        timeout_graceful_shutdown=60,
    )
    return uvicorn.Server(config)


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, to clients that send and take in time."""

    # For the head of the first request; after each answer for taking it and for the
    # head of the next; and for taking what waits to be sent. Taking some of it gives
    # as long again.
    SECONDS = 10.0
    # For taking all but the end of an answer, however steadily it is taken: until then
    # it is in memory and keeps others out.
    WHOLE_SECONDS = 60.0

    _deadline: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _whole: asyncio.TimerHandle | None = None

    def connection_made(self, transport):
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self):
        self._end_whole()
        self._expect_request()
        super().on_response_complete()

    def connection_lost(self, error):
        # They would keep the last request.
        self._deadline.cancel()
        if self._taking:
            self._taking.cancel()
        self._end_whole()
        super().connection_lost(error)

    def pause_writing(self):
        super().pause_writing()
        # An application waits without end to send what nobody takes.
        self._expect_taking()
        if not self._whole:
            self._whole = self.loop.call_later(self.WHOLE_SECONDS, self.transport.abort)

    def resume_writing(self):
        self._taking.cancel()
        super().resume_writing()

    def shutdown(self):
        super().shutdown()
        # A request whose body is still awaited is not accepted yet.
        if self.cycle and self.cycle.more_body:
            self._close()

    def send_400_response(self, msg):
        answering = self.cycle and not self.cycle.response_complete
        if answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # What is wrong is the body of a request, which gets no second answer.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        self._close()

    def _end_whole(self):
        if self._whole:
            self._whole.cancel()
        self._whole = None

    def _unsupported_upgrade_warning(self):
        """Nothing: a client that offers HTTP/2 is answered in HTTP/1.1."""

    def _close(self):
        """Sends what waits to be sent, if it is taken, and ends."""
        self.transport.close()
        self._expect_request()

    def _expect_request(self):
        if self._deadline:
            self._deadline.cancel()
        size = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(
            self.SECONDS, self._close_unless_after, self.cycle, size
        )

    def _close_unless_after(self, last, size):
        """Closes the connection unless a request came after that one.

        Where less than that size waits to be sent by now, it may still come.
        """
        if self.cycle is not last:
            return
        if self.transport.get_write_buffer_size() < size:
            self._expect_request()
        else:
            self.transport.abort()

    def _expect_taking(self):
        size = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.SECONDS, self._drop_unless_taken, size)

    def _drop_unless_taken(self, size):
        """Closes the connection unless less than that size waits to be sent by now."""
        if self.transport.get_write_buffer_size() < size:
            self._expect_taking()
        else:
            self.transport.abort()
