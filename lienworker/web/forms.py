"""Small forms, read with a limit and a deadline: what is longer or slower is refused unread."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl

from aiohttp import web

#: For the forms of the monitor's own pages; a filter is a few hundred characters.
_FORM_BYTES = 64_000
_FORM_FIELDS = 100
_BODY_SECONDS = 10.0
_FORM: web.RequestKey[list[tuple[str, str]]] = web.RequestKey("form", list)


async def form_of(request: web.Request, most: int = _FORM_BYTES) -> dict[str, str]:
    """Return a form's fields; of those with the same name, the last."""
    return dict(await fields_of(request, most))


async def fields_of(request: web.Request, most: int = _FORM_BYTES) -> list[tuple[str, str]]:
    """Return all fields of a form in their order; an invalid form is the visitor's fault."""
    if _FORM not in request:
        request[_FORM] = _fields(request, await _body_of(request, most))
    return request[_FORM]


async def _body_of(request: web.Request, most: int) -> bytes:
    """Read a body up to `most` bytes. Its headers are checked first, and what arrives is checked in any case."""
    body = bytearray()
    size = request.content_length or 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while size <= most and (piece := await request.content.readany()):
                body += piece
                size = max(size, len(body))
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="The form did not come in time") from None
    except web.RequestPayloadError:
        raise web.HTTPBadRequest(reason="The form cannot be read") from None
    if size > most:
        raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=size)
    return bytes(body)


def _fields(request: web.Request, body: bytes) -> list[tuple[str, str]]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPBadRequest(reason="This is not a form")
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FORM_FIELDS)
    except ValueError:
        raise web.HTTPBadRequest(reason="The form cannot be read") from None
