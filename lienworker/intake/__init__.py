"""Reading files of parcels: workbooks, PDF, CSV, JSON, JSONL and TXT, zipped or not, into rows and rejects.

    source     bytes, unpacked where they are packed, to text and lines; lists of URLs
    packed     zip archives and workbooks (workbook: a sheet as CSV; number_formats: 00123 as it is shown)
    read       the entry point: which kind of file it is, and its reader
    tables     CSV and its relatives
    pdf        lists in PDF documents (pdf_table: the rows that are certain)
    jsonfile   JSON and JSONL, over a moving window
    fields     which column is what, and whether the values are good (urls: addresses)
    rows       the outcome: ParcelRow or Reject, and the file of rejects

No database and no network in here; the import step stores what is read.
"""

from lienworker.intake.fields import propose_mapping
from lienworker.intake.read import read_parcels
from lienworker.intake.rows import Defaults, Layout, ParcelRow, Reject, RejectsFile

__all__ = ["Defaults", "Layout", "ParcelRow", "Reject", "RejectsFile", "propose_mapping", "read_parcels"]
