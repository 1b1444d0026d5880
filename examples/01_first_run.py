# %% [markdown]
# # A first run
#
# What does a drive do under random writes once it has settled? We take a small bundled drive,
# fill it, play the workload until write amplification no longer changes, and only then measure.

# %%
from flashwright import Ssd, workloads

ssd = Ssd.named("default").with_(blocks_per_plane=256).precondition("workload")
run = ssd.play(workloads.uniform(write=0.7), requests=200_000, depth=8, seed=1, verify=True)
print(ssd)
print(run)
print(f"{run.settled.verdict}: {run.settled.why}")

# %% [markdown]
# How long did requests take? Half of them waited for little more than a page program. The slowest
# waited while their plane won back a block: it cleans several, and copies their valid pages.

# %%
p50, p99 = run.latency_ns.quantile([0.5, 0.99]).values()
print(f"half of the requests took {p50 / 1e3:,.0f} us or less")
print(f"one in a hundred took more than {p99 / 1e6:.0f} ms")

# %% [markdown]
# Every figure has a documented name, the same as with `flashwright simulate --json`.

# %%
programs = run.json["flash"]["programs"]
print(f"pages programmed: {programs['host']:,} for the host, {programs['gc']:,} for cleaning")
print(f"so each page that the host wrote cost {run.write_amplification:.2f}")
print(f"blocks erased: {run.json['flash']['erases']['total']:,}")
print(f"reads that returned the wrong data: {len(run.violations)}")
