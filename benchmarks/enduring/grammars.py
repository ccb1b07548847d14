"""Files that are odd but as they should be, and questions of them."""

import json
from random import Random
from typing import Any

TEXTS = (
    *("Bo lives in Rome.", "Zoë moved to São Paulo in 1984.", "東京は日本の首都です。"),
    *(
        "a\u0301 b\u0302",
        "one\u00a0two\u2003three",
        "\u200bzero\u200bwidth",
        "👩‍👩‍👧 🇫🇷",
    ),
    *(
        "line\nbreak\r\nand\ttab",
        "end.\n\n",
        "don’t “quote”",
        "1,234.5 % of $6",
        "ﬁ ǅ İ",
    ),
    *("عربي and עברית", "\ufeffmark", "\x00nul\x07bell", "A" * 3000, "word " * 700),
    *("...", "?", "\U0010ffff \ue000 \ufffd", "x\u2028y\u2029z\x85w", "<b>&amp;</b>"),
)


def text(random: Random) -> str:
    """Some text, not blank."""
    return " ".join(random.choices(TEXTS, k=random.choice((1, 1, 2, 3, 8))))


def data_file(random: Random) -> dict[str, Any]:
    """A document in the SQuAD format that is to be accepted."""
    number = 0

    def question(context: str) -> dict[str, Any]:
        nonlocal number
        number += 1
        entry = {"id": f"{number}{random.choice(TEXTS)}", "question": text(random)}
        answers = [answer(context) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
        if random.random() < 0.3:
            entry["is_impossible"] = not answers
        if random.random() < 0.2:
            entry["plausible_answers"] = [{"text": 7}]
        return entry | {"answers": answers}

    def answer(context: str) -> dict[str, Any]:
        first = random.randrange(len(context))
        piece = context[first : first + random.choice((1, 5, 40, 4000))]
        if not piece.strip():
            piece, first = context, 0
        # Wrong places are mended, texts that stand nowhere are counted.
        first += random.choice((0, 0, 0, 1, -7, 10**9, -(10**30), 10**30))
        return {"text": piece + random.choice(("", "", "!?")), "answer_start": first}

    def paragraph() -> dict[str, Any]:
        context = text(random)
        count = random.choice((0, 1, 2, 5))
        return {"context": context, "qas": [question(context) for _ in range(count)]}

    def article() -> dict[str, Any]:
        paragraphs = [paragraph() for _ in range(random.choice((0, 1, 2)))]
        title = {"title": random.choice(("", *TEXTS))} if random.random() < 0.8 else {}
        return title | {"paragraphs": paragraphs, "note": None}

    data = [article() for _ in range(random.choice((1, 2, 3)))]
    context = text(random)
    data.append({"paragraphs": [{"context": context, "qas": [question(context)]}]})
    version = {"version": random.choice(("1.1", "v2.0", ""))}
    return (version if random.random() < 0.8 else {}) | {"data": data}


def ids(document: dict[str, Any]) -> list[str]:
    """The ids of a document's questions."""
    return [
        question["id"]
        for article in document["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def as_json(document: Any, random: Random) -> bytes:
    """A document as JSON, written in one way or another."""
    indent = random.choice((None, None, 0, 2))
    written = json.dumps(document, ensure_ascii=random.random() < 0.5, indent=indent)
    mark = b"\xef\xbb\xbf" if random.random() < 0.2 else b""
    end = random.choice(("", "\n", "\r\n  "))
    return mark + f"{written}{end}".encode()


def questions(random: Random) -> bytes:
    """Lines of `answer --input`, all of which are questions."""
    lines = []
    for number in range(random.choice((1, 2, 4))):
        passages = [text(random)[:2000] for _ in range(2)]
        context = passages if random.random() < 0.3 else passages[0]
        row = {"question": text(random)[:1000], "context": context}
        if random.random() < 0.5:
            row["id"] = random.choice((number, "ä", None, [1], {"a": 1.5}, 10**30))
        lines.append(json.dumps(row, ensure_ascii=random.random() < 0.5))
    return "\n".join(lines).encode() + random.choice((b"", b"\n", b"\n\n"))


def vectors(random: Random, words: list[str]) -> bytes:
    """A file of word vectors that is to be accepted."""
    width = random.choice((2, 3, 8))
    numbers = ("0", "-1", "0.25", "1e-3", "-2.5E2", "1e-50", "3e38", "007")
    lines = [
        " ".join([word, *random.choices(numbers, k=width)])
        for word in random.sample([*words, "東京", "of course", ".", "\u2028"], k=5)
    ]
    # The first line tells how many numbers there are: its word has no blank.
    lines.sort(key=lambda line: line.startswith("of course"))
    if random.random() < 0.3:
        lines.insert(0, f"{len(lines)} {width}")
    end = random.choice(("\n", " \n", "\r\n"))
    return (end.join(lines) + random.choice(("", end))).encode()
