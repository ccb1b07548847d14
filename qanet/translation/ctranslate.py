"""Ready-made translation models, computed by CTranslate2 (Klein et al., 2020)."""

import json
from collections.abc import Sequence
from pathlib import Path

from qanet.errors import UserError, first_line, needing, reading
from qanet.files import digest_of
from qanet.translation.translator import BATCH_SIZE, BATCH_TOKENS, BEAMS

# Sub-words of a sentence: the models have 512 positions or more.
LONGEST_SOURCE, LONGEST_TARGET = 400, 500
# SentencePiece's sign for a blank.
BLANK = "\u2581"


class CTranslateTranslator:
    """Translates with a Marian, OPUS-MT or NLLB model that CTranslate2 converted.

    It is computed as precisely as it was stored, on a GPU where there is one.

    Args:
        directory: The converted model and its sub-words: `source.spm` and
            `target.spm`, or for a model of many languages one `*.model`.
        languages: Tokens of source and target language, for example
            `("eng_Latn", "fra_Latn")`; only for a model of many languages.

    Raises:
        UserError: A library or a file is missing, a file is damaged, or the model
            has no such language.
    """

    batch_size = BATCH_SIZE

    def __init__(self, directory: Path, languages: tuple[str, str] | None = None):
        ctranslate2, sentencepiece = _libraries()
        self.directory = directory
        self.languages = languages
        paths = _subwords(directory, multilingual=languages is not None)
        processors = [_processor(sentencepiece, path) for path in paths]
        self.source, self.target = processors[0], processors[-1]
        try:
            self.model = ctranslate2.Translator(str(directory), device="auto")
            config = json.loads((directory / "config.json").read_bytes())
            # Models from Marian add the mark of the end themselves, those from
            # Transformers leave it to their tokenizers.
            self.end = [] if config["add_source_eos"] else [config["eos_token"]]
            files = [directory / "model.bin", directory / "config.json"]
            files += sorted(directory.glob("*_vocabulary.*"))
            digest = digest_of([*files, *paths])[:12]
            if languages:
                for side, language in zip(("source", "target"), languages, strict=True):
                    self._check_language(language, _vocabulary(directory, side))
        except (OSError, RuntimeError, ValueError, LookupError, MemoryError) as error:
            raise UserError(
                f"{directory}: damaged or no translation model ({first_line(error)}); "
                "convert it again"
            ) from None
        parts = [f"ctranslate2:{directory.resolve().name}", *(languages or ())]
        self.name = " ".join([*parts, digest, f"beam {BEAMS}"])

    def translate(self, sentences: Sequence[str], count: int) -> list[list[str]]:
        """See `Translator.translate`; an over-long sentence has none."""
        results: list[list[str]] = [[] for _ in sentences]
        encoded = self.source.encode([_clean(s) for s in sentences], out_type=str)
        items = [
            i for i, pieces in enumerate(encoded) if 0 < len(pieces) <= LONGEST_SOURCE
        ]
        begin, prefix = [], None
        if self.languages:
            begin, prefix = [self.languages[0]], [[self.languages[1]]] * len(items)
        try:
            found = self.model.translate_batch(
                [begin + encoded[i] + self.end for i in items],
                prefix,
                max_batch_size=BATCH_TOKENS,
                batch_type="tokens",
                beam_size=max(BEAMS, count),
                num_hypotheses=count,
                max_decoding_length=LONGEST_TARGET,
                disable_unk=True,
            )
        except (RuntimeError, ValueError, MemoryError) as error:
            raise UserError(
                f"{self.directory}: cannot translate ({first_line(error)}); convert "
                "the model again, or set CUDA_VISIBLE_DEVICES= to do without the GPU"
            ) from None
        for i, result in zip(items, found, strict=True):
            texts = dict.fromkeys(self._text(pieces) for pieces in result.hypotheses)
            results[i] = [text for text in texts if text]
        return results

    def _text(self, pieces: list[str]) -> str:
        if self.languages:
            # What is no sub-word is the mark of a language or another one.
            pieces = [piece for piece in pieces if self._is_subword(piece)]
        # A source's sub-word that the target's do not have is decoded as it stands.
        return _clean(self.target.decode(pieces).replace(BLANK, " "))

    def _is_subword(self, piece: str) -> bool:
        return not self.target.is_unknown(self.target.piece_to_id(piece))

    def _check_language(self, language: str, vocabulary: set[str]) -> None:
        if language not in vocabulary or self._is_subword(language):
            raise UserError(
                f"{self.directory}: has no language {language!r}; write it as the "
                "model does, for example eng_Latn"
            )


def _libraries():
    with needing(
        "ready-made translation models need CTranslate2", "qanet[ctranslate2]"
    ):
        import ctranslate2
        import sentencepiece
    return ctranslate2, sentencepiece


def _subwords(directory: Path, multilingual: bool) -> list[Path]:
    """The SentencePiece models, of the source first."""
    if not directory.is_dir():
        raise UserError(
            f"{directory}: no such directory; give that of a converted model, "
            "see docs/augmentation.md"
        )
    if not (directory / "model.bin").is_file():
        raise UserError(
            f"{directory}: has no model.bin; convert the model with "
            "ct2-transformers-converter or ct2-opus-mt-converter"
        )
    if multilingual:
        paths = sorted(directory.glob("*.model"))
        if len(paths) != 1:
            raise UserError(
                f"{directory}: has {len(paths)} files *.model; it must have one, that "
                "of the original model, for example sentencepiece.bpe.model"
            )
        return paths
    paths = [directory / "source.spm", directory / "target.spm"]
    for path in paths:
        if not path.is_file():
            raise UserError(
                f"{path}: missing; copy it from the original model, or for one of many "
                f"languages write ctranslate2:{directory}:SOURCE:TARGET"
            )
    return paths


def _processor(sentencepiece, path: Path):
    processor = sentencepiece.SentencePieceProcessor()
    try:
        with reading(path):
            serialized = path.read_bytes()
        processor.LoadFromSerializedProto(serialized)
    except RuntimeError:
        raise UserError(
            f"{path}: damaged; copy it from the original model again"
        ) from None
    return processor


def _vocabulary(directory: Path, side: str) -> set[str]:
    """The model's tokens of the source or the target, as converters store them."""
    for stem in (f"{side}_vocabulary", "shared_vocabulary"):
        if (path := directory / f"{stem}.json").is_file():
            return set(json.loads(path.read_bytes()))
        if (path := directory / f"{stem}.txt").is_file():
            return set(path.read_text(encoding="utf-8").split("\n"))
    raise ValueError("no vocabulary")


def _clean(text: str) -> str:
    """The text with single blanks, and without what UTF-8 cannot write."""
    return " ".join(text.encode("utf-8", "replace").decode().split())
