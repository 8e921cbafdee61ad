//! A shop's stock by the command line alone: counted, reserved, sold, released, stopped, verified.

use std::fmt::Write as _;

use super::{
    broker::Broker,
    shell::{Ended, Shell},
    snapshot,
};

/// Commands and how they end, in their order; the words are divided at blanks but for those of the reasons.
const STORY: &[(&[&str], i32)] = &[
    (
        &["adjust", "espresso@berlin=10", "espresso@hamburg=4", "--reference", "delivery-1", "--reason", "first count"],
        0,
    ),
    (&["adjust", "espresso@hamburg=4", "espresso@berlin=10", "--reference", "delivery-1"], 0),
    (&["adjust", "espresso@berlin=11", "--reference", "delivery-1"], 73),
    (&["show", "espresso"], 0),
    (&["show", "tea"], 0),
    (&["reserve", "cart-1", "espresso@berlin=3", "espresso@hamburg=1", "--ttl", "10m", "--job", "mail=cart-1"], 0),
    (&["reserve", "cart-1", "espresso@hamburg=1", "espresso@berlin=3"], 0),
    (&["reserve", "cart-1", "espresso@berlin=4"], 73),
    (&["reserve", "cart-2", "espresso@berlin=8", "espresso@hamburg=1"], 73),
    (&["show", "espresso", "--location", "berlin"], 0),
    (&["adjust", "espresso@berlin=-8", "--reference", "breakage"], 73),
    (&["extend", "1", "--ttl", "30m"], 0),
    (&["commit", "1", "--job", "parcels=cart-1", "--job", "receipts=cart-1"], 0),
    (&["commit", "1"], 0),
    (&["release", "1"], 73),
    (&["reserve", "cart-3", "espresso@berlin=2"], 0),
    (&["release", "2"], 0),
    (&["find", "--reference", "cart-3"], 0),
    (&["find", "999"], 66),
    (&["reserve", "cart-4", "espresso@berlin=1", "--shadow", "held"], 0),
    (&["reserve", "cart-5", "espresso@berlin=1", "--shadow", "sold-out"], 0),
    (&["reserve", "cart-6", "espresso@berlin=70", "--shadow", "held"], 0),
    (&["reserve", "cart-7", "espresso@berlin=70", "--shadow", "sold-out", "--json"], 0),
    (&["disable", "esp", "--reason", "counting by hand"], 64),
    (&["disable", "esp", "--reason", "counting by hand", "--yes"], 0),
    (&["reserve", "cart-8", "espresso@berlin=1"], 73),
    (&["reserve", "cart-8", "espresso@berlin=1", "--shadow", "held"], 0),
    (&["commit", "3"], 0),
    (&["switches"], 0),
    (&["enable", "esp"], 0),
    (&["reserve", "cart-8", "espresso@berlin=1"], 0),
    (&["ledger", "espresso", "--location", "berlin"], 0),
    (&["ledger", "espresso", "--location", "berlin", "--limit", "1", "--json"], 0),
    (&["verify"], 0),
    (&["verify", "espresso", "--json"], 0),
];

const REFUSED: &[(&[&str], i32)] = &[
    (&["adjust", "espresso@berlin=0"], 65),
    (&["adjust", "espresso@berlin=9223372036854775807"], 65),
    (&["adjust", "espresso@berlin=1", "espresso@berlin=2"], 65),
    (&["adjust", "espresso@berlin"], 64),
    (&["adjust"], 64),
    (&["adjust", "--file", "/nowhere/at/all"], 64),
    (&["adjust", "--file", "/nowhere/at/all", "--reference", "x"], 1),
    (&["reserve", "cart"], 64),
    (&["reserve", "cart", "espresso@berlin=0"], 65),
    (&["reserve", "cart", "espresso@berlin=1", "espresso@berlin=1"], 65),
    (&["reserve", "cart", "espresso@berlin=-1"], 64),
    (&["reserve", "cart", "espresso@berlin=1", "--ttl", "2d"], 65),
    (&["reserve", "cart", "espresso@berlin=1", "--job", "mail"], 64),
    (&["commit", "one"], 65),
    (&["commit", "4711"], 66),
    (&["find"], 64),
    (&["ledger", "espresso"], 64),
    (&["disable", "--reason", "x", "--yes"], 64),
    (&["disable", "esp", "--all", "--reason", "x", "--yes"], 64),
    (&["disable", "--all", "--reason", "", "--yes"], 64),
];

fn broker() -> (Broker, Shell) {
    let mut broker = Broker::start(&[]);
    broker.wait_for("\"ready:");
    let shell = Shell::of(&broker);
    (broker, shell)
}

fn run(shell: &Shell, arguments: &[&str]) -> Ended {
    shell.run(&[&["stock"], arguments].concat())
}

#[test]
fn a_shops_day_is_as_it_was() {
    let (_broker, shell) = broker();
    let mut text = String::new();
    for (arguments, code) in STORY {
        let ended = run(&shell, arguments);
        writeln!(text, "$ leasehold stock {}\n{}{}", arguments.join(" "), ended.stdout, ended.stderr)
            .expect("a String");
        assert_eq!(ended.code, Some(*code), "{arguments:?} {ended:?}");
    }
    snapshot::compare("stock.txt", &snapshot::steady(&text));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_exit_code_and_changes_nothing() {
    let (_broker, shell) = broker();
    run(&shell, &["adjust", "espresso@berlin=5", "--reference", "first"]).ok();
    for (arguments, code) in REFUSED {
        let ended = run(&shell, arguments);
        assert_eq!(ended.code, Some(*code), "{arguments:?} {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{arguments:?} {ended:?}");
    }
    let stock = &run(&shell, &["show", "espresso", "--json"]).json()[0];
    assert_eq!((&stock["on_hand"], &stock["available"]), (&5.into(), &5.into()));
    assert_eq!(run(&shell, &["ledger", "espresso", "--location", "berlin", "--json"]).json().len(), 1);
}

#[test]
fn an_import_that_was_cut_short_goes_on_where_it_ended_and_counts_nothing_twice() {
    let (_broker, shell) = broker();
    let rows =
        |count: usize| (0..count).fold(String::new(), |text, n| text + &format!("sku {n}@=1\tberlin\t{}\n", n + 1));
    let import = ["stock", "adjust", "--file", "-", "--reference", "import", "--reason", "first count"];
    let broken = shell.feed(&import, (rows(1_200) + "sku\tberlin\n").as_bytes());
    assert_eq!(broken.code, Some(65), "{broken:?}");
    assert!(broken.stderr.contains("line 1201") && broken.stderr.contains("lines 1 to 1000"), "{broken:?}");
    let whole = shell.feed(&import, rows(1_200).as_bytes());
    assert!(whole.stderr.contains("adjusted 1200 stocks, 1000 of them were known"), "{whole:?}");
    whole.ok();
    for (item, units) in [("sku 0@=1", 1), ("sku 1199@=1", 1_200)] {
        assert_eq!(run(&shell, &["show", item, "--json"]).json()[0]["on_hand"], units);
    }
    assert!(run(&shell, &["verify"]).stderr.contains("1200 stocks compared: no difference"));
}
