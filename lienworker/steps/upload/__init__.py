"""From stored pages and results to the Gateway.

`loop` works three lanes side by side: `raw` files first, the `result` of a parcel once its raw file was taken, and the
`report` of a task that ended without a result. `order` keeps an older result from overwriting a newer one. What the
Gateway said is judged by the tables in `verdict`, and written by `apply`.
"""
