"""The numbers of docs/serving.md are those of the code."""

import logging
import re
from pathlib import Path

from qanet.config import DataConfig
from qanet.datasets.plans import READING_PAIRS
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS
from qanet.serving.connections import Connection, make_server
from qanet.serving.gate import PART
from qanet.serving.limits import Limits
from qanet.serving.served import WAIT

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "serving.md").read_text(encoding="utf-8").split())
LIMITS = Limits()
SERVER = make_server(None, logging.WARNING).config
CLOZE, BERT = (MODELS[name].limits for name in ("aoa-cloze", "bert"))

# Words of the page, each # a number.
NUMBERS = {
    "most tokens of an answer, 1 to # (`aoa-cloze`: #); ": [
        *(LIMITS.answer_tokens, CLOZE.answer),
    ],
    "by default `data.answer_limit` of the training (#)": [DataConfig().answer_limit],
    "they may have # words and signs (tokens)": [LIMITS.tokens],
    "one passage of at most # tokens (`aoa-cloze`: #, `bert`: # word pieces)": [
        *(LIMITS.explained_tokens, CLOZE.window, BERT.window),
    ],
    "has not arrived within # seconds": [LIMITS.body_seconds],
    "more than # bytes": [LIMITS.body_bytes],
    "more than # questions, # passages, # questions times passages,": [
        *(LIMITS.questions, LIMITS.passages, LIMITS.pairs),
    ],
    "# tokens a question (`bert`: # word pieces), # to be read, # answers each,": [
        *(LIMITS.question_tokens, BERT.question, LIMITS.tokens, LIMITS.top_k),
    ],
    "# tokens an answer (`aoa-cloze`: #), or # million for questions times": [
        *(LIMITS.answer_tokens, CLOZE.answer, LIMITS.answer_characters / 10**6),
    ],
    "# requests are being worked on, wait, or": [LIMITS.pending],
    "counts as one of the # from": [LIMITS.pending],
    "no answer within # seconds": [LIMITS.seconds],
    "waits up to # ms for more": [1000 * WAIT],
    "in windows of # tokens (`aoa-cloze`: #), a question may have #,": [
        *(ReadingLimits.window, CLOZE.window, ReadingLimits.question),
    ],
    "as hold # pairs of tokens": [READING_PAIRS],
    "head of a request is not complete after # seconds": [Connection.SECONDS],
    "all but the last # bytes of its answer": [PART],
    "has been idle for # seconds is closed": [SERVER.timeout_keep_alive],
}


def told(words):
    """The numbers that the page has in the places of #."""
    pattern = re.escape(words).replace(r"\#", r"([\d,]*\d)")
    found = re.search(pattern, PAGE)
    assert found, f"docs/serving.md has no such words: {words}"
    return [int(number.replace(",", "")) for number in found.groups()]


def test_the_numbers_of_the_page_are_those_of_the_code():
    assert {words: told(words) for words in NUMBERS} == NUMBERS


def test_the_proxies_of_the_page_wait_as_the_server_does():
    # A connection is given up before the server does so, an answer after it.
    for name in ("keepalive", "keepalive_timeout"):
        (seconds,) = re.findall(rf"{name} (\d+)s", PAGE)
        assert int(seconds) < SERVER.timeout_keep_alive
    for name in ("response_header_timeout", "proxy_read_timeout"):
        (seconds,) = re.findall(rf"{name} (\d+)s", PAGE)
        assert int(seconds) > LIMITS.seconds
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m", PAGE)
    assert int(megabytes) * 2**20 >= LIMITS.body_bytes
