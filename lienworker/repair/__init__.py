"""Finding and fixing damage: `doctor` looks, `doctor --repair` fixes what it can and quarantines what it cannot.

It uses `maintenance/`, `outbox/` and `store/` below; nothing there imports it.
"""
