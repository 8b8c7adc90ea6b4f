//! Completions in the shells that load them, and manual pages as `man` shows them. If a shell or `man` is missing,
//! these tests fail: `./test` installs them.

use crate::common::{Ran, Sandbox};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A user's folder after installation: the scripts where their shells look, and a filter to complete.
fn installed() -> Sandbox {
    let dir = Sandbox::new();
    for (shell, name) in [("bash", "tamis"), ("zsh", "_tamis"), ("fish", "tamis.fish")] {
        let script = dir.ok(&format!("completions {shell}"));
        assert_eq!(script.err, "");
        dir.write(name, script.out);
    }
    dir.write("seen.tamis", "");
    dir
}

/// Runs a program with `tamis` on its path, without the user's settings.
fn run(dir: &Sandbox, program: &str, args: &[&str]) -> Ran {
    let tamis = Path::new(env!("CARGO_BIN_EXE_tamis")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("timeout")
        .args(["60", program])
        .args(args)
        .env("PATH", format!("{}:{path}", tamis.display()))
        .env("HOME", dir.path(""))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(dir.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = Ran::from(output);
    assert_ne!(
        ran.code, 127,
        "{program} is missing: ./test installs what the tests need"
    );
    ran
}

/// For each line, what every shell must offer, and what it must not.
const LINES: [(&str, &[&str], &[&str]); 5] = [
    ("tamis co", &["compare", "copy"], &["check"]),
    // An internal command is hidden.
    ("tamis compare", &["compare"], &["compare-step"]),
    ("tamis dedup --fil", &["--filter"], &["--exact"]),
    ("tamis dedup --claim a", &["after"], &["before"]),
    ("tamis info see", &["seen.tamis"], &["tamis.fish"]),
];

fn expect(shell: &str, line: &str, ran: &Ran, offered: &str) {
    assert!(ran.code == 0 && ran.err.is_empty(), "{shell}: {}", ran.err);
    let offered: BTreeSet<_> = offered
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let (_, some, none) = LINES.iter().find(|(known, ..)| *known == line).unwrap();
    for word in *some {
        assert!(
            offered.contains(word),
            "{shell}: `{line}` does not offer {word}, but {offered:?}"
        );
    }
    for word in *none {
        assert!(
            !offered.contains(word),
            "{shell}: `{line}` offers {word}: {offered:?}"
        );
    }
}

/// Bash calls the function that the script registers with the words, the one at the cursor and the one before it. If
/// that finds nothing, `-o default` completes file names.
#[test]
fn bash_completes() {
    let dir = installed();
    let script = r#"
        source "$1"
        [[ $(complete -p tamis) =~ -o\ default.*-F\ ([^ ]+) ]] || { complete -p tamis >&2; exit 1; }
        COMP_LINE=$2 COMP_POINT=${#2}
        read -ra COMP_WORDS <<<"$2"
        [[ $2 != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        cur=${COMP_WORDS[COMP_CWORD]}
        "${BASH_REMATCH[1]}" tamis "$cur" "${COMP_WORDS[COMP_CWORD - 1]}"
        [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    for (line, ..) in LINES {
        let args = [
            "--norc",
            "--noprofile",
            "-uc",
            script,
            "bash",
            "./tamis",
            line,
        ];
        let ran = run(&dir, "bash", &args);
        expect("bash", line, &ran, ran.text());
    }
    // As in the help of `tamis completions`.
    let sourced = "source <(tamis completions bash); complete -p tamis";
    let ran = run(&dir, "bash", &["-c", sourced]);
    assert!(
        ran.err.is_empty() && ran.text().contains(" tamis"),
        "{}",
        ran.err
    );
}

#[test]
fn zsh_completes() {
    let dir = installed();
    let driver = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/command/installing/complete.zsh"
    );
    let started = "autoload -U compinit; compinit -u -d $PWD/compdump";
    let packaged = format!("fpath=($PWD $fpath); {started}");
    let sourced = format!("{started}; source <(tamis completions zsh)");
    for setup in [packaged, sourced] {
        for (line, ..) in LINES {
            dir.write("offers", "");
            let offers = dir.path("offers");
            let args = ["-f", driver, &setup, line, offers.to_str().unwrap()];
            let ran = run(&dir, "zsh", &args);
            let offered = String::from_utf8(dir.read("offers")).unwrap();
            expect("zsh", line, &ran, &offered);
        }
    }
}

#[test]
fn fish_completes() {
    let dir = installed();
    let packaged = "set -p fish_complete_path $PWD";
    let sourced = "tamis completions fish | source";
    for setup in [packaged, sourced] {
        for (line, ..) in LINES {
            let script = format!("{setup}; complete -C '{line}'");
            let ran = run(&dir, "fish", &["--no-config", "-c", &script]);
            expect("fish", line, &ran, ran.text());
        }
    }
}

#[test]
fn powershell_and_elvish_get_a_script_and_others_an_error() {
    let dir = Sandbox::new();
    for shell in ["powershell", "elvish"] {
        let script = dir.ok(&format!("completions {shell}"));
        assert!(script.text().contains("dedup"), "{shell}");
        assert!(!script.text().contains("compare-step"), "{shell}");
    }
    let unknown = dir.run("completions tcsh");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("fish"), "{}", unknown.err);
}

/// The commands that `tamis --help` lists.
fn commands(dir: &Sandbox) -> Vec<String> {
    let help = dir.ok("--help");
    // In groups, between the usage and the options.
    let list = help.text().split("Usage: ").nth(1).unwrap();
    let list = list.split("\nOptions:\n").next().unwrap();
    // Further lines of a description are indented more.
    let names: Vec<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(names.len() >= 20, "{names:?}");
    names
}

fn man(dir: &Sandbox, page: &str) -> String {
    let set = "LC_ALL=C.UTF-8 MANWIDTH=100 MANROFFOPT=-rHY=0 man --warnings=w -l \"$1\"";
    let ran = run(dir, "bash", &["-c", set, "bash", page]);
    assert!(
        ran.code == 0 && ran.err.is_empty(),
        "man -l {page}: {}",
        ran.err
    );
    // Without a terminal, man only uses backspaces for bold and underlined text.
    let mut plain = String::new();
    for letter in ran.text().chars() {
        match letter {
            '\u{8}' => drop(plain.pop()),
            _ => plain.push(letter),
        }
    }
    plain
}

#[test]
fn every_command_has_a_page_that_man_shows_without_a_warning() {
    let dir = Sandbox::new();
    dir.ok("man a/new/folder");
    let mut expected: BTreeSet<_> = commands(&dir)
        .iter()
        .map(|name| format!("tamis-{name}.1"))
        .collect();
    assert!(expected.contains("tamis-dedup.1"));
    expected.insert("tamis.1".into());
    let written: BTreeSet<_> = fs::read_dir(dir.path("a/new/folder"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(written, expected);
    for page in written {
        let text = man(&dir, &format!("a/new/folder/{page}"));
        let name = page.trim_end_matches(".1");
        assert!(text.contains(&format!("\n       {name} - ")), "{text}");
        assert!(text.contains("\nSYNOPSIS\n"), "{text}");
    }
    // Again, over existing files.
    dir.ok("man a/new/folder");
}

#[test]
fn a_page_has_every_option_and_every_example_of_the_help() {
    let dir = Sandbox::new();
    dir.ok("man pages");
    for command in commands(&dir) {
        let page = man(&dir, &format!("pages/tamis-{command}.1"));
        let help = dir.ok(&format!("{command} --help"));
        let options = help.text().lines().map(str::trim_start);
        for option in options.filter(|line| line.starts_with('-')) {
            let names = option.split([' ', ',', '=', '[']);
            for name in names.filter(|name| name.starts_with("-")) {
                let is_there = page.lines().any(|line| {
                    line.split([' ', ',', '=', '[', '|', ']'])
                        .any(|word| word == name)
                });
                assert!(is_there, "tamis-{command}.1 has no {name}:\n{page}");
            }
        }
        let Some((_, examples)) = help.text().split_once("\nExamples:\n") else {
            continue;
        };
        // The help wraps long lines, and the page doesn't.
        for example in examples.lines().map(str::trim) {
            assert!(
                page.lines().any(|line| line.contains(example)),
                "tamis-{command}.1 has not the line `{example}`:\n{page}"
            );
        }
    }
}

#[test]
fn pages_that_cannot_be_written_are_an_error() {
    let dir = Sandbox::new();
    dir.write("file", "mine");
    let refused = dir.run("man file");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("file"), "{}", refused.err);
    assert_eq!(dir.read("file"), b"mine");
}
