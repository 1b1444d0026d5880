# %% [markdown]
# # Looking into a closed drive
#
# What can we learn about a drive by timing requests alone, and does a model built from that behave
# like the drive? Here the drive is simulated, so the true answers are known: a small version of
# SSD-A of Kim et al. (2011). For a real drive write `Target("/dev/nvme1n1", destroys_data=True)`;
# all data on it is lost.

# %%
from flashwright import Profile, Ssd, Target, probe
from flashwright.twin import check

small = {"capacity.logical": "0 B", "capacity.utilization": 0.9, "geometry.blocks-per-plane": 240}
ssd = Ssd.named("ssd-a").with_(small)
wanted = ["clustered-page", "mapping", "clustered-block", "read-buffer", "write-buffer"]
with Target(ssd) as drive:
    found = probe(drive, mode="quick", only=wanted)

# %%
table = found.to_pandas().set_index("parameter")[["verdict", "value"]]
table["built in"] = {"mapping": ssd.config["ftl"]["scheme"], **ssd.config["host"]["profile"]}
print(table.loc[wanted].to_string())

# %% [markdown]
# A model with these parts is fitted to the drive's times: its *twin*. Fitting takes some minutes
# (`twin_of(drive, found)`, or `flashwright probe … --save FILE`), so we use a saved one here.
# Requests that the fit did not use show how good the twin is.

# %%
twin = Profile.from_toml("07_a_black_box.toml").drive()
with Target(ssd) as drive:
    held_back = check(drive, twin, requests=5000)
for figure in ("mean", "p50", "p99"):
    drive_us, twin_us = (at[figure] / 1e3 for at in (held_back.all.drive_ns, held_back.all.twin_ns))
    off = held_back.all.ratio[figure] - 1
    print(f"{figure:4}: the drive {drive_us:8,.0f} us, its twin {twin_us:8,.0f} us: {off:+.1%}")
