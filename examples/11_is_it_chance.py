# %% [markdown]
# # Is it chance?
#
# One run says little about two similar policies. Is choosing the best of four random blocks really
# worse than choosing the best of all, and by how much? A sweep lets each combination settle under
# several seeds, on all cores, and reports means with confidence intervals.

# %%
from flashwright import Ssd, sweep

ssd = Ssd.named("default").with_({"timing.model": "none", "gc.d-choices.d": 4}, channels=1)
ssd = ssd.with_(dies_per_channel=1, blocks_per_plane=256, pages_per_block=64)
grid: dict[str, list[object]] = {
    "capacity.utilization": [0.7, 0.8, 0.9],
    "gc.victim": ["greedy", "d-choices"],
}
found = sweep(ssd, "uniform:write=1", grid, seeds=5, requests=80_000)
print(found)
verdicts = found.table.to_pandas()["settled.verdict"]
print(f"settled: {(verdicts == 'settled').sum()} of {len(verdicts)} runs")

# %% [markdown]
# The mean over five seeds, and half the width of its 95 % confidence interval by Student's t.

# %%
summary = found.summary.to_pandas()
mean, half = summary["write_amplification.mean"], summary["write_amplification.ci95"]
shown = mean.map("{:.3f}".format) + " ± " + half.map("{:.3f}".format)
table = summary.assign(shown=shown).pivot(
    index="capacity.utilization", columns="gc.victim", values="shown"
)
print("pages programmed per page written")
print(table.to_string())

# %%
apart = 0
for _, rows in summary.groupby("capacity.utilization"):
    low = rows["write_amplification.mean"] - rows["write_amplification.ci95"]
    high = rows["write_amplification.mean"] + rows["write_amplification.ci95"]
    apart += low.max() > high.min()
print(f"the intervals lie apart at {apart} of {len(table)} utilisations")
