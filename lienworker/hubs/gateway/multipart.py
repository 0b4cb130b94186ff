"""The multipart body of a raw file. Written at once: aiohttp's own writer takes longer than all the rest of a call."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import BinaryIO

_CHUNK = 256 * 1024
_UNQUOTABLE = re.compile('["\\r\\n]')


@dataclass(frozen=True, slots=True)
class UploadForm:
    """What comes before and after the file's bytes."""

    content_type: str
    head: bytes
    tail: bytes

    def around(self, content: bytes) -> bytes:
        return b"".join((self.head, content, self.tail))

    async def around_file(self, file: BinaryIO) -> AsyncIterator[bytes]:
        """The same for a file that is too large to be held; reading may wait for the disk, so a thread does it."""
        yield self.head
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
        yield self.tail

    def length(self, size: int) -> int:
        return len(self.head) + size + len(self.tail)


def upload_form(name: str, metadata: str) -> UploadForm:
    """A form with the two fields that the Gateway wants. Nobody can guess its boundary, so no file has it in it."""
    mark = os.urandom(16).hex()
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="metadata"\r\nContent-Type: application/json\r\n\r\n'
        f'{metadata}\r\n--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    kind = f"multipart/form-data; boundary={mark}"
    return UploadForm(kind, head.encode("utf-8", "replace"), f"\r\n--{mark}--\r\n".encode("ascii"))


def _quoted(name: str) -> str:
    return _UNQUOTABLE.sub(lambda found: f"%{ord(found[0]):02X}", name)
