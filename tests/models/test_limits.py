"""Tests of qanet.models.limits."""

import pytest

from qanet.models.limits import ReadingLimits


@pytest.mark.parametrize("stride", [0, -1, 11])
def test_a_stride_that_never_ends_or_leaves_tokens_out(stride):
    with pytest.raises(ValueError, match=f"stride={stride}: not from 1 to 10"):
        ReadingLimits(window=10, stride=stride)
    assert ReadingLimits(window=10, stride=10).stride == 10
