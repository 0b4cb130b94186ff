"""Pages that a person saved: a HAR, a WARC, an MHTML or HTML file, a folder or a zip archive of such files.

    page      what each reader yields: a page with its address, or a reject with the reason
    har       what a browser's network recorder keeps (one JSON document)
    warc      web archives, streamed; our own carry what the task knew
    files     HTML and MHTML files, one, a folder or an archive of them

Only the pages themselves get in. Cookies, authorization headers, forms and everything else that a recorder keeps of a
person's session is left at the door.
"""

from lienworker.intake.saved.files import is_saved, read_saved
from lienworker.intake.saved.page import SavedPage

__all__ = ["SavedPage", "is_saved", "read_saved"]
