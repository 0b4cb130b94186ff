-- What the last calls of an endpoint came to, one letter each, the newest last; and when the last of them ended.
ALTER TABLE breakers ADD COLUMN last_calls TEXT NOT NULL DEFAULT ''
;;
ALTER TABLE breakers ADD COLUMN last_call_at INTEGER NOT NULL DEFAULT 0
