"""Local persistence, one for all modes: a SQLite file and a folder of files beside it.

Nothing here knows an actor, a queue or the network. All writes go through `db.database.write()`.
"""
