# %% [markdown]
# # What fills and mixing do to a drive
#
# How long does a new drive keep its first speed, and what do reads cost among writes? Two
# experiments of Hu's dissertation (2012) on its model of the Intel 320, made small; on a real
# drive they are the same calls.

# %%
from flashwright import Ssd, characterize
from flashwright.blackbox.characterize import Settings

drive = Ssd.named("intel-320").with_(
    {"capacity.logical": "0 B"}, blocks_per_plane=64, utilization=0.85
)
settings = Settings(fills=3, ranges=(1.0,))
found = characterize(drive, ["fills", "mixing"], mode="quick", settings=settings)

# %% [markdown]
# Random writes of 64 KiB all over the drive, until three times its size is written.

# %%
fills = found.result("fills").to_pandas()
fills["drive writes, up to"] = (fills["written"] * 2 + 0.999).astype(int) / 2
rate = fills.groupby("drive writes, up to")["bandwidth_bytes_per_s"].median() / 1e6
print(rate.round(1).to_frame("median MB/s").to_string())

# %% [markdown]
# Reads of 4 KiB at random among writes of 4 KiB in order, 64 of them at a time. The interface
# carries one way at once, and turning round takes time: an even mixture is far slower than either
# alone.

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
