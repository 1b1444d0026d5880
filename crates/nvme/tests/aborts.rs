//! Abort of I/O commands: those are aborted of which the drive has no part and whose data were not asked for, and no others; each command is
//! answered once.

use crate::common::{Units, draws};
use crate::hostile::{command, connect, subsystem};
use flashwright_nvme::commands::Op;
use flashwright_nvme::fabrics;
use flashwright_nvme::subsystem::Subsystem;
use flashwright_nvme::tcp::{Reader, Ready, Writer};
use flashwright_nvme::wire::pdu::{self, Common, Format, Span, kind};
use flashwright_nvme::wire::{Cqe, Sgl, Sqe, Status, put};
use std::collections::BTreeMap;

/// A connection, whose drive is the test.
#[derive(Default)]
struct Queue {
    reader: Reader,
    writer: Writer,
}

impl Queue {
    /// Lets the session take bytes. Returns completions, and identifiers of commands whose data it asks for.
    fn feed(&mut self, subsystem: &mut Subsystem, input: &[u8]) -> (Vec<Cqe>, Vec<u16>) {
        let taken = self.reader.feed(&mut self.writer, subsystem, &mut Units::default(), input);
        assert_eq!(taken, input.len());
        let (out, mut completions, mut asked) = (std::mem::take(&mut self.writer.out), Vec::new(), Vec::new());
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let common = Common::parse(rest.first_chunk().unwrap());
            let (bytes, more) = rest.split_at(common.length as usize);
            rest = more;
            match common.kind {
                kind::RESPONSE => completions.push(Cqe::parse(bytes[8..24].try_into().unwrap())),
                kind::R2T => asked.push(Span::parse(&bytes[..24]).cid),
                kind::IC_RESP | kind::C2H_DATA => {}
                other => panic!("a PDU of type {other}"),
            }
        }
        (completions, asked)
    }

    /// Connects, and serves a queue. Returns the controller.
    fn connect(&mut self, subsystem: &mut Subsystem, controller: u16, queue: u16) -> u16 {
        let mut input = Vec::new();
        pdu::put_connection(&mut input, kind::IC_REQ, 0, 0, 0);
        let (sqe, data) = connect(&subsystem.nqn.clone(), controller, queue, false);
        Format::default().put_command(&mut input, &sqe, &data);
        let (completions, _) = self.feed(subsystem, &input);
        assert!(completions[0].status.is_ok(), "{completions:?}");
        u16::try_from(completions[0].result & 0xffff).unwrap()
    }

    fn send(&mut self, subsystem: &mut Subsystem, sqe: &Sqe, data: &[u8]) -> (Vec<Cqe>, Vec<u16>) {
        let mut input = Vec::new();
        Format::default().put_command(&mut input, sqe, data);
        self.feed(subsystem, &input)
    }

    /// A request that the drive has ends.
    fn end(&mut self, ready: &Ready) {
        if ready.io.op == Op::Read {
            self.writer.data(ready.flight, ready.at, ready.io.bytes as usize).fill(1);
        }
        self.writer.ended(ready.flight, Status::SUCCESS);
    }
}

fn hosts() -> (Subsystem, Queue, Queue) {
    let (mut subsystem, mut admin, mut io) = (subsystem(), Queue::default(), Queue::default());
    let controller = admin.connect(&mut subsystem, fabrics::ANY_CONTROLLER, 0);
    let mut enable = command(fabrics::OPCODE, 1, 0);
    put(&mut enable.0, 44, &0x14u32.to_le_bytes());
    put(&mut enable.0, 48, &1u32.to_le_bytes());
    assert!(admin.send(&mut subsystem, &enable, &[]).0[0].status.is_ok());
    io.connect(&mut subsystem, controller, 1);
    (subsystem, admin, io)
}

fn abort(by: u16, queue: u16, cid: u16) -> Sqe {
    let mut sqe = command(0x08, by, 0);
    put(&mut sqe.0, 40, &queue.to_le_bytes());
    put(&mut sqe.0, 42, &cid.to_le_bytes());
    sqe
}

/// A command of namespace 1, whose blocks of 4 KiB lie in two parts that meet at block 2048.
fn of_blocks(opcode: u8, cid: u16, first: u32, blocks: u32, kind: u8) -> Sqe {
    let mut sqe = command(opcode, cid, 1);
    put(&mut sqe.0, 32, &(blocks * 4096).to_le_bytes());
    sqe.0[39] = kind;
    put(&mut sqe.0, 40, &first.to_le_bytes());
    put(&mut sqe.0, 48, &(blocks - 1).to_le_bytes());
    sqe
}

/// What the model knows of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    /// The drive has a part of it, or its data were asked for.
    Begun,
}

#[test]
fn what_waits_is_aborted_and_nothing_else() {
    let (mut aborted, mut begun_late, mut unknown, mut not_asked) = (0, 0, 0, 0);
    for seed in 0..200 {
        let (mut subsystem, mut admin, mut io) = hosts();
        let mut draw = draws(seed);
        let mut open: BTreeMap<u16, State> = BTreeMap::new();
        let mut of_flight: BTreeMap<u32, u16> = BTreeMap::new();
        let mut drive: Vec<Ready> = Vec::new();
        let (mut next, mut large) = (2u16, 0);
        for _ in 0..120 {
            let (found, asked) = match draw() % 8 {
                0..=3 if open.len() < 24 => {
                    let cid = next;
                    next += 1;
                    // Of two pieces where the parts meet.
                    let first = 2040 + (draw() % 16) as u32;
                    let before = io.reader.ready.len();
                    let answer = match draw() % 8 {
                        0..=2 => io.send(&mut subsystem, &of_blocks(0x02, cid, first, 8, Sgl::TRANSPORT), &[]),
                        3 => io.send(&mut subsystem, &of_blocks(0x01, cid, first, 2, Sgl::IN_CAPSULE), &[5; 8192]),
                        4 => io.send(&mut subsystem, &of_blocks(0x05, cid, first, 2, Sgl::IN_CAPSULE), &[1; 8192]),
                        5 => {
                            let mut flush = command(0x00, cid, 1);
                            flush.0[39] = Sgl::TRANSPORT;
                            io.send(&mut subsystem, &flush, &[])
                        }
                        _ if large < 8 => {
                            large += 1;
                            io.send(&mut subsystem, &of_blocks(0x01, cid, first, 256, Sgl::TRANSPORT), &[])
                        }
                        _ => continue,
                    };
                    open.insert(cid, State::Waits);
                    io.reader.ready.iter().skip(before).for_each(|ready| _ = of_flight.insert(ready.flight, cid));
                    answer
                }
                4 => {
                    let Some(ready) = io.reader.begin() else { continue };
                    open.insert(of_flight[&ready.flight], State::Begun);
                    drive.push(ready);
                    continue;
                }
                5 if !drive.is_empty() => {
                    let at = draw() as usize % drive.len();
                    let ready = drive.swap_remove(at);
                    io.end(&ready);
                    io.feed(&mut subsystem, &[])
                }
                _ => {
                    let cid = 2 + (draw() % u64::from(next)) as u16;
                    let expected = open.get(&cid) == Some(&State::Waits);
                    let by = next;
                    next += 1;
                    assert_eq!(admin.send(&mut subsystem, &abort(by, 1, cid), &[]).0, [], "it waits for the queue");
                    let (mut found, asked) = io.feed(&mut subsystem, &[]);
                    if expected {
                        let at = found.iter().position(|cqe| cqe.cid == cid).expect("it is answered");
                        assert_eq!(found.remove(at).status.parts(), (0, 0x07), "abort requested");
                        let flight = of_flight.iter().find(|(_, of)| **of == cid).map(|(flight, _)| *flight);
                        not_asked += u32::from(flight.is_none());
                        assert!(
                            io.reader.ready.iter().all(|ready| of_flight[&ready.flight] != cid),
                            "nothing of it is left"
                        );
                        flight.iter().for_each(|flight| _ = of_flight.remove(flight));
                        open.remove(&cid);
                        aborted += 1;
                    }
                    begun_late += u32::from(open.contains_key(&cid));
                    unknown += u32::from(!expected && !open.contains_key(&cid));
                    let (answers, _) = admin.feed(&mut subsystem, &[]);
                    let [answer] = answers[..] else { panic!("{answers:?}") };
                    assert_eq!((answer.cid, answer.result, answer.status), (by, u64::from(!expected), Status::SUCCESS));
                    (found, asked)
                }
            };
            for cqe in found {
                assert!(cqe.status.is_ok() || cqe.status == Status::COMPARE_FAILED, "{cqe:?}");
                assert_eq!(open.remove(&cqe.cid), Some(State::Begun), "{cqe:?}");
                of_flight.retain(|_, of| *of != cqe.cid);
            }
            asked.iter().for_each(|cid| _ = open.insert(*cid, State::Begun));
        }
        // What is left ends, but for commands whose data do not come.
        drive.iter().for_each(|ready| io.end(ready));
        loop {
            for cqe in io.feed(&mut subsystem, &[]).0 {
                assert!(open.remove(&cqe.cid).is_some(), "{cqe:?}");
            }
            let Some(ready) = io.reader.begin() else { break };
            io.end(&ready);
        }
        assert!(open.len() <= large, "{open:?}");
    }
    assert!(aborted > 1000 && begun_late > 500 && unknown > 500, "{aborted}, {begun_late}, {unknown}");
    assert!(not_asked > 50, "{not_asked} whose data were not asked for");
}

#[test]
fn aborts_that_wait_are_bounded_and_end_with_their_queue() {
    let (mut subsystem, mut admin, mut io) = hosts();
    for by in 10..14 {
        assert_eq!(admin.send(&mut subsystem, &abort(by, 1, 99), &[]).0, []);
    }
    let (refused, _) = admin.send(&mut subsystem, &abort(14, 1, 99), &[]);
    assert_eq!((refused[0].cid, refused[0].status.parts()), (14, (1, 0x03)), "too many");
    let (other, _) = admin.send(&mut subsystem, &abort(15, 2, 99), &[]);
    assert_eq!((other[0].cid, other[0].result), (15, 1), "there is no such queue");
    subsystem.leave(&io.reader.queue().unwrap().clone());
    let (found, _) = admin.feed(&mut subsystem, &[]);
    assert_eq!(found.iter().map(|cqe| (cqe.cid, cqe.result)).collect::<Vec<_>>(), [(10, 1), (11, 1), (12, 1), (13, 1)]);
    assert_eq!(io.feed(&mut subsystem, &[]), (vec![], vec![]));
}
