"""The platforms that come with the program, in the order in which detection asks them.

They are also in the package's own entry points; here they are so that an uninstalled checkout works.
"""

from __future__ import annotations

BUILT_IN = {
    "demo": "lienworker.platforms.vendors.demo:PLATFORM",
    "generic": "lienworker.platforms.vendors.generic:PLATFORM",
    "qpublic": "lienworker.platforms.vendors.qpublic:PLATFORM",
    "beacon": "lienworker.platforms.vendors.qpublic:BEACON",
    "vgsi": "lienworker.platforms.vendors.vgsi:PLATFORM",
    "tyler": "lienworker.platforms.vendors.tyler:PLATFORM",
    "floridapa": "lienworker.platforms.vendors.floridapa:PLATFORM",
    "leepa": "lienworker.platforms.vendors.leepa:PLATFORM",
    "collier": "lienworker.platforms.vendors.collier:PLATFORM",
    "cook": "lienworker.platforms.vendors.cook:PLATFORM",
    "cuyahoga": "lienworker.platforms.vendors.cuyahoga:PLATFORM",
    "polk_ia": "lienworker.platforms.vendors.polk_ia:PLATFORM",
    "wvauditor": "lienworker.platforms.vendors.wvauditor:PLATFORM",
    "mygovonline": "lienworker.platforms.vendors.mygovonline:PLATFORM",
    "taxsys": "lienworker.platforms.vendors.taxsys:PLATFORM",
    "arcgis": "lienworker.platforms.vendors.arcgis:PLATFORM",
    "realauction": "lienworker.platforms.vendors.realauction:PLATFORM",
}
