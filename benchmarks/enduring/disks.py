"""Whether commands end well on full disks, without permission, and at SIGTERM.

Each command is run once undisturbed and then with faults: its output on a disk that is
too small or in a directory that it may not write, a file that it reads removed at a
drawn moment, SIGTERM at a drawn moment, see `enduring.moments`. It should end with one
line and exit code 2, at SIGTERM 143, and leave neither half a file nor a temporary one;
and the same command without a fault should then give what the undisturbed one gave.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from enduring.findings import Finding
from enduring.killed import begin, differences
from enduring.processes import ending, run_command
from qanet.checksums import CHECKSUM_FILE
from qanet.cli import TERMINATED
from qanet.console import progress_bar
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import write_squad

# Of each command and fault that is drawn.
TRIES = 5
# Starts a program that may not write everything, though root starts it.
WITHOUT_RIGHTS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
PAGE = 4096
# Passages of the sample.
PASSAGES = 12


@dataclass(frozen=True)
class Command:
    """A command and its files.

    Attributes:
        line: its arguments, where `{inputs}` and `{out}` stand for directories.
        reads: files below the inputs that it reads, and directories of such files.
        kept: patterns of the files below its output that it goes on with when it is
            given again.
    """

    line: str
    reads: tuple[str, ...]
    kept: tuple[str, ...] = ()

    def arguments(self, inputs: Path, out: Path) -> list[str]:
        """Its arguments; a training that is there already goes on."""
        if self.line.startswith("train "):
            output = ["--quiet", "--output", str(out / "run")]
            if (out / "run" / "config.json").exists():
                return ["train", "--resume", *output]
            files = (str(inputs / name) for name in self.reads)
            return ["train", *begin(*files), *output]
        return [
            *self.line.format(inputs=inputs, out=out).split(" "),
            "--quiet",
        ]

    def files(self, inputs: Path) -> list[Path]:
        """The files that it reads."""
        paths = [inputs / name for name in self.reads]
        below = [sorted(p.rglob("*")) if p.is_dir() else [p] for p in paths]
        return [path for part in below for path in part if path.is_file()]


COMMANDS = {
    "train": Command("train ", ("train.json", "dev.json"), ("run/*",)),
    "export": Command(
        "export --model {inputs}/run --format onnx --output {out}/export",
        ("run/config.json", "run/weights.npz", "run/vocabulary", "run/metrics.json"),
    ),
    "evaluate": Command(
        "evaluate --model {inputs}/export --data {inputs}/dev.json "
        "--output {out}/evaluation",
        ("dev.json", "export"),
    ),
    "answer": Command(
        "answer --model {inputs}/export --input {inputs}/questions.jsonl "
        "--output {out}/answers.jsonl",
        ("questions.jsonl", "export"),
        ("answers.jsonl.part", "answers.jsonl.part.key"),
    ),
    "augment": Command(
        "augment --input {inputs}/train.json --output {out}/augmented.json "
        "--forward marking:there --backward marking:back",
        ("train.json",),
        ("augmented.translations.sqlite", "augmented.translations.sqlite-journal"),
    ),
}


def run(seed: int) -> list[Finding]:
    """Runs the commands with their faults."""
    with tempfile.TemporaryDirectory() as directory:
        return endure(Path(directory), seed, TRIES, list(COMMANDS))


def endure(place: Path, seed: int, tries: int, names: list[str]) -> list[Finding]:
    """Tries out some commands in a directory of their own."""
    prepare(place)
    draws = random.Random(seed)
    rows = []
    with progress_bar(total=len(names) * (3 * tries + 1), unit="fault") as bar:
        for name in names:
            trial = Trial(place, name, draws)
            for what, fault, count in (
                ("full disk", trial.full_disk, tries),
                ("no permission", trial.no_permission, 1),
                ("a file removed", trial.file_removed, tries),
                ("SIGTERM", trial.terminated, tries),
            ):
                bar.set_description(f"{name}: {what}")
                found = Finding(f"{name}: {what}", count)
                for _ in range(count):
                    try:
                        found.wrong += fault()
                    except Skipped as reason:
                        found.tries, found.remark = 0, f"skipped: {reason}"
                    bar.update()
                rows.append(found)
    return rows


def prepare(place: Path) -> None:
    """Makes what the commands read, undisturbed: data, a reader, its export."""
    inputs = place / "inputs"
    inputs.mkdir()
    for split in ("train", "dev"):
        examples = load_examples("sample", split).examples
        contexts = list(dict.fromkeys(e.context for e in examples))[:PASSAGES]
        few = [example for example in examples if example.context in contexts]
        write_squad(inputs / f"{split}.json", few)
    rows = [{"question": e.question, "context": e.context} for e in few]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (inputs / "questions.jsonl").write_text(text, "utf-8")
    for name, made in (("train", "run"), ("export", "export")):
        undisturbed(place, name)
        shutil.copytree(place / "whole" / name / made, inputs / made)


def undisturbed(place: Path, name: str) -> dict[str, int]:
    """Runs a command to its end; gives how many moments of each kind there were."""
    whole, counts = place / "whole" / name, place / f"{name}.counts"
    if not counts.exists():
        # The first fills the cache, which has moments of its own.
        for out in (place / "first" / name, whole):
            out.mkdir(parents=True)
            process = run_command(
                COMMANDS[name].arguments(place / "inputs", out),
                {"counts": str(counts)},
                place / "cache",
            )
            if process.returncode:
                raise RuntimeError(f"{name} failed undisturbed: {process.stderr}")
    return json.loads(counts.read_text())


class Skipped(Exception):
    """A fault cannot be made here."""


class Trial:
    """Faults of one command.

    Args:
        place: the directory that `prepare` has filled.
        name: the command's.
        draws: draws moments and sizes.
    """

    def __init__(self, place: Path, name: str, draws: random.Random):
        self.place = place
        self.name = name
        self.command = COMMANDS[name]
        self.draws = draws
        self.counts = undisturbed(place, name)
        self.whole = place / "whole" / name
        self.out = place / "out"

    def full_disk(self) -> list[str]:
        """Its output has too little room."""
        sizes = [p.stat().st_size for p in self.whole.rglob("*") if p.is_file()]
        share = self.draws.uniform(0.05, 0.95)
        pages = max(1, int(share * sum(-(-size // PAGE) for size in sizes)))
        with self._new_output():
            if not mount(self.out, pages * PAGE):
                # No root: no file may be larger.
                largest = max(1, int(share * max(sizes)))
                return self._try({"largest": largest}, 2, f"files of {largest} bytes")
            try:
                return self._try({}, 2, f"disk of {pages} pages", enlarge=True)
            finally:
                subprocess.run(["umount", self.out], check=True)

    def no_permission(self) -> list[str]:
        """Its output is in a directory that it may not write."""
        prefix = () if os.geteuid() else WITHOUT_RIGHTS
        if prefix and not shutil.which(prefix[0]):
            raise Skipped(f"root may write everything, and there is no {prefix[0]}")
        with self._new_output():
            self.out.chmod(0o555)
            try:
                process = self._run({}, prefix)
                return self._judged(process, 2, "no permission")
            finally:
                self.out.chmod(0o755)

    def file_removed(self) -> list[str]:
        """A file that it reads is removed."""
        path = self.draws.choice(self.command.files(self.place / "inputs"))
        content = path.read_bytes()
        plan = self._moment() | {"act": "remove", "path": str(path)}
        with self._new_output():
            try:
                wrong, code = [], self._run(plan)
            finally:
                path.write_bytes(content)
            what = f"{path.name} removed at {plan['kind']} {plan['number']}"
            # It may have been read before.
            if code.returncode or code.stderr:
                wrong = self._judged(code, 2, what)
            return wrong + self._again(what)

    def terminated(self) -> list[str]:
        """It is sent SIGTERM."""
        plan = self._moment() | {"act": "terminate"}
        with self._new_output():
            what = f"SIGTERM at {plan['kind']} {plan['number']}"
            return self._try(plan, TERMINATED, what)

    def _moment(self) -> dict:
        kind = self.draws.choice(sorted(self.counts))
        return {"kind": kind, "number": self.draws.randint(1, self.counts[kind])}

    @contextlib.contextmanager
    def _new_output(self) -> Iterator[None]:
        self.out.mkdir()
        try:
            yield
        finally:
            shutil.rmtree(self.out)

    def _run(self, plan: dict, prefix: tuple[str, ...] = ()):
        arguments = self.command.arguments(self.place / "inputs", self.out)
        return run_command(arguments, plan, self.place / "cache", prefix)

    def _try(
        self, plan: dict, code: int, what: str, enlarge: bool = False
    ) -> list[str]:
        """Runs it with a fault and then without."""
        wrong = self._judged(self._run(plan), code, what)
        if enlarge:
            command = ["mount", "-o", "remount,size=1g", self.out]
            subprocess.run(command, check=True)
        return wrong + self._again(what)

    def _judged(self, process, code: int, what: str) -> list[str]:
        """What is wrong with how it ended, and with what it left."""
        wrong = []
        if process.returncode != code:
            wrong.append(f"{what}: {ending(process)}, not exit code {code}")
        lines = process.stderr.splitlines()
        expected = "stopped" if code == TERMINATED else "error: "
        if len(lines) != 1 or not lines[0].startswith(expected):
            wrong.append(f"{what}: says {process.stderr!r}")
        # What is finished has nothing to go on with.
        is_whole = not unlike(self.whole, self.out, self.command.kept)
        kept = () if is_whole and self.name != "train" else self.command.kept
        left = leftovers(self.whole, self.out, kept)
        return wrong + [f"{what}: leaves {name}" for name in left]

    def _again(self, what: str) -> list[str]:
        """What is wrong with the same command without a fault."""
        # What is whole need not be made again, which some commands refuse.
        if self._lacking():
            process = self._run({})
            if process.returncode:
                return [f"{what}, then again: {ending(process)}"]
        return [f"{what}, then again: {line}" for line in self._lacking()]

    def _lacking(self) -> list[str]:
        """What its output has else than that of the undisturbed command."""
        if self.name == "train":
            return differences(self.whole / "run", self.out / "run")
        return unlike(self.whole, self.out, self.command.kept)


def mount(directory: Path, size: int) -> bool:
    """Mounts a disk of so many bytes; false where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory]
    return subprocess.run(command, capture_output=True).returncode == 0


def leftovers(whole: Path, out: Path, kept: tuple[str, ...]) -> list[str]:
    """Files and directories that are neither whole nor kept to go on with."""
    found = []
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        twin = whole / name
        if is_kept(name, kept) or (path.is_dir() and twin.is_dir()):
            continue
        if not (path.is_file() and twin.is_file() and is_same(path, twin)):
            found.append(name)
    return found


def is_same(path: Path, twin: Path) -> bool:
    """Whether a file is as that of the undisturbed command."""
    if path.suffix == ".sqlite":
        # Its pages depend on when it was closed.
        return True
    sums = path.with_name(CHECKSUM_FILE)
    if not sums.exists() or path == sums:
        return path == sums or path.read_bytes() == twin.read_bytes()
    # No two ONNX files of a network are the same, but each has its checksum.
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{digest}  {path.name}\n" in sums.read_text("utf-8")


def unlike(whole: Path, out: Path, kept: tuple[str, ...]) -> list[str]:
    """What is missing, left over or another, but for what is kept to go on with."""
    names = (path.relative_to(whole).as_posix() for path in sorted(whole.rglob("*")))
    missing = [
        f"{name} is missing"
        for name in names
        if not is_kept(name, kept) and not (out / name).exists()
    ]
    return missing + [
        f"{name} is left over or another" for name in leftovers(whole, out, kept)
    ]


def is_kept(name: str, kept: tuple[str, ...]) -> bool:
    """Whether a command goes on with what has this name."""
    return not name.endswith(".tmp") and any(fnmatch(name, pattern) for pattern in kept)
