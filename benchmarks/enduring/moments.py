"""Runs a command of the package, and does something to it at a counted moment.

    python benchmarks/enduring/moments.py PLAN COMMAND [OPTION ...]

PLAN is a JSON object: at the `number`-th moment of a `kind` the process kills itself
(`"act": "kill"`), sends itself SIGTERM (`"terminate"`) or removes the file `path`
(`"remove"`). With `counts` it writes how many moments of each kind there were into that
file. With `largest` no file may have more bytes.
"""

import json
import os
import signal
import sys
from collections import Counter
from importlib.machinery import PathFinder
from pathlib import Path

KINDS = {
    "start": "a module is looked for",
    "step": "a training step is taken",
    "evaluation": "a batch of questions is to be read",
    "checkpoint": "an array is to be written",
    "rename": "a file takes its name, just before and just after",
    "translation": "some sentences are to be translated",
}


class Moments:
    """Counts moments, and acts at one of them.

    Args:
        plan: see above.
    """

    def __init__(self, plan: dict):
        self.plan = plan
        self.counts = Counter()

    def __call__(self, kind: str) -> None:
        """A moment of a kind."""
        self.counts[kind] += 1
        plan = self.plan
        if (kind, self.counts[kind]) != (plan.get("kind"), plan.get("number")):
            return
        if plan["act"] == "remove":
            Path(plan["path"]).unlink()
        else:
            os.kill(os.getpid(), ACTS[plan["act"]])


ACTS = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}


class Finder:
    """Stands before the finders of modules: counts, and puts moments into some.

    Args:
        moments: what counts.
    """

    def __init__(self, moments: Moments):
        self.moments = moments

    def find_spec(self, name, path=None, target=None):
        """Leaves all to the other finders but modules of `PUTTING`."""
        self.moments("start")
        if name not in PUTTING:
            return None
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def execute_and_put(module):
            execute(module)
            PUTTING[name](module, self.moments)

        spec.loader.exec_module = execute_and_put
        return spec


def put_steps(module, moments: Moments) -> None:
    """Counts the steps of `qanet.training.progress_bar`."""
    step = module.ProgressBar.step

    def counted(self, loss):
        step(self, loss)
        moments("step")

    module.ProgressBar.step = counted


def put_batches(module, moments: Moments) -> None:
    """Counts the batches that a `qanet.reader` reads."""
    plan = module.Reader._plan

    def counted(self, *arguments):
        for batch in plan(self, *arguments):
            moments("evaluation")
            yield batch

    module.Reader._plan = counted


def put_arrays(module, moments: Moments) -> None:
    """Counts the arrays that `numpy.lib.format` writes."""
    write_array = module.write_array

    def counted(*arguments, **options):
        moments("checkpoint")
        write_array(*arguments, **options)

    module.write_array = counted


def put_translator(module, moments: Moments) -> None:
    """Adds a kind of translators, which need nothing: they put a word in front."""

    class Marking:
        batch_size = 20

        def __init__(self, word):
            self.word = word
            self.name = f"marking:{word}"

        def translate(self, sentences, count):
            moments("translation")
            return [[f"{self.word} {sentence}"] for sentence in sentences]

    module._KINDS["marking"] = Marking


PUTTING = {
    "numpy.lib.format": put_arrays,
    "qanet.reader": put_batches,
    "qanet.training.progress_bar": put_steps,
    "qanet.translation.translator": put_translator,
}


def put_renames(moments: Moments) -> None:
    """Counts renamings, twice each."""

    def counted(rename):
        def renaming(*paths):
            moments("rename")
            rename(*paths)
            moments("rename")

        return renaming

    os.replace, os.rename = counted(os.replace), counted(os.rename)


def main() -> None:
    """Puts the moments in, and runs the command."""
    plan, *arguments = sys.argv[1:]
    plan = json.loads(plan)
    # Modules are looked for from the root, not beside this file.
    sys.path[0] = str(Path(__file__).parents[2])
    if "largest" in plan:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan["largest"], hard))
    moments = Moments({})
    finder = Finder(moments)
    sys.meta_path.insert(0, finder)
    put_renames(moments)
    try:
        from qanet import cli

        # What was imported so far is the same for all commands.
        moments.counts.clear()
        moments.plan = plan
        cli.main(arguments)
    finally:
        sys.meta_path.remove(finder)
        if "counts" in plan:
            Path(plan["counts"]).write_text(json.dumps(moments.counts))


if __name__ == "__main__":
    main()
