"""MD5 of many short texts at once: the arithmetic of RFC 1321 on arrays, one element for each text.

Belongs here: the hash. Does not belong here: what is hashed and why (`consistent_hash`). It protects nothing.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from strategies.batch import IntArray

    WordArray = npt.NDArray[np.uint32]
    ByteArray = npt.NDArray[np.uint8]

_BLOCK_BYTES: Final = 64
_BLOCK_WORDS: Final = 16
_LENGTH_BYTES: Final = 8
_END: Final = b"\x80"
"""What MD5 puts behind a text, before zeros and the text's length in bits."""

_FEWEST_AT_ONCE: Final = 2_000
"""With fewer texts, one call of `hashlib` for each is quicker than the thousand array operations of one round."""

_MOST_AT_ONCE: Final = 8_192
"""Texts whose states and words together stay in a processor's cache."""

_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES: Final = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], dtype=np.uint32)
_TURNS: Final = np.array([(7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21)], dtype=np.uint32)
_WORD_STEPS: Final = ((1, 0), (5, 1), (3, 5), (7, 0))
"""For each of the four rounds: step `i` takes word `(factor * i + first) % 16`."""


def first_words(
    stems: Sequence[bytes], tails: Sequence[bytes], stem_codes: IntArray, tail_codes: IntArray
) -> IntArray:
    """Return the first four bytes, as an unsigned number, of the MD5 hashes of texts that share their beginnings.

    Args:
        stems: the distinct beginnings.
        tails: the distinct, short ends.
        stem_codes: int64[N]: text `n` begins with `stems[stem_codes[n]]`
        tail_codes: int64[N]: and ends with `tails[tail_codes[n]]`.

    Returns:
        int64[N].
    """
    if len(stem_codes) < _FEWEST_AT_ONCE:
        pairs = zip(stem_codes.tolist(), tail_codes.tolist(), strict=True)
        digests = [
            hashlib.md5(stems[stem] + tails[tail], usedforsecurity=False).digest() for stem, tail in pairs
        ]
        return np.frombuffer(b"".join(digests), dtype=">u4")[::4].astype(np.int64)
    ends = [tail + _END for tail in tails]
    stem_lengths, end_lengths = _lengths(stems)[stem_codes], _lengths(ends)[tail_codes]
    padded_ends = _padded(ends, int(end_lengths.max()))
    lengths = stem_lengths + end_lengths - len(_END)
    block_counts = (lengths + _LENGTH_BYTES) // _BLOCK_BYTES + 1
    # Blocks that lie within a stem are worked through once for all texts that share it.
    shared_counts = stem_lengths // _BLOCK_BYTES
    result = np.empty(len(stem_codes), dtype=np.int64)
    shapes = shared_counts << 32 | block_counts
    for shape in np.unique(shapes).tolist():
        rows = np.flatnonzero(shapes == shape)
        is_used = np.zeros(len(stems), dtype=np.bool_)
        is_used[stem_codes[rows]] = True
        codes = (np.cumsum(is_used) - 1)[stem_codes[rows]]
        used = [stem for stem, here in zip(stems, is_used.tolist(), strict=True) if here]
        padded_stems = _padded(used, (shape & 0xFFFFFFFF) * _BLOCK_BYTES)
        shared = (shape >> 32) * _BLOCK_BYTES
        states = _states_after(padded_stems[:, :shared])
        for start in range(0, len(rows), _MOST_AT_ONCE):
            part = slice(start, start + _MOST_AT_ONCE)
            here = rows[part]
            texts = padded_stems[codes[part], shared:]
            for column in range(padded_ends.shape[1]):
                goes_on = np.flatnonzero(end_lengths[here] > column)
                behind = stem_lengths[here[goes_on]] - shared + column
                texts[goes_on, behind] = padded_ends[tail_codes[here[goes_on]], column]
            texts.view("<u4")[:, -2] = lengths[here] * 8
            words = _after(states[:, codes[part]], texts)[0]
            # A digest shows the bytes of a word from the lowest on.
            result[here] = words.byteswap()
    return result


def _states_after(texts: ByteArray) -> WordArray:
    """Return the state after whole blocks of some texts, uint8[texts, 64 * blocks], as uint32[4, texts]."""
    result = np.empty((len(_START), len(texts)), dtype=np.uint32)
    result[:] = np.array(_START, dtype=np.uint32)[:, None]
    for start in range(0, len(texts), _MOST_AT_ONCE):
        part = slice(start, start + _MOST_AT_ONCE)
        result[:, part] = _after(result[:, part], np.ascontiguousarray(texts[part]))
    return result


def _lengths(texts: Sequence[bytes]) -> IntArray:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _padded(texts: Sequence[bytes], width: int) -> ByteArray:
    """Return a row for each text, padded with zeros, as uint8[texts, width]."""
    rows = np.array(texts, dtype=f"S{width}")
    return rows.view(np.uint8).reshape(len(texts), width)


def _after(states: WordArray, texts: ByteArray) -> WordArray:
    """Return the states after all blocks of the texts, uint8[N, 64 * blocks], as uint32[4, N], given those before."""
    words = np.ascontiguousarray(texts.view("<u4").T, dtype=np.uint32)
    for start in range(0, len(words), _BLOCK_WORDS):
        states = states + _block(states, words[start : start + _BLOCK_WORDS])
    return states


def _block(states: WordArray, words: WordArray) -> WordArray:
    """Return what one block, uint32[16, N], adds to the states, as uint32[4, N]; a, b, c and d are named as in the RFC."""
    a, b, c, d = (word.copy() for word in states)
    mixed, high = np.empty_like(a), np.empty_like(a)
    for step in range(64):
        kind = step // 16
        _mix(kind, b, c, d, mixed)
        factor, first = _WORD_STEPS[kind]
        turn = _TURNS[kind, step % 4]
        a += mixed
        a += words[(factor * step + first) % _BLOCK_WORDS]
        a += _SINES[step]
        np.left_shift(a, turn, out=high)
        a >>= np.uint32(32) - turn
        a |= high
        a += b
        a, b, c, d = d, a, b, c
    return np.stack([a, b, c, d])


def _mix(kind: int, b: WordArray, c: WordArray, d: WordArray, mixed: WordArray) -> None:
    """Compute the RFC's function F, G, H or I into `mixed`, without arrays of its own."""
    if kind == 0:
        np.bitwise_xor(c, d, out=mixed)
        mixed &= b
        mixed ^= d
    elif kind == 1:
        np.bitwise_xor(b, c, out=mixed)
        mixed &= d
        mixed ^= c
    elif kind == 2:  # noqa: PLR2004 - the third of four
        np.bitwise_xor(b, c, out=mixed)
        mixed ^= d
    else:
        np.invert(d, out=mixed)
        mixed |= b
        mixed ^= c
