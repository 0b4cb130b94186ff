"""The monitor: see everything, act on it.

A view is a plain function from a question (path and query) to a page: the name of a template and the facts in it. Views
run on their own threads, since all database work is synchronous. The same facts become the page's HTML and the JSON of
`/api/…`. Who may come in, and from where, is decided in `guard`, before any view is called; what changes something goes
through `actions`, which calls the same functions as the command line.
"""
