from __future__ import annotations

from collections.abc import Iterator

import pytest

from lienworker.gateway.reference import ReferenceGateway, reference_gateway

from .helpers import Caller


@pytest.fixture
def gateway() -> Iterator[ReferenceGateway]:
    with reference_gateway() as running:
        yield running


@pytest.fixture
def call(gateway: ReferenceGateway) -> Caller:
    return Caller(gateway)
