"""What is to be scraped, and its outcome: tasks, pages, results."""

from __future__ import annotations

from peewee import AutoField, CompositeKey, IntegerField, TextField

from lienworker.db.models.base import Base


class Task(Base):
    """A parcel's page to scrape, and its status."""

    task_id = TextField(primary_key=True)  # the hub's id, or `p-` and a hash of the address
    source = TextField()  # a value of store.tasks.Source
    platform = TextField(null=True)  # NULL until an address or a page has shown it
    state = TextField(null=True)  # US state, two letters
    county = TextField(null=True)
    parcel_id = TextField(null=True)
    url = TextField(null=True)  # '' where it was lost with a damaged database
    target_json = TextField(default="{}")  # what else the task asks for, as a JSON object
    queue = TextField(default="default")  # urgent or default
    priority = IntegerField(default=3)  # 1 (first) to 4
    status = TextField(default="pending")  # one of store.tasks.STATUSES
    generation = IntegerField(default=1)  # see store.tasks.start_generation; pages, results and rows carry it
    attempts = IntegerField(default=0)  # tries in this generation
    reason = TextField(null=True)  # why the last try failed, as a keyword
    last_error = TextField(null=True)  # the same in a sentence
    import_id = IntegerField(null=True)  # the import that it is counted under
    created_at = TextField()  # by the hub's clock for the hub's tasks
    received_at = TextField()
    updated_at = TextField()
    completed_at = TextField(null=True)  # when it ended, even if it failed
    expires_at = TextField(null=True)
    proxy = TextField(null=True)  # of this task only, with credentials: never shown
    platform_learned = IntegerField(default=0)  # 1 where the platform is not the task's own word, and may change
    due_by = IntegerField(null=True)  # until when it is to be done

    class Meta:
        table_name = "tasks"


class Page(Base):
    """A fetched page, or one of several parts that a result is made from; its bytes are in a file."""

    task_id = TextField()
    generation = IntegerField()
    path = TextField()
    sha256 = TextField()  # of the uncompressed bytes, in hex
    size = IntegerField()  # uncompressed bytes
    url = TextField()  # after redirects
    status = IntegerField()  # the HTTP status
    content_type = TextField()
    charset = TextField(null=True)
    etag = TextField(null=True)
    last_modified = TextField(null=True)
    fetched_at = TextField()
    fetch_ms = IntegerField()
    purged_at = TextField(null=True)  # when its file was purged
    part = TextField(default="page")  # `page` where a task has one page
    position = IntegerField(default=0)  # the order of the parts; 0 is the parcel's own page
    sent_name = TextField(null=True)  # under which the hub has it, where other parts of its task are still to be sent

    class Meta:
        table_name = "pages"
        primary_key = CompositeKey("task_id", "generation", "part")


class Result(Base):
    """What a task's page said; a newer result replaces the older one's row."""

    task_id = TextField(primary_key=True)
    generation = IntegerField()
    parcel_id = TextField(null=True)
    platform = TextField()
    state = TextField(null=True)
    county = TextField(null=True)
    data = TextField()  # the record, as a JSON object
    json_path = TextField(null=True)  # the file in pending/, until it is delivered or archived
    html_path = TextField(null=True)  # the raw page; NULL for a result without a page
    raw_sha256 = TextField()  # of that page
    fetched_at = TextField()
    confirmed_at = TextField(null=True)  # when the site last said that the page had not changed
    parser_version = TextField()
    scraped_at = TextField()
    parse_duration_ms = IntegerField()
    synced = IntegerField(default=0)  # flag: the hub has it
    sync_attempts = IntegerField(default=0)
    last_error = TextField(null=True)
    stays_here = IntegerField(default=0)  # flag: a list of parcels, which is never delivered
    doubts = TextField(null=True)  # what a person would doubt in it, as a list of objects; never sent
    source_task = TextField(null=True)  # the task of the source page that it was read from
    source_index = IntegerField(null=True)  # its place in that page

    class Meta:
        table_name = "results"


class Harvest(Base):
    """A source of many parcels that is read page by page, and how far that is (steps.harvest)."""

    id = AutoField()
    kind = TextField()  # arcgis, socrata or table
    url = TextField()  # of the layer or the resource; the name of a file
    platform = TextField()
    state = TextField()
    county = TextField()  # '' where a column says it
    plan = TextField()  # how its pages are asked for and read, as a JSON object (platforms.harvest.plan)
    secret = TextField(null=True)  # a token: never shown
    page_task = TextField(null=True)  # the task of the newest page
    announced = IntegerField(null=True)  # parcels that the source said it has
    pages = IntegerField(default=0)
    open_pages = IntegerField(default=0)  # those that are not read to their end; it is over when there are none
    read = IntegerField(default=0)  # parcels, rejected ones included
    added = IntegerField(default=0)
    refreshed = IntegerField(default=0)
    unchanged = IntegerField(default=0)
    rejected = IntegerField(default=0)
    notes = TextField(default="[]")  # what a person should know of it, as a list of sentences
    started_at = TextField()
    finished_at = TextField(null=True)

    class Meta:
        table_name = "harvests"
