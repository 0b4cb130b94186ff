"""The server: routes, the order in which a request is judged, and the threads on which views run."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from yarl import URL

from lienworker import __version__
from lienworker.errors import LienworkerError
from lienworker.store.database import DATABASE_TROUBLE, close
from lienworker.web.guard import COOKIE, CSRF_FIELD, CSRF_HEADER, HEADERS, Guard
from lienworker.web.pages import CannotError, NotThereError, Page, Place, Question, View, environment

T = TypeVar("T")
#: Threads for views: a slow download does not keep others waiting.
_THREADS = 4
#: An action that takes longer goes on while the visitor sees the next page.
ACTION_SECONDS = 5.0
_LOGIN_BYTES = 10_000

logger = logging.getLogger(__name__)


class Server:
    """One monitor on one data folder."""

    def __init__(self, place: Place, guard: Guard) -> None:
        self.place = place
        self.guard = guard
        self.templates = environment()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="view")

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Runs database work where it belongs: on a thread, never on the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args))

    def stop(self) -> None:
        for _ in range(_THREADS):
            self._threads.submit(close)
        self._threads.shutdown()

    def html(self, page: Page, status: int = 200, said: str | None = None) -> web.Response:
        body = self.templates.get_template(page.template).render(
            page.facts,
            title=page.title,
            version=__version__,
            read_only=self.place.read_only,
            mode=self.place.settings.mode,
            csrf=self.guard.csrf,
            said=said,
        )
        return web.Response(text=body, status=status, content_type="text/html", charset="utf-8")

    def show(self, view: View) -> Handler:
        """A view as a page for people."""

        async def handle(request: web.Request) -> web.StreamResponse:
            page = await self.call(view, self.place, question_of(request))
            return self.html(page, said=self._said(request))

        return handle

    def saying(self, where: str, words: str) -> str:
        """An address whose page says what was done. Signed: nobody else puts words into our mouth."""
        return str(URL(where).update_query(said=words, seal=self.guard.seal(words)))

    def _said(self, request: web.Request) -> str | None:
        words = request.query.get("said", "")
        return words if words and self.guard.is_sealed(words, request.query.get("seal", "")) else None

    def tell(self, view: View) -> Handler:
        """The same view for machines."""

        async def handle(request: web.Request) -> web.StreamResponse:
            page = await self.call(view, self.place, question_of(request))
            return json_reply(page.facts)

        return handle

    def message(self, title: str, text: str, status: int) -> web.Response:
        return self.html(Page("message.html", title, {"text": text}), status)

    @property
    def middleware(self) -> Handler:
        @web.middleware
        async def judge(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await self._answered(request, handler)
            if not response.prepared:
                for name, value in HEADERS.items():
                    response.headers.setdefault(name, value)
            return response

        return judge  # type: ignore[return-value]

    async def _judged(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self.guard.knows_host(request.headers.get("Host", "")):
            return web.Response(status=421, text="This is not a name of this server (start it with --allow-host).\n")
        if not self.guard.may_enter(request):
            return self._ask_for_token(request)
        if request.method not in {"GET", "HEAD"} and request.path != "/login":
            refused = await self._refuse_change(request)
            if refused is not None:
                return refused
        return await handler(request)

    async def _refuse_change(self, request: web.Request) -> web.Response | None:
        if self.place.read_only:
            return self.message("Read-only", "This monitor was started with --read-only: it changes nothing.", 403)
        if not self.guard.is_same_origin(request):
            return self.message("Refused", "This request came from another site.", 403)
        if not self.guard.is_ours(await _offered_csrf(request)):
            return self.message("Refused", "This page is old. Load it again and repeat.", 403)
        return None

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await self._judged(request, handler)
        except NotThereError as problem:
            return self._trouble(request, "Not there", str(problem), 404)
        except CannotError as problem:
            return self._trouble(request, "Not now", str(problem), 409)
        except web.HTTPException as problem:
            if problem.status < 400:
                raise
            return self._trouble(request, problem.reason, f"{problem.status}: {problem.reason}", problem.status)
        except (LienworkerError, *DATABASE_TROUBLE) as problem:
            logger.warning("%s: %s", request.path, problem, extra={"action": "web"})
            return self._trouble(request, "The storage", f"The storage cannot be used: {problem}", 503)

    def _trouble(self, request: web.Request, title: str, text: str, status: int) -> web.Response:
        if request.path.startswith("/api/"):
            return json_reply({"error": text}, status)
        return self.message(title, text, status)

    def _ask_for_token(self, request: web.Request) -> web.Response:
        offered = request.query.get("token")
        if offered is not None and request.method == "GET" and self.guard.knows_token(offered):
            rest = {name: value for name, value in request.query.items() if name != "token"}
            return self.let_in(str(request.rel_url.with_query(rest)), request)
        if request.path.startswith(("/api/", "/metrics", "/events")):
            return json_reply({"error": "Send the token: Authorization: Bearer …"}, 401)
        return self.html(Page("login.html", "Who is there?", {"is_wrong": offered is not None}), 401)

    def let_in(self, where: str, request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": "/" + where.lstrip("/")})
        response.set_cookie(
            COOKIE, self.guard.cookie_value, httponly=True, samesite="Strict", path="/", secure=request.secure
        )
        return response

    async def login(self, request: web.Request) -> web.StreamResponse:
        if (request.content_length or 0) > _LOGIN_BYTES:
            raise web.HTTPRequestEntityTooLarge(max_size=_LOGIN_BYTES, actual_size=request.content_length or 0)
        if self.guard.knows_token((await form_of(request)).get("token", "")):
            return self.let_in("/", request)
        return self.html(Page("login.html", "Who is there?", {"is_wrong": True}), 401)


async def _offered_csrf(request: web.Request) -> str:
    """From the header or the form. A file's form has it in its address, since its body is only to be read once."""
    if CSRF_HEADER in request.headers:
        return request.headers[CSRF_HEADER]
    if request.content_type == "application/x-www-form-urlencoded":
        return (await form_of(request)).get(CSRF_FIELD, "")
    return request.query.get(CSRF_FIELD, "")


async def form_of(request: web.Request) -> dict[str, str]:
    """What a form says; one that is against the rules is the visitor's fault."""
    try:
        return {name: str(value) for name, value in (await request.post()).items()}
    except (ValueError, LookupError, AssertionError):
        raise web.HTTPBadRequest(reason="The form cannot be read") from None


class StrangersInWords(logging.Filter):
    """What is no request at all is one line in the log: nobody may fill it with traces from outside."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            record.msg, record.args, record.exc_info = "something that is no request was refused", (), None
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


def question_of(request: web.Request) -> Question:
    return Question(dict(request.match_info), dict(request.query))


def json_reply(value: Any, status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return web.Response(text=text, status=status, content_type="application/json", charset="utf-8")
