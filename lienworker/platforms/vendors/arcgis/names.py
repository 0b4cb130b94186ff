"""The columns of parcel layers, as states and counties name them, and what each holds.

As `normalise` writes them: `OWN_NAME` is `own name`, `OWNERNME1` is `ownernme1`. Only names that mean one thing.
"""

from __future__ import annotations

# Under an empty name those that would mislead: parts of an address, districts, what somebody else is called.
_WORDS = {
    "parcel_id": "parno|county pin|print key|acctid|gpin|taxpin|pams pin|parcelidnu|parcel num|parcel numb|pin14",
    "alternate": "taxparcelid|altparno|state pin|sbl|swis sbl id|loc id|lowparcelid|state par|altid|alt parno",
    "owner_name": (
        "file as name|owner nme1|ownername1|own name|owner1|own1|own name1|owner fullname|owner full name|deed holder"
        "|taxpayer nme|ownname|ownname1|ownernme1|owner name1|owner nam|owner nm|owner nm1|ownernm1|ownerfull|ownerall"
        "|owner full|own nm|py owner name|py owner na|owner na|ownr name|owner display|ow name"
    ),
    "co_owner": (
        "co owner|own2|owner nme2|ownname2|ownernme2|owner name2|owner more|add owner|owner nm2|ownernm2|own name2"
    ),
    "property_address": (
        "situs display|site addr|phy addr1|situs addr|primary address|siteaddress|loc addr|prop addr|full address"
        "|address|siteadress|siteadd|siteaddr|parcel addr|prop add|propertyaddress|st address|streetaddress|property a"
        "|situsaddr|situs full address|fulladdr|full addr|addr full|phyaddr|physadd|locationaddress|prop loc|prop locat"
    ),
    "": (
        "situs street|av sd|tv sd|city|tax dist|class|area|block|parcel|section|location|status|map par id|land size"
        "|size|lot size|land area|lot area|pstlname1|tax name|fidu name|municipality|use|shape area"
    ),
    "market_value": (
        "emv total|market|appraised val|jv|tot val|total val|parval|estfmkvalue|full market val|totval|totalval|fcv cur"
        "|nfmttlvl|totvaluebase|mkt val|tot mkt val|total mkt value|mktvalue|totmktval|apprval|appr val|curr val"
        "|fmv total|tot appr|tot appr val|total appr|just val|total mkt val|mktval|totalmktva"
    ),
    "land_value": (
        "emv land|lnd val|land val|landval|lndvalue|nfmlndvl|lndvaluebase|land mkt|mkt land|land mkt val|landmktval"
        "|lnd value|land appr|apprland"
    ),
    "building_value": (
        "emv bldg|emv building|impr val|improvval|impvalue|nfmimpvl|bldvaluebase|bldg val|bldgval|imp val|impval"
        "|bldvalue|imprvalue|bldgvalue|mkt impr|imprv mkt|bldg mkt val|improvement v"
    ),
    "assessed_value": (
        "assessed val|av nsd|cntassdvalue|cntassdval|assd val|assdvalue|totassd|assdtotal|lpv cur|av total|tot assd"
        "|assd total|total assd|asd val|assdval"
    ),
    "taxable_value": "tv nsd|cnttxblval|cnttxblvalue|txblval|taxval",
    "acres": (
        "poly ac|legal acreage|acres poly|acres deed|gisacres|deedacres|assdacres|calc acres|tot acres|totalacres"
        "|calcacres|tcad acres|deeded ac|calc ac|acreagecal"
    ),
    "land_area_sqft": "lnd sqfoot|landsqft|lotsqft|lot sqft",
    "building_area_sqft": "tot lvg ar|tot lvg area|bld area|sqft living|resflrarea|bldgarea|bldg area|liv area",
    "year_built": "act yr blt|yearblt|resyrblt|const year|structyear|actyrblt|yrblt|ayb",
    "bedrooms": "nbr bedrooms|num bedrms",
    "property_use": (
        "dor uc|use1 desc|useclass1|parusedesc|propclass|usedscrp|classdscrp|luc desc|use desc|usedesc|puc|usecode"
    ),
    "legal_description": "s legal|legdecfull|legal1|prprtydscrp|legaldesc1|legald1|legal dsc|legal d",
    "tax_year": "prop val yr|asmnt yr|taxrollyear|roll yr|fy|tax yr",
    "tax_amount": "total tax|netprpta|nettax",
    "city": "situs city|scity|phy city|prop city|site city|citytown name|loc city",
    "zip": "situs zip|zip|szip|phy zipcd|phy zip|loc zip|zipcd|zipcode|prop zip",
    "map": "map",
}
NAMES = {word: name for name, words in _WORDS.items() for word in words.split("|")}
# The lines of the owner's address, in their order; of each the first that is there.
MAILING = (
    "owner addr|own addr|own addr1|owner add l1|addr line1|mail addr1|mailing address|own add l1|mailadd|mail add"
    "|mail address|mailing addr|mail addr|pstladress|pstladdress|ownadd1|own add1|owner address|owner addr1|mail add1"
    "|mailaddr1|mailaddr|mailing add|mail street|py address|owneradd|owner ad1|owner add1|mailingaddress|mail address1",
    "own addr2|owner add l2|addr line2|mail addr2|own add l2|ownadd2|own add2|mail add2|mailaddr2|owner addr2"
    "|mail address2|pstladdress2",
    "addr line3|owner add l3|own add l3",
    "own city|addr city|mail city|owner city|mailing city|own citystate|mcity|mailcity|owncity|pstlcity|pstlcitystzip"
    "|mail csz|mailcsz|own csz|owner cit|py city",
    "own state|addr state|mail state|owner state|mailing state|mstate|ownstate|mailstate|pstlstate",
    "own zip|addr zip|mail zip|owner zip|mailing zip|own zipcd|mzip|ownzip|ownerzip|mailzip|pstlzip5|pstlzip",
)
_SALE_WORDS = {
    "date": (
        "sl dt|sale date|saledate|ls date|sale dt|saledt|tradate|transdate|deed date|last sale date|sale date1"
        "|xfer date|transfer date"
    ),
    "price": (
        "sl price|sale price|sale value|saleprice|ls price|considr1|sale amount|saleamt|sale amt|sale prc|sale prc1"
        "|last sale price|sale price1"
    ),
    "book": "ls book|deed book|deedbook|or book1",
    "page": "ls page|deed page|deedpage|or page1",
}
SALE = {word: name for name, words in _SALE_WORDS.items() for word in words.split("|")}
