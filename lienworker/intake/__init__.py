"""Reading files of parcels: CSV, JSON, JSONL and TXT, zipped or not, into rows and rejects.

    bytes (source) -> text and lines (text) -> what is it (detect) -> one of the readers (tables, jsonl, jsonfile,
    urllist) -> which column is what (mapping) -> are the values good (fields, urls) -> ParcelRow or Reject (rows)

No database and no network in here; the importer stores what comes out.
"""

from lienworker.intake.fields import propose_mapping
from lienworker.intake.read import read_parcels
from lienworker.intake.rows import Defaults, ParcelRow, Reject, RejectsFile

__all__ = ["Defaults", "ParcelRow", "Reject", "RejectsFile", "propose_mapping", "read_parcels"]
