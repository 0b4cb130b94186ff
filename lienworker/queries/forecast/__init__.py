"""When the work will be done: facts read at one moment (`facts`), a pure function over them (`model`), and words."""
