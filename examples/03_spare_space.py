# %% [markdown]
# # What spare space is worth
#
# How much does write amplification fall as more of the flash is reserved? For uniform writes and
# first-in-first-out cleaning there is a closed form: a / (a + W(-a exp(-a))), a = 1 / utilisation,
# with Lambert's W. Every run starts from a drive that has settled.

# %%
import numpy as np
from scipy.special import lambertw

from flashwright import Ssd, compare
from flashwright.advice.space import knee

ssd = Ssd.named("default").with_({"timing.model": "none"}, channels=1, dies_per_channel=1)
ssd = ssd.with_(blocks_per_plane=2048, pages_per_block=64)
shares = [0.6, 0.7, 0.8, 0.85, 0.9, 0.95]
vary: dict[str, list[object]] = {"capacity.utilization": [*shares], "gc.victim": ["fifo", "greedy"]}
found = compare(ssd, "uniform:write=1", vary, requests=200_000).to_pandas()

# %%
table = found.pivot(index="capacity.utilization", columns="gc.victim", values="write_amplification")
found["u"] = found["drive.logical_pages"] / found["drive.physical_pages"]
a = 1 / found.groupby("capacity.utilization")["u"].first()
table.insert(0, "formula (fifo)", a / (a + np.real(lambertw(-a * np.exp(-a)))))
print("pages programmed per page written, by the share of the flash that the host may use")
print(table.round(2).to_string())
print("settled:", (found["settled.verdict"] == "settled").sum(), "of", len(found))

# %% [markdown]
# The drive keeps a few blocks free for cleaning. They matter more when little space is spare, so at
# 0.95 it lies above the formula. Where does the curve become steep? The knee is the point farthest
# below the straight line from the first point to the last.

# %%
at = knee(shares, table["greedy"].tolist())
print(f"greedy turns steep beyond {shares[at]:.0%}: reserve {1 - shares[at]:.0%}, or pay")
