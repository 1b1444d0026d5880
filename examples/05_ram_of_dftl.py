# %% [markdown]
# # How much RAM a page map needs
#
# DFTL keeps part of its map in RAM and the rest on flash. How small may that part be? The workload
# is a synthetic stand-in for the Financial1 trace, calibrated to the trace's published statistics
# and slowed down ten times so that this small drive keeps up. All drives have settled under it.

# %%
from flashwright import Ssd, compare, workloads

ssd = Ssd.named("dftl-large-block").with_({"ftl.scheme": "dftl"}, blocks_per_plane=1024)
ssd = ssd.with_(utilization=0.8).precondition("workload")
workload = workloads.stand_in("financial1", variant="statistics-only")
vary = {"ftl.dftl.ram": ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB"]}
runs = compare(ssd, workload, vary, requests=40_000, time_scale=10)
page_mapped = ssd.with_({"ftl.scheme": "page"})
whole = page_mapped.play(workload, requests=40_000, time_scale=10)

# %%
found = runs.to_pandas().set_index("ftl.dftl.ram")
shown = {
    "found in RAM, %": found["mapping_cache.hit_ratio"] * 100,
    "map pages written": found["flash.programs.translation"],
    "write amplification": found["write_amplification"],
    "mean response, ms": found["response_time_ns.all.mean"] / 1e6,
}
print(found[[]].assign(**shown).round(2).to_string())
print("settled:", (found["settled.verdict"] == "settled").sum(), "of", len(found))

# %% [markdown]
# For comparison, page mapping with its whole map in RAM:

# %%
ram, mean = whole.json["scheme"]["ram_bytes"], whole.latency_ns.mean / 1e6
print(f"{ram / 1024:,.0f} KiB: write amplification {whole.write_amplification:.2f}, {mean:.2f} ms")
longer = shown["mean response, ms"]["64 KiB"] / mean
print(f"with {64 * 1024 / ram:.0%} of that RAM, DFTL takes {longer:.1f} times as long")
