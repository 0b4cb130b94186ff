"""Reading a reply's body within its cap.

Decompression is done here and not by aiohttp, for two reasons: its versions differ in how much one packet may
unpack to (a bomb of 256 KB was a quarter of a gigabyte in some), and it takes a gzip stream that breaks off
for a whole one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import aiohttp

from lienworker.fetching.budget import FREE, Allowance
from lienworker.fetching.failures import FetchError

_GZIP, _ZLIB, _RAW_DEFLATE = 31, 15, -15
_PIECE = 256 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
# A stream of many empty members costs time without ever reaching the cap; honest servers send one.
_MAX_MEMBERS = 64
# Some servers write a charset or a transfer encoding here. Browsers ignore that, and so do we.
_NO_ENCODING = frozenset({"", "identity", "none", "utf-8", "8bit", "binary"})


async def read_body(
    response: aiohttp.ClientResponse, limit: int, chunks: list[bytes], allowance: Allowance | None = None
) -> bool:
    """Append the unpacked body to `chunks`; False if it goes on beyond `limit` bytes, where `chunks` end then.

    The caller owns the list, so what had come is still there when a time-out ends the reading.
    """
    encoding = response.headers.get("Content-Encoding")
    decoder = decoder_of(encoding) if encoding else None
    left = limit
    # Not response.read(), which would collect without a limit.
    read = response.content.readany
    while packed := await read():
        for data in (packed,) if decoder is None else decoder.unpack(packed):
            if len(data) > left:
                chunks.append(data[:left])
                response.close()
                return False
            left -= len(data)
            if limit - left > FREE and allowance is not None:
                await allowance.grow_to(limit - left)
            chunks.append(data)
    if decoder is not None:
        decoder.finish()
    return True


def decoder_of(content_encoding: str) -> Decoder | None:
    name = content_encoding.strip().lower()
    if name in _NO_ENCODING:
        return None
    if name in ("gzip", "x-gzip"):
        return Decoder(_GZIP)
    if name == "deflate":
        return Decoder(_ZLIB)
    raise FetchError("bad_encoding", f"The reply came in an encoding that nobody asked for: {name[:30]!r}.")


class Decoder:
    """Unpacks gzip, of several members too, and deflate, with zlib's header or (as some servers do) without."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._members = 0
        self._fed = False

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Piece by piece, so that whoever has enough can stop before the rest takes any memory."""
        if not self._fed and self._window == _ZLIB and packed[0] & 0x0F != zlib.DEFLATED:
            self._stream = zlib.decompressobj(_RAW_DEFLATE)
        self._fed = True
        while packed:
            if self._stream.eof and not self._next_member(packed):
                return
            try:
                yield self._stream.decompress(packed, _PIECE)
            except zlib.error:
                raise _broken() from None
            packed = self._stream.unconsumed_tail or self._stream.unused_data

    def _next_member(self, packed: bytes) -> bool:
        """False where only rubbish follows, which browsers ignore too."""
        if self._window != _GZIP or not packed.startswith(_GZIP_MAGIC):
            return False
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise _broken()
        self._stream = zlib.decompressobj(self._window)
        return True

    def finish(self) -> None:
        if self._fed and not self._stream.eof:
            raise _broken()


def _broken() -> FetchError:
    return FetchError("bad_encoding", "The reply's compression is broken.")
