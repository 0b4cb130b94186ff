"""The all-in-one stack: Redis, workers and schedule under one supervisor, on one data folder.

supervisor   starts the parts, restarts those that die, stops them in order
parts        the command of each part
redis_server the private Redis: where its program is, how it is configured
one_shot     `lienworker run`: import, scrape to the end, stop
"""
