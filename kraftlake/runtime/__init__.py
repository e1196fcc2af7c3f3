"""What all rooms use: errors, clocks, event queues, metrics, logging, moments of a log, tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.errors import (
    CorruptDataError,
    EndOffsetError,
    EnvironmentFaultError,
    ImportConflictError,
    KraftlakeError,
    LakeError,
    NoSuchThingError,
    NotASourceError,
    OffsetError,
    RefusedReadError,
    ReplayError,
    UnknownRecordError,
    UnwritableMetadataError,
    UsageError,
)
from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.runtime.arguments import path_texts
    from kraftlake.runtime.backoff import Backoff
    from kraftlake.runtime.clock import Clock, SystemClock
    from kraftlake.runtime.errors import sentence_of
    from kraftlake.runtime.event_order import EventQueueClosedError
    from kraftlake.runtime.event_queue import KafkaEventQueue
    from kraftlake.runtime.extras import check_spark
    from kraftlake.runtime.fault_handler import LoggingFaultHandler
    from kraftlake.runtime.html import html_table
    from kraftlake.runtime.java_properties import parse_properties
    from kraftlake.runtime.java_values import parse_boolean, parse_integer, split, split_list, trim
    from kraftlake.runtime.json_names import camel_case, fields_as_json
    from kraftlake.runtime.log import get_logger
    from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
    from kraftlake.runtime.metrics_server import MetricsServer, is_loopback
    from kraftlake.runtime.moments import (
        EPOCH,
        LogTime,
        Moment,
        is_whole_number,
        iso,
        length_of_time,
        moment_of,
        offset_or_time,
        time_of,
    )
    from kraftlake.runtime.process_setup import configure_service, return_freed_memory
    from kraftlake.runtime.scheduler import Scheduler
    from kraftlake.runtime.whole_file import check_folder_of, write_readable, write_whole
    from kraftlake.runtime.words import counted, did_you_mean, duration, in_words, shown

__version__ = "0.1.0"

__all__ = [
    "EPOCH",
    "Backoff",
    "Clock",
    "CorruptDataError",
    "EndOffsetError",
    "EnvironmentFaultError",
    "EventQueueClosedError",
    "ImportConflictError",
    "KafkaEventQueue",
    "KraftlakeError",
    "LakeError",
    "LogTime",
    "LoggingFaultHandler",
    "MetricName",
    "MetricsRegistry",
    "MetricsServer",
    "Moment",
    "NoSuchThingError",
    "NotASourceError",
    "OffsetError",
    "RefusedReadError",
    "ReplayError",
    "Scheduler",
    "SystemClock",
    "Tags",
    "UnknownRecordError",
    "UnwritableMetadataError",
    "UsageError",
    "__version__",
    "camel_case",
    "check_folder_of",
    "check_spark",
    "configure_service",
    "counted",
    "did_you_mean",
    "duration",
    "fields_as_json",
    "get_logger",
    "html_table",
    "in_words",
    "is_loopback",
    "is_whole_number",
    "iso",
    "lazy_exports",
    "length_of_time",
    "moment_of",
    "offset_or_time",
    "parse_boolean",
    "parse_integer",
    "parse_properties",
    "path_texts",
    "return_freed_memory",
    "sentence_of",
    "shown",
    "split",
    "split_list",
    "time_of",
    "trim",
    "write_readable",
    "write_whole",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
