# %% [markdown]
# # What fills and mixing do to a drive
#
# How long does a new drive keep its initial speed, and how slow are reads among writes? We run two
# experiments of Hu's dissertation (2012) on a small version of its model of the Intel 320. On a
# real drive the calls are the same.

# %%
from flashwright import Ssd, characterize
from flashwright.characterization import Settings

drive = Ssd.named("intel-320").with_(
    {"capacity.logical": "0 B"}, blocks_per_plane=64, utilization=0.85
)
settings = Settings(fills=3, ranges=(1.0,))
found = characterize(drive, ["fills", "mixing"], mode="quick", settings=settings)

# %% [markdown]
# Random writes of 64 KiB over the whole drive, until three times its size has been written.

# %%
fills = found.result("fills").to_pandas()
fills["drive writes, up to"] = (fills["written"] * 2 + 0.999).astype(int) / 2
rate = fills.groupby("drive writes, up to")["bandwidth_bytes_per_s"].median() / 1e6
print(rate.round(1).to_frame("median MB/s").to_string())

# %% [markdown]
# Random reads of 4 KiB among sequential writes of 4 KiB, 64 outstanding. The interface transfers in
# one direction at a time, and turning it around takes time, so an even mixture is far slower than
# reads or writes alone.

# %%
mixing = found.result("mixing")
table = mixing.to_pandas().iloc[::2]
shown = {
    "writes": table["write_share"].map("{:.0%}".format),
    "MB/s": table["bandwidth_bytes_per_s"] / 1e6,
    "mean read, ms": table["read_mean_ns"] / 1e6,
    "mean write, ms": table["write_mean_ns"] / 1e6,
}
print(table[[]].assign(**shown).round(2).to_string(index=False, na_rep="-"))
print(f"least bandwidth at {mixing.lowest_at:.0%} writes, {mixing.drop:.0%} below the better end")
