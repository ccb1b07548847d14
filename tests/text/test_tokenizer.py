import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.text.tokenizer import (
    CJK,
    SOFT_HYPHEN,
    SPACE,
    SYMBOL,
    WORD,
    character_classes,
    count_tokens,
    token_spans,
    tokenize,
)
from qanet.text.unicode_classes import UNICODE_VERSION

# Any code point, lone surrogates too; and text in which the classes often meet.
ANY_TEXT = st.text(st.characters())
MIXED_TEXT = st.text(
    "ab1é\u0301 \t\n\u00a0\u00ad\u200d.,-—$漢かカ한😀\ud800\U00020000\x00"
)
TEXTS = ANY_TEXT | MIXED_TEXT


def spans_by_rule(text):
    """The rule as documented, character by character, without the regex."""
    classes = [int(character_classes()[ord(character)]) for character in text]
    spans = []
    for i, kind in enumerate(classes):
        if kind == SPACE:
            continue
        if kind == WORD and i > 0 and classes[i - 1] == WORD:
            spans[-1] = (spans[-1][0], i + 1)
        else:
            spans.append((i, i + 1))
    return spans


@given(TEXTS)
def test_spans_follow_the_rule(text):
    assert token_spans(text) == spans_by_rule(text)


@given(TEXTS)
def test_offsets_reproduce_the_tokens(text):
    assert [text[start:end] for start, end in token_spans(text)] == tokenize(text)
    assert count_tokens(text) == len(tokenize(text))


@given(TEXTS)
def test_tokens_and_gaps_reproduce_the_text(text):
    pieces, done = [], 0
    for start, end in token_spans(text):
        assert done <= start < end
        gap = text[done:start]
        assert all(character_classes()[ord(character)] == SPACE for character in gap)
        pieces += [gap, text[start:end]]
        done = end
    rest = text[done:]
    assert all(character_classes()[ord(character)] == SPACE for character in rest)
    assert "".join(pieces) + rest == text


@given(st.lists(TEXTS))
def test_a_space_between_texts_keeps_their_tokens(texts):
    expected = [token for text in texts for token in tokenize(text)]
    assert tokenize(" ".join(texts)) == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\r\n\x0b\x0c\x85\u00a0\u2003\u2028\u3000\ufeff", []),
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("don't", ["don", "'", "t"]),
        ("$1,000.50", ["$", "1", ",", "000", ".", "50"]),
        ("1914—1918", ["1914", "—", "1918"]),
        ("wait...", ["wait", ".", ".", "."]),
        ("snake_case", ["snake", "_", "case"]),
        ("covid19", ["covid19"]),
        ("Beyoncé", ["Beyoncé"]),
        ("Beyonce\u0301", ["Beyonce\u0301"]),
        ("x²", ["x²"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("서울은 수도", ["서울은", "수도"]),
        ("東京タワーはTokyoに", [*"東京タワーは", "Tokyo", "に"]),
        ("か\u3099", ["か", "\u3099"]),  # a mark is a WORD wherever it stands
        ("soft\u00adhyphen \u00ad", ["soft\u00adhyphen", "\u00ad"]),
        # Variation selectors are not seen.
        ("❤\ufe0fTokyo ©\ufe0f2024", ["❤", "Tokyo", "©", "2024"]),
        ("葛\U000e0100飾", ["葛", "飾"]),
        ("👍🏽ok", ["👍", "🏽", "ok"]),
        ("\ud83d\ude00", ["\ud83d", "\ude00"]),  # two lone surrogates, not one pair
    ],
)
def test_known_texts(text, tokens):
    assert tokenize(text) == tokens


def test_spans_count_code_points():
    assert token_spans("😀 né!") == [(0, 1), (2, 4), (4, 5)]


def test_class_table():
    classes = character_classes()
    assert classes.shape == (0x110000,)
    assert classes.dtype == np.uint8
    assert set(np.unique(classes)) == {SPACE, WORD, SYMBOL, CJK} == {0, 1, 2, 3}


def test_class_table_cannot_be_spoiled():
    with pytest.raises(ValueError, match="read-only"):
        character_classes()[ord("a")] = SPACE


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [  # whole blocks, from the Unicode charts
        (0x0000, 0x0020, SPACE),  # C0 controls and blank
        (0x0030, 0x0039, WORD),
        (0x0300, 0x036F, WORD),  # combining diacritical marks
        (0x20A0, 0x20C0, SYMBOL),  # currency signs
        (0x3041, 0x3096, CJK),  # hiragana
        (0x30A1, 0x30FA, CJK),  # katakana
        (0x30FC, 0x30FF, CJK),  # long vowel, iteration marks
        (0x3400, 0x4DBF, CJK),  # ideographs, extension A
        (0x4E00, 0x9FFF, CJK),  # ideographs
        (0xAC00, 0xD7A3, WORD),  # Hangul syllables
        (0xD800, 0xDFFF, SYMBOL),  # surrogates
        (0xE000, 0xF8FF, SYMBOL),  # private use
        (0xFF66, 0xFF9D, CJK),  # half-width katakana
        (0x1F600, 0x1F64F, SYMBOL),  # emoticons
        (0x20000, 0x2A6DF, CJK),  # ideographs, extension B
        (0x10FFFE, 0x10FFFF, SYMBOL),  # no characters
    ],
)
def test_class_of_whole_blocks(first, last, kind):
    assert (character_classes()[first : last + 1] == kind).all()


@pytest.mark.skipif(
    [int(part) for part in unicodedata.unidata_version.split(".")]
    > [int(part) for part in UNICODE_VERSION.split(".")],
    reason="this Python knows characters newer than the table",
)
def test_classes_agree_with_the_unicode_of_this_python():
    categories = [unicodedata.category(chr(code)) for code in range(0x110000)]
    by_letter = dict(zip("ZLMNPS", [SPACE, WORD, WORD, WORD, SYMBOL, SYMBOL], strict=1))
    selectors = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
    by_category = {"Cc": SPACE, "Cf": SPACE, "Cs": SYMBOL, "Co": SYMBOL}
    cjk = re.compile("CJK|IDEOGRAPHIC|HANGZHOU|HIRAGANA|HENTAIGANA|KATAKANA|KANA ")
    for code, (category, kind) in enumerate(
        zip(categories, character_classes().tolist(), strict=True)
    ):
        if category == "Cn":  # may have been assigned since
            continue
        if kind == CJK:
            assert category[0] in "LN", hex(code)
            assert cjk.search(unicodedata.name(chr(code))), hex(code)
        elif code in selectors:
            assert kind == SPACE, hex(code)
        elif chr(code) == SOFT_HYPHEN:
            assert kind == WORD
        else:
            expected = by_category.get(category, by_letter.get(category[0]))
            assert kind == expected, hex(code)
