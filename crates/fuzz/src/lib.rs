//! The fuzz targets are tests (`tests/`): `make test` replays the corpus and a few hundred damaged copies of it,
//! `make fuzz` runs for a given time. Each checks that a reader never panics, never hangs, never takes excessive
//! memory, and reports a bad file in one line.
