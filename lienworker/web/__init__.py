"""The monitor: see everything, act on it.

A view is a plain function from a question (path and query) to a page: a template's name and the facts in it. Views run
on threads of their own, since all database work is synchronous. The same facts are the page's HTML and `/api/…`'s JSON.
Who may come in, and from where, is decided in `guard`, before any view is asked; what changes something goes through
`actions`, which calls the same functions as the command line.
"""
