-- What a person would doubt in a result at a glance, beside its data: a list of {check, field, detail}; NULL for most.
ALTER TABLE results ADD COLUMN doubts TEXT
;;
CREATE INDEX results_doubtful ON results (scraped_at) WHERE doubts IS NOT NULL
;;
-- How large areas and values are in a county: of each field the number of pages, the mean of the logarithms, and the sum
-- of the squares around it.
ALTER TABLE field_history ADD COLUMN ranges TEXT NOT NULL DEFAULT '{}'
