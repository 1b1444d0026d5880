# %% [markdown]
# # A policy of your own
#
# Does it pay to separate frequently written pages from the others, and with which victim policy?
# The placement policy here is a Python class that chooses the stream of each page. Everything else
# stays native, and every drive settles before it is measured.

# %%
from flashwright import Ssd, compare
from flashwright.drive.policies import PlacementPolicy


class Recent(PlacementPolicy):
    """Pages rewritten soon go to stream 1, all others to stream 0."""

    streams = 2

    def begin(self, drive):
        self.soon = drive.logical_pages // 5
        self.written = [-self.soon] * drive.logical_pages

    def host(self, first, pages, stream, now):
        before = self.written[first : first + pages]
        self.written[first : first + pages] = [now] * pages
        return [now - then < self.soon for then in before]

    def moved(self, lpns, stream, now):
        return 0


# %% [markdown]
# A class can be a value of its key, like any built-in name.

# %%
ssd = Ssd.named("default").with_(blocks_per_plane=128, utilization=0.8)
vary: dict[str, list[object]] = {
    "placement.policy": ["single", Recent],
    "gc.victim": ["greedy", "cost-benefit"],
}
runs = compare(ssd, "zipf:write=1", vary, requests=150_000, depth=8)
found = runs.to_pandas()
table = found.pivot(index="gc.victim", columns="placement.policy", values="write_amplification")
print("pages programmed per page written")
print(table[["single", "python:Recent"]].round(2).to_string())
print("settled:", (found["settled.verdict"] == "settled").sum(), "of", len(found))

# %%
own = runs["placement.policy=python:Recent, gc.victim=greedy"].json["policies"][0]
print(f"under greedy {own['class']} was asked {own['calls']:,} times")
