"""Flows: how the pages of a target are reached, where one GET is not enough.

    model       what a flow is made of: Flow, Step, Submit, Capture, Condition, Repeat
    checks      refuses a flow that cannot work when it is made
    templates   placeholders, escaped and bounded
    matching    whether a page has what a condition says; captured values
    forms       submitting a page's form as a browser does
    walk        from the last reply to the next request, without asking anybody

docs/flows.md explains the vocabulary with an example.
"""

from lienworker.platforms.flows.checks import FlowError
from lienworker.platforms.flows.model import Capture, Condition, Flow, Repeat, Step, Submit
from lienworker.platforms.flows.walk import Ask, Done, Ended, OpenSession, Refused, Walk, can_walk, first_address

__all__ = [
    "Ask",
    "Capture",
    "Condition",
    "Done",
    "Ended",
    "Flow",
    "FlowError",
    "OpenSession",
    "Refused",
    "Repeat",
    "Step",
    "Submit",
    "Walk",
    "can_walk",
    "first_address",
]
