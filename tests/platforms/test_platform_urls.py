"""Addresses: whose they are, and how a target's is built."""

from __future__ import annotations

import pytest

from lienworker.platforms import Target, default_registry

URLS = {
    "qpublic": "https://qpublic.schneidercorp.com/Application.aspx?AppID=867&PageTypeID=4&KeyValue=34-09",
    "beacon": "https://beacon.schneidercorp.com/Application.aspx?AppID=1&PageTypeID=4&KeyValue=1",
    "floridapa": "https://columbia.floridapa.com/gis/recordSearch_3_Details/",
    "vgsi": "https://gis.vgsi.com/lymenh/Parcel.aspx?pid=975",
    "tyler": "https://www.ncpub.org/_web/datalets/datalet.aspx?mode=profile_nh&UseSearch=no&pin=L9NE4C",
    "realauction": "https://polk.realtaxlien.com/index.cfm?folder=certpop",
    "arcgis": "https://gis.county.example/arcgis/rest/services/Parcels/MapServer/0/query?where=1%3D1&f=json",
    "leepa": "https://www.leepa.org/Display/DisplayParcel.aspx?FolioID=10990011",
    "collier": "https://www.collierappraiser.com/main_search/recorddetail.html?FolioID=15999990002",
    "cook": "https://www.cookcountyassessoril.gov/pin/01019990060000",
    "cuyahoga": "https://myplace.cuyahogacounty.gov/MTIwMTAxNDU=",
    "polk_ia": "http://web.assess.co.polk.ia.us/cgi-bin/web/tt/infoqry.cgi?tt=card/card&dp=1",
    "wvauditor": "https://www.wvsao.gov/CountyCollections/Default",
    "mygovonline": "https://polk-eps.mygovonline.com/mod.php?mod=propertytax",
    "taxsys": "https://alachua.county-taxes.com/public/real_estate/parcels/00999-011-000",
}


@pytest.mark.parametrize("name", URLS)
def test_a_platform_knows_its_addresses(name: str) -> None:
    found = default_registry().for_url(URLS[name])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://qpublic.schneidercorp.com/Application.aspx?App=FultonCountyGA&PageType=Report&KeyValue=1", "qpublic"),
        ("https://qpublic9.qpublic.net/ga_display.php?county=ga_dade&KEY=1", "qpublic"),
        ("https://www.miamidade.county-taxes.com/public/real_estate/parcels/1/bills", "taxsys"),
        ("https://county-taxes.net/hillsborough/hillsborough/property-tax/1", "taxsys"),
        ("https://indian-river.realtaxdeed.com/index.cfm?zaction=AUCTION&Zmethod=PREVIEW", "realauction"),
        ("https://gis.vgsi.com/newhavenct/Parcel.aspx?Pid=1", "vgsi"),
        ("https://county.example/PT/Datalets/Datalet.aspx?sIndex=0&idx=1", "tyler"),
    ],
)
def test_the_addresses_of_other_counties_are_known_too(url: str, name: str) -> None:
    found = default_registry().for_url(url)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("url", ["https://county.example/parcel/1", "http://127.0.0.1:8900/parcel/7", "not a url", ""])
def test_a_strange_address_is_nobodys(url: str) -> None:
    assert default_registry().for_url(url) is None


@pytest.mark.parametrize(
    ("name", "target", "url"),
    [
        (
            "qpublic",
            Target(parcel_id="34-09 13", extra={"app_id": 867, "layer_id": 16385, "page_id": 7230}),
            "https://qpublic.schneidercorp.com/Application.aspx?AppID=867&LayerID=16385&PageTypeID=4&PageID=7230"
            "&KeyValue=34-09%2013",
        ),
        ("vgsi", Target(parcel_id="975", extra={"town": "lymenh"}), "https://gis.vgsi.com/lymenh/Parcel.aspx?pid=975"),
        ("leepa", Target(parcel_id="10990011"), "https://www.leepa.org/Display/DisplayParcel.aspx?FolioID=10990011"),
        ("cook", Target(parcel_id="01-01-999-006-0000"), "https://www.cookcountyassessoril.gov/pin/01019990060000"),
        (
            "taxsys",
            Target(county="Miami-Dade", parcel_id="00999 011"),
            "https://miamidade.county-taxes.com/public/real_estate/parcels/00999%20011",
        ),
        (
            "arcgis",
            Target(parcel_id="1'2", extra={"base_url": "https://gis.example/0/", "field": "PID"}),
            "https://gis.example/0/query?where=PID%3D%271%27%272%27&outFields=*&returnGeometry=false&f=json",
        ),
        (
            "beacon",
            Target(parcel_id="1 2", extra={"app": "FultonCountyGA", "layer": "Parcels"}),
            "https://beacon.schneidercorp.com/Application.aspx?App=FultonCountyGA&Layer=Parcels&PageType=Report"
            "&KeyValue=1%202",
        ),
        (
            "vgsi",
            Target(state="CT", county="New Haven", parcel_id="7"),
            "https://gis.vgsi.com/newhavenct/Parcel.aspx?pid=7",
        ),
        ("vgsi", Target(parcel_id="975"), None),
        ("leepa", Target(), None),
        ("wvauditor", Target(parcel_id="1"), None),
        ("generic", Target(parcel_id="1"), None),
    ],
)
def test_the_address_of_a_target(name: str, target: Target, url: str | None) -> None:
    assert default_registry().get(name).build_url(target) == url


def test_every_platform_is_polite() -> None:
    registry = default_registry()
    for name in registry.names():
        platform = registry.get(name)
        assert platform.version
        assert name in ("demo", "generic") or (platform.delay or 0) >= 1
