"""Many runs: points that are computed once and kept, on processes or a cluster, and sweeps made of them."""
