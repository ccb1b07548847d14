"""Damage done to files: to bytes, to the values of a JSON document, to lines of text.

All of it is drawn from a `random.Random`, so that equal seeds do equal damage.
"""

import copy
import json
from random import Random
from typing import Any

# JSON values, as they stand in a file, that take the place of others.
ODD_VALUES = (
    *("null", "true", "false", "0", "-1", "1", "2", "1.5", "1e-9", "1e999", "NaN"),
    *("Infinity", "-Infinity", "2147483648", "-9223372036854775809"),
    *("9" * 400, "9" * 5000, "[]", "{}", "[[]]", "[1]", '["a"]', '{"a": 1}'),
    *('""', '" "', '"\\n"', '"\\u0000"', '"\\ud800"', '"\\u200b"', '"x"', '"1"'),
    *('"a\\nb"', '"a/b"', '"é"', '"\\ud83d\\ude00"', '"' + "long " * 20_000 + '"'),
    *(
        "[" * 400 + "]" * 400,
        "[" * 100_000 + "]" * 100_000,
        '{"a": ' * 5000 + "1" + "}" * 5000,
    ),
)
# Lines, or parts of them, that take the place of others.
ODD_TEXTS = (
    *(b"", b" ", b"  ", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"x"),
    *(b"1", b"-1", b"1.5", b"nan", b"inf", b"1e39", b"1e999", b"1_0", b"0x1", b"1,5"),
    *(b"99999999999999999999", b"9" * 5000, b"2 4", b"3 999999999999", b"1 0"),
    *("東京 1 2".encode(), "\u2028".encode(), b"long " * 20_000, b"\xed\xa0\x80"),
)
_RAW, _TWICE = "@raw@", "@twice@"


def of_bytes(data: bytes, random: Random, other: bytes = b"") -> bytes:
    """A file cut off, changed, or joined from parts of two.

    Args:
        data: the file.
        random: what is drawn from.
        other: another file, of which a part may come in.
    """
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        first = random.randrange(len(data) + 1)
        last = min(len(data), first + random.choice((1, 2, 4, 8, 64, 1024)))
        way = random.randrange(7)
        if way == 0:
            data = data[:first]
        elif way == 1:
            bits = bytes(byte ^ 1 << random.randrange(8) for byte in data[first:last])
            data = data[:first] + bits + data[last:]
        elif way == 2:
            data = data[:first] + random.randbytes(last - first) + data[first:]
        elif way == 3:
            data = data[:first] + data[last:]
        elif way == 4:
            data = data[:last] + data[first:]
        elif way == 5:
            data = data[:first] + other[random.randrange(len(other) + 1) :]
        else:
            filling = random.choice((b"\0", b"\xff", b"9", b'"', b"[", b"\n"))
            data = data[:first] + filling * (last - first) + data[last:]
    return data


def of_json(value: Any, random: Random) -> bytes:
    """A document of which some values are others, or are missing, or there twice."""
    document, raw = {"": copy.deepcopy(value)}, []
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        holder, key = _place(document, random)
        way = random.randrange(6)
        if way == 0 and holder is not document:
            del holder[key]
        elif way == 1 and holder is not document:
            _double(holder, key, random)
        elif way == 2 and holder is not document:
            other, place = _place(document, random)
            holder[key] = copy.deepcopy(other[place])
        else:
            holder[key] = f"{_RAW}{len(raw)}"
            raw.append(random.choice(ODD_VALUES))
    text = json.dumps(document[""], ensure_ascii=random.random() < 0.5)
    for number, odd in reversed([*enumerate(raw)]):
        text = text.replace(f'"{_RAW}{number}"', odd)
    return text.replace(f'"{_TWICE}', '"').encode("utf-8", "surrogatepass")


def _place(document: dict, random: Random) -> tuple[Any, Any]:
    """Some value's holder and its key or number there, seldom a deep one's."""
    holder, key = document, ""
    while isinstance(holder[key], dict | list) and holder[key]:
        if random.random() < (0.05 if holder is document else 0.2):
            break
        holder = holder[key]
        inside = [*holder] if isinstance(holder, dict) else range(len(holder))
        key = random.choice(inside)
    return holder, key


def _double(holder: Any, key: Any, random: Random) -> None:
    """A list has the value twice then, an object another value or key beside it."""
    if isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
        return
    name = key.removeprefix(_TWICE)
    if random.random() < 0.5:
        holder[f"{_TWICE}{name}"] = random.choice((None, 0, "", [], {}))
    else:
        name = random.choice(("", "a\nb", "\ud800", f"{name} ", name.upper()))
        holder[name] = holder[key]


def of_lines(data: bytes, random: Random) -> bytes:
    """A text of which some lines are others, longer, shorter, or end otherwise."""
    lines = data.splitlines(keepends=True) or [b""]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        # The first line tells of the others.
        number = random.choice((0, random.randrange(len(lines))))
        odd = random.choice(ODD_TEXTS)
        way = random.randrange(8)
        if way == 0:
            lines[number] = odd
        elif way == 1:
            lines[number] = odd + lines[number]
        elif way == 2:
            lines[number] = lines[number].rstrip(b"\r\n") + odd + b"\n"
        elif way == 3:
            lines.insert(number, random.choice(lines))
        elif way == 4:
            lines[number] = lines[number].rstrip(b"\r\n")
        elif way == 5:
            lines = [line.rstrip(b"\r\n") + b"\r\n" for line in lines]
        else:
            parts = lines[number].split(b" ")
            parts[random.randrange(len(parts))] = odd
            lines[number] = b" ".join(parts)
    return b"".join(lines)


def damaged(data: bytes, random: Random, other: bytes = b"") -> bytes:
    """A text file damaged in one of these ways, in its values if it holds JSON."""
    way = random.random()
    if way < 0.25:
        return of_bytes(data, random, other)
    try:
        document = json.loads(data)
    except ValueError:
        return of_lines(data, random)
    return of_lines(data, random) if way < 0.35 else of_json(document, random)
