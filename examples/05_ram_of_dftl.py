# %% [markdown]
# # How much RAM a page map needs
#
# DFTL keeps a part of its map in RAM and the rest on flash. How small may that part be? The
# workload stands in for the Financial1 trace: it is synthetic, calibrated to the trace's
# published statistics.

# %%
from flashwright import Ssd, compare, workloads

ssd = Ssd.named("dftl-large-block").with_({"ftl.scheme": "dftl"}, blocks_per_plane=4096)
ssd = ssd.with_(utilization=0.9).precondition("sequential")
workload = workloads.stand_in("financial1")
vary = {"ftl.dftl.ram": ["16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB"]}
runs = compare(ssd, workload, vary, requests=40_000)
whole = ssd.with_({"ftl.scheme": "page"}).play(workload, requests=40_000)

# %%
found = runs.to_pandas().set_index("ftl.dftl.ram")
shown = {
    "found in RAM, %": found["mapping_cache.hit_ratio"] * 100,
    "map pages written": found["flash.programs.translation"],
    "write amplification": found["write_amplification"],
    "mean response, ms": found["response_time_ns.all.mean"] / 1e6,
}
print(found[[]].assign(**shown).round(2).to_string())

# %% [markdown]
# Beside it, page mapping with its whole map in RAM:

# %%
ram, mean = whole.json["scheme"]["ram_bytes"], whole.latency_ns.mean / 1e6
print(f"{ram / 1024:,.0f} KiB: write amplification {whole.write_amplification:.2f}, {mean:.2f} ms")
longer = shown["mean response, ms"]["256 KiB"] / mean
print(f"with {256 * 1024 / ram:.0%} of that RAM, DFTL takes {longer:.1f} times as long")
