"""Tests that the page's text can be read, by the formula of WCAG 2, in both modes."""

import re

import pytest

from qanet.serving.server import PAGE_DIRECTORY

CSS = (PAGE_DIRECTORY / "page.css").read_text(encoding="utf-8")
COLOURS = dict(re.findall(r"--(\w+): light-dark\((#\w{6}, #\w{6})\);", CSS))
# Every colour that text has, on the ground; and text on other grounds than that.
TEXTS = set(re.findall(r"(?<![-\w])color: var\(--(\w+)\);", CSS)) - {"ground"}
PAIRS = [(text, "ground") for text in sorted(TEXTS)]
PAIRS += [("text", "mark"), ("ground", "accent")]


def luminance(colour):
    total = 0.0
    for weight, i in ((0.2126, 1), (0.7152, 3), (0.0722, 5)):
        share = int(colour[i : i + 2], 16) / 255
        linear = share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        total += weight * linear
    return total


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_the_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_text_has_a_colour_that_is_tested():
    assert {"text", "quiet", "error", "starts", "ends"} <= TEXTS


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_the_edges_of_fields_can_be_seen(mode):
    colours = [COLOURS[name].split(", ")[mode] for name in ("field", "ground")]
    assert contrast(*colours) >= 3


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_stands_out_from_its_ground(text, ground, mode):
    colours = [COLOURS[name].split(", ")[mode] for name in (text, ground)]
    assert contrast(*colours) >= 4.5
