"""The platforms that come with the program, in the order in which detection asks them.

They are also in the package's own entry points; here they are so that an uninstalled checkout works.
"""

from __future__ import annotations

BUILT_IN = {
    "demo": "lienworker.platforms.demo:PLATFORM",
    "generic": "lienworker.platforms.generic:PLATFORM",
    "qpublic": "lienworker.platforms.qpublic:PLATFORM",
    "beacon": "lienworker.platforms.qpublic:BEACON",
    "vgsi": "lienworker.platforms.vgsi:PLATFORM",
    "tyler": "lienworker.platforms.tyler:PLATFORM",
    "floridapa": "lienworker.platforms.floridapa:PLATFORM",
    "leepa": "lienworker.platforms.leepa:PLATFORM",
    "collier": "lienworker.platforms.collier:PLATFORM",
    "cook": "lienworker.platforms.cook:PLATFORM",
    "cuyahoga": "lienworker.platforms.cuyahoga:PLATFORM",
    "polk_ia": "lienworker.platforms.polk_ia:PLATFORM",
    "wvauditor": "lienworker.platforms.wvauditor:PLATFORM",
    "mygovonline": "lienworker.platforms.mygovonline:PLATFORM",
    "taxsys": "lienworker.platforms.taxsys:PLATFORM",
    "arcgis": "lienworker.platforms.arcgis:PLATFORM",
    "realauction": "lienworker.platforms.realauction:PLATFORM",
}
