"""Pages a second: the bare loop, Scrapy, Celery and lienworker on the same pages, with the same unit of work.

page        the county page and the twelve fields that everybody reads from it
site        the county site: a process that serves the pages from memory and notes when they are asked for
work        the unit of work that the loop and the peers share: parse, compress into a file, a row in SQLite
bare_loop, with_scrapy, with_celery, with_lienworker   the contenders, each a command
measuring   one run of one contender, from the first page asked for to the last row committed
__main__    all of them in turns: `python -m benchmarks.speed`
"""
