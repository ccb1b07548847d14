"""Tests of qanet.translation.cache."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.translation.cache import CHUNK, CachedTranslator, TranslationCache


class Shouting:
    """Translates into capitals and notes what it was asked."""

    name = "shouting"
    batch_size = 2

    def __init__(self):
        self.asked = []

    def translate(self, sentences, count):
        self.asked += sentences
        return [
            [sentence.upper() + "!" * i for i in range(count)] if sentence else []
            for sentence in sentences
        ]


@pytest.fixture
def cache(tmp_path):
    cache = TranslationCache(tmp_path / "new" / "cache.sqlite")
    yield cache
    cache.close()


def test_translates_like_the_translator(cache):
    cached = CachedTranslator(Shouting(), cache)
    assert cached.translate(["a", "", "b", "a"], 2) == [
        ["A", "A!"],
        [],
        ["B", "B!"],
        ["A", "A!"],
    ]
    assert (cached.name, cached.batch_size) == ("shouting", 2)


def test_no_sentence_is_translated_twice(cache):
    translator = Shouting()
    cached = CachedTranslator(translator, cache)
    cached.translate(["a", "b", "a"], 1)
    assert cached.translate(["b", "c", ""], 1) == [["B"], ["C"], []]
    cached.translate(["", "c"], 1)
    assert translator.asked == ["a", "b", "c", ""]


def test_another_process_finds_what_was_stored(cache):
    CachedTranslator(Shouting(), cache).translate(["é\n", '"b"'], 2)
    # The first one is still open, as if it had been killed.
    other = TranslationCache(cache.path)
    assert other.find("shouting", 2, ['"b"', "é\n", "c"]) == {
        '"b"': ['"B"', '"B"!'],
        "é\n": ["É\n", "É\n!"],
    }
    other.close()


def test_translators_and_counts_are_kept_apart(cache):
    cache.store("one", 1, {"a": ["x"]})
    cache.store("other", 1, {"a": ["y"]})
    cache.store("one", 2, {"a": ["x", "z"]})
    assert cache.find("one", 1, ["a"]) == {"a": ["x"]}
    assert cache.find("other", 1, ["a"]) == {"a": ["y"]}
    assert cache.find("one", 2, ["a"]) == {"a": ["x", "z"]}
    assert cache.find("other", 2, ["a"]) == {}


def test_finds_any_number(cache):
    many = {f"sentence {i}": [str(i)] for i in range(2 * CHUNK + 1)}
    cache.store("one", 1, many)
    assert cache.find("one", 1, list(many)) == many


@given(st.dictionaries(st.text(), st.lists(st.text(), max_size=3), max_size=5))
def test_stores_any_text(tmp_path_factory, translations):
    cache = TranslationCache(tmp_path_factory.mktemp("cache") / "cache.sqlite")
    cache.store("one", 3, translations)
    assert cache.find("one", 3, list(translations)) == translations
    cache.close()


def test_what_is_no_cache_is_refused(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(UserError, match=r"cache\.sqlite: not usable") as caught:
        TranslationCache(path)
    assert "--cache" in str(caught.value)
    with pytest.raises(UserError, match="unable to open"):
        TranslationCache(tmp_path)


def test_what_is_whole_is_not_to_be_deleted(cache):
    cache.store("one", 1, {"a": ["x"]})
    cache.database.execute("PRAGMA max_page_count=3")
    with pytest.raises(UserError, match=r"disk is full\); mend that") as caught:
        cache.store("one", 1, {"b" * 100_000: ["x"]})
    assert "delete" not in str(caught.value)
    assert cache.find("one", 1, ["a"]) == {"a": ["x"]}


@pytest.mark.parametrize("entry", ["{", '"text"', "[1]", "[null]", "[" * 100_000, None])
def test_a_changed_entry_is_refused(cache, entry):
    cache.store("one", 1, {"a": ["x"]})
    with sqlite3.connect(cache.path) as other:
        other.execute("UPDATE translations SET translations = ?", (entry,))
    other.close()
    with pytest.raises(UserError, match="not usable"):
        cache.find("one", 1, ["a"])
