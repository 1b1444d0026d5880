//! The table of zones against a twin that knows nothing of lists and counts, and which rule is told first.

use ZoneAction::{Close, Finish, Open, Reset};
use flashwright_block::{Seed, ZoneRule, ZoneState, below};
use flashwright_ftl::{ZoneAction, ZoneLayout, ZoneLimits, Zones};

const LAYOUT: ZoneLayout = ZoneLayout { count: 6, size: 16, capacity: 12 };

/// A request to a table, by zone.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { zone: u32, at: u32, pages: u32 },
    Append { zone: u32, at: u32, pages: u32 },
    Act { action: ZoneAction, zone: u32, at: u32 },
}

/// The table in the plainest words: a list of zones, each with the time at which it was opened; all is counted anew each time.
struct Twin {
    limits: ZoneLimits,
    zones: Vec<(ZoneState, u32, u64)>,
    time: u64,
}

impl Twin {
    fn open(&self) -> usize {
        self.zones.iter().filter(|zone| zone.0.is_open()).count()
    }

    fn active(&self) -> usize {
        self.zones.iter().filter(|zone| zone.0.is_open() || zone.0 == ZoneState::Closed).count()
    }

    /// The implicitly open zone that was opened first.
    fn eldest(&self) -> Option<usize> {
        let implicit = |at: &usize| self.zones[*at].0 == ZoneState::ImplicitlyOpen;
        (0..self.zones.len()).filter(implicit).min_by_key(|at| self.zones[*at].2)
    }

    fn opens(&mut self, at: usize, state: ZoneState) -> Result<(), ZoneRule> {
        let before = self.zones[at].0;
        let full = |limit: u32, count: usize| limit > 0 && count >= limit as usize;
        if before == ZoneState::Empty && full(self.limits.active, self.active()) {
            return Err(ZoneRule::TooManyActive);
        }
        if !before.is_open() && full(self.limits.open, self.open()) {
            let eldest = self.eldest().ok_or(ZoneRule::TooManyOpen)?;
            self.zones[eldest].0 = ZoneState::Closed;
        }
        if !before.is_open() || state == ZoneState::ExplicitlyOpen {
            self.time += 1;
            (self.zones[at].0, self.zones[at].2) = (state, self.time);
        }
        Ok(())
    }

    fn write(&mut self, zone: u32, at: Option<u32>, pages: u32) -> Result<u32, ZoneRule> {
        let (state, written, _) = self.zones[zone as usize];
        match state {
            ZoneState::Offline => return Err(ZoneRule::Offline),
            ZoneState::ReadOnly => return Err(ZoneRule::ReadOnly),
            ZoneState::Full => return Err(ZoneRule::Full),
            _ => {}
        }
        if at.is_some_and(|at| at != written) {
            return Err(ZoneRule::NotAtPointer);
        }
        if written + pages > LAYOUT.capacity {
            return Err(ZoneRule::Boundary);
        }
        self.opens(zone as usize, ZoneState::ImplicitlyOpen)?;
        let of = &mut self.zones[zone as usize];
        of.1 += pages;
        if of.1 == LAYOUT.capacity {
            of.0 = ZoneState::Full;
        }
        Ok(written)
    }

    fn act(&mut self, action: ZoneAction, zone: u32) -> Result<(), ZoneRule> {
        let at = zone as usize;
        let state = self.zones[at].0;
        if matches!(state, ZoneState::Offline | ZoneState::ReadOnly) {
            return Err(ZoneRule::Transition);
        }
        match action {
            Open if state == ZoneState::Full => Err(ZoneRule::Transition),
            Open => self.opens(at, ZoneState::ExplicitlyOpen),
            Close if matches!(state, ZoneState::Empty | ZoneState::Full) => Err(ZoneRule::Transition),
            Close => {
                self.zones[at].0 = ZoneState::Closed;
                Ok(())
            }
            Finish => {
                self.zones[at].0 = ZoneState::Full;
                Ok(())
            }
            Reset => {
                self.zones[at] = (ZoneState::Empty, 0, 0);
                Ok(())
            }
        }
    }

    fn take(&mut self, step: Step) -> Result<u32, ZoneRule> {
        match step {
            Step::Write { zone, at, pages } => self.write(zone, Some(at), pages),
            Step::Append { at, .. } | Step::Act { at, .. } if at != 0 => Err(ZoneRule::NotAtStart),
            Step::Append { zone, pages, .. } => self.write(zone, None, pages),
            Step::Act { action, zone, .. } => self.act(action, zone).map(|()| 0),
        }
    }
}

/// Checks a request and carries it out; returns where a write went.
fn take(zones: &mut Zones, step: Step) -> Result<u32, ZoneRule> {
    let start = |zone| LAYOUT.start(zone);
    let done = match step {
        Step::Write { zone, at, pages } => zones.check_write(start(zone) + at, pages).map(|zone| {
            zones.wrote(zone, pages);
            at
        }),
        Step::Append { zone, at, pages } => zones.check_append(start(zone) + at, pages).map(|page| {
            zones.wrote(zone, pages);
            page - start(zone)
        }),
        Step::Act { action, zone, at } => zones.check_action(action, start(zone) + at).map(|zone| {
            zones.act(action, zone);
            0
        }),
    };
    done.map_err(|error| {
        let (Step::Write { zone, .. } | Step::Append { zone, .. } | Step::Act { zone, .. }) = step;
        assert_eq!((error.zone, error.pointer), (zone, u64::from(start(zone) + zones.written(zone))));
        error.rule
    })
}

#[test]
fn a_million_requests_leave_the_table_and_its_twin_alike() {
    let mut seen = std::collections::BTreeMap::new();
    for (seed, limits) in [(1, (0, 0)), (2, (2, 3)), (3, (1, 1)), (4, (3, 0)), (5, (0, 4))] {
        let limits = ZoneLimits { open: limits.0, active: limits.1 };
        let mut rng = Seed(seed).stream("zones");
        let mut zones = Zones::new(LAYOUT, limits);
        let mut twin = Twin { limits, zones: vec![(ZoneState::Empty, 0, 0); LAYOUT.count as usize], time: 0 };
        for _ in 0..200_000 {
            let mut draw = |bound: u32| u32::try_from(below(&mut rng, u64::from(bound))).unwrap();
            let (zone, pages) = (draw(LAYOUT.count), draw(6) + 1);
            let stray = if draw(8) == 0 { draw(LAYOUT.size) } else { 0 };
            let step = match draw(16) {
                0..8 if stray > 0 => Step::Write { zone, at: stray, pages },
                0..8 => Step::Write { zone, at: zones.written(zone), pages },
                8..12 => Step::Append { zone, at: stray, pages },
                12 => Step::Act { action: Open, zone, at: stray },
                13 => Step::Act { action: Close, zone, at: stray },
                14 => Step::Act { action: Finish, zone, at: stray },
                _ if draw(4000) == 0 && zones.count(ZoneState::Offline) + zones.count(ZoneState::ReadOnly) < 2 => {
                    zones.fail(zone);
                    let of = &mut twin.zones[zone as usize];
                    of.0 = if of.1 == 0 { ZoneState::Offline } else { ZoneState::ReadOnly };
                    continue;
                }
                _ => Step::Act { action: Reset, zone, at: stray },
            };
            let (found, expected) = (take(&mut zones, step), twin.take(step));
            assert_eq!(found, expected, "{step:?} of {:?}", twin.zones);
            *seen.entry(found.err().map(ZoneRule::name)).or_insert(0) += 1;
            for (at, (state, written, _)) in (0..).zip(&twin.zones) {
                assert_eq!((zones.state(at), zones.written(at)), (*state, *written), "zone {at} after {step:?}");
            }
            let over = |limit: u32, count: usize| limit > 0 && count > limit as usize;
            assert!(!over(limits.open, twin.open()) && !over(limits.active, twin.active()));
        }
    }
    for rule in ZoneRule::ALL {
        assert!(seen.contains_key(&Some(rule.name())), "no request broke {rule:?}: {seen:?}");
    }
}

/// Zones 0 and 1 explicitly open (2 pages each), 2 closed (2 pages), 3 full, 4 read-only, 5 offline, 6 empty; no place is left.
fn crowded() -> (Zones, ZoneLayout) {
    let layout = ZoneLayout { count: 8, ..LAYOUT };
    let mut zones = Zones::new(layout, ZoneLimits { open: 2, active: 3 });
    zones.wrote(4, 1);
    zones.fail(4);
    zones.fail(5);
    zones.act(Finish, 3);
    for zone in [2, 0, 1] {
        zones.act(Open, zone);
        zones.wrote(zone, 2);
        if zone == 2 {
            zones.act(Close, zone);
        }
    }
    (zones, layout)
}

/// Which rule is told where several speak against a request, by the zone's state: each line breaks more rules than the one before it
/// of the same zone and request.
#[test]
fn the_first_rule_that_is_broken_is_told() {
    use ZoneRule::{
        Boundary, Full, NotAtPointer, NotAtStart, Offline, ReadOnly, TooManyActive, TooManyOpen, Transition,
    };
    let (zones, layout) = crowded();
    let write = |zone, at, pages| zones.check_write(layout.start(zone) + at, pages).map_err(|error| error.rule);
    let append = |zone, at, pages| zones.check_append(layout.start(zone) + at, pages).map_err(|error| error.rule);
    let act = |action, zone, at| zones.check_action(action, layout.start(zone) + at).map_err(|error| error.rule);
    // An open zone.
    assert_eq!(write(0, 2, 10), Ok(0));
    assert_eq!(write(0, 2, 11), Err(Boundary));
    assert_eq!(write(0, 3, 11), Err(NotAtPointer));
    assert_eq!(append(0, 0, 10), Ok(2));
    assert_eq!(append(0, 0, 11), Err(Boundary));
    assert_eq!(append(0, 1, 11), Err(NotAtStart));
    // A closed one needs a place among the open ones, an empty one among the active ones too.
    assert_eq!(write(2, 2, 1), Err(TooManyOpen));
    assert_eq!(write(2, 2, 11), Err(Boundary));
    assert_eq!(write(2, 0, 1), Err(NotAtPointer));
    assert_eq!(append(2, 0, 1), Err(TooManyOpen));
    assert_eq!(write(6, 0, 1), Err(TooManyActive));
    assert_eq!(write(6, 0, 13), Err(Boundary));
    assert_eq!(write(6, 12, 1), Err(NotAtPointer), "the addresses past the capacity are never at the pointer");
    assert_eq!(append(6, 0, 1), Err(TooManyActive));
    // States come before places.
    assert_eq!([write(3, 5, 20), append(3, 0, 20)], [Err(Full), Err(Full)]);
    assert_eq!([write(4, 5, 20), append(4, 0, 20)], [Err(ReadOnly), Err(ReadOnly)]);
    assert_eq!([write(5, 5, 20), append(5, 0, 20)], [Err(Offline), Err(Offline)]);
    assert_eq!(append(5, 1, 1), Err(NotAtStart));
    // Management: open, close, finish, reset of each state.
    let table = [
        (0, [Ok(0), Ok(0), Ok(0), Ok(0)]),
        (2, [Err(TooManyOpen), Ok(2), Ok(2), Ok(2)]),
        (3, [Err(Transition), Err(Transition), Ok(3), Ok(3)]),
        (4, [Err(Transition); 4]),
        (5, [Err(Transition); 4]),
        (6, [Err(TooManyActive), Err(Transition), Ok(6), Ok(6)]),
    ];
    for (zone, expected) in table {
        assert_eq!([Open, Close, Finish, Reset].map(|action| act(action, zone, 0)), expected, "zone {zone}");
        assert_eq!([Open, Close, Finish, Reset].map(|action| act(action, zone, 1)), [Err(NotAtStart); 4]);
    }
}

#[test]
fn room_is_made_by_closing_the_implicitly_open_zone_that_was_opened_first() {
    let mut zones = Zones::new(LAYOUT, ZoneLimits { open: 3, active: 0 });
    zones.act(Open, 0);
    zones.wrote(1, 1);
    zones.wrote(2, 1);
    zones.wrote(1, 1); // it was opened before, however often it is written
    zones.wrote(3, 1);
    let states = |zones: &Zones| [0, 1, 2, 3].map(|zone| zones.state(zone));
    use ZoneState::{Closed, ExplicitlyOpen, ImplicitlyOpen};
    assert_eq!(states(&zones), [ExplicitlyOpen, Closed, ImplicitlyOpen, ImplicitlyOpen]);
    zones.act(Open, 2); // already open: nobody has to make room
    zones.act(Open, 1);
    assert_eq!(states(&zones), [ExplicitlyOpen, ExplicitlyOpen, ExplicitlyOpen, Closed]);
    let refused = zones.check_write(LAYOUT.start(3) + 1, 1).unwrap_err();
    assert_eq!(refused.rule, ZoneRule::TooManyOpen);
    assert_eq!(
        refused.to_string(),
        "zone 3 refuses a request: as many zones are open as may be, none of them implicitly; close one \
         (write pointer at sector 49)"
    );
}

#[test]
fn finish_names_what_it_leaves_and_reset_what_it_clears() {
    let mut zones = Zones::new(LAYOUT, ZoneLimits::default());
    zones.wrote(2, 5);
    assert_eq!(zones.act(Finish, 2), 5..12);
    assert_eq!(zones.act(Finish, 2), 0..0, "it is full already");
    assert_eq!((zones.state(2), zones.written(2)), (ZoneState::Full, 5));
    assert_eq!(zones.act(Reset, 2), 0..5);
    assert_eq!(zones.act(Reset, 2), 0..0);
    assert_eq!(zones.state(2), ZoneState::Empty);
}
