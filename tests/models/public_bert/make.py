"""Makes what test_bert_weights.py reads: a public BERT in small, and what it computes.

    python tests/models/public_bert/make.py [DIRECTORY OF A PUBLIC BERT]

Needs `transformers` and `torch`, an implementation that shares nothing with ours; it
was run once, with versions 5.23.0 and 2.13.0. The small model has random weights. Of a
public one, whose weights are not kept here, the states are: `expected.json`.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

HERE = Path(__file__).parent
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg", "##a", "##b"]
QUESTION, CONTEXT = [5, 7, 12], [6, 13, 8, 9, 5, 10]
# Of any vocabulary of English.
LARGE_QUESTION, LARGE_CONTEXT = [2073, 2515, 2014], [2014, 3268, 1999, 3000, 1012]


def states(model, question, context):
    """The last hidden states of [CLS] question [SEP] context [SEP]."""
    first, separator = model.config.first, model.config.separator
    pieces = [first, *question, separator, *context, separator]
    segments = [0] * (len(question) + 2) + [1] * (len(context) + 1)
    with torch.no_grad():
        output = model(torch.tensor([pieces]), token_type_ids=torch.tensor([segments]))
    return output.last_hidden_state[0].numpy()


def states_alone(model, text):
    """The hidden states of each block of [CLS] text [SEP], those of the text alone."""
    pieces = [model.config.first, *text, model.config.separator]
    with torch.no_grad():
        output = model(torch.tensor([pieces]), output_hidden_states=True)
    return [state[0, 1:-1].tolist() for state in output.hidden_states[1:]]


def main():
    """Writes the files."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
    )
    model = BertModel(config).eval()
    # Wide, so that every part shows in the states.
    for name, parameter in model.named_parameters():
        is_scale = name.endswith("LayerNorm.weight")
        torch.nn.init.normal_(parameter, float(is_scale), 0.2 if is_scale else 0.5)
    model.save_pretrained(HERE)
    (HERE / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    model.config.first, model.config.separator = 2, 3
    expected = {
        "question": QUESTION,
        "context": CONTEXT,
        "states": states(model, QUESTION, CONTEXT).tolist(),
        "states_alone": states_alone(model, CONTEXT),
    }
    if len(sys.argv) > 1:
        model = BertModel.from_pretrained(sys.argv[1]).eval()
        model.config.first, model.config.separator = 101, 102
        found = states(model, LARGE_QUESTION, LARGE_CONTEXT)
        expected["minilm"] = {
            "question": LARGE_QUESTION,
            "context": LARGE_CONTEXT,
            # Of each state, the first numbers.
            "states": found[:, :6].tolist(),
        }
    (HERE / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
