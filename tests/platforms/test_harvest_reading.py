"""Sources of many parcels, without any server: columns, shapes, cursors and what a page may be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lienworker.errors import InputError, PageError
from lienworker.platforms.harvest import KINDS, Cursor, Plan, Reader, TooMuchError, smaller, uses_of
from lienworker.platforms.harvest.arcgis import is_layer, layer_of
from lienworker.platforms.harvest.geometry import described, from_esri
from lienworker.platforms.harvest.plan import following
from lienworker.platforms.harvest.socrata import is_resource, resource_of

LAYER = "https://gis.example/arcgis/rest/services/Parcels/FeatureServer/0"
PLAN = Plan("arcgis", LAYER, "arcgis", ("OBJECTID", "PIN"), where="1=1", id_column="OBJECTID", size=2, announced=5)


def record(**row: Any) -> dict[str, Any]:
    return Reader(uses_of(list(row), {})).record(row)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"PIN": 12345.0, "ALTPARNO": "7"}, {"parcel_id": "12345", "alternate_ids": {"alternate": "7"}}),
        ({"PARCEL_ID": "00-1", "PIN": "9"}, {"parcel_id": "00-1", "alternate_ids": {"pin": "9"}}),
        (
            {"OWNERNME1": "OTTER IDA", "OWNERNME2": "HERON JO"},
            {"owner_name": "OTTER IDA", "owner_names": ["OTTER IDA", "HERON JO"]},
        ),
        (
            {"OWNER": "OTTER", "STREET": "1 FERN ST", "CITY": "JUNIPER", "STATE": "FL", "ZIP": "32600"},
            {"owner_name": "OTTER", "owner_names": ["OTTER"], "owner_address": "1 FERN ST JUNIPER FL 32600"},
        ),
        (
            {"HOUSE_NO": "12", "STREET_NAME": "FERN", "STREET_TYPE": "ST", "CITY": "JUNIPER"},
            {"property_address": "12 FERN ST", "fields": {"CITY": "JUNIPER"}},
        ),
        ({"EMV_TOTAL": "1,200", "GIS.POLY.ACRES_POLY": 2}, {"market_value": 1200.0, "acres": 2.0}),
        ({"JV": None, "ZONING": "R1", "SHAPE_LEN": ""}, {"fields": {"ZONING": "R1"}}),
        (
            {"SALE_YR1": "2021", "SALE_MO1": "05", "SALE_PRC1": "9", "SALE_YR2": "2019", "SALE_PRC2": "8"},
            {"sales": [{"date": "2021-05", "price": 9.0}, {"date": "2019", "price": 8.0}]},
        ),
    ],
)
def test_columns_are_read_by_the_habits_of_many_layers(row: dict[str, Any], found: dict[str, Any]) -> None:
    assert record(**row) == found


def test_a_choice_overrules_what_the_names_say() -> None:
    uses = uses_of(["PIN", "GEO_NO", "JV"], {"parcel_id": "geo_no"})
    assert Reader(uses).record({"PIN": "1", "GEO_NO": "2"}) == {"parcel_id": "2", "alternate_ids": {"pin": "1"}}
    with pytest.raises(InputError, match="no column 'NOPE'"):
        uses_of(["PIN"], {"parcel_id": "NOPE"})
    with pytest.raises(InputError, match="the names to map are"):
        uses_of(["PIN"], {"colour": "PIN"})


SQUARE = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]  # clockwise, as Esri's outer rings are
HOLE = [[0.2, 0.2], [0.4, 0.2], [0.4, 0.4], [0.2, 0.4], [0.2, 0.2]]


def test_a_hole_stays_in_its_ring_and_two_rings_are_two_polygons() -> None:
    one = from_esri({"rings": [SQUARE, HOLE]}, 4326)["geometry"]
    assert (one["type"], len(one["coordinates"])) == ("Polygon", 2)
    far = [[x + 5, y] for x, y in SQUARE]
    two = from_esri({"rings": [SQUARE, far, HOLE]}, 4326)["geometry"]
    assert (two["type"], [len(polygon) for polygon in two["coordinates"]]) == ("MultiPolygon", [2, 1])


def test_the_middle_is_that_of_the_area() -> None:
    assert from_esri({"rings": [SQUARE]}, 4326)["centroid"] == [0.5, 0.5]
    assert from_esri({"x": -83.1, "y": 29.6}, None)["centroid"] == [-83.1, 29.6]


@pytest.mark.parametrize(
    "shape",
    [
        None, {}, [], "x", {"rings": []}, {"rings": [[[0]]]}, {"rings": [SQUARE[:2]]}, {"x": None, "y": 1},
        {"rings": [[["a", 1]] * 5]}, {"x": "NaN", "y": 2}, {"rings": [[[float("inf"), 0]] * 5]}, {"rings": 7},
        {"x": 500, "y": 2},
    ],
)  # fmt: skip
def test_a_shape_that_is_none_is_left_out(shape: Any) -> None:
    assert from_esri(shape, 4326) == {}
    assert described({"type": "Polygon", "coordinates": shape}) == {}


def test_a_shape_in_feet_is_not_taken_for_degrees() -> None:
    assert from_esri({"rings": [SQUARE]}, 2236) == {}


def test_addresses_of_layers_and_resources() -> None:
    assert layer_of(f"{LAYER}/query?where=1%3D1&token=abc") == (LAYER, "abc")
    assert not is_layer("https://gis.example/parcels")
    with pytest.raises(InputError, match="name one of its layers"):
        layer_of(LAYER[:-2])
    assert is_resource("https://data.example/d/abcd-1234")
    assert (
        resource_of("https://data.example/City/Lots/abcd-1234/data") == "https://data.example/resource/abcd-1234.json"
    )


def test_a_cursor_survives_being_stored_and_ends_where_the_source_does() -> None:
    cursor = Cursor(size=2)
    assert Cursor.from_dict(json.loads(json.dumps(cursor.to_dict()))) == cursor
    plan = replace(PLAN, ranges=((1, 5), (6, 9)))
    assert Plan.from_json(plan.to_json()) == plan
    second = following(PLAN, cursor, 2, 2, has_more=True)
    assert second is not None
    assert (second.number, second.at, second.read) == (2, 2, 2)
    assert following(PLAN, second, 0, None, has_more=True) is None
    checked = following(replace(PLAN, edited="1"), second, 1, None, has_more=False)
    assert checked is not None
    assert checked.is_check


def test_too_much_is_asked_for_in_halves_down_to_one() -> None:
    assert smaller(PLAN, Cursor(size=8)).size == 4
    with pytest.raises(PageError, match="alone"):
        smaller(PLAN, Cursor(size=1))
    ranged = replace(PLAN, ranges=((1, 8),))
    half = smaller(ranged, Cursor())
    assert (half.low, half.high) == (1, 4)
    rest = following(ranged, half, 3, None, has_more=False)
    assert rest is not None
    assert (rest.low, rest.high) == (5, None)


@pytest.mark.parametrize("kind", ["arcgis", "socrata"])
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[" * 100_000, b'"x"', b"7", b"null", b'{"error": {"code": 500}}', b'{"features": 3}']
)
def test_what_is_no_page_is_a_failure_with_a_reason(kind: str, body: bytes) -> None:
    with pytest.raises(PageError) as caught:
        KINDS[kind].read(PLAN, Cursor(size=2), body)
    assert caught.value.reason in {"not_a_source", "source_error"}


def test_a_page_that_would_fill_the_memory_is_not_decoded() -> None:
    with pytest.raises(TooMuchError):
        KINDS["arcgis"].read(PLAN, Cursor(), b"[" + b"[]," * 600_000 + b"[]]")
