//! What holds for every history, whatever is asked for, in whatever order calls end.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// One thing that happens; numbers are reduced to what is possible at that moment.
#[derive(Debug, Clone)]
enum Happening {
    Ask {
        agents: u8,
        tools: u8,
        sleeps: u8,
        reserve: u16,
    },
    Finish {
        which: u16,
        tokens: u16,
        fault: Option<Code>,
    },
    /// A try ends without an answer, and its call would try again.
    Again {
        which: u16,
        tokens: u16,
        reserve: u16,
    },
    Pass {
        ms: u16,
    },
    Cancel,
}

/// What a call in flight counts for: tokens of its finished tries, and the most of the one that
/// runs.
#[derive(Debug, Clone, Copy)]
struct Counted {
    used: u64,
    reserve: u64,
}

fn happening() -> impl Strategy<Value = Happening> {
    let fault = prop_oneof![
        6 => Just(None),
        2 => Just(Some(Code::AgentFailed)),
        1 => Just(Some(Code::ProviderLimit)),
    ];
    prop_oneof![
        4 => (0..6_u8, 0..3_u8, 0..2_u8, 0..500_u16)
            .prop_map(|(agents, tools, sleeps, reserve)| Happening::Ask { agents, tools, sleeps, reserve }),
        8 => (any::<u16>(), 0..800_u16, fault)
            .prop_map(|(which, tokens, fault)| Happening::Finish { which, tokens, fault }),
        3 => (any::<u16>(), 0..800_u16, 0..500_u16)
            .prop_map(|(which, tokens, reserve)| Happening::Again { which, tokens, reserve }),
        2 => (0..200_u16).prop_map(|ms| Happening::Pass { ms }),
        1 => Just(Happening::Cancel),
    ]
}

/// Everything that the scheduler's surroundings know about a run.
struct World {
    run: Scheduler,
    now: i64,
    next_id: u64,
    in_flight: BTreeMap<u64, Counted>,
    agents: BTreeSet<u64>,
    reserve_max: u64,
    /// Tokens of tries beyond what they had reserved: a model may write more than it was told.
    excess: u64,
    reserves: BTreeMap<u64, u64>,
    asked: BTreeSet<u64>,
    answered: BTreeMap<u64, u32>,
    dispatch_order: Vec<u64>,
    journal_open: BTreeSet<(Key, u32)>,
    spent_seen: u64,
    used: u64,
    limits: RunLimits,
    cancelled: bool,
    finished: bool,
}

impl World {
    fn new(limits: RunLimits) -> Self {
        Self {
            run: Scheduler::new(limits, at(0)),
            now: 0,
            next_id: 0,
            in_flight: BTreeMap::new(),
            agents: BTreeSet::new(),
            reserve_max: 0,
            excess: 0,
            reserves: BTreeMap::new(),
            asked: BTreeSet::new(),
            answered: BTreeMap::new(),
            dispatch_order: Vec::new(),
            journal_open: BTreeSet::new(),
            spent_seen: 0,
            used: 0,
            limits,
            cancelled: false,
            finished: false,
        }
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Ask {
                agents,
                tools,
                sleeps,
                reserve,
            } => {
                let kinds = std::iter::repeat_n(CallKind::Agent, usize::from(*agents))
                    .chain(std::iter::repeat_n(CallKind::Tool, usize::from(*tools)))
                    .chain(std::iter::repeat_n(
                        CallKind::Sleep(50),
                        usize::from(*sleeps),
                    ));
                let requests = kinds
                    .map(|kind| {
                        self.next_id += 1;
                        let reserve = if kind == CallKind::Agent {
                            self.agents.insert(self.next_id);
                            u64::from(*reserve)
                        } else {
                            0
                        };
                        self.asked.insert(self.next_id);
                        self.reserves.insert(self.next_id, reserve);
                        request(self.next_id, kind, reserve)
                    })
                    .collect();
                self.input(Input::Requested(requests));
            }
            Happening::Finish {
                which,
                tokens,
                fault,
            } => {
                let ids: Vec<u64> = self.in_flight.keys().copied().collect();
                let Some(id) = ids.get(usize::from(*which) % ids.len().max(1)).copied() else {
                    return;
                };
                let agent = self.agents.contains(&id);
                self.finish(id, if agent { u64::from(*tokens) } else { 0 }, *fault);
            }
            Happening::Again {
                which,
                tokens,
                reserve,
            } => {
                let mut ids: Vec<u64> = self.in_flight.keys().copied().collect();
                ids.retain(|id| self.agents.contains(id));
                if let Some(id) = ids.get(usize::from(*which) % ids.len().max(1)).copied() {
                    self.again(id, u64::from(*tokens), u64::from(*reserve));
                }
            }
            Happening::Pass { ms } => {
                self.now += i64::from(*ms);
                self.input(Input::Tick);
            }
            Happening::Cancel => {
                self.input(Input::Cancel);
                self.cancelled = true;
            }
        }
    }

    /// Ends a call whose last try used `tokens`.
    fn finish(&mut self, id: u64, tokens: u64, fault: Option<Code>) {
        let counted = self.in_flight.remove(&id).unwrap();
        self.excess += tokens.saturating_sub(counted.reserve);
        let tokens = counted.used + tokens;
        self.used += tokens;
        let outcome = match fault {
            Some(code) => Err(Fault::new(code, "no")),
            None => Ok("1".to_owned()),
        };
        let settled = Settled {
            outcome,
            tokens,
            cost: None,
        };
        self.input(Input::Completed(CallId(id), settled));
    }

    fn again(&mut self, id: u64, tokens: u64, reserve: u64) {
        let counted = self.in_flight[&id];
        let used = counted.used + tokens;
        self.excess += tokens.saturating_sub(counted.reserve);
        self.in_flight.insert(id, Counted { used, reserve: 0 });
        let below_cap = self.limits.tokens.is_none_or(|cap| self.counted() < cap);
        let allowed = self.run.another_try(CallId(id), used, reserve).is_ok();
        assert_eq!(
            allowed,
            below_cap && !self.cancelled,
            "tries start like calls"
        );
        if allowed {
            self.reserve_max = self.reserve_max.max(reserve);
            self.in_flight.insert(id, Counted { used, reserve });
        } else {
            self.finish(id, 0, Some(Code::BudgetExceeded));
        }
    }

    /// Everything that counts against the cap at this moment.
    fn counted(&self) -> u64 {
        let in_flight = self.in_flight.values();
        self.used + in_flight.map(|call| call.used + call.reserve).sum::<u64>()
    }

    fn input(&mut self, input: Input) {
        let outputs = self.run.step(at(self.now), input);
        for output in outputs {
            match output {
                Output::Journal(rows) => rows.into_iter().for_each(|row| self.journal(row)),
                Output::Dispatch(CallId(id)) => self.dispatch(id),
                Output::Deliver(deliveries) => {
                    for delivery in deliveries {
                        *self.answered.entry(delivery.id.0).or_insert(0) += 1;
                        assert!(
                            delivery.spent_tokens >= self.spent_seen,
                            "spent never shrinks"
                        );
                        self.spent_seen = delivery.spent_tokens;
                    }
                }
                Output::Abort(CallId(id)) => assert!(self.in_flight.contains_key(&id)),
                Output::Finished(summary) => {
                    assert!(self.in_flight.is_empty(), "nothing is alive");
                    assert_eq!(summary.tokens, self.used, "every token is counted");
                    assert_eq!(summary.outcome == Outcome::Cancelled, self.cancelled);
                    self.finished = true;
                }
            }
        }
    }

    fn journal(&mut self, row: Row) {
        match row {
            Row::Start {
                key, occurrence, ..
            } => {
                assert!(self.journal_open.insert((key, occurrence)), "started twice");
            }
            // A refused call has an end and no start.
            Row::Done {
                key, occurrence, ..
            } => {
                self.journal_open.remove(&(key, occurrence));
            }
        }
    }

    fn dispatch(&mut self, id: u64) {
        let key = (Key::of("test", &id.to_string()), 1);
        assert!(
            self.journal_open.contains(&key),
            "the row comes before the dispatch"
        );
        assert!(!self.cancelled, "nothing starts after a cancel");
        let reserve = self.reserves[&id];
        if self.agents.contains(&id)
            && let Some(cap) = self.limits.tokens
        {
            assert!(self.counted() < cap, "no agent starts at the cap");
        }
        self.reserve_max = self.reserve_max.max(reserve);
        self.in_flight.insert(id, Counted { used: 0, reserve });
        self.dispatch_order.push(id);
        let width = usize::try_from(self.limits.max_concurrency).unwrap();
        assert!(self.in_flight.len() <= width, "the gate is never too wide");
    }

    /// Ends the run and checks what must hold at its end.
    fn end(&mut self) {
        self.now += 1_000;
        self.input(Input::Tick);
        while let Some(id) = self.in_flight.keys().next().copied() {
            self.finish(id, 0, None);
        }
        let answered: BTreeSet<u64> = self.answered.keys().copied().collect();
        assert_eq!(answered, self.asked, "every request is answered");
        assert!(
            self.answered.values().all(|times| *times == 1),
            "and only once"
        );
        assert!(self.dispatch_order.is_sorted(), "first come, first served");
        if let Some(cap) = self.limits.tokens {
            assert!(
                self.used <= cap + self.reserve_max + self.excess,
                "the overshoot is less than one reservation and what models wrote beyond theirs"
            );
        }
        self.input(returned());
        assert!(self.finished);
        assert!(self.journal_open.is_empty(), "every start has its end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_no_limit_is_ever_crossed(
        tokens in prop_oneof![Just(None), (0..3_000_u64).prop_map(Some)],
        max_concurrency in 1..6_u32,
        agents in 1..40_u32,
        history in proptest::collection::vec(happening(), 0..60),
    ) {
        let mut world = World::new(RunLimits { tokens, max_concurrency, agents });
        for happening in &history {
            world.happen(happening);
        }
        world.end();
    }

    #[test]
    fn the_same_history_gives_the_same_outputs(
        history in proptest::collection::vec(happening(), 0..30),
    ) {
        let play = || {
            let mut world = World::new(RunLimits { tokens: Some(900), ..RunLimits::default() });
            history.iter().for_each(|happening| world.happen(happening));
            (world.dispatch_order, world.answered, world.used)
        };
        prop_assert_eq!(play(), play());
    }
}
