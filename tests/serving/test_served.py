"""Tests of qanet.serving.served."""

import asyncio
from itertools import product

from made_apps import Ready

from qanet.decoding import Answer
from qanet.serving.messages import Question
from qanet.serving.served import Loaded, ServedReader


class Telling(Ready):
    """Answers with the question and what is asked for."""

    def answer_many(self, pairs, top_k, max_answer_tokens):
        return [
            [Answer(f"{question} {top_k} {max_answer_tokens}", 0, 1, 1.0)] * top_k
            for question, _ in pairs
        ]


def test_clients_whose_questions_are_read_together_get_what_each_asked_for():
    batches = []
    settings = [*product((1, 3), (2, 9, None)), (3, 2)]

    async def main():
        served = ServedReader(Loaded(Telling()), None, 32, batches.append)
        clients = [
            asyncio.create_task(
                served.answer(
                    Question(
                        questions=[f"a{i}", f"b{i}"],
                        passages=["Rome."],
                        top_k=top_k,
                        max_answer_tokens=limit,
                    )
                )
            )
            for i, (top_k, limit) in enumerate(settings)
        ]
        # Nothing is read before all have asked.
        async with asyncio.timeout(60):
            while served.waiting < 2 * len(settings):
                await asyncio.sleep(0)
        served.start()
        found = await asyncio.gather(*clients)
        await served.stop()
        return found

    found = asyncio.run(main())
    assert sorted(batches) == [2, 2, 2, 2, 2, 4]
    for i, (top_k, limit) in enumerate(settings):
        texts = [[answer.text for answer in answers] for answers in found[i]]
        assert texts == [[f"{name}{i} {top_k} {limit}"] * top_k for name in "ab"]
