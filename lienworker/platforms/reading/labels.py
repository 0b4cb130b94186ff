"""The words that counties put beside a value, and the canonical field each one names.

Only words that mean one thing are here. "Name", "Date", "Amount" or "Address" alone say too little to be sure.
"""

from __future__ import annotations

import re

from lienworker.platforms.core.bounds import LONGEST_REMEMBERED, remember_short

# Stronger words first: of two ids on a page, the one with the lower place in this list is the parcel's.
PARCEL_ID = (
    "parcel id|parcel id number|parcel identification number|parcel identification|parcel number"
    "|parcel no|parcel num|parcelid|parcelno|parcelnum|parcelnumber|parcel|parcel key|parid|apn"
    "|assessor parcel number|assessors parcel number|assessor s parcel number|tax parcel id"
    "|tax parcel number|tax parcel|parcel pin|pin|pin number|pin no|property index number"
    "|property index number pin|district parcel|parcel id pin|parcel id geo pin|tax map parcel"
    "|parcel tax id|county parcel id|tax id parcel|ppin|strap|strap number|folio|folio id|folio number"
    "|pid|property id|prop id|property id number|property number|tax id|tax id number|geo id"
    "|geographic id|tax map number|tax map id|map parcel|schedule number|key number|tax map|tax map key|tmk"
    "|parcel identifier|property identification number|property identifier|property identification|propertyid"
    "|property key|tax key|tax key number|tax key no|taxkey|assessor identification number"
    "|sidwell number|parcel code|real estate id|print key|gpin|tax parcel no|geo number|geo no|parcel control number"
    "|pcn|parcel nbr|parcel nb|par num|par no|parc no|pnum|parcel tag|parcel identification no|prcl id|prcl nbr|tms"
    "|tms number|tms no|tax map sequence|map tax lot|taxlot|tax lot|taxlot id|gis pin|pin num|pin dash|pin formatted"
    "|gis parcel number|gis parcel id|full parcel id|state parcel id|pidn|pid num|upc|apn dash|tax id num|sched num"
    "|assessment no|assessment number|assessor parcel no|parcel full|complete parcel number|full pin|long pin|tax pin"
    "|ein pin|property pin|county tax id|quick ref id|quick reference id|property reference number|parcel reference"
)
_OTHER_IDS = {
    "account": (
        "account|account number|account no|account num|acct|acct no|acct number|acctnum|tax account"
        "|accountnumber|tax account number|account id|property account number|real estate account number"
        "|bill account|tax account id|real estate account|acct num|account key|tax account no"
        "|property account|account nbr|county account number"
    ),
    "alternate": (
        "alternate id|alternate parcel id|alternate key|alternate key number|alt key|alternate parcel number"
        "|alternate parcel|alternate account number|alt parcel id|alternate account|alternate account no"
        "|alternate id number|alt id|alt parcel"
    ),
    "geoparcel": ("geoparcel|geo parcel"),
    "map": ("map|mblu|map block lot|map lot|map number|map page|map no|map id|mbl|map block lot unit"),
    "prior": (
        "old parcel id|prior parcel id|old parcel number|previous parcel id|prior parcel number|old pin|old account"
    ),
}
_FIELDS = {
    "owner_name": (
        "owner|owners|owner s|owner name|owners name|owner s name|owner names|owner name s|owner of record"
        "|owners of record|primary owner|current owner|curr owner|current owners|current owner s|owner 1"
        "|owner1|owner name 1|owner 1 name|property owner|property owner name|property owner s|owner taxpayer"
        "|taxpayer name|taxpayer|tax payer|title holder|titleholder|titleholders|title holders|deed holder"
        "|deeded owner|deeded owner s|legal owner|ownername|current owner name|record owner|assessed owner"
        "|assessed name|owner as of january 1|fee owner|owner s of record|owner information"
        "|current owner information|owner info|owner name and address|owner name and mailing address"
        "|owner and mailing address|owner name address|owner name mailing address"
        "|owner mailing address information|name address|name and address|owner s name and address"
        "|owner mailing information|property owners|owner and address|owner name s and address"
        "|owner name and mailing|taxpayer name and address|taxpayer of record|owner owners|owners information"
        "|current owner s name|ownership|ownership mailing address"
    ),
    "co_owner": (
        "owner 2|owner2|owner name 2|co owner|co owner name|second owner|secondary owner|additional owner"
        "|owner 3|additional owners|owner name 3"
    ),
    "owner_address": (
        "mailing address|mailing|owner address|owner mailing address|mail address|mail to|mailing addr"
        "|owner s address|owners address|tax mailing address|tax mailing|taxpayer address"
        "|tax bill mailing address|mail addr|mailing address 1|owner mailing|tax bill address|billing address"
        "|tax billing address|owner addr|bill to|current mailing address|mailingaddress|mail address 1"
        "|mailing addr 1|owner mailing addr|address of owner|mail addr 1|mailing street|owner address 1"
        "|mail address line 1|owner street|taxpayer mailing address|tax bill mailing|tax bill mailed to"
        "|tax bill mail to"
    ),
    "property_address": (
        "property address|situs|situs address|site address|property location|location|location address"
        "|property situs|site|street address|physical address|property street address|situs location"
        "|siteaddress|situs address 1|site address 1|prop address|physical location|address of property|situs addr"
        "|property addr"
        "|site location|parcel address|parcel location|property site address|primary situs"
        "|911 address|e 911 address|e911 address|propertyaddress|site addr|property address 1|situs address s"
        "|location of property|property physical address|primary address|fulladdress|situs display"
        "|full address|location addr|prop location|property location address|full site address|physical addr"
        "|prop addr|site address 1|property address s|site property address|property site location"
        "|property street"
        "|premises address|premise address|prop loc|property loc"
    ),
    "city": ("property city|situs city|site city|city|municipality name|prop city|physical city"),
    "zip": ("zip|zip code|zipcode|situs zip|property zip|property zip code|site zip|postal code|situs zip code"),
    "legal_description": (
        "legal description|legal|legal desc|brief legal description|short legal description|brief legal"
        "|property description|legal descr|brief tax description|legal description abbreviated"
        "|full legal description|legaldescription|tax legal description|brief legal desc|short legal"
        "|legal description brief|legaldesc|description of property|parcel legal|legal desc 1"
        "|legal description full|legal 1|abbreviated legal description|tax description"
        "|legal summary|legal description summary"
    ),
    "property_use": (
        "property use|use code|property use code|land use|land use code|property class|property type|dor code"
        "|use|class|property code|property class code|class code|use description|land use description"
        "|dor use code|landuse|land use type|property classification|classification|state use code|state use"
        "|current use|primary use|usage|property use description|property usage|dor use|class description"
        "|parcel class|propertyuse|use type|propertyclass|prop class|property use type|use code description"
        "|dor code description|predominant use|primary land use|land use class|prop use|class of property"
        "|property type code|prime use|prop type"
    ),
    "acres": (
        "acres|acreage|total acres|deeded acres|calculated acres|gis acres|land acres|size acres|tax acres"
        "|gross acres|lot size acres|assessed acres|total acreage|acres gis|land size acres|land area acres"
        "|legal acres|calc acres|net acres|lot acres|parcel acres|calculated acreage|deed acres"
        "|deeded acreage|total land acres|approx acres|acreage deeded|lot area|area|land area|lot size"
        "|land size|parcel size|parcel area|size|cama acres|taxed acres|deed acreage|acres calculated"
        "|acreage total|legal acreage|poly ac|gis acreage|eff size acres"
    ),
    "land_area_sqft": (
        "land sqft|land square feet|land sq ft|lot square feet|lot sqft|land square footage|lot sq ft"
        "|land area sqft|land area sq ft|lot area sqft|lot square footage|lot size sq ft|square footage land"
        "|total land sqft|land area square feet|lot size sqft|lot size square feet|land total sqft|sq ft land"
        "|size sqr feet|size sq ft|land size sq ft|lot size in square feet|lot area sq ft|land area approximate sq ft"
        "|land area approx sq ft|parcel area sq ft|site area sq ft|parcel square feet|parcel sq ft|gis sqft|lot size sf"
        "|land sf|total land area sq ft|total land sq ft"
    ),
    "building_area_sqft": (
        "building area|building sqft|building square feet|living area|total living area|gross living area"
        "|heated area|building sq ft|finished area|living sqft|building square footage|gross building area"
        "|living area sqft|living area sq ft|square footage|total building area|total sq ft|total square feet"
        "|square feet|heated sq ft|heated sqft|living square feet|adjusted area|total finished area"
        "|finished sqft|gross area|base area|under roof|total area|bldg sqft|total sq footage|living sq ft"
        "|gross sq ft|gross square feet|tsfla|bldg sq ft|living area square feet|total living sq ft"
        "|heated square feet"
    ),
    "year_built": (
        "year built|actual year built|yr built|yearbuilt|built|year of construction|act year built|year blt"
        "|yr blt|original year built"
    ),
    "bedrooms": (
        "bedrooms|beds|number of bedrooms|total bedrooms|bedroom|bedrooms total|no of bedrooms|bed rooms|bedroom count"
    ),
    "bathrooms": (
        "bathrooms|baths|bath|number of bathrooms|full baths|total bathrooms|no of bathrooms|full bathrooms"
        "|total baths"
        "|total bthrms|full bthrms|total full baths|number of full baths|number of full bathrooms|bathroom count"
    ),
    "homestead": (
        "homestead|homestead exemption|hx|homesteaded|homestead y n|homestead status|homestead property|has homestead"
    ),
    "land_value": (
        "land value|land|market land value|land market value|total land value|appraised land value"
        "|land appraised|land appraised value|land just value|mkt land|land value market|land assessment"
        "|assessed land value|land assessed value|total land|just land value|appraised land|market land"
        "|land total|landvalue|land value total|market value land|land val|land value market value"
        "|just value of land|land appraisal|land fmv|value land|market land val|land just"
        "|total land market value|land mkt value|appraised land val|emv land|land emv|land value appraised 100"
        "|100 land"
    ),
    "building_value": (
        "building value|building assessed value|improvement assessed value|building|improvement value"
        "|improvements|improvements value|buildings value|bldg value|total building value|total bldg value"
        "|improvement|buildings|building s|total improvement value|market improvement value"
        "|appraised improvement value|improvement assessment|improvement market value|dwelling value"
        "|appraised building value|total improvements|improved value|buildingvalue|building assessment"
        "|market building value|bldg|market value building|improvementvalue|total improvements value"
        "|improvement val|building market value|structure value|imp value|bldg val|improvements just value"
        "|improvement total|just value of improvements|bldg total|improvement appraisal"
        "|improvements appraised|total building|value building|imps|impr value|building appraised value"
        "|emv improvement"
        "|emv building|emv bldg|improvement emv|improvements value appraised 100|appraised building"
        "|appraised improvements"
        "|appraised improvement|building appraised|improvement appraised|building appraisal|100 improvements"
        "|100 building"
    ),
    "market_value": (
        "market value|just value|just market value|total market value|total just value|appraised value"
        "|appraisal|total appraised value|full market value|estimated market value|fair market value|just"
        "|total value|total appraisal|total market|total appraised|appraised total|market total|fmv"
        "|total fair market value|marketvalue|true market value|total just|actual value|total actual value"
        "|full cash value|fcv|estimated full market value|emv|total emv|full value|totalvalue|justvalue"
        "|total property value|just market|property market value|market appraised value|appraised total value"
        "|total estimated market value|total just or market value|just or market value"
        "|total just market value|appraised|total fmv|total fair market|estimated value|total true value"
        "|true value|real market value|rmv|total rmv|total market appraised value|current market value"
        "|total cash value|total appraised market value|total full value|market appraisal|market val"
        "|appraised val|full market|appr value|total property market value|current value"
        "|total value appraised 100"
        "|total value appraised|appraised value 100|emv total|emv estimated market value total"
        "|estimated market value total"
        "|fair market value 100|total appraised value 100|total market value 100|market value 100|appraised 100"
        "|100 total"
    ),
    "assessed_value": (
        "assessed value|assessment|total assessed value|total assessment|assessed|net assessed value"
        "|assessed total|county assessed value|soh assessed value|capped assessed value|total assessed"
        "|school assessed value|assessedvalue|assessed value total|total assessed val|assessed val"
        "|assessed value capped|non school assessed value|total av|capped assessed|county assessed"
        "|assessed value non school|limited property value|lpv|gross assessed value|capped value"
        "|cap assessed value|classified use or assessed value|assessed value county|current assessed value"
        "|county total assessed value|state equalized value|sev|equalized value|non school assessed"
        "|assd value|assess value|total value assessed 35|total value assessed 40|total value assessed"
        "|assessed value 35"
        "|assessed value 40|total assessed value 35|total assessed value 40|assessed 35|assessed 40|35 total"
        "|40 total"
    ),
    "taxable_value": (
        "taxable value|taxable|total taxable value|county taxable value|net taxable value|total taxable"
        "|non school taxable value|nonschool taxable value|county taxable|taxable val|taxablevalue"
        "|taxable total|net taxable|taxable assessed value|taxable value county|taxable valuation"
        "|total non school taxable value|total county taxable value|taxable value non school"
        "|taxable market value|county taxable val|total taxable val"
    ),
    "tax_year": (
        "tax year|tax roll year|roll year|fiscal year|year of taxes|assessment year|taxyear|bill year"
        "|current tax year|payable year|pay year"
    ),
    "tax_amount": (
        "total tax|total taxes|tax amount|net tax|annual tax|current tax|gross tax|total tax amount|net taxes"
        "|taxes|annual taxes|total current tax|current taxes|current year tax|current year taxes|tax billed"
        "|total billed|amount billed|total tax billed|net tax amount|net annual tax|gross tax amount"
        "|taxamount|total property tax|property tax|tax|taxes billed"
    ),
    "total_due": (
        "total due|amount due|total amount due|balance due|total balance|balance|total balance due"
        "|current balance|total owed|amount owed|total taxes due|tax due|taxes due|current amount due"
        "|total tax due|payoff amount|due now|amount due now|outstanding balance|total outstanding"
        "|total payable|pay this amount|total now due|net balance due|total amount owed|total tax balance due"
        "|tax balance due|total balance owed|total amount payable|total balance amount|total unpaid"
        "|total delinquent"
    ),
    "tax_status": ("tax status|payment status|bill status|taxes status|tax payment status|tax bill status"),
}

FIELD_OF: dict[str, str] = {word: name for name, words in _FIELDS.items() for word in words.split("|")}
ID_RANK: dict[str, int] = {word: rank for rank, word in enumerate(PARCEL_ID.split("|"))}
OTHER_ID: dict[str, str] = {word: name for name, words in _OTHER_IDS.items() for word in words.split("|")}
# Words of a grid's head that are labels too, so that a head row never becomes somebody's value.
_COLUMNS = (
    "name|date|amount|address|status|type|year|price|sale date|sale price|book page|book|page|grantor"
    "|grantee|description|certificate number|certificate|interest rate|holder|paid|due|bill"
    "|bill number|deed type|instrument|qualified|code|county|state|neighborhood|subdivision|section"
    "|township|range|zoning|census tract|school district|tax district|exemptions|sales|sales history"
    "|sales information|values|valuation|buildings|legal information|tax area|nbhd|jurisdiction"
    "|district|fee|total|recorded|class|kind|exemption|millage|millage rate|tax code|tax authority"
    "|neighborhood code|face value|face amount|adv num|adv number|advertising number|winning bid|tax sale"
    "|case number|case|auction type|opening bid|minimum bid|ticket number|redemption date|buyer name|buyer"
    "|seller"
    "|certificate of sale|cert number|transfer date|transfer price"
)
_COLUMN_WORDS = frozenset(_COLUMNS.split("|"))
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NOISE = re.compile(r"[^a-z0-9]+")
_COLON = re.compile(r":(?=\s|$)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_QUALIFIER = re.compile(
    r"\b(?:certified|preliminary|working|final|current|year|tax year|roll|values?|proposed|as of)\b"
)
_OF_A_YEAR = re.compile(r"value|valuation|assess|apprais|certified|working|prelim|tax|roll|trim|bill|in progress", re.I)
_LAST_NUMBER = re.compile(r"(?<=[a-z])(?=\d$)")
_BRACKETS = re.compile(r"\([^()]{1,40}\)")
_WORTHS = frozenset({"market", "appraised", "assessed", "taxable", "just"})
# What in brackets makes it another thing.
_OTHERWISE = re.compile(
    r"prior|previous|old|former|last|next|assess|taxable|market|apprais|just|exempt|delinq|ag\b|agric|year|school|city|\d{4}"
    r"|sq|feet|acre|mail|seller|buyer|estimat|land|build|improv",
    re.I,
)
MAX_LABEL = 60
_MOST_WORDS = 5
_DIGIT = re.compile(r"\d")


@remember_short(4096)
def normalise(label: str) -> str:
    """`Owner(s) Name:` as `owner s name`, `OWNER_NAME` and `ownerName` as `owner name`."""
    return _NOISE.sub(" ", _CAMEL.sub(" ", label.replace("&", " and ")).lower()).strip()


_WORDS = frozenset({*FIELD_OF, *ID_RANK, *OTHER_ID, *_COLUMN_WORDS})
_STARTS = frozenset(word.replace(" ", "")[:3] for word in _WORDS)


def is_known(label: str) -> bool:
    return _may_be_known(label) and len(label) <= LONGEST_REMEMBERED and normalise(label) in _WORDS


def _may_be_known(label: str) -> bool:
    """By its first letters: nearly all values end here, and are never normalised."""
    start = label[:3]
    return len(start) < 3 or not start.isalnum() or start.lower() in _STARTS


def _is_word(word: str) -> bool:
    return word in _WORDS


@remember_short(4096)
def meaning(label: str) -> str:
    """The words by which a label is looked up: `Owner Of Record - Sole Owner` means `owner of record`."""
    word = normalise(label)
    if _is_word(word):
        return word
    if "(" in label and (found := _without_brackets(label)):
        return found
    if word[-1:].isdigit() and _is_word(numbered := _LAST_NUMBER.sub(" ", word)):
        return numbered  # `ownerName1`
    head, dash, _ = label.partition(" - ")
    return normalise(head) if dash and _is_word(normalise(head)) else word


def _without_brackets(label: str) -> str:
    """`Total Value (Market)` as `total market value`, `Site (Property) Address` as `site address`, where known."""
    inside = " ".join(_BRACKETS.findall(label)).strip("()").lower()
    if inside in _WORTHS:
        outside = normalise(_BRACKETS.sub(" ", label))
        return f"total {inside} value" if outside in ("total", "total value", "value") else ""
    outside = "" if _OTHERWISE.search(inside) else normalise(_BRACKETS.sub(" ", label))
    return outside if outside in FIELD_OF or outside in ID_RANK else ""


def split_labels(text: str) -> list[str]:
    """`STRAP: 18-43 Folio ID: 101` as its labels (with their colons) and values; other text as it is."""
    if text.count(":") < 2 and not text.endswith(":"):
        return [text]
    parts: list[str] = []
    start = 0
    digit = _DIGIT.search(text)
    first_digit = digit.start() if digit else len(text)
    for found in _COLON.finditer(text):
        end = found.start()
        # "Sole Owner:" is one label; "0001188 Parcel ID:" is a value and a label.
        begin = start if not start and end <= first_digit else _known_ending(text, start, end)
        if begin is not None and end - begin <= MAX_LABEL:
            parts += [text[start:begin].strip(), text[begin:end].strip() + ":"]
            start = found.end()
    return [part for part in (*parts, text[start:].strip()) if part]


def _known_ending(text: str, start: int, end: int) -> int | None:
    """Where the longest run of up to five words that is a known label begins, at the end of a part of the text."""
    begins: list[int] = []
    space = end
    while len(begins) < _MOST_WORDS and space >= start:
        space = text.rfind(" ", start, space)
        begins.append(space + 1 if space >= 0 else start)
        if space < 0:
            break
    return next((begin for begin in reversed(begins) if is_known(text[begin:end])), None)


def looks_like_label(text: str) -> bool:
    """A known word, or a short text that ends with a colon."""
    if len(text) > MAX_LABEL:
        return False
    if text.endswith(":"):
        return any(map(str.isalpha, text))
    return _may_be_known(text) and meaning(text) in _WORDS


@remember_short(1024)
def year_of_title(title: str) -> int | None:
    """The year that a title gives to the values below it: `2023 Certified Values`, `Assessment for 2024`."""
    years = set(_YEAR.findall(title))
    return int(years.pop()) if len(years) == 1 and len(title) <= MAX_LABEL and _OF_A_YEAR.search(title) else None


@remember_short(4096)
def without_year(label: str) -> tuple[str, int | None]:
    """`2023 Just Value` as (`just value`, 2023); a label without a year as it is."""
    word = normalise(label)
    found = _YEAR.search(word)
    if found is None:
        return word, None
    rest = _NOISE.sub(" ", _YEAR.sub(" ", word)).strip()
    if rest not in FIELD_OF:
        rest = _NOISE.sub(" ", _QUALIFIER.sub(" ", rest)).strip() or rest
    return rest, int(found.group())
