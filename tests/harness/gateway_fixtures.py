from __future__ import annotations

from collections.abc import Iterator

import pytest

from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from tests.harness.gateway_calls import Caller


@pytest.fixture
def gateway() -> Iterator[ReferenceGateway]:
    with reference_gateway() as running:
        yield running


@pytest.fixture
def call(gateway: ReferenceGateway) -> Caller:
    return Caller(gateway)
