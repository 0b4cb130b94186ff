"""Submitting the form of a page as a browser does: every hidden field as it was received, and the pressed button."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lxml import etree  # type: ignore[import-untyped]
from parsel import Selector
from w3lib.html import get_base_url

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page
from lienworker.platforms.flows.checks import is_plain_name
from lienworker.platforms.flows.model import Submit
from lienworker.platforms.flows.templates import Words, fill_text

#: The largest body that is sent, bytes: a view state may have a megabyte.
MOST_BODY = 4_000_000
_POSTBACK = re.compile(r"""__doPostBack\(\s*\\?['"](.*?)\\?['"]\s*,\s*\\?['"](.*?)\\?['"]\s*\)""")
#: Sent for forms that ask for multipart, too: servers read both, and no form of ours sends a file.
_ENCODING = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Submission:
    """A form as a request."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None


def submission_of(page: Page, submit: Submit, words: Words) -> Submission:
    """The request that submits the form. Raises PageError where the page has no such form or button."""
    from form2request import form2request  # here, since few walk flows and every command pays for an import

    form = _form(page, submit.form)
    changed: dict[str, str | None] = {
        name: fill_text(value, words) if isinstance(value, str) else None for name, value in submit.set.items()
    }
    click: Any = None
    if submit.click:
        click = _clicked(form, page, fill_text(submit.click, words))
        if postback := _postback(click):
            changed["__EVENTTARGET"], changed["__EVENTARGUMENT"] = postback
            click = False
    for silent in form.xpath("descendant::*[@disabled or self::input[translate(@type, 'BUTON', 'buton')='button']]"):
        silent.drop_tree()  # a browser sends none of these, and form2request does; a pressed one is in `click`
    made = form2request(form, changed, click=click, enctype=_ENCODING)
    if len(made.body) > MOST_BODY:
        raise PageError("unexpected_page", f"the form has more than {MOST_BODY:,} bytes")
    is_post = made.method == "POST"
    return Submission(made.method, made.url, dict(made.headers), made.body if is_post else None)


def base_of(page: Page) -> str:
    """The address that the page's links are relative to."""
    return str(get_base_url(page.text[:4096], page.url)) if "<base" in page.lower_text[:4096] else page.url


def _form(page: Page, css: str) -> Any:
    """The form, as lxml's own kind of element: it knows what a browser would send of each field."""
    from lxml import html

    found = [] if page.is_json else page.selector.css(css)
    if not found or found[0].root.tag != "form":
        raise PageError("unexpected_page", f"the page has no form {css!r}")
    source = etree.tostring(found[0].root, method="html", encoding="unicode", with_tail=False)
    document = html.document_fromstring(source, base_url=base_of(page))
    return document.forms[0]


def _clicked(form: Any, page: Page, click: str) -> Any:
    """The element that is pressed: of the form, or a link anywhere on the page."""
    for root in (form, page.selector.root):
        if is_plain_name(click):
            found = root.xpath("descendant::*[@name=$name or @id=$name]", name=click)
        else:
            found = [item.root for item in Selector(root=root, type="html").css(click)]
        if found:
            return found[0]
    raise PageError("unexpected_page", f"the page has no button {click!r}")


def _postback(element: Any) -> tuple[str, str] | None:
    """The two words of a `__doPostBack` that the element calls."""
    for name in ("href", "onclick"):
        if match := _POSTBACK.search(element.get(name) or ""):
            return match[1], match[2]
    return None
