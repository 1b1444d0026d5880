# %% [markdown]
# # How long a drive lasts
#
# How much data can a drive take in its life, and can that be told from the first tenth of it? We
# extrapolate, then play on to the first write that the drive can't take, to see how far off that
# was. Blocks stand 300 erases here, a tenth of what such flash stands, so that a life is short.

# %%
from flashwright import Endurance, Ssd, lifetime

ssd = Ssd.named("default").with_({"timing.model": "none"}, channels=1, dies_per_channel=1)
ssd = ssd.with_(blocks_per_plane=256, pages_per_block=64, pe_cycles_max=300).precondition("random")

# %%
run = lifetime.begin(ssd, "zipf:write=1")
forecast = lifetime.forecast(run)
whole = lifetime.play_to_end(run)
end = Endurance.of(whole)
error = forecast.host_pages / end.host_pages - 1
print(f"after {forecast.share:.0%} of all erases the forecast is {error:+.1%} off")
print(f"the drive takes {end.host_bytes / 1e9:.2f} GB, {end.drive_writes:.0f} times its size")

# %% [markdown]
# Its flash could be programmed far more often. Most of that goes into cleaning, a little into
# blocks that are left over when the others are worn out.

# %%
worn = whole.erases_per_block
amplification = whole.write_amplification
print(f"{end.efficiency:.0%} of what the flash can take was the host's")
print(
    f"write amplification {amplification:.2f}; in the end blocks have {worn.min()} to {worn.max()} erases"
)
rate = 0.2 * whole.json["drive"]["logical_bytes"] / 86_400
print(f"a fifth of the drive written a day, that is {end.years(rate):.2f} years")
