"""Translations that are kept on disk, so that no sentence is translated twice."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from qanet.errors import UserError
from qanet.files import parse_json
from qanet.translation.translator import Translator

WAIT_SECONDS = 60
# SQLite allows only so many values in one question.
CHUNK = 500


class TranslationCache:
    """A file of translations, which several processes may use at a time.

    Every stored batch is on disk when `store` returns, so a killed run loses at most
    the batch that it was at.

    Args:
        path: An SQLite file; made if need be.

    Raises:
        UserError: The file cannot be opened or is something else.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.database = sqlite3.connect(path, timeout=WAIT_SECONDS)
            with self.database:
                self.database.execute(
                    "CREATE TABLE IF NOT EXISTS translations (translator TEXT, "
                    "count INTEGER, sentence TEXT, translations TEXT, "
                    "PRIMARY KEY (translator, count, sentence)) WITHOUT ROWID"
                )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None

    def find(
        self, translator: str, count: int, sentences: Sequence[str]
    ) -> dict[str, list[str]]:
        """The stored translations of those sentences that have any.

        Args:
            translator: Name of the translator.
            count: The number of translations that it was asked for.
            sentences: What to look up.

        Raises:
            UserError: the file is damaged, or the disk refuses it.
        """
        found = {}
        try:
            for first in range(0, len(sentences), CHUNK):
                part = sentences[first : first + CHUNK]
                marks = ",".join("?" * len(part))
                rows = self.database.execute(
                    "SELECT sentence, translations FROM translations WHERE "
                    f"translator = ? AND count = ? AND sentence IN ({marks})",
                    (translator, count, *part),
                )
                found |= {sentence: _parse(text) for sentence, text in rows}
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise self._unusable(error) from None
        return found

    def store(
        self, translator: str, count: int, translations: dict[str, list[str]]
    ) -> None:
        """Adds translations of some sentences; raises `UserError` as `find` does."""
        rows = [
            (translator, count, sentence, json.dumps(found, ensure_ascii=False))
            for sentence, found in translations.items()
        ]
        try:
            with self.database:
                self.database.executemany(
                    "INSERT OR REPLACE INTO translations VALUES (?, ?, ?, ?)", rows
                )
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def close(self) -> None:
        """Closes the file."""
        self.database.close()

    def _unusable(self, error: Exception) -> UserError:
        if isinstance(error, sqlite3.OperationalError):
            # A full disk, another process: what is stored is whole.
            return UserError(
                f"{self.path}: the cache of translations cannot be used now "
                f"({error}); mend that and start again, or give another --cache"
            )
        return UserError(
            f"{self.path}: not usable as a cache of translations ({error}); "
            "delete it or give another --cache"
        )


def _parse(text: str) -> list[str]:
    translations = parse_json(text)
    if not isinstance(translations, list):
        raise ValueError("an entry is not a list")
    if not all(isinstance(translation, str) for translation in translations):
        raise ValueError("a translation is not a text")
    return translations


class CachedTranslator:
    """A translator that asks its cache first.

    Args:
        translator: Translates what the cache does not hold.
        cache: Where translations are looked for and kept.
    """

    def __init__(self, translator: Translator, cache: TranslationCache):
        self.translator = translator
        self.cache = cache
        self.name = translator.name
        self.batch_size = translator.batch_size

    def translate(self, sentences: Sequence[str], count: int) -> list[list[str]]:
        """See `Translator.translate`."""
        different = list(dict.fromkeys(sentences))
        known = self.cache.find(self.name, count, different)
        missing = [sentence for sentence in different if sentence not in known]
        if missing:
            found = self.translator.translate(missing, count)
            new = dict(zip(missing, found, strict=True))
            self.cache.store(self.name, count, new)
            known |= new
        return [known[sentence] for sentence in sentences]
