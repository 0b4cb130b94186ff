"""What people did, what parsers returned, and what is remembered."""

from __future__ import annotations

from peewee import AutoField, BlobField, CompositeKey, IntegerField, TextField

from lienworker.db.models.base import Base


class Import(Base):
    """A file that was imported, and the counts of its rows."""

    id = AutoField()
    name = TextField()
    status = TextField()  # running, done or stopped
    rows = IntegerField(default=0)
    added = IntegerField(default=0)
    known = IntegerField(default=0)
    refreshed = IntegerField(default=0)
    rejected = IntegerField(default=0)
    rejects_path = TextField(null=True)
    started_at = TextField()
    finished_at = TextField(null=True)
    due_by = IntegerField(null=True)  # until when its tasks are to be done
    auction = TextField(null=True)  # what for, as an operator calls it
    options = TextField(default="{}")  # its mapping and what was asked for, as a JSON object

    class Meta:
        table_name = "imports"


class ListColumn(Base):
    """A column of an operator's own list."""

    id = AutoField()
    import_id = IntegerField()  # 0 for tasks of no import
    name = TextField()

    class Meta:
        table_name = "list_columns"


class ResultColumn(Base):
    """A column of the records of a place."""

    platform = TextField()
    state = TextField()
    county = TextField()
    name = TextField()

    class Meta:
        table_name = "result_columns"
        primary_key = CompositeKey("platform", "state", "county", "name")
        without_rowid = True


class Action(Base):
    """What a person did by hand, and to how many rows."""

    id = AutoField()
    at = TextField()
    who = TextField()
    action = TextField()
    what = TextField()
    n = IntegerField()

    class Meta:
        table_name = "audit"


class Fact(Base):
    """A small value that must survive a restart."""

    name = TextField(primary_key=True)
    value = TextField()
    at = TextField()

    class Meta:
        table_name = "facts"
        without_rowid = True


class PendingDelete(Base):
    """A raw file to remove: no row needs it any more."""

    path = TextField(primary_key=True)
    name = TextField()  # the parcel's or the task's id, from which the file name was made

    class Meta:
        table_name = "doomed_files"
        without_rowid = True


class Run(Base):
    """One pass of the parsers over stored pages."""

    id = AutoField()
    kind = TextField()
    what = TextField()  # which pages, in words
    started_at = TextField()
    finished_at = TextField(null=True)
    versions = TextField(default="{}")  # platform: version, as a JSON object
    pages = IntegerField(default=0)
    changed = IntegerField(default=0)
    unchanged = IntegerField(default=0)
    failed = IntegerField(default=0)

    class Meta:
        table_name = "runs"


class RunPage(Base):
    """What the parser made of one page in a run."""

    run_id = IntegerField()
    task_id = TextField()
    platform = TextField(null=True)
    state = TextField(null=True)
    county = TextField(null=True)
    parcel_id = TextField(null=True)
    reason = TextField(null=True)  # why there is no record
    data = BlobField(null=True)  # the record: JSON, compressed with zlib

    class Meta:
        table_name = "run_pages"
        primary_key = CompositeKey("run_id", "task_id")
        without_rowid = True


class FieldHistory(Base):
    """How often each field was present in a county's pages: the evidence of the drift guard."""

    platform = TextField()
    state = TextField()
    county = TextField()  # (host) where the county is not known
    recent = TextField(default="[]")  # the newest pages, oldest first: numbers whose bits are fields
    pages = IntegerField(default=0)  # those before them
    counts = TextField(default="{}")  # in how many of these each field was present
    paused_at = TextField(null=True)  # set while the guard holds the county
    words = TextField(null=True)
    sample_task = TextField(null=True)
    sample_path = TextField(null=True)
    ranges = TextField(default="{}")  # how large areas and values are: [pages, mean, squares] of the logarithms

    class Meta:
        table_name = "field_history"
        primary_key = CompositeKey("platform", "state", "county")
        without_rowid = True
