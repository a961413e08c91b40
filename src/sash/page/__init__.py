"""The live page of a running job: a feed of the job's reports, and a small server that shows it.

    job ─→ Feed ─→ serve ─→ browser
           │  numbers of each micro-batch, lateness, the heat map, the end
           └─ Heat: the largest keys by the last windows

The job's process fills a `Feed`, from any thread; `serve` sends the contents of the feed to a
browser on 127.0.0.1.  Neither starts or stops the job, and nothing here imports Spark.

>>> import sash.page as page
>>> feed = page.Feed("flights", explain="a plan")
>>> feed.batch(page.Batch(at=10.0, seconds=2.0, rows=50, watermark=3_000_000))
>>> server = page.serve(feed, port=0)
>>> server.url.startswith("http://127.0.0.1:")
True
>>> server.close()
"""

from .feed import Batch, Feed
from .heat import Heat
from .server import PORT, Page, serve

__all__ = ["PORT", "Batch", "Feed", "Heat", "Page", "serve"]
