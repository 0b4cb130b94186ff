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
    "bas": "https://town.example/BASTaxBills/iTax_bill.aspx?RdDb",
    "bisconsultants": "https://esearch.nowherecad.org/Property/View/99031?year=2024",
    "broward": "https://web.bcpa.net/BcpaClient/search.aspx/getParcelInformation",
    "bsa": "https://bsaonline.com/SiteSearch/SiteSearchDetails?SearchCategory=Parcel+Number&ReferenceKey=1&uid=9",
    "civilview": "https://salesweb.civilview.com/Sales/SalesSearch?countyId=25",
    "cooktreasurer": "https://www.cookcountytreasurer.com/yourpropertytaxoverviewresults.aspx",
    "devnet": "https://bondil.devnetwedge.com/parcel/view/0999100001/2024",
    "eagleweb": "https://eagle.county.example/assessor/taxweb/account.jsp?accountNum=R0099321",
    "govhub": "https://0abc-dsn.algolia.net/1/indexes/*/queries?x-algolia-agent=x",
    "greenville": "https://www.greenvillecounty.org/appsas400/TaxSale/",
    "hillsborough": "https://gis.hcpafl.org/CommonServices/property/search/ParcelData?pin=1829999ZZ000012000050A",
    "megabyte": "https://common2.mptsweb.com/MBC/yolo/tax/main/012340056000/2024/0000",
    "miamidade": "https://www.miamidade.gov/Apps/PA/PApublicServiceProxy/PaServicesProxy.ashx?Operation=GetAddress",
    "patriot": "https://auburnmaine.patriotproperties.com/summary-bottom.asp",
    "pinellas": "https://www.pcpao.org/general.php?strap=163109000990100020",
    "propaccess": "https://propaccess.trueautomation.com/clientdb/Property.aspx?cid=71&prop_id=23699",
    "sheriffsale": "https://montgomery.sheriffsaleauction.ohio.gov/index.cfm?zaction=AUCTION&Zmethod=PREVIEW",
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
        (
            "miamidade",
            Target(parcel_id="30-9999-012-0340"),
            "https://www.miamidade.gov/Apps/PA/PApublicServiceProxy/PaServicesProxy.ashx"
            "?Operation=GetPropertySearchByFolio&clientAppName=PropertySearch&folioNumber=3099990120340",
        ),
        (
            "devnet",
            Target(state="IL", county="Bond", parcel_id="09-99-100-001", extra={"tax_year": 2024}),
            "https://bondil.devnetwedge.com/parcel/view/0999100001/2024",
        ),
        (
            "propaccess",
            Target(parcel_id="23699", extra={"base_url": "https://propaccess.example/", "cid": 71}),
            "https://propaccess.example/clientdb/Property.aspx?cid=71&prop_id=23699",
        ),
        ("broward", Target(parcel_id="504199010020"), None),
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


def test_every_platform_says_what_it_was_written_from() -> None:
    registry = default_registry()
    assert [name for name in registry.names() if not registry.get(name).evidence] == []


def test_every_platform_with_a_flow_says_how_sure_its_way_is_and_what_is_closed_to_robots_has_none() -> None:
    registry = default_registry()
    platforms = [registry.get(name) for name in registry.names()]
    assert [platform.name for platform in platforms if platform.flow and not platform.reach] == []
    closed = {platform.name for platform in platforms if platform.reach == "parse only"}
    assert closed == {"qpublic", "beacon", "taxsys", "bsa"}
    assert not any(platform.flow for platform in platforms if platform.name in closed)
