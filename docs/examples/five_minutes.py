# %% [markdown]
# # Five minutes of a cluster
#
# Who led what, when, and what it cost: the history tables of a lake, by SQL, and one picture. The lake holds the sample
# log, in which four brokers were stopped, killed and started again:
#
#     kraftlake import samples/kafka-4.4/log/__cluster_metadata-0 LAKE
#     kraftlake spark history LAKE
#
# Each `# %%` begins a cell for editors that know them; `pip install 'kraftlake[plots]'` brings matplotlib.

# %%
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")  # a picture in a file; leave it out to see it in a notebook
import matplotlib.dates as mdates
import matplotlib.pyplot as plt

from kraftlake.spark_jobs import spark_session

LAKE = Path("LAKE").resolve()  # Delta takes a relative path for the name of a table
PICTURE = Path("history.webp")
COLOURS = {1: "#4477aa", 2: "#66ccee", 3: "#ccbb44", 4: "#228833", -1: "#cc3311"}

spark = spark_session("five minutes")
spark.conf.set("spark.sql.session.timeZone", "UTC")

# %% [markdown]
# The reigns of two topics' partitions: states that follow each other with the same leader are one.

# %%
(end,) = spark.sql(f"SELECT max(timestamp) FROM delta.`{LAKE}/log`").first()
reigns = spark.sql(f"""
    SELECT topic, partition, leader, min(valid_from) AS since, max(coalesce(valid_to, TIMESTAMP '{end}')) AS until
    FROM delta.`{LAKE}/partition_history`
    WHERE topic IN ('t-22-3h4', 't-7-f9j')
    GROUP BY topic, topic_id, partition, leader, leader_epoch
    ORDER BY topic, partition, since
""").toPandas()
print(f"{len(reigns)} reigns of {len(reigns.groupby(['topic', 'partition']))} partitions")

# %% [markdown]
# How many partitions each broker led: each state begins with one more for its leader and ends with one less.

# %%
led = spark.sql(f"""
    WITH steps AS (
      SELECT valid_from AS time, leader, 1 AS step FROM delta.`{LAKE}/partition_history`
      UNION ALL
      SELECT valid_to, leader, -1 FROM delta.`{LAKE}/partition_history` WHERE valid_to IS NOT NULL
    ), changes AS (SELECT time, leader, sum(step) AS step FROM steps GROUP BY time, leader)
    SELECT time, leader, sum(step) OVER (PARTITION BY leader ORDER BY time) AS partitions FROM changes ORDER BY time
""").toPandas()
led = led.pivot_table(index="time", columns="leader", values="partitions").ffill().fillna(0)

# %% [markdown]
# When each broker was fenced.

# %%
fenced = spark.sql(f"""
    SELECT broker, valid_from AS since, coalesce(valid_to, TIMESTAMP '{end}') AS until
    FROM delta.`{LAKE}/broker_history` WHERE fenced ORDER BY broker, since
""").toPandas()

# %%
figure, (above, middle, below) = plt.subplots(
    3, 1, figsize=(11, 8), sharex=True, height_ratios=(10, 2, 5), layout="constrained"
)
names = sorted({(row.topic, row.partition) for row in reigns.itertuples()}, reverse=True)
for row in reigns.itertuples():
    y = names.index((row.topic, row.partition))
    above.barh(y, row.until - row.since, left=row.since, height=0.8, color=COLOURS[row.leader])
above.set_yticks(range(len(names)), [f"{topic}-{partition}" for topic, partition in names])
above.set_title("Who led the partitions of two topics", loc="left")

for row in fenced.itertuples():
    middle.barh(-row.broker, row.until - row.since, left=row.since, height=0.8, color=COLOURS[row.broker])
middle.set_yticks([-1, -2, -3, -4], ["1", "2", "3", "4"])
middle.set_title("When each broker was fenced", loc="left")

for leader in sorted(led.columns, key=lambda broker: (broker < 0, broker)):
    label = "no leader" if leader == -1 else f"broker {leader}"
    below.step(led.index, led[leader], where="post", color=COLOURS[leader], label=label, linewidth=1.6)
below.set_title("How many partitions each of them led", loc="left")
below.xaxis.set_major_formatter(mdates.DateFormatter("%H:%M:%S"))
for axis in (above, middle, below):
    axis.spines[["top", "right"]].set_visible(False)
handles, labels = below.get_legend_handles_labels()
figure.legend(handles, labels, loc="outside upper right", ncols=5, frameon=False)
figure.savefig(PICTURE, dpi=110, pil_kwargs={"quality": 80, "method": 6})

# %%
spark.stop()
