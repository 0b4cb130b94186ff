"""Sources of many parcels: what each kind is asked for, and what its rows amount to. Pure, like all platforms.

plan        what a harvest is going to do, and the cursor of its next page
columns     which column is taken for what
geometry    shapes as GeoJSON in degrees
arcgis      layers of ArcGIS servers
socrata     resources of open-data portals
table       rolls in files
"""

from lienworker.platforms.harvest.arcgis import ArcGisSource
from lienworker.platforms.harvest.columns import Reader, Uses, uses_of
from lienworker.platforms.harvest.plan import Cursor, Plan, Request, SourceKind, SourcePage, TooMuchError, smaller
from lienworker.platforms.harvest.socrata import SocrataSource
from lienworker.platforms.harvest.table import TableSource

KINDS: dict[str, SourceKind] = {
    "arcgis": ArcGisSource(),
    "socrata": SocrataSource(),
    "table": TableSource(),
}

__all__ = [
    "KINDS",
    "Cursor",
    "Plan",
    "Reader",
    "Request",
    "SourceKind",
    "SourcePage",
    "TooMuchError",
    "Uses",
    "smaller",
    "uses_of",
]
