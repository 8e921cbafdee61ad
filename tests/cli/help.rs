//! What the program says about itself.

use std::{fmt::Write as _, path::Path};

use super::{broker::leasehold, snapshot};

fn stdout(arguments: &[&str]) -> String {
    let output = leasehold(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Names of all commands, by their own help.
fn commands(above: &[String]) -> Vec<Vec<String>> {
    let mut arguments: Vec<&str> = above.iter().map(String::as_str).collect();
    arguments.push("-h");
    let help = stdout(&arguments);
    let mut all = vec![above.to_vec()];
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for line in listed.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().expect("a name");
        // a heading of flags is called so as well
        if name == "help" || name.starts_with('-') {
            continue;
        }
        all.extend(commands(&[above, &[name.to_owned()]].concat()));
    }
    all
}

#[test]
fn every_help_is_as_it_was() {
    let mut text = String::new();
    let all = commands(&[]);
    assert!(all.len() > 35, "only {} commands", all.len());
    for command in all {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = stdout(&arguments);
        // the options of the broker are in docs/configuration.md, which has a test of its own
        if !help.contains("--config <FILE>") {
            writeln!(text, "$ leasehold {}\n{help}", arguments.join(" ")).expect("a String");
        }
    }
    snapshot::compare("help.txt", &text);
}

#[test]
fn docs_cli_md_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md");
    snapshot::compare_with(&path, &stdout(&["docs"]));
}

#[test]
fn completions_name_the_commands_of_every_level() {
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&["completions", shell]);
        for word in ["enqueue", "redrive", "exec", "purge"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn help_goes_to_stdout_and_faults_go_to_stderr() {
    let help = leasehold(&["queue", "--help"]).output().expect("the program runs");
    assert!(help.status.success() && help.stderr.is_empty() && !help.stdout.is_empty());
    let fault = leasehold(&["queue", "lst"]).output().expect("the program runs");
    assert_eq!(fault.status.code(), Some(64));
    assert!(fault.stdout.is_empty());
    assert!(String::from_utf8_lossy(&fault.stderr).contains("list"), "{fault:?}");
}
