# %% [markdown]
# # Which blocks to clean
#
# Does the best choice of victims depend on what the host writes? Four policies under uniform and
# skewed writes: eight runs. By default `compare` lets each drive settle before it measures, so each
# policy is compared in its own steady state.

# %%
from flashwright import Ssd, compare, workloads

ssd = Ssd.named("default").with_(blocks_per_plane=128, utilization=0.85)
vary: dict[str, list[object]] = {
    "workload": [workloads.uniform(write=1.0), workloads.zipf(write=1.0)],
    "gc.victim": ["greedy", "cost-benefit", "fifo", "random"],
}
runs = compare(ssd, "uniform", vary, requests=250_000, depth=8)

# %% [markdown]
# The runs are a list and convert to a table: one row per run, with figures under their names.

# %%
found = runs.to_pandas()
found["mean ms"] = found["response_time_ns.all.mean"] / 1e6
shown = found.rename(columns={"write_amplification": "pages programmed per page written"})
figures = ["pages programmed per page written", "mean ms"]
print(shown.pivot(index="gc.victim", columns="workload", values=figures).round(2).to_string())

# %% [markdown]
# Cost-benefit weighs a block's age against its valid pages, which pays only if old blocks hold cold
# data. The drive keeps moved pages, which are mostly cold, in blocks of their own; example 10
# separates hot and cold ones when the host writes them.

# %%
for workload, rows in found.groupby("workload"):
    best = rows.sort_values("write_amplification").iloc[0]
    worst = rows["write_amplification"].max() / best["write_amplification"]
    print(f"{workload}: {best['gc.victim']} writes least, the worst {worst:.1f} times as much")

# %% [markdown]
# A figure that has not settled says so. Random victims write so much that the measurement is short
# for them; it would take longer runs to give their figure to 3 %.

# %%
for run in runs:
    if run.settled.verdict != "settled":
        print(f"not settled: {run.label}: {run.settled.why}")
