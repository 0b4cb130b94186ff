"""The columns of parcel layers, as states and counties name them, and what each holds.

Compared without case and signs: `OWN_NAME`, `OwnName` and `ownname` are one. Only names that mean one thing.
"""

from __future__ import annotations

import re

from lienworker.platforms.reading.labels import FIELD_OF, ID_RANK, OTHER_ID

# Under an empty name those that would mislead: parts of an address, districts, what somebody else is called.
_WORDS = {
    "parcel_id": "parno|county pin|print key|acctid|gpin|taxpin|pams pin|parcelidnu|parcel num|parcel numb|pin14",
    "alternate": "reid|ppn|taxparcelid|altparno|state pin|sbl|swis sbl id|loc id|lowparcelid|state par|altid",
    "owner_name": (
        "file as name|owner nme1|ownername1|own name|owner1|own1|own name1|owner fullname|deed holder|taxpayer nme"
        "|owner nam|owner nm|owner nm1|ownerfull|ownerall|own nm|py owner name|py owner na|owner na|ownr name"
        "|owner display|ow name|ownam1|ownam|own nam|ownnam1|ownrnm|ownrname1|ownernam1|name1|nam1|owner line1"
        "|owner1 name|own1 name|primary owner name|owner1 full|ownershipname|owner names|deed name|deedowner"
        "|tax owner|taxpayer1|taxpayernm|own fullname|current own|curr own|cur owner|owner01"
    ),
    "co_owner": (
        "co owner|own2|owner nme2|ownname2|owner name2|owner more|add owner|owner nm2|ownam2|name2|nam2|ownnam2"
        "|ownernam2|owner line2|owner2 name|secondowner|owner02|ownrname2"
    ),
    "property_address": (
        "situs display|site addr|phy addr1|situs addr|primary address|siteaddress|loc addr|prop addr|full address"
        "|address|siteadress|siteadd|parcel addr|prop add|propertyaddress|st address|streetaddress|property a"
        "|situs full address|fulladdr|addr full|phyaddr|physadd|locationaddress|prop loc|prop locat|phys addr|locadd"
        "|location addr|physaddress|physical addr|physaddr1|propaddress|prop str|property addr|site street address"
        "|situs add|site adr|siteaddr1|situsaddress1|situs line1|paddress|parcel address|parcel add|par addr"
        "|addr1 situs|e911 addr|e911 address|address 911|prpaddress|prop address1|site location|street addr|st addr"
        "|complete address|full street address|locational address|physical a|property ad|situs addr1"
        "|loc street address"
    ),
    "": (
        "situs street|av sd|tv sd|city|tax dist|class|area|block|parcel|section|location|status|map par id|land size"
        "|size|lot size|land area|lot area|pstlname1|tax name|fidu name|municipality|use|shape area|sqfeet|sqft"
        "|prev owner|previous owner|prior owner"
    ),
    "market_value": (
        "emv total|market|appraised val|jv|tot val|total val|parval|estfmkvalue|full market val|fcv cur|nfmttlvl"
        "|totvaluebase|mkt val|tot mkt val|total mkt value|mktvalue|apprval|curr val|fmv total|tot appr|tot appr val"
        "|total appr|just val|total mkt val|totalmktva|fair mkt val|mrkt value|mrkt val|total prop value"
        "|total property val|prop value|prop val|totalvalue1|fmv|market val|mv total|tot mv|total mv|tmv"
        "|appraised total|apprtot|apr total|tot fmv|full val|fullvalue|full mkt val|est mkt val|emv|just value"
        "|jv total|total just|totaljv|realmarket|rmv total|rmv tot|tot rmv|cama total|total apr|tot value|val total"
        "|ttl val"
    ),
    "land_value": (
        "emv land|lnd val|land val|lndvalue|nfmlndvl|lndvaluebase|land mkt|mkt land|land mkt val|land appr|apprland"
        "|land mv|mv land|tot land val|land fmv|fmv land|land apr|apr land|landvalue1|land rmv|rmv land|val land"
        "|land market|lnd mkt val|total land val|jv land"
    ),
    "building_value": (
        "emv bldg|emv building|impr val|improvval|impvalue|nfmimpvl|bldvaluebase|bldg val|imp val|bldvalue|imprvalue"
        "|bldgvalue|mkt impr|imprv mkt|bldg mkt val|improvement v|bldg mv|mv bldg|impr mv|mv impr|imp fmv|bldg fmv"
        "|fmv bldg|impr appr|apprimpr|appr bldg|bldg appr|bldappr|impr mkt|rmv impr|val bldg|val impr|totimpval"
        "|total bldg val|tot bldg val|improvement val|impv val|bldg apr|jv bldg|strucvalue|struct val"
    ),
    "assessed_value": (
        "assessed val|av nsd|cntassdvalue|cntassdval|assd val|assdvalue|totassd|assdtotal|lpv cur|av total|total assd"
        "|asd val|sev|sev tribunal1|state eq value|tot assess|total assess|assess val|asmt total|asmt tot|tot asmt"
        "|asmnt val|assess total|assesstot|assmnt|net assd|assed val|assed value"
    ),
    "taxable_value": (
        "tv nsd|cnttxblval|cnttxblvalue|txblval|taxval|taxabletribunal1|tax mkt val|taxable val|tot taxable|tot txbl"
        "|txblvalue|net taxable|taxbl val|county txbl"
    ),
    "acres": (
        "poly ac|legal acreage|acres poly|acres deed|gisacres|deedacres|assdacres|calc acres|tot acres|totalacres"
        "|tcad acres|deeded ac|calc ac|acreagecal|tacres|tot acre|totalacre|acre|deedac|gis ac|legalacres|legal ac"
        "|acres gis|acres calc|acres tot|acre tot|land acre|landacres|lotacres|parcel acre|par acres|taxacres|tax ac"
        "|assd ac|acrestotal|stated acr|stated area|sum acres|ac|gis acre|rec acres|surveyacre"
    ),
    "land_area_sqft": "lnd sqfoot|landsqft|lotsqft",
    "building_area_sqft": "tot lvg ar|tot lvg area|bld area|sqft living|resflrarea|bldgarea|liv area",
    "year_built": (
        "act yr blt|yr built|year blt|yrblt1|bldg yr|yr blt|year bld|resyrblt|const year|structyear|actyrblt|ayb"
    ),
    "bedrooms": "nbr bedrooms|num bedrms",
    "property_use": (
        "land class|proptype|landuse|land use cd|luc|use cd|classdesc|prop class|dor uc|use1 desc|useclass1"
        "|parusedesc|usedscrp|classdscrp|luc desc|use desc|puc|usecode"
    ),
    "legal_description": (
        "legal dscr|legaldesc|legal des|legal desc1|legalds1|prop desc|legal line1|full legal|s legal|legdecfull"
        "|legal1|prprtydscrp|legald1|legal dsc|legal d"
    ),
    "tax_year": "prop val yr|asmnt yr|taxrollyear|roll yr|fy|tax yr",
    "tax_amount": "total tax|netprpta|nettax|tot tax|tax amt|taxes total|tax total|taxes cur|total tx",
    "city": (
        "phyaddr city|propaddress city|physcity|loccity|prop cty|sitecity|situs city|scity|phy city|prop city"
        "|citytown name"
    ),
    "zip": (
        "phyaddr zip|physzip|sitezip|propaddress zip|loczip|prop zip5|situs zip5|situs zip|zip|szip|phy zipcd|phy zip"
        "|zipcd|zipcode|prop zip"
    ),
    "map": "map",
}
NAMES = {word: name for name, words in _WORDS.items() for word in words.split("|")}
# The lines of the owner's address, in their order; of each the first that is there.
MAILING = (
    (
        "owner addr|own addr|own addr1|owner add l1|addr line1|mail addr1|mailing address|own add l1|mailadd"
        "|mail address|mailing addr|mail addr|pstladress|pstladdress|ownadd1|owner address|owner addr1|mail add1"
        "|mailing add|mail street|py address|owneradd|owner ad1|owner add1|mail address1|add1|addr1|owner mail 1"
        "|own mail 1|mail line1|mail1|mail ad1|madd1|maddr1|m addr|mailadr1|mail adr|own street|owner street"
        "|owneraddress1|taxpayer addr|billing addr|bill addr1|mailing1|mailingad|owner ad|own addre|curr addr1"
        "|mailaddre|addressline1|owner stre"
    ),
    (
        "own addr2|owner add l2|addr line2|mail addr2|own add l2|ownadd2|mail add2|owner addr2|mail address2"
        "|pstladdress2|add2|addr2|owner mail 2|own mail 2|mail line2|mail2|mail ad2|madd2|maddr2|mailadr2"
        "|owneraddress2|bill addr2|mailing2|addressline2|owner ad2"
    ),
    "addr line3|owner add l3|own add l3|owner mail 3|add3|addr3|mail3|mailaddr3|mail line3|own addr3",
    (
        "own city|addr city|mail city|owner city|mailing city|own citystate|mcity|pstlcity|pstlcitystzip|mail csz"
        "|own csz|owner cit|py city|owner mail city|mailing ci|own city st|ocity|city st|citystate|csz|citystzip"
        "|taxpayer city|bill city|mail cty|mailcitystate"
    ),
    (
        "owner mail state|ownerstate|m state|ostate|mail st|own st|taxpayer state|bill state|own state|addr state"
        "|mail state|mailing state|pstlstate"
    ),
    (
        "owner mail zip|m zip|ozip|own zip5|mail zip5|mail zip1|zip5|taxpayer zip|bill zip|own zip|addr zip|mail zip"
        "|owner zip|mailing zip|own zipcd|pstlzip5|pstlzip"
    ),
)
_SALE_WORDS = {
    "date": (
        "sl dt|sale date|ls date|sale dt|tradate|transdate|deed date|last sale date|sale date1|xfer date"
        "|transfer date|deed dt|sales date|slsdate|last sale dt|date sold|sale1date|lsale date|recent sale date"
        "|deedrecdate"
    ),
    "price": (
        "sl price|sale price|sale value|ls price|considr1|sale amount|saleamt|sale prc|sale prc1|last sale price"
        "|sale price1|sales price|slsprice|sale1price|price|deed price|sale val|consideration|recent sale price"
        "|sales amt"
    ),
    # A roll may say no day.
    "year": "sale yr1|sale yr|sale year|yr sold|sl yr|year sold",
    "month": "sale mo1|sale mo|sale month|mo sold|month sold",
    "book": "ls book|deed book|or book1|dbook|db|deedbk|dbk|or book",
    "page": "ls page|deed page|or page1|dpage|deedpg|dpg|or page",
}
SALE = {word: name for name, words in _SALE_WORDS.items() for word in words.split("|")}
# The parts of a property's address, in their order, where no column has all of it.
_SITUS_WORDS = (
    (
        "strnum|house no|house num|house number|hse num|street number|street num|street no|st num|addr num|situs num"
        "|site num|prop num|prop st num|propaddressnumber|loc num|situs st num"
    ),
    "predir|st pre dir|street dir|prefix dir|strdir|situs dir|prop st dir",
    (
        "strname|street name|st name|situs street|prop street|propaddstreet|locate|situs st name|prop st name"
        "|loc street|road name"
    ),
    "strtype|street type|st type|street suffix|strsuffix|st suffix|situs suffix|prop st type",
    "postdir|sufdir",
)
SITUS = tuple(words.split("|") for words in _SITUS_WORDS)
# Bare names of places: the owner's behind the owner's name or address, else the property's.
BARE = {"street": 0, "city": 3, "state": 4, "st": 4, "zip": 5, "zipcode": 5, "zip code": 5, "zip5": 5}
MAILING_WORDS = {word: place for place, line in enumerate(MAILING) for word in line.split("|")}
_NOISE = re.compile(r"[^a-z0-9]+")


def squeezed(name: str) -> str:
    return _NOISE.sub("", name.lower())


_SITUS_PARTS = [word for words in SITUS for word in words]
_VOCABULARY = (OTHER_ID, ID_RANK, FIELD_OF, MAILING_WORDS, SALE, BARE, _SITUS_PARTS, NAMES)
_SPELLED = {squeezed(word): word for words in _VOCABULARY for word in words}


def spelled(column: str) -> str:
    """A column as its words are looked up: `GIS.PARCEL_POLY.OWNERNME1` as `ownernme1`; an unknown one as it is."""
    name = column.rpartition(".")[2]
    return _SPELLED.get(squeezed(name), name)
