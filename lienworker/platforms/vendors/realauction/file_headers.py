"""The heads of auction files, in all the spellings of years and states, and what each column holds.

They are compared without their spaces: `ADV_AMT`, `FaceValue` and `FACE VALUE` are written as people write them.
"""

from __future__ import annotations

HEADS = {
    "parcel_id": (
        "parcel|parcel id|parcel number|parcelid|parcel no|parcel num|pin|account|account number|apn"
        "|property id|strap|folio|folio number|parcel identification|tax id|schedule number|account no|map parcel"
        "|block lot qual|blq|parcel id number|pid|parcel identification number|property number|tax parcel"
        "|map lot"
    ),
    "folio_parts": "folio 1|folio 2|folio 3",
    "block": "block|blk",
    "lot": "lot",
    "qual": "qual|qualifier|qualification|qualification code",
    "item": "ra item id|item id|auction item id|ra id",
    "tax_account": "tax account id",
    "alternate": "alternate id|alternate key|alt key|alternate parcel id|alternate parcel",
    "adv_number": (
        "advnum|adv num|adv number|advertising number|adv|sequence|seq|adv no|item|item number"
        "|lien number|advnumber|batch number|sequence number"
    ),
    "certificate_number": (
        "certificate number|certificate|cert number|cert no|certificate no|cert|cp number|cert num|certnum"
    ),
    "owner": (
        "owner name|owner|owner name 1|owner name 2|owner 1|owner 2|assessed owner|taxpayer|name"
        "|owner names|owners|property owner"
    ),
    "owner_address": (
        "owner address|owner address 1|owner address 2|mailing address|owner city|owner state|owner zip"
        "|mailing city|mailing state|mailing zip|owner address line 1|owner address line 2"
    ),
    "situs": (
        "property address|situs|situs address|site address|property location|location|property city"
        "|property zip|situs city|situs zip|property address 1|property address 2"
    ),
    "legal": (
        "legal description|legal|legal 1|legal 2|legal desc|property description|description"
        "|legal description 1|legal description 2|legal description 3"
    ),
    "assessed": "assessed value|assessed|total assessed value|total assessed|assessment",
    "market": "market value|just value|total value|appraised value|actual value",
    "face": (
        "face amount|face value|amount due|face|amount|total due|tax amount|min bid|minimum bid"
        "|total amount due|opening bid|lien amount|total|advertised amount|cert amount|face amt"
        "|certificate face|starting bid|faceamount|total face amount|certificate amount|redemption amount"
        "|base amount|total amount|taxes due|adv amt|adv amount|advertised amt|total in sale|total sale amount"
        "|tax sale amount|amount of sale|sale amount|amt due|total amt|face value amount"
    ),
    "bid": ("winning bid|bid|high bid|winning bid amount|bid amount"),
    "rate": (
        "interest rate|rate|winning rate|bid rate|winning interest rate|winning bid interest|sold rate|interest"
        "|bid percent|winning percent|percentage|percent|winning percentage|rate of interest"
    ),
    "premium": "premium|winning premium|premium amount|premium bid|premium paid",
    "bidder_id": "bidder id|bidder number|bidder|buyer number|bidder no|buyer id|bidderid|bidder num",
    "holder": (
        "primary name on account|bidder name|buyer name|buyer|winner|name on certificate|purchaser"
        "|winning bidder|primary name|buyer s name|certificate holder|name on account|winner name"
        "|purchaser name|sold to|bidder s name|holder|lien holder|holder name|cert holder name|name of holder"
    ),
    "tax_year": "tax year|year|taxyear|tax roll year",
    "sale_date": "sale date|auction date|date sold|date|sold date|batch date",
    "status": "status|result|sale status|cert status",
}
