"""Paraphrases of a data set, by an Apache Beam pipeline on any number of machines.

Importing this raises `UserError` where Apache Beam is not installed.
"""

import contextlib
import io
import logging
import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from qanet.augmentation.answers import require_matchers
from qanet.augmentation.augment import Augmented, gather
from qanet.augmentation.paraphrase import (
    Paraphrase,
    Passage,
    Settings,
    choose,
    rebuild,
)
from qanet.errors import UserError, needing
from qanet.translation.translator import open_translator

# Beam warns while it is imported that it was installed without Google's cloud.
logging.disable(logging.WARNING)
try:
    with needing("--runner needs Apache Beam", "qanet[beam]"):
        import apache_beam as beam
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import (
            DirectOptions,
            GoogleCloudOptions,
            PipelineOptions,
        )
        from apache_beam.runners.runner import create_runner
finally:
    logging.disable(logging.NOTSET)

# Options that those of the user are added to.
OPTIONS = (
    # Keeps DirectRunner from downloading and starting another runner, Prism, which
    # does not know its processes. The pipeline has no triggers.
    "--allow_unsafe_triggers",
    "--default_sdk_harness_log_level=ERROR",
)
# Runners whose workers are all on this machine.
LOCAL_RUNNERS = (
    "BundleBasedDirectRunner",
    "FnApiRunner",
    "PrismRunner",
    "SwitchingDirectRunner",  # DirectRunner is another name of it.
)
# The key of a user's mistake among the results, which are by the passage's number.
PROBLEM = -1

Row = tuple[int, list[str | None]]

# The lines of the files that passages and results pass through, as JSON.
PASSAGE = TypeAdapter(tuple[int, Passage])
RESULT = TypeAdapter(tuple[int, Paraphrase | str])


def augment_with_beam(
    passages: Sequence[Passage],
    forward: str,
    backward: str,
    settings: Settings,
    runner: str,
    options: Sequence[str] = (),
) -> Augmented:
    """Does what `augment` does, as a pipeline: the result is the same but for the time.

    No sentence is translated twice, whatever the number of workers. A SQuAD file is one
    JSON document, so the passages and the result have to fit into this process's
    memory, as they do without a pipeline; the work in between is in the workers.

    Passages and results pass through files in a directory of their own, which is
    removed: below Beam's option `--temp_location` where that is given, which may be in
    a cloud, else below this machine's directory for temporary files.

    Args:
        passages: The contexts and their questions.
        forward: Specifies the translator into the other language; each worker opens it.
        backward: Specifies the translator back.
        settings: How translations are chosen and answers found.
        runner: Name of a Beam runner, such as `DirectRunner`.
        options: Beam's options, such as `--direct_num_workers=2`.

    Raises:
        UserError: The runner, an option or a library is missing, or a translator does
            not work, here or in a worker.
    """
    require_matchers()
    pipeline = _pipeline(runner, options)
    names, batch_sizes = zip(*map(_open_once, (forward, backward)), strict=True)
    begin = time.monotonic()
    with _directory(pipeline.options) as directory:
        source = FileSystems.join(directory, "passages")
        target = FileSystems.join(directory, "results")
        with _named(source), FileSystems.create(source) as file:
            for numbered in enumerate(passages):
                file.write(PASSAGE.dump_json(numbered) + b"\n")
        write = partial(
            _write, pipeline, source, target, (forward, backward), batch_sizes, settings
        )
        _to_its_end(write)
        with _named(f"{target}*"):
            results = dict(_read(f"{target}*"))
    if PROBLEM in results:
        raise UserError(results[PROBLEM])
    seconds = time.monotonic() - begin
    in_order = (results[number] for number in range(len(passages)))
    return gather(in_order, seconds, names)


def _open_once(specification: str) -> tuple[str, int]:
    """A translator's name and batch size. The workers open theirs and need the room."""
    translator = open_translator(specification)
    return translator.name, translator.batch_size


def _write(
    pipeline: beam.Pipeline,
    source: str,
    target: str,
    translators: tuple[str, str],
    batch_sizes: Sequence[int],
    settings: Settings,
) -> None:
    """Writes what becomes of the passages in a file, and what was wrong, into files."""
    lines = beam.coders.BytesCoder()
    with pipeline:
        read = (
            pipeline
            | "Read" >> beam.io.ReadFromText(source, coder=lines)
            | "Unpack" >> beam.Map(PASSAGE.validate_json)
        )
        sentences = read | "Split" >> beam.Map(_split)
        pivots, problems = (read, sentences) | "There" >> _Tell(
            translators[0], batch_sizes[0], settings, "forward"
        )
        new_sentences, more_problems = (read, pivots) | "Back" >> _Tell(
            translators[1], batch_sizes[1], settings, "backward"
        )
        paraphrases = (
            {"passage": read, "sentences": new_sentences}
            | "Join" >> beam.CoGroupByKey()
            | "Rebuild" >> beam.Map(_rebuild, settings)
        )
        (
            (paraphrases, problems, more_problems)
            | "All" >> beam.Flatten()
            | "Pack" >> beam.Map(RESULT.dump_json)
            | "Write" >> beam.io.WriteToText(target, coder=lines)
        )


def _to_its_end(work: Callable[[], None]) -> None:
    """Lets work run in a thread; the processes that it starts end when it is stopped.

    Beam waits for its workers even where it has failed to tell them to end.
    """
    failures, before = [], _processes_below(os.getpid())

    def attempt():
        try:
            work()
        except BaseException as error:
            failures.append(error)

    # The threads that it starts are daemons too: the end of the process waits for none.
    thread = threading.Thread(target=attempt, daemon=True)
    try:
        thread.start()
        thread.join()
    except KeyboardInterrupt:
        # They have lost their workers, and would say so.
        threading.excepthook = lambda *_: None
        for number in set(_processes_below(os.getpid())).difference(before):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        raise
    if failures:
        raise failures[0]


def _processes_below(number: int) -> list[int]:
    """The processes that one has started, and those that they have, where Linux tells.

    Elsewhere none: workers end by themselves when they have lost this process.
    """
    found = []
    for path in Path(f"/proc/{number}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *_processes_below(child)]
    return found


class _Tell(beam.PTransform):
    """Sentences of passages in another language.

    From the passages and rows of sentences, both by the passage's number, it makes rows
    of drawn translations and the problems that there were. A row has `None` where there
    is nothing to translate or no translation.
    """

    def __init__(
        self, specification: str, batch_size: int, settings: Settings, way: str
    ):
        super().__init__()
        self.specification = specification
        self.batch_size = batch_size
        self.settings = settings
        self.way = way

    def expand(self, inputs):
        passages, rows = inputs
        places = rows | "Places" >> beam.FlatMap(_places)
        translated = (
            places
            | "Texts" >> beam.Keys()
            | "Different" >> beam.Distinct()
            | "Batch" >> beam.BatchElements(self.batch_size, self.batch_size)
            | "Translate"
            >> beam.ParDo(
                _Translate(self.specification, self.settings.candidates)
            ).with_outputs("problems", main="translations")
        )
        found = (
            {"places": places, "translations": translated.translations}
            | "By text" >> beam.CoGroupByKey()
            | "Place" >> beam.FlatMap(_place)
        )
        drawn = (
            {"passage": passages, "found": found}
            | "By passage" >> beam.CoGroupByKey()
            | "Draw" >> beam.Map(_draw, self.settings, self.way)
        )
        return drawn, translated.problems


class _Translate(beam.DoFn):
    """Translates batches with a translator that each worker opens for itself.

    A user's mistake is an output, since a worker's exception would be tried again and
    then end in traceback upon traceback.
    """

    def __init__(self, specification: str, count: int):
        self.specification = specification
        self.count = count

    def setup(self):
        self.problem = None
        try:
            self.translator = open_translator(self.specification)
        except UserError as error:
            self.problem = error

    def process(self, batch: list[str]):
        try:
            if self.problem:
                raise self.problem
            found = self.translator.translate(batch, self.count)
        except UserError as error:
            yield beam.pvalue.TaggedOutput("problems", (PROBLEM, str(error)))
        else:
            yield from zip(batch, found, strict=True)


def _split(numbered: tuple[int, Passage]) -> Row:
    number, passage = numbered
    return number, passage.sentences


def _places(row: Row) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each text of a row with the number of its passage and its own."""
    number, texts = row
    for i, text in enumerate(texts):
        if text is not None:
            yield text, (number, i)


def _place(joined: tuple[str, dict]) -> Iterator[tuple[int, tuple[int, list[str]]]]:
    """A text's translations at each of its places; none where there was a problem."""
    _, groups = joined
    for translations in groups["translations"]:
        for number, i in groups["places"]:
            yield number, (i, translations)


def _draw(joined: tuple[int, dict], settings: Settings, way: str) -> Row:
    number, groups = joined
    (passage,) = groups["passage"]
    found = dict(groups["found"])
    return number, [
        choose(found.get(i, ()), passage.context, i, settings, way)
        for i in range(len(passage.spans))
    ]


def _rebuild(joined: tuple[int, dict], settings: Settings) -> tuple[int, Paraphrase]:
    number, groups = joined
    (passage,), (sentences,) = groups["passage"], groups["sentences"]
    return number, rebuild(passage, sentences, settings)


def _read(pattern: str) -> Iterator[tuple[int, Paraphrase | str]]:
    """What the pipeline has written."""
    (files,) = FileSystems.match([pattern])
    for file in files.metadata_list:
        with FileSystems.open(file.path) as lines:
            yield from map(RESULT.validate_json, lines)


def _pipeline(runner: str, options: Sequence[str]) -> beam.Pipeline:
    parsed = PipelineOptions([*OPTIONS, *options])
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed.get_all_options()
    except SystemExit as error:
        if not error.code:
            raise
        reason = complaint.getvalue().splitlines()[-1].partition("error: ")[2]
        raise UserError(f"--runner {runner}: {reason}") from None
    if parsed.view_as(DirectOptions).direct_running_mode == "multi_threading":
        # Its streams are flushed by time, from another thread than the one that
        # writes an element (Beam 2.77).
        raise UserError(
            "--direct_running_mode=multi_threading: Beam may cut data in two there; "
            "take multi_processing"
        )
    try:
        opened = create_runner(runner)
        is_local = type(opened).__name__ in LOCAL_RUNNERS
        if not is_local and not _temporary_location(parsed):
            raise UserError(
                f"--runner {runner}: its workers may be on other machines; add "
                "-- --temp_location=DIR, a directory that all of them and this one see"
            )
        return beam.Pipeline(opened, parsed)
    except (ImportError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"--runner {runner}: {reason}") from None


def _temporary_location(options: PipelineOptions) -> str | None:
    return options.view_as(GoogleCloudOptions).temp_location


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Within this context what a disk refuses is a `UserError` about this path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path}: cannot be written or read: {reason}") from error


@contextlib.contextmanager
def _directory(options: PipelineOptions) -> Iterator[str]:
    """A new directory for as long as it is needed."""
    base = _temporary_location(options) or tempfile.gettempdir()
    if set(base) & set("*?["):
        raise UserError(
            f"--temp_location {base}: Beam would read its name as a pattern; give a "
            "directory without *, ? and ["
        )
    try:
        directory = FileSystems.join(base, f"qanet-{uuid.uuid4().hex}")
        FileSystems.mkdirs(directory)
    except (OSError, ValueError) as error:
        raise UserError(f"--temp_location {base}: cannot be used: {error}") from None
    try:
        yield directory
    finally:
        # Clouds have no directories, only files with such a beginning; disks have both.
        FileSystems.delete([f"{directory}/"])
        if FileSystems.exists(directory):
            FileSystems.delete([directory])
