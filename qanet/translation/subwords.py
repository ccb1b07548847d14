"""Sub-words by SentencePiece (Kudo and Richardson, 2018)."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from qanet.errors import UserError, needing, reading
from qanet.files import write_file

PADDING, UNKNOWN, BEGIN, END = range(4)


class Subwords:
    """Turns sentences into numbers and back.

    Args:
        serialized: a SentencePiece model, as `train_subwords` makes it.

    Raises:
        UserError: the library is not installed.
        ValueError: this is no such model.
    """

    def __init__(self, serialized: bytes):
        sentencepiece = _library()
        self.serialized = serialized
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(serialized)
        except RuntimeError as error:
            raise ValueError("not a SentencePiece model") from error
        if self._processor.pad_id() != PADDING or self._processor.eos_id() != END:
            raise ValueError("a SentencePiece model with other marks")

    def __len__(self) -> int:
        return self._processor.GetPieceSize()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The sub-words of each sentence, without marks."""
        return self._processor.EncodeAsIds(list(sentences))

    def decode(self, rows: Iterable[Sequence[int]]) -> list[str]:
        """The sentences again; everything from the mark of the end on is left out."""
        texts = []
        for row in rows:
            row = [int(piece) for piece in row]
            row = row[: row.index(END)] if END in row else row
            texts.append(self._processor.DecodeIds([p for p in row if p > END]))
        return texts

    def save(self, path: Path) -> None:
        """Writes the model."""
        write_file(path, lambda file: file.write(self.serialized))

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Reads what `save` wrote; raises `UserError` where it cannot."""
        try:
            with reading(path):
                serialized = path.read_bytes()
            return cls(serialized)
        except ValueError as error:
            raise UserError(f"{path}: damaged ({error})") from None


def train_subwords(sentences: Iterable[str], pieces: int, seed: int) -> Subwords:
    """Learns the sub-words of some sentences.

    Args:
        sentences: text of all languages.
        pieces: number of sub-words; fewer where the text has not so many.
        seed: fixes which sentences are looked at where there are very many.

    Raises:
        UserError: there are fewer sub-words than characters, or no sentence that is
            short enough to learn from.
    """
    sentencepiece = _library()
    sentencepiece.SetRandomGeneratorSeed(seed)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=pieces,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            input_sentence_size=500_000,
            pad_id=PADDING,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "required_chars" in str(error):
            raise UserError(
                f"model.pieces={pieces}: are fewer than the texts have characters; "
                "give more"
            ) from None
        raise UserError(
            "data: no sub-words can be made of these texts, whose lines may be too "
            "long; give one sentence a line"
        ) from None
    return Subwords(model.getvalue())


def _library():
    with needing("translation models need sentencepiece", "qanet[translate]"):
        import sentencepiece
    return sentencepiece
