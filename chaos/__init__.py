"""Proof by breaking it: the real stack under random faults, and witnesses that see from outside what it does.

python -m chaos --seconds 600 --seed 7
"""
