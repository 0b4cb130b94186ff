"""What keeps a data folder healthy for years: retention, disk limits, backup and restore, hosts and clocks.

Each module is one service. It uses `outbox/` and `store/` below; nothing there imports it.
"""
