# %% [markdown]
# # Images by the stream
#
# A lake's log → a structured stream → images → what each of them means to each broker → a `ReplicaManager` for each
# broker, which does with its partitions what the broker did. The lake holds the sample log:
#
#     kraftlake import samples/kafka-4.4/log/__cluster_metadata-0 LAKE
#
# With `SPARK_REMOTE=sc://HOST:15002` the session is one of Spark Connect. Its server calls the receiver in a Python of
# its own: the receiver is pickled, and its files are the server's.

# %%
import json
import os
from pathlib import Path

from pyspark.sql import SparkSession

from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
from kraftlake.spark_jobs import image_stream, spark_session

LAKE = Path("LAKE").resolve()
CHECKPOINT = Path("CHECKPOINT").resolve()
ROLES = Path("ROLES").resolve()

# %% [markdown]
# The receiver gets each delta with the image that it leads to, in order. A `ReplayedBroker` has the `ReplicaManager` of
# a broker over logs in memory, and applies the delta's local changes to it.


# %%
class Brokers:
    """All brokers of a cluster; a line of a file for each change that means something to a broker."""

    def __init__(self, roles: Path) -> None:
        self.roles = roles
        self.brokers = {}

    def __call__(self, delta, image, manifest):
        for broker_id in sorted(image.cluster.brokers):
            if broker_id not in self.brokers:
                self.brokers[broker_id] = ReplayedBroker(broker_id, lambda _: None)
                self.brokers[broker_id].start(image)
                continue
            self.brokers[broker_id].publish(delta, image)
            if delta.topics_delta is not None:
                changes = delta.topics_delta.local_changes(broker_id)
                if changes.leaders or changes.followers or changes.deletes:
                    self.write(manifest.provenance.offset, broker_id, changes)

    def write(self, offset, broker_id, changes):
        leads, follows = self.brokers[broker_id].roles()
        counts = [len(changes.leaders), len(changes.followers), len(changes.deletes)]
        with self.roles.open("a") as file:
            file.write(json.dumps([offset, broker_id, *counts, len(leads), len(follows)]) + "\n")


# %% [markdown]
# The stream. `availableNow` ends where the log does; `processingTime="2 seconds"` follows it.

# %%
remote = "SPARK_REMOTE" in os.environ
spark = SparkSession.builder.getOrCreate() if remote else spark_session("images by the stream")
stream = image_stream(spark, LAKE, Brokers(ROLES)).option("checkpointLocation", str(CHECKPOINT))
stream.trigger(availableNow=True).start().awaitTermination()

# %%
roles = {}
for line in ROLES.read_text().splitlines():
    offset, broker, *_, leads, follows = json.loads(line)
    roles[broker] = f"broker {broker} leads {leads} partitions and follows {follows}, since offset {offset}"
print("\n".join(roles[broker] for broker in sorted(roles)))
