"""Makes questions without an answer out of SQuAD 1.1, where SQuAD 2.0 is not at hand.

    python benchmarks/impossible.py --input train-v1.1.json \
        --output train-impossible.json

Every second question (`--share`) is also asked of another paragraph of its article, of
those that do not hold its answer the one that shares the rarest words with it (as Clark
and Gardner, 2018, choose paragraphs). These questions are easier to tell than those
that people wrote for SQuAD 2.0, so expect less of what is trained on them.
"""

import argparse
import json
import math
import random
from collections import Counter, defaultdict

from qanet.datasets.squad import Example, read_squad, write_squad
from qanet.text.tokenizer import tokenize


def impossible_examples(
    examples: list[Example], share: float, seed: int
) -> list[Example]:
    """Questions on paragraphs that do not answer them.

    Args:
        examples: questions with answers.
        share: of these, how many are asked anew.
        seed: fixes which.

    Returns:
        At most `share` times as many examples: none for articles of one paragraph.
    """
    words = {example.context: _words(example.context) for example in examples}
    frequency = Counter(word for held in words.values() for word in held)
    rarity = {word: math.log(len(words) / n) for word, n in frequency.items()}
    articles = defaultdict(dict)
    for example in examples:
        articles[example.title][example.context] = None

    made = []
    draw = random.Random(seed)
    for example in examples:
        if draw.random() >= share:
            continue
        asked = _words(example.question)
        answers = [answer.text.lower() for answer in example.answers]
        others = [
            context
            for context in articles[example.title]
            if context != example.context
            and not any(answer in context.lower() for answer in answers)
        ]
        if others:
            closest = max(
                others, key=lambda c: sum(rarity[word] for word in asked & words[c])
            )
            made.append(
                Example(
                    id=f"{example.id}-impossible",
                    question=example.question,
                    context=closest,
                    answers=(),
                    title=example.title,
                    impossible=True,
                )
            )
    return made


def _words(text: str) -> set[str]:
    return {word.lower() for word in tokenize(text)}


def main() -> None:
    """Parses the options and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", required=True, metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    examples = read_squad(options.input).examples
    made = impossible_examples(examples, options.share, options.seed)
    write_squad(options.output, examples + made)
    print(json.dumps({"answerable": len(examples), "impossible": len(made)}))


if __name__ == "__main__":
    main()
