# %% [markdown]
# # A real trace
#
# What load does a database put on its drive, and how do two classes of drives handle it? The trace
# is a bundled recording of pgbench on PostgreSQL; use `workloads.trace("FILE")` for your own.

# %%
from flashwright import Runs, Ssd, tracefiles, workloads

trace = workloads.bundled("pgbench")
requests = tracefiles.columns(trace).to_pandas()
writes = requests[requests["kind"] == "write"]
seconds = requests["arrival_ns"].max() / 1e9
print(f"{len(requests):,} requests in {seconds:.0f} s, {len(writes) / len(requests):.0%} write")

# %% [markdown]
# How large are the writes, and do some addresses receive most of them?

# %%
sizes = (writes["sectors"] / 2).value_counts(normalize=True).head(3)
print("sizes of writes:", ", ".join(f"{size:g} KiB {share:.0%}" for size, share in sizes.items()))
places = writes["first_sector"].floordiv(2048).value_counts()
hottest = places.head(len(places) // 10).sum() / places.sum()
print(f"{len(places):,} MiB are written; the hottest tenth takes {hottest:.0%} of the writes")

# %% [markdown]
# We play the first 40,000 requests at their recorded times on a SATA and an NVMe drive, each filled
# once in order. We measure fresh drives on purpose: cleaning has not begun, so the runs are
# transient, and a settled drive is slower. The recorded disk was cached by its host and was faster
# than both drives, so requests queue. Both drives map 16 KiB pages, so an 8 KiB write programs a
# whole page and first reads the rest of it.

# %%
drives = [Ssd.named(name).precondition("sequential") for name in ("mlc-sata", "tlc-nvme")]
runs = Runs(ssd.play(trace, requests=40_000).labelled(ssd.name) for ssd in drives)
found = runs.to_pandas().set_index("label")
times = {
    f"{kind}s, {figure}": found[f"response_time_ns.{kind}.{figure}"] / 1e6
    for kind in ("read", "write")
    for figure in ("mean", "p99")
}
print("verdicts:", ", ".join(f"{run.label} {run.settled.verdict}" for run in runs))
print("response, ms")
print(found[[]].assign(**times).round(1).to_string())
