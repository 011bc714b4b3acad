"""MD5 on arrays equals the MD5 of each text."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from strategies.md5 import first_words


@pytest.mark.parametrize("count", [0, 1, 1_999, 2_000, 20_000])
def test_many_texts_at_once_have_the_hashes_that_each_has_alone(count: int) -> None:
    """Test lengths around every MD5 block boundary, tails across a boundary, and unused stems and tails."""
    seeded = random.Random(20261120)  # noqa: S311 - it only needs to be reproducible
    stems = [seeded.randbytes(length) for length in (*range(140), 500)]
    tails = [b"", b"-0", b"-10", b"2147483647]", b"\x00"]
    stem_codes = np.array(seeded.choices(range(1, len(stems)), k=count), dtype=np.int64)
    tail_codes = np.array(seeded.choices(range(len(tails) - 1), k=count), dtype=np.int64)

    words = first_words(stems, tails, stem_codes, tail_codes)

    digests = [
        hashlib.md5(stems[stem] + tails[tail], usedforsecurity=False).digest()
        for stem, tail in zip(stem_codes, tail_codes, strict=True)
    ]
    assert words.tolist() == [int.from_bytes(digest[:4], "big") for digest in digests]
