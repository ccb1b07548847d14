"""Tests of qanet.utf8."""

from hypothesis import given
from hypothesis import strategies as st

from qanet.utf8 import is_encodable


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_encodable(text):
    assert is_encodable(text)


@given(st.text(), st.characters(categories=["Cs"]), st.text())
def test_half_a_surrogate_pair_is_not(before, half, behind):
    assert not is_encodable(before + half + behind)
