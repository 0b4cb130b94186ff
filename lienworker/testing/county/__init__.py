"""Juniper County, state XX: a fictitious county with a web site, for the demo, the tests and the benchmarks.

Every person, address and amount in it is invented.
"""
