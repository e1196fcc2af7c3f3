"""LocalBucket with the request that it lacks and that our store's client deletes by: DeleteObjects.

Run as `python -m tests.metadata_log.s3_server FOLDER PORT`; each folder in FOLDER is a bucket. One whose name begins
with `careless` ignores preconditions, as some stores do.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from localbucket import S3_NAMESPACE, S3Handler


class Handler(S3Handler):
    """A response is sent in one piece: in two, each waits for the client's delayed acknowledgement."""

    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing of what went well."""

    def _post_request(self, bucket: str, key: str) -> None:
        if key or "delete" not in self.query:
            super()._post_request(bucket, key)
            return
        self._check_query("DeleteObjects", {"delete"})
        asked = ET.fromstring(self._read_body())
        result = ET.Element("DeleteResult", xmlns=S3_NAMESPACE)
        for name in asked.iterfind("{*}Object/{*}Key"):
            assert name.text is not None
            self._object_path(bucket, name.text).unlink(missing_ok=True)
            ET.SubElement(ET.SubElement(result, "Deleted"), "Key").text = name.text
        self._send_xml(result)

    def _write_object(self, bucket: str, key: str, write: Any) -> str:
        if bucket.startswith("careless"):
            del self.headers["If-None-Match"]
        written: str = super()._write_object(bucket, key, write)
        return written


class Server(ThreadingHTTPServer):
    """As many connections at a time as racing writers open."""

    request_queue_size = 128


if __name__ == "__main__":
    Handler.data_root = Path(sys.argv[1]).resolve()
    Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
