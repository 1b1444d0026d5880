//! The targets are tests (`tests/`): `make test` replays the corpus and a few hundred damaged copies of it, `make fuzz` goes
//! on for as long as it is told. Each holds three things: a reader never panics, never hangs and never takes memory beyond
//! reason, and what it says of a bad file is one line.
