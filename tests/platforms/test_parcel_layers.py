"""Parcel layers with the columns that states and vendors really give them. The people are invented."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Record, Target, default_registry
from lienworker.platforms.vendors.arcgis.layer import learn

LAYERS: dict[str, dict[str, Any]] = {
    "Florida's tax rolls": {
        "PARCEL_ID": "12-7", "DOR_UC": "001", "JV": 100000, "AV_SD": 95000, "AV_NSD": 90000, "TV_SD": 70000,
        "LND_VAL": 10000,
        "OWN_NAME": "HERON IDA", "OWN_ADDR1": "PO BOX 9", "OWN_ADDR2": " ", "OWN_CITY": "MILLBROOK", "OWN_STATE": "XX",
        "OWN_ZIPCD": 20902, "OWN_STATE_": "WRONG", "PHY_ADDR1": "12 ACORN LN", "FIDU_NAME": "BIG BANK",
    },
    "North Carolina": {
        "PARNO": "12-7", "ALTPARNO": "99", "OWNNAME": "HERON IDA", "OWNNAME2": "OTTER JO", "MAILADD": "PO BOX 9",
        "MCITY": "MILLBROOK", "MSTATE": "XX", "MZIP": "20902", "SITEADD": "12 ACORN LN", "LANDVAL": 10000,
        "PARVAL": 100000,
    },
    "Wisconsin": {
        "PARCELID": "12-7", "TAXPARCELID": "99", "OWNERNME1": "HERON IDA", "PSTLADRESS": "PO BOX 9 MILLBROOK XX 20902",
        "SITEADRESS": "12 ACORN LN", "STREETNAME": "ACORN", "LNDVALUE": 10000, "ESTFMKVALUE": 100000, "CONAME": "SALT",
    },
    "New York": {
        "SBL": "0120000007", "PRINT_KEY": "12-7", "PARCEL_ADDR": "12 ACORN LN", "PRIMARY_OWNER": "HERON IDA",
        "MAIL_ADDR": "PO BOX 9", "MAIL_CITY": "MILLBROOK", "MAIL_STATE": "XX", "MAIL_ZIP": "20902", "TOTAL_AV": 60000,
        "FULL_MARKET_VAL": 100000, "LAND_VAL": 10000,
    },
    "Maryland": {
        "ACCTID": "12-7", "OWNNAME1": "HERON IDA", "OWNADD1": "PO BOX 9", "OWNCITY": "MILLBROOK", "OWNSTATE": "XX",
        "OWNERZIP": "20902", "ADDRESS": "12 ACORN LN", "NFMLNDVL": 10000, "NFMTTLVL": 100000,
    },
    "Ohio, Esri's model": {
        "PARCELID": "12-7", "OWNERNME1": "HERON IDA", "SITEADDRESS": "12 ACORN LN", "PSTLNAME1": "BIG BANK",
        "PSTLADDRESS": "PO BOX 9", "PSTLCITYSTZIP": "MILLBROOK XX 20902", "LNDVALUEBASE": 10000, "TOTVALUEBASE": 100000,
    },
    "the Twin Cities": {
        "COUNTY_PIN": "12-7", "STATE_PIN": "27-99", "OWNER_NAME": "HERON IDA", "TAX_NAME": "BIG BANK",
        "OWN_ADD_L1": "PO BOX 9", "OWN_ADD_L2": "MILLBROOK XX 20902", "SITE_ADDR": "12 ACORN LN", "EMV_LAND": 10000,
        "EMV_TOTAL": 100000,
    },
    "a joined layer": {
        "GIS.PARCELS.PIN": "12-7", "GIS.CAMA.OWNER": "HERON IDA",
        "GIS.CAMA.MAIL_ADDRESS": "PO BOX 9 MILLBROOK XX 20902",
        "GIS.CAMA.SITUS_ADDR": "12 ACORN LN", "GIS.CAMA.LAND_VAL": 10000, "GIS.CAMA.TOT_MKT_VAL": 100000,
    },
}  # fmt: skip


def read(answer: Any, url: str = "") -> Record:
    platform = None if url else "arcgis"
    return default_registry().parse(Page(url, json.dumps(answer).encode()), Target(platform=platform)).record


def layer(attributes: dict[str, Any]) -> Record:
    return read({"geometryType": "esriGeometryPolygon", "features": [{"attributes": attributes}]})


@pytest.mark.parametrize("place", LAYERS)
def test_a_layer_says_the_same_under_other_names(place: str) -> None:
    record = layer(LAYERS[place])
    assert (record["parcel_id"], record["owner_name"]) == ("12-7", "HERON IDA")
    assert (record["property_address"], record["owner_address"]) == ("12 ACORN LN", "PO BOX 9 MILLBROOK XX 20902")
    assert (record["land_value"], record["market_value"]) == (10000.0, 100000.0)


def test_a_size_without_a_unit_is_no_acres() -> None:
    assert "acres" not in layer({"APN": "12-7", "OWNER_NAME": "HERON IDA", "LAND_SIZE": 10890})
    assert layer({"APN": "12-7", "OWNER_NAME": "HERON IDA", "DEEDACRES": 0.25})["acres"] == 0.25


def test_a_sale_with_book_and_page() -> None:
    sold = {"PROP_ID": "1", "LS_DATE": "20100501", "LS_PRICE": 50000, "LS_BOOK": "12", "LS_PAGE": "34"}
    assert layer(sold)["sales"] == [{"date": "2010-05-01", "price": 50000.0, "book_page": "12/34"}]
    assert "sales" not in layer(sold | {"LS_DATE": None})


FACTS = {"PIN": "12-7", "OWNER": "HERON IDA", "SITUS": "12 ACORN LN"}


def test_geojson_has_properties_in_the_place_of_attributes() -> None:
    answer = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": FACTS, "geometry": None}]}
    assert read(answer, "https://gis.example/rest/services/P/FeatureServer/0/query?f=geojson")["parcel_id"] == "12-7"


def test_what_stands_at_a_place_of_the_map() -> None:
    answer = {"results": [{"layerId": 0, "layerName": "Parcels", "attributes": FACTS}]}
    assert read(answer)["owner_name"] == "HERON IDA"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": 499, "message": "Token Required"}}, "login_required"),
        ({"error": {"code": 500, "message": "Error performing query operation"}}, "error_page"),
        ({"features": []}, "parcel_not_found"),
        ({"results": []}, "parcel_not_found"),
        ({"count": 12}, "not_a_parcel"),
        ({"objectIdFieldName": "OBJECTID", "objectIds": [1, 2]}, "not_a_parcel"),
    ],
)
def test_an_answer_without_a_parcel_has_its_reason(answer: Any, reason: str) -> None:
    with pytest.raises(PageError) as error:
        read(answer)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    "columns",
    [
        {"TMS": "12-7", "OWNAM1": "HERON IDA", "STREET": "PO BOX 9", "CITY": "MILLBROOK", "ZIP5": "20902",
         "STRNUM": "12", "LOCATE": "ACORN LN", "FAIRMKTVAL": 100000, "TACRES": 2.5},
        {"PNUM": "12-7", "PPN": 120000700, "NAME1": "HERON IDA", "ADD1": "PO BOX 9", "CITY": "MILLBROOK", "ZIP": 20902,
         "LOCADD": "12  ACORN LN", "MRKT_VALUE": 100000, "TOT_ACRE": 2.5},
        {"MapTaxlot": "12-7", "PropertyOwner": "HERON IDA", "OwnerMail1": "PO BOX 9", "OwnerMailCity": "MILLBROOK",
         "OwnerMailZip": "20902", "PhysAddr": "12 ACORN LN", "TotalPropValue": 100000, "GISACRES": 2.5},
    ],
)  # fmt: skip
def test_columns_are_known_in_any_spelling(columns: dict[str, Any]) -> None:
    record = layer(columns)
    assert (record["parcel_id"], record["owner_name"]) == ("12-7", "HERON IDA")
    assert (record["owner_address"], record["property_address"]) == ("PO BOX 9 MILLBROOK 20902", "12 ACORN LN")
    assert (record["market_value"], record["acres"]) == (100000.0, 2.5)
    assert not {"city", "zip"} & record.keys()  # they are the owner's


def test_a_place_behind_the_propertys_address_is_the_propertys() -> None:
    record = layer(
        {"PIN": "12-7", "OWNER": "HERON IDA", "MAILADD": "PO BOX 9", "SITEADD": "12 ACORN LN", "ZIP": "20903"}
    )
    assert (record["zip"], record["owner_address"]) == ("20903", "PO BOX 9")


def test_a_date_is_milliseconds_also_where_the_answer_does_not_say_so() -> None:
    assert layer({"PIN": "12-7", "DEED_DATE": 1429538400000, "SLPRICE": 5})["sales"] == [
        {"date": "2015-04-20", "price": 5.0}
    ]
    assert layer({"PIN": "12-7", "DEED_DATE": 20150420, "SLPRICE": 5})["sales"][0]["date"] == "2015-04-20"


# What a layer says of itself.


def described(**changes: Any) -> Page:
    types = {"OBJECTID": "OID", "Gis.Parcels.PIN": "String", "TAG": "Double"}
    fields = [{"name": name, "type": f"esriFieldType{kind}"} for name, kind in types.items()]
    about = {"type": "Feature Layer", "capabilities": "Map,Query", "fields": fields, **changes}
    return Page("https://gis.example/FeatureServer/0?f=json", json.dumps(about).encode(), "application/json")


@pytest.mark.parametrize(
    ("named", "column", "kind"),
    [
        ("pin", "Gis.Parcels.PIN", "text"),
        ("Other.Parcels.PIN", "Gis.Parcels.PIN", "text"),
        ("TAG", "TAG", "number"),
        ("GONE", "Gis.Parcels.PIN", "text"),
        (None, "Gis.Parcels.PIN", "text"),
    ],
)
def test_a_layer_tells_the_spelling_and_the_type_of_its_column(named: str | None, column: str, kind: str) -> None:
    assert learn(described(), named) == {"field": column, "field_type": kind}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fields": None}, "not_a_layer"),
        ({"fields": [{"name": "OBJECTID"}, {"name": "COLOR"}]}, "no_id_column"),
        ({"capabilities": "Map"}, "refused"),
        ({"error": {"code": 499, "message": "Token Required"}}, "refused"),
    ],
)
def test_a_layer_that_cannot_be_asked_for_a_parcel_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PageError) as told:
        learn(described(**changes), "PIN_2")
    assert told.value.reason == reason


def test_the_column_that_a_parcel_is_asked_for_by_has_its_id() -> None:
    body = {"features": [{"attributes": {"TAG": "00-7", "PIN": "9", "OWNER": "HERON IDA"}}]}
    page = Page("https://gis.example/FeatureServer/0/query", json.dumps(body).encode(), "application/json")

    record = default_registry().parse(page, Target(platform="arcgis", extra={"field": "TAG"})).record

    assert record["parcel_id"] == "00-7"
