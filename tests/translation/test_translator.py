"""Tests of qanet.translation.translator."""

import pytest

from qanet.errors import UserError
from qanet.translation.translator import open_translator


@pytest.mark.parametrize(
    "specification", ["", "apertium", "apertium:", ":eng-spa", "babelfish:eng-spa"]
)
def test_what_is_no_translator_is_named(specification):
    with pytest.raises(UserError, match="apertium") as caught:
        open_translator(specification)
    assert repr(specification) in str(caught.value)
