# %% [markdown]
# # A write buffer before log blocks
#
# Log-block mapping needs little RAM for its map, but merges whole blocks. What does a write
# buffer save, and does it matter which pages leave it first? The workload stands in for the
# Financial2 trace.

# %%
from flashwright import Ssd, compare, workloads

ssd = Ssd.named("hu-2012").with_({"ftl.scheme": "bast"}, blocks_per_plane=1024, utilization=0.95)
ssd = ssd.precondition("sequential")
workload = workloads.stand_in("financial2")
buffered = ssd.with_({"ram.size": "4 MiB"})
runs = compare(buffered, workload, {"ram.manager": ["lru", "fab", "bplru"]}, requests=20_000)
runs.insert(0, ssd.play(workload, requests=20_000).labelled("no buffer"))

# %%
found = runs.to_pandas().set_index("label")
shown = {
    "full merges": found["merges.full"],
    "switch merges": found["merges.switch"],
    "blocks erased": found["flash.erases.total"],
    "mean response, ms": (found["response_time_ns.all.mean"] / 1e6).round(2),
}
print(found[[]].assign(**shown).to_string())

# %% [markdown]
# LRU lets single pages go. FAB and BPLRU let whole blocks go, and BPLRU fills up what a block
# lacks, so that its log block just takes the place of the old one: a switch merge, one erase and
# no copies.

# %%
erases = found["flash.erases.total"]
saved = 1 - erases["ram.manager=bplru"] / erases["no buffer"]
print(f"with BPLRU {saved:.0%} fewer blocks are erased than without a buffer")
