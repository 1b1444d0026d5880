# %% [markdown]
# # How long a drive lasts
#
# How much data can be written to a drive in its life, and does the first tenth of that life predict
# it? We extrapolate, then play on to the first write that the drive cannot take, and compare. To
# keep the life short, blocks endure 300 erases here, a tenth of the usual number.

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
# The host gets only part of what the flash can endure. Most of the rest goes into cleaning, and a
# little is left in blocks that still have erases when the others are worn out. This write
# amplification is the mean over the whole life, from the first cleaning to the last: it is not
# settled, since the drive loses spare space as blocks wear out.

# %%
worn = whole.erases_per_block
amplification = whole.write_amplification
print(f"{end.efficiency:.0%} of what the flash can take was the host's")
print(
    f"write amplification {amplification:.2f} over its life; in the end blocks have {worn.min()} to {worn.max()} erases"
)
rate = 0.2 * whole.json["drive"]["logical_bytes"] / 86_400
print(f"a fifth of the drive written a day, that is {end.years(rate):.2f} years")
