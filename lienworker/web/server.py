"""The server: routes, the order in which a request is checked, and the threads on which views run."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from yarl import URL

from lienworker import __version__
from lienworker.db.clock import now_ms
from lienworker.db.database import DATABASE_TROUBLE, close
from lienworker.errors import STORAGE_FAULTS, LienworkerError
from lienworker.text_safety import redacted, without_passwords
from lienworker.web.door import Door
from lienworker.web.forms import form_of
from lienworker.web.guard import CSRF_FIELD, CSRF_HEADER, HEADERS, Guard, Verdict
from lienworker.web.pages import CannotError, NotThereError, Page, Place, Question, View, environment

T = TypeVar("T")
#: Threads for views: a slow download does not block the others.
_THREADS = 4
#: An action that takes longer continues while the visitor sees the next page.
ACTION_SECONDS = 5.0
_LOGIN_BYTES = 4_000
_ASK = "Send the token: Authorization: Bearer … (`lienworker web --address` prints a link that has it)."
_WAIT = "Too many wrong tokens. Wait a minute; the link that `lienworker web --address` prints works at once."

#: Characters with a meaning in an address; all others are percent-encoded.
_IN_ADDRESSES = "/?#&=%+:;,@!$'()*~"

#: Whether a request has the token: what is open to all says less without it.
RECOGNIZED: web.RequestKey[bool] = web.RequestKey("recognized", bool)

logger = logging.getLogger(__name__)


class Server:
    """One monitor on one data folder."""

    def __init__(self, place: Place, guard: Guard) -> None:
        self.place = place
        self.guard = guard
        self.door = Door()
        self.templates = environment()
        #: The paths that a redirect may lead to; set when all routes are added.
        self.known_paths = re.compile("/")
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="view")

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run database work on a thread, never on the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args))

    def stop(self) -> None:
        for _ in range(_THREADS):
            self._threads.submit(close)
        self._threads.shutdown()

    def text_of(self, page: Page, said: str | None = None) -> str:
        return self.templates.get_template(page.template).render(
            redacted(page.facts),
            title=without_passwords(page.title),
            version=__version__,
            read_only=self.place.read_only,
            mode=self.place.settings.mode,
            stack_name=self.place.settings.name,
            csrf=self.guard.csrf,
            now=now_ms(),
            said=said,
        )

    def html(self, page: Page, status: int = 200) -> web.Response:
        return html_reply(self.text_of(page), status)

    def show(self, view: View) -> Handler:
        """Return a handler that shows a view as a page, rendered on the view's thread: a large one blocks nobody."""

        async def handle(request: web.Request) -> web.StreamResponse:
            question, said = question_of(request), self._said(request)
            return html_reply(await self.call(lambda: self.text_of(view(self.place, question), said)))

        return handle

    def saying(self, where: str, words: str) -> str:
        """Return an address whose page says what was done. It is signed: nobody else can put text on our pages."""
        return str(URL(where).update_query(said=words, seal=self.guard.seal(words)))

    def _said(self, request: web.Request) -> str | None:
        words = request.query.get("said", "")
        return words if words and self.guard.is_sealed(words, request.query.get("seal", "")) else None

    def tell(self, view: View) -> Handler:
        """Return a handler that returns the same view as JSON."""

        async def handle(request: web.Request) -> web.StreamResponse:
            question = question_of(request)
            return json_text(await self.call(lambda: as_json(view(self.place, question).facts)))

        return handle

    def message(self, title: str, text: str, status: int) -> web.Response:
        return self.html(Page("message.html", title, {"text": text}), status)

    @property
    def middleware(self) -> Handler:
        @web.middleware
        async def judge(request: web.Request, handler: Handler) -> web.StreamResponse:
            verdict = self.guard.credentials(request)
            request[RECOGNIZED] = verdict is Verdict.RIGHT
            if request[RECOGNIZED]:
                self.door.recognize(request.transport)
            response = await self._answered(request, handler, verdict)
            if not response.prepared:
                _finish(request, response, keep_open=request[RECOGNIZED])
            return response

        return judge  # type: ignore[return-value]

    async def _judged(self, request: web.Request, handler: Handler, verdict: Verdict) -> web.StreamResponse:
        if not self.guard.knows_host(request.headers.get("Host", "")):
            return web.Response(status=421, text="This is not a name of this server (start it with --allow-host).\n")
        if not self.guard.is_open(request.path):
            if "token" in request.query and request.method == "GET":
                return self._follow_link(request, verdict)
            if verdict is not Verdict.RIGHT:
                return self._ask_for_token(request, verdict)
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

    async def _answered(self, request: web.Request, handler: Handler, verdict: Verdict) -> web.StreamResponse:
        try:
            return await self._judged(request, handler, verdict)
        except NotThereError as problem:
            return self._trouble(request, "Not there", str(problem), 404)
        except CannotError as problem:
            return self._trouble(request, "Not now", str(problem), 409)
        except web.HTTPException as problem:
            if problem.status < 400:
                raise
            return self._trouble(request, problem.reason, f"{problem.status}: {problem.reason}", problem.status)
        except (LienworkerError, *DATABASE_TROUBLE) as problem:
            return self._storage_trouble(request, str(problem))
        except OSError as problem:
            if problem.errno not in STORAGE_FAULTS:  # the visitor hung up, or a bug
                raise
            return self._storage_trouble(request, os.strerror(problem.errno))

    def _storage_trouble(self, request: web.Request, words: str) -> web.Response:
        logger.warning("%s: %s", request.path, words, extra={"action": "web"})
        return self._trouble(request, "The storage", f"The storage cannot be used: {words}", 503)

    def _trouble(self, request: web.Request, title: str, text: str, status: int) -> web.Response:
        if request.path.startswith("/api/"):
            return json_reply({"error": text}, status)
        return self.message(title, text, status)

    def _follow_link(self, request: web.Request, verdict: Verdict) -> web.Response:
        """Turn a token in the address into a cookie, and redirect to the address without it."""
        if verdict is not Verdict.RIGHT:
            verdict = self.guard.judge(request.query["token"])
        if verdict is not Verdict.RIGHT:
            return self._ask_for_token(request, verdict, is_wrong=True)
        rest = [(name, value) for name, value in request.query.items() if name != "token"]
        return self.let_in(str(request.rel_url.with_query(rest)), request)

    def _ask_for_token(self, request: web.Request, verdict: Verdict, is_wrong: bool = False) -> web.Response:
        must_wait = verdict is Verdict.WAIT
        status = 429 if must_wait else 401
        if request.path.startswith(("/api/", "/metrics", "/events")):
            response = json_reply({"error": _WAIT if must_wait else _ASK}, status)
        else:
            facts = {"is_wrong": is_wrong, "wait": _WAIT if must_wait else "", "command": self.guard.command}
            response = self.html(Page("login.html", "Who is there?", facts), status)
        name, value = ("Retry-After", "60") if must_wait else ("WWW-Authenticate", "Bearer")
        response.headers[name] = value
        return response

    def let_in(self, where: str, request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": self.own_path(where)})
        response.set_cookie(
            self.guard.cookie_name,
            self.guard.cookie_value,
            httponly=True,
            samesite="Strict",
            path="/",
            secure=request.secure,
        )
        return response

    def own_path(self, where: str) -> str:
        """Return an address on this server that it knows; the overview instead of anything else."""
        if not where.isprintable() or "\\" in where:
            return "/"
        where = quote(where, safe=_IN_ADDRESSES)
        return where if self.known_paths.fullmatch(where.partition("#")[0].partition("?")[0]) else "/"

    async def login(self, request: web.Request) -> web.StreamResponse:
        verdict = self.guard.judge((await form_of(request, _LOGIN_BYTES)).get("token", ""))
        if verdict is Verdict.RIGHT:
            return self.let_in("/", request)
        return self._ask_for_token(request, verdict, is_wrong=True)


def _finish(request: web.Request, response: web.StreamResponse, *, keep_open: bool) -> None:
    """Set the headers of every answer. A stranger's connection serves one request: keeping it open costs a place."""
    if "token" in request.query:
        response.headers["Referrer-Policy"] = "no-referrer"
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if not keep_open:
        response.force_close()


def paths_of(app: web.Application) -> re.Pattern[str]:
    """Return the paths that the router knows, as one pattern: a redirect leads nowhere else."""
    known = {resource.canonical for resource in app.router.resources()}
    return re.compile("|".join("[^/]+".join(map(re.escape, re.split(r"\{[^}]*\}", path))) for path in sorted(known)))


async def _offered_csrf(request: web.Request) -> str:
    """Return the token from the header or the form. A file's form has it in its address: its body is read only once."""
    if CSRF_HEADER in request.headers:
        return request.headers[CSRF_HEADER]
    if request.content_type == "application/x-www-form-urlencoded":
        return (await form_of(request)).get(CSRF_FIELD, "")
    return request.query.get(CSRF_FIELD, "")


class BadRequestFilter(logging.Filter):
    """Logs what is not a request as one line: nobody may fill the log with stack traces from outside."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            record.msg, record.args, record.exc_info = "something that is not a request was refused", (), None
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


def question_of(request: web.Request) -> Question:
    return Question(dict(request.match_info), dict(request.query))


def html_reply(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def as_json(value: Any) -> str:
    return json.dumps(redacted(value), ensure_ascii=False, default=str)


def json_text(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json", charset="utf-8")


def json_reply(value: Any, status: int = 200) -> web.Response:
    return json_text(as_json(value), status)
