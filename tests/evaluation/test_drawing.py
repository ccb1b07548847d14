"""Tests of qanet.evaluation.drawing."""

import importlib
import sys

import pytest
from matplotlib.text import Text

from qanet.errors import UserError
from qanet.evaluation.drawing import draw, save_picture
from qanet.evaluation.report import GROUPS, Report, Scores


def full_report():
    """Every group of every kind, each with scores of its own, some of them 0."""
    groups = {
        kind: {
            name: Scores(
                number + 1, 0.0 if number == 2 else 7.0 * number, 10.0 * number
            )
            for number, name in enumerate(names)
        }
        for kind, names in GROUPS.items()
    }
    return Report(Scores(12345, 62.04, 100.0), groups)


def shown(text):
    return text.get_visible() and text.get_text()


def test_every_group_has_its_bars_from_top_to_bottom():
    report = full_report()

    panels = draw(report).axes

    assert [panel.get_title("left") for panel in panels] == [
        "question word (number of questions)",
        "answer tokens (number of questions)",
        "context tokens (number of questions)",
    ]
    for panel, groups in zip(panels, report.groups.values(), strict=True):
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert labels == [f"{name} ({s.questions})" for name, s in groups.items()]
        for bars, name, side in zip(
            panel.containers, ("f1", "exact_match"), (-1, 1), strict=True
        ):
            values = [getattr(scores, name) for scores in groups.values()]
            assert [bar.get_width() for bar in bars] == values
            # F1 stands above, exact match below the place of the label.
            for place, bar in zip(panel.get_yticks(), bars, strict=True):
                assert (bar.get_center()[1] - place) * side > 0
        bottom, top = panel.get_ylim()
        assert bottom > panel.get_yticks()[-1] > panel.get_yticks()[0] > top
        assert panel.get_xlim()[0] == 0
        assert panel.get_xlim()[1] > 100


def test_scores_of_all_questions_are_in_the_legend_and_lines():
    figure = draw(full_report())

    (legend,) = figure.legends
    assert legend.get_title().get_text() == "All 12,345 questions (dotted lines)"
    assert [text.get_text() for text in legend.get_texts()] == [
        "F1: 100.0",
        "exact match: 62.0",
    ]
    for panel in figure.axes:
        assert [line.get_xdata()[0] for line in panel.lines] == [100.0, 62.04]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_no_text_lies_on_another_or_outside(most):
    report = full_report()
    for kind, groups in report.groups.items():
        report.groups[kind] = dict(list(groups.items())[-most:])
    figure = draw(report)
    figure.draw_without_rendering()

    texts = figure.findobj(lambda artist: isinstance(artist, Text) and shown(artist))
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) >= 3 * sum(map(len, report.groups.values()))
    for i, box in enumerate(boxes):
        assert figure.bbox.fully_containsx(box.x0), texts[i]
        assert figure.bbox.fully_containsx(box.x1), texts[i]
        assert figure.bbox.fully_containsy(box.y0), texts[i]
        assert figure.bbox.fully_containsy(box.y1), texts[i]
        assert not any(box.overlaps(other) for other in boxes[:i]), texts[i]


def test_same_report_same_file(tmp_path):
    for name in ("one", "two"):
        save_picture(full_report(), tmp_path / name)

    one, two = (
        (tmp_path / name / "report.png").read_bytes() for name in ("one", "two")
    )
    assert one.startswith(b"\x89PNG")
    assert one == two
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["report.png"]


def test_without_matplotlib(monkeypatch):
    monkeypatch.delitem(sys.modules, "qanet.evaluation.drawing")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(UserError, match="pip install matplotlib"):
        importlib.import_module("qanet.evaluation.drawing")
