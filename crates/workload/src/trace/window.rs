//! Restores order of time among the last few thousand records, at the cost of one comparison for each that is in order.

use super::record::Record;

/// Records among which order is restored.
pub(crate) const WINDOW: usize = 4096;

/// The last records of a file, in order of time; equal times keep the order of the file.
#[derive(Default)]
pub(crate) struct Window {
    held: Vec<Record>,
    /// The latest time so far.
    latest: u64,
    /// Records that came after one of a later time.
    pub(crate) late: u64,
}

impl Window {
    /// Takes the next records of the file and gives back those that go first: all but the last [`WINDOW`], or all if
    /// `flush`.
    pub(crate) fn pass(&mut self, records: &mut Vec<Record>, flush: bool) {
        let late = late(records, &mut self.latest);
        self.late += late;
        if late == 0 && !flush && records.len() >= WINDOW {
            std::mem::swap(records, &mut self.held);
            return;
        }
        self.held.append(records);
        if late > 0 {
            self.held.sort_by_key(|record| record.time);
        }
        let keep = if flush { 0 } else { WINDOW };
        let out = self.held.len().saturating_sub(keep);
        records.extend(self.held.drain(..out));
    }
}

/// The number of records with a time before the latest one, which this carries on.
pub(crate) fn late(records: &[Record], latest: &mut u64) -> u64 {
    let mut late = 0;
    for record in records {
        late += u64::from(record.time < *latest);
        *latest = (*latest).max(record.time);
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(times: &[u64]) -> Vec<Record> {
        times
            .iter()
            .enumerate()
            .map(|(at, &time)| Record { time, first_sector: at as u64, ..Record::default() })
            .collect()
    }

    /// All records, passed in pieces of this length.
    fn passed(times: &[u64], piece: usize) -> (Vec<(u64, u64)>, u64) {
        let (mut window, mut out) = (Window::default(), Vec::new());
        for part in records(times).chunks(piece) {
            let mut part = part.to_vec();
            window.pass(&mut part, false);
            out.extend(part);
        }
        let mut rest = Vec::new();
        window.pass(&mut rest, true);
        out.extend(rest);
        (out.iter().map(|record| (record.time, record.first_sector)).collect(), window.late)
    }

    #[test]
    fn a_record_moves_up_to_a_window_and_equal_times_keep_their_order() {
        // Each second record is 4,095 places too late: as far as the window reaches.
        let times: Vec<u64> = (0..20_000).map(|at: u64| if at % 4096 == 4095 { at - 4095 } else { at }).collect();
        for piece in [4096, 5000, 20_000] {
            let (found, late) = passed(&times, piece);
            let mut sorted: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            sorted.sort_by_key(|(time, _)| *time);
            assert_eq!(found, sorted, "{piece}");
            assert_eq!(late, 4);
        }
        let (found, late) = passed(&[5, 5, 4, 7, 7], 2);
        assert_eq!((found, late), (vec![(4, 2), (5, 0), (5, 1), (7, 3), (7, 4)], 1));
    }
}
