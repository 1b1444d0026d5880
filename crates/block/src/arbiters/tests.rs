use super::round_robin::RoundRobinSettings;
use super::weighted::WeightedSettings;
use super::*;
use crate::Priority;
use proptest::prelude::*;

fn waiting(id: u64, queue: u16, priority: Priority) -> Waiting {
    Waiting { id, request: Request { queue, priority, sectors: 8, ..Request::default() } }
}

const CLASSES: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];

/// The arbiters as one list of commands and rules that look at all of it.
#[derive(Default)]
struct Naive {
    waiting: Vec<Waiting>,
    /// When each queue came to the end of the line; a lower number is earlier.
    since: std::collections::BTreeMap<(u8, u16), u64>,
    clock: u64,
    /// The queue that has the turn in each class, and its commands in a row.
    turn: [(u16, u32); 4],
    /// What is left of a round, a class a command.
    round: Vec<u8>,
}

impl Naive {
    fn push(&mut self, new: Waiting) {
        let key = (new.request.priority as u8, new.request.queue);
        if !self.waiting.iter().any(|other| (other.request.priority as u8, other.request.queue) == key) {
            self.clock += 1;
            self.since.insert(key, self.clock);
        }
        self.waiting.push(new);
    }

    /// The command of a class whose queue is first in line.
    fn of_class(&mut self, class: u8, burst: u32) -> Option<Waiting> {
        let of_class = (0..self.waiting.len()).filter(|at| self.waiting[*at].request.priority as u8 == class);
        let at = of_class.min_by_key(|at| (self.since[&(class, self.waiting[*at].request.queue)], *at))?;
        let picked = self.waiting.remove(at);
        let queue = picked.request.queue;
        let turn = &mut self.turn[usize::from(class)];
        *turn = if turn.0 == queue { (queue, turn.1 + 1) } else { (queue, 1) };
        let more =
            self.waiting.iter().any(|other| (other.request.priority as u8, other.request.queue) == (class, queue));
        if turn.1 >= burst || !more {
            turn.1 = 0;
            self.clock += 1;
            self.since.insert((class, queue), self.clock);
        }
        Some(picked)
    }

    fn weighted(&mut self, weights: [u32; 3], burst: u32) -> Option<Waiting> {
        let has = |naive: &Self, class: u8| naive.waiting.iter().any(|each| each.request.priority as u8 == class);
        if has(self, 0) {
            return self.of_class(0, burst);
        }
        for _ in 0..2 {
            if let Some(at) = self.round.iter().position(|class| has(self, *class)) {
                let class = self.round.remove(at);
                return self.of_class(class, burst);
            }
            if self.waiting.is_empty() {
                return None;
            }
            self.round = (1..=3).flat_map(|class| vec![class; weights[usize::from(class) - 1] as usize]).collect();
        }
        None
    }
}

/// Commands that come (their queue) and picks (none), which succeed while there are places.
fn steps() -> impl Strategy<Value = Vec<(Option<u16>, bool)>> {
    prop::collection::vec((prop::option::weighted(0.6, 0u16..6), prop::bool::weighted(0.8)), 1..300)
}

/// Plays the steps on an arbiter and on the naive one; the class of a queue is `class` of it.
fn agree<A: Arbiter>(
    mut arbiter: A,
    steps: Vec<(Option<u16>, bool)>,
    class: impl Fn(u16) -> Priority,
    mut naive_pick: impl FnMut(&mut Naive) -> Option<Waiting>,
) {
    let mut naive = Naive { turn: [(u16::MAX, 0); 4], round: vec![1, 1, 1, 2, 2, 3], ..Naive::default() };
    let mut waited = 0;
    for (id, (queue, has_place)) in (0..).zip(steps) {
        match queue {
            Some(queue) => {
                let new = waiting(id, queue, class(queue));
                arbiter.push(new);
                naive.push(new);
                waited += 1;
            }
            None => {
                let found = arbiter.pick(|_| has_place);
                let want = if has_place { naive_pick(&mut naive) } else { None };
                assert_eq!(found, want);
                waited -= usize::from(found.is_some());
            }
        }
        assert_eq!((arbiter.len(), arbiter.is_empty()), (waited, waited == 0));
    }
    while let Some(want) = naive_pick(&mut naive) {
        assert_eq!(arbiter.pick(|_| true), Some(want));
    }
    assert_eq!(arbiter.pick(|_| true), None);
}

proptest! {
    #[test]
    fn first_in_first_out_is_a_list(steps in steps()) {
        let first = |naive: &mut Naive| (!naive.waiting.is_empty()).then(|| naive.waiting.remove(0));
        agree(Fifo::default(), steps, |_| Priority::Medium, first);
    }

    #[test]
    fn round_robin_is_that_of_a_list(steps in steps(), burst in 1u32..5) {
        let arbiter = RoundRobin::new(&RoundRobinSettings { burst }, ());
        agree(arbiter, steps, |_| Priority::Medium, |naive| naive.of_class(2, burst));
    }

    #[test]
    fn weighted_round_robin_is_that_of_a_list(steps in steps(), burst in 1u32..4) {
        let arbiter = Weighted::new(&WeightedSettings { burst, high: 3, medium: 2, low: 1 }, ());
        agree(arbiter, steps, |queue| CLASSES[usize::from(queue) % 4], |naive| naive.weighted([3, 2, 1], burst));
    }
}

/// How many commands each queue had of the first 7,000, if all always have some waiting.
fn shares(mut arbiter: impl Arbiter, classes: &[Priority]) -> Vec<u64> {
    let mut had = vec![0; classes.len()];
    for id in 0..20 {
        for (queue, class) in (0..).zip(classes) {
            arbiter.push(waiting(id, queue, *class));
        }
    }
    for id in 20..7020 {
        let picked = arbiter.pick(|_| true).expect("all have some waiting").request;
        had[usize::from(picked.queue)] += 1;
        arbiter.push(waiting(id, picked.queue, picked.priority));
    }
    had
}

#[test]
fn saturated_queues_have_their_shares() {
    let even = shares(RoundRobin::new(&RoundRobinSettings { burst: 3 }, ()), &[Priority::Medium; 7]);
    assert!(even.iter().all(|had| had.abs_diff(1000) <= 20), "{even:?}");
    let weighted = || Weighted::new(&WeightedSettings::default(), ());
    // 4, 2 and 1 of 7; two queues share the middle.
    assert_eq!(
        shares(weighted(), &[Priority::High, Priority::Medium, Priority::Medium, Priority::Low]),
        [4000, 1000, 1000, 1000]
    );
    assert_eq!(shares(weighted(), &[Priority::Low, Priority::Urgent, Priority::High]), [0, 7000, 0]);
    // A class without commands leaves its part to the others.
    assert_eq!(shares(weighted(), &[Priority::High, Priority::Low]), [5600, 1400]);
}
