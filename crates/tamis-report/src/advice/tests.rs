//! Advice that is true, with numbers that are not hidden.

use super::*;

/// If the kind for a need isn't possible, the advice doesn't claim its properties for another kind.
#[test]
fn advice_is_true_of_the_kind_that_it_names() {
    let ask = |rate, need| {
        let keys = 1_000_000;
        let given = Given::KeysAndRate { keys, rate };
        let question = Question { given, need };
        question.answer().unwrap().lines().remove(0)
    };
    assert!(ask(1e-3, Need::Finished).starts_with("Pick fuse: built by"));
    assert!(ask(1e-12, Need::Finished).starts_with("Pick blocked: the kinds for finished"));
    assert!(ask(1e-12, Need::Delete).starts_with("Pick counting: no other"));
    let question = Question {
        given: Given::RateAndSize {
            rate: 1e-6,
            size: 640,
        },
        need: Need::Grow,
    };
    let Err(refusal) = question.answer() else {
        panic!("a filter that does not grow was advised");
    };
    assert!(refusal.contains("growing"), "{refusal}");
}

/// A window is planned with the requested number of generations, and the command includes it.
#[test]
fn a_window_has_its_generations() {
    let ask = |generations, given| {
        let need = Need::Forget { generations };
        Question { given, need }.answer()
    };
    let (keys, rate) = (1_000_000, 0.001);
    let given = Given::KeysAndRate { keys, rate };
    let sizes = [2, 8, 32].map(|generations| {
        let advice = ask(generations, given).unwrap();
        let window = advice.pick();
        let options = WindowOptions::new(Span::Keys(keys)).generations(generations);
        assert_eq!(*window, Plan::window(&options, keys, rate).unwrap());
        let command = advice.command(window);
        assert!(command.contains("--within 24h"), "{command}");
        let more = format!("--generations {generations}");
        assert_eq!(command.contains(&more), generations != 8, "{command}");
        let text = advice.lines().join("\n");
        assert!(
            text.contains(&format!("up to 1/{generations} of it")),
            "{text}"
        );
        assert!(text.contains("more memory than blocked"), "{text}");
        assert!(!text.contains("bitmap"), "{text}");
        window.bytes()
    });
    // With fewer generations, more expired keys stay in the window.
    assert_ne!(sizes[0], sizes[1]);
    assert_ne!(sizes[1], sizes[2]);
    for wrong in [0, 63, u32::MAX] {
        let Err(refusal) = ask(wrong, given) else {
            panic!("{wrong} generations were advised");
        };
        assert!(refusal.contains("generations"), "{refusal}");
    }
}

/// For a given size all kinds use the same memory; they differ in rate, and the advice says so.
#[test]
fn a_higher_rate_is_never_hidden() {
    for size in [1_000_000, 1_234_567, 16 << 20] {
        let ask = |need| {
            let keys = 1_000_000;
            let given = Given::KeysAndSize { keys, size };
            let question = Question { given, need };
            let advice = question.answer().unwrap();
            (advice.lines().remove(0), advice.pick, advice.plans)
        };
        let (text, _, plans) = ask(Need::Nothing);
        assert!(!text.contains("0.0 %"), "{text}");
        for plan in &plans[..2] {
            assert!(text.contains(&human::rate(plan.rate())), "{text}");
        }
        let (text, pick, plans) = ask(Need::Delete);
        let lowest = plans.iter().map(Plan::rate).fold(1.0, f64::min);
        assert_eq!(plans[pick].rate(), lowest, "{text}");
        let (text, _, plans) = ask(Need::Finished);
        assert!(!text.contains("0.0 %"), "{text}");
        let [fuse, ribbon, ..] = &plans[..] else {
            panic!("no kind for a finished list");
        };
        if differs(fuse.rate(), ribbon.rate()) {
            assert!(text.contains(&human::rate(fuse.rate())), "{text}");
            assert!(text.contains(&human::rate(ribbon.rate())), "{text}");
        }
    }
    // Equal rates aren't mentioned.
    let question = Question {
        given: Given::KeysAndRate {
            keys: 10_000_000,
            rate: 0.001,
        },
        need: Need::Nothing,
    };
    let text = question.answer().unwrap().lines().remove(0);
    assert!(text.contains("for 9.4 % more memory than bloom."), "{text}");
}
