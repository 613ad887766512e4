//! Are all dependencies under licences we accept? Reads `cargo metadata`, needs no network and no other tool.

use serde_json::Value;

use crate::{Fault, project};

/// Licences that let everybody use the binary as it is. A copyleft licence needs a decision by a person first.
const ACCEPTED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// `cargo xtask licences`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    match args.next()? {
        Some(arg) => Err(arg.unexpected().into()),
        None => check().map(|note| println!("{note}")),
    }
}

/// Fails where a dependency is under no licence we accept.
pub fn check() -> Result<String, Fault> {
    let output =
        project::cargo(&["metadata", "--format-version=1", "--locked", "--all-features"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut refused = Vec::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        if !accepts(licence) {
            let (name, version) = (&package["name"], &package["version"]);
            refused.push(format!("{name} {version} is under {licence:?}"));
        }
    }
    match refused.is_empty() {
        true => Ok(format!("{} packages, all under accepted licences", packages.len())),
        false => Err(refused.join("\n").into()),
    }
}

/// Is there a way to take this SPDX expression with accepted licences only?
fn accepts(expression: &str) -> bool {
    // Before SPDX expressions, a slash meant a choice.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any_of(&mut rest).unwrap_or(false) && rest.is_empty()
}

/// `a OR b`; `None` where the words are no expression.
fn any_of(words: &mut &[&str]) -> Option<bool> {
    let mut accepted = all_of(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        accepted |= all_of(words)?;
    }
    Some(accepted)
}

/// `a AND b`, which binds more tightly.
fn all_of(words: &mut &[&str]) -> Option<bool> {
    let mut accepted = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        accepted &= one(words)?;
    }
    Some(accepted)
}

/// A licence, with its exception where it has one, or an expression in parentheses.
fn one(words: &mut &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let accepted = any_of(words)?;
            let [")", rest @ ..] = *words else { return None };
            *words = rest;
            Some(accepted)
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(ACCEPTED.contains(&&*format!("{licence} WITH {exception}")))
        }
        [licence, rest @ ..] => {
            *words = rest;
            Some(ACCEPTED.contains(licence))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, accepted: bool) {
        assert_eq!(accepts(expression), accepted, "{expression}");
    }

    #[test]
    fn one_accepted_branch_of_a_choice_is_enough() {
        check("MIT", true);
        check("MIT OR GPL-3.0", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0", false);
    }

    #[test]
    fn all_parts_of_a_sum_must_be_accepted() {
        check("MIT AND Unicode-3.0", true);
        check("MIT AND GPL-3.0", false);
        check("(MIT OR GPL-3.0) AND (Zlib)", true);
        check("GPL-3.0 OR MIT AND MPL-2.0", false);
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        check("Apache-2.0 WITH LLVM-exception OR MIT", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
    }

    #[test]
    fn what_is_no_expression_is_not_accepted() {
        check("", false);
        check("(MIT", false);
        check("MIT MIT", false);
    }
}
