//! What the program is made of, in the form that scanners read: CycloneDX, from `cargo metadata` and `Cargo.lock`.
//!
//! The same tree gives the same file: no time of day and no number drawn by lot stands in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use lexopt::prelude::*;
use serde_json::{Value, json};

use crate::{Fault, project};

/// The package that people get.
const PROGRAM: &str = "unstuck-cli";

/// `cargo xtask sbom`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut file = PathBuf::from("target/unstuck.cdx.json");
    while let Some(arg) = args.next()? {
        match arg {
            Value(path) => file = PathBuf::from(path),
            other => return Err(other.unexpected().into()),
        }
    }
    let bom = of_project()?;
    fs::write(project::root().join(&file), serde_json::to_vec_pretty(&bom)?)?;
    let parts = bom["components"].as_array().map_or(0, Vec::len);
    println!("{parts} packages in {}", file.display());
    Ok(())
}

/// Every locked package once: those in the program are `required`, those that only build or test it `excluded`.
fn of_project() -> Result<Value, Fault> {
    let output =
        project::cargo(&["metadata", "--format-version=1", "--locked", "--all-features"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
    let checksums = checksums()?;
    let program =
        packages.iter().find(|package| package["name"] == PROGRAM).ok_or("no package is the program")?;
    let shipped = shipped(nodes, text(&program["id"]));
    let mut components: Vec<Value> = Vec::with_capacity(packages.len());
    for package in packages {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": "library", "bom-ref": package["id"], "name": name, "version": version,
            "scope": if shipped.contains(text(&package["id"])) { "required" } else { "excluded" },
            "purl": format!("pkg:cargo/{name}@{version}"),
            // Before SPDX expressions, a slash meant a choice.
            "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
        });
        if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        components.push(component);
    }
    components.sort_by(|one, other| text(&one["bom-ref"]).cmp(text(&other["bom-ref"])));
    let dependencies: Vec<Value> =
        nodes.iter().map(|node| json!({ "ref": node["id"], "dependsOn": node["dependencies"] })).collect();
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "unstuck", "name": "unstuck", "version": program["version"],
            "licenses": [{ "expression": program["license"] }],
        } },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The packages whose code is in the program: what it needs to run, and what that needs.
fn shipped<'m>(nodes: &'m [Value], program: &'m str) -> BTreeSet<&'m str> {
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    let mut shipped = BTreeSet::new();
    let mut waiting = vec![program];
    while let Some(id) = waiting.pop() {
        if !shipped.insert(id) {
            continue;
        }
        let needs = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let is_normal = |need: &&Value| {
            need["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        waiting.extend(needs.filter(is_normal).map(|need| text(&need["pkg"])));
    }
    shipped
}

/// The checksum of each package that comes from a registry, by its name and version.
fn checksums() -> Result<BTreeMap<(String, String), String>, Fault> {
    let lock: toml::Table = fs::read_to_string(project::root().join("Cargo.lock"))?.parse()?;
    let packages =
        lock.get("package").and_then(toml::Value::as_array).ok_or("Cargo.lock lists no packages")?;
    let of = |package: &toml::Value| {
        let field = |name: &str| Some(package.get(name)?.as_str()?.to_owned());
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    Ok(packages.iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locked_package_stands_in_it_once_with_its_licence_and_checksum() {
        let bom = of_project().expect("the project can be read");
        let lock = fs::read_to_string(project::root().join("Cargo.lock")).expect("there is a lock");
        let components = bom["components"].as_array().expect("components");
        assert_eq!(components.len(), lock.matches("[[package]]").count());
        let names: BTreeSet<&str> = components.iter().map(|component| text(&component["purl"])).collect();
        assert_eq!(names.len(), components.len(), "a package stands in it twice");
        let mut with_checksum = 0;
        for component in components {
            assert!(!text(&component["licenses"][0]["expression"]).is_empty(), "{component}");
            let is_ours = text(&component["bom-ref"]).starts_with("path+");
            let content = text(&component["hashes"][0]["content"]);
            assert_eq!(content.len(), if is_ours { 0 } else { 64 }, "{component}");
            with_checksum += usize::from(!is_ours);
        }
        assert_eq!(with_checksum, lock.matches("\nchecksum = ").count());
        let scope = |name: &str| {
            components.iter().find(|component| component["name"] == name).map(|found| text(&found["scope"]))
        };
        assert_eq!(scope("serde_json"), Some("required"));
        assert_eq!(scope("proptest"), Some("excluded"));
        assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
        assert_eq!(of_project().expect("twice"), bom, "the same tree gives another file");
    }
}
