# %% [markdown]
# # A write buffer in front of log blocks
#
# Log-block mapping needs little RAM for its map, but merges whole blocks. How much work does a
# write buffer save, and does it matter which pages it evicts first? The workload is a synthetic
# stand-in for the Financial2 trace; all drives have settled under it.

# %%
from flashwright import Ssd, compare, workloads

ssd = Ssd.named("hu-2012").with_({"ftl.scheme": "bast"}, blocks_per_plane=1024, utilization=0.95)
ssd = ssd.precondition("workload")
workload = workloads.stand_in("financial2", variant="statistics-only")
buffered = ssd.with_({"ram.size": "4 MiB"})
runs = compare(buffered, workload, {"ram.manager": ["lru", "fab", "bplru"]}, requests=240_000)
runs.insert(0, ssd.play(workload, requests=240_000).labelled("no buffer"))

# %%
found = runs.to_pandas().set_index("label")
shown = {
    "full merges": found["merges.full"],
    "switch merges": found["merges.switch"],
    "blocks erased": found["flash.erases.total"],
    "mean response, ms": (found["response_time_ns.all.mean"] / 1e6).round(2),
}
print(found[[]].assign(**shown).to_string())
print("settled:", (found["settled.verdict"] == "settled").sum(), "of", len(found))

# %% [markdown]
# LRU evicts single pages. FAB and BPLRU evict whole blocks, and BPLRU pads a block with the pages it
# lacks, so that the log block simply replaces the old one: a switch merge, with one erase and no
# copies.

# %%
erases = found["flash.erases.total"]
saved = 1 - erases["ram.manager=bplru"] / erases["no buffer"]
print(f"with BPLRU {saved:.0%} fewer blocks are erased than without a buffer")
