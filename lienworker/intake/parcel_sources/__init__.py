"""Files that say where parcels are to be found: OpenAddresses' sources, and TOML files of the operator's own.

files           one file, a folder or a zip archive of them; nothing is unpacked
openaddresses   https://github.com/openaddresses/openaddresses, `layers.parcels` of its sources, schema 2
own             our own form
layers          addresses of layers and names of their columns, as both give them
"""

from lienworker.intake.parcel_sources.files import read_sources, tells_everything

__all__ = ["read_sources", "tells_everything"]
