# %% [markdown]
# # What spare space is worth
#
# How much does write amplification fall with every share of the flash that the host may not use?
# For even writes and victims in the order in which they were filled there is a formula: a / (a +
# W(-a exp(-a))), a = 1 / utilisation, with Lambert's W.

# %%
import numpy as np
from scipy.special import lambertw

from flashwright import Ssd, compare
from flashwright.advise import knee

ssd = Ssd.named("default").with_({"timing.model": "none"}, channels=1, dies_per_channel=1)
ssd = ssd.with_(blocks_per_plane=2048, pages_per_block=64).precondition("random:capacities=6")
shares = [0.6, 0.7, 0.8, 0.85, 0.9, 0.95]
vary = {"capacity.utilization": shares, "gc.victim": ["fifo", "greedy"]}
found = compare(ssd, "uniform:write=1", vary, requests=200_000).to_pandas()

# %%
table = found.pivot(index="capacity.utilization", columns="gc.victim", values="write_amplification")
found["u"] = found["drive.logical_pages"] / found["drive.physical_pages"]
a = 1 / found.groupby("capacity.utilization")["u"].first()
table.insert(0, "formula (fifo)", a / (a + np.real(lambertw(-a * np.exp(-a)))))
print("pages programmed per page written, by the share of the flash that the host may use")
print(table.round(2).to_string())

# %% [markdown]
# Few free blocks are kept for cleaning, and they count the more the less is spare: so the drive
# lies above the formula at 0.95. Where does the curve turn steep? The knee is the point farthest
# below the line from its first to its last.

# %%
at = knee(shares, table["greedy"].tolist())
print(f"greedy turns steep beyond {shares[at]:.0%}: reserve {1 - shares[at]:.0%}, or pay")
