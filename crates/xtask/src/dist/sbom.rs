//! The software bill of materials: the packages in the program as a CycloneDX 1.6 document.

use serde_json::{Value, json};

use super::dependencies::Package;
use super::product::NAME;

/// Has neither a time nor a random serial number, so that the same sources give the same document.
pub(crate) fn sbom(packages: &[Package]) -> Value {
    let (program, others): (Vec<&Package>, Vec<&Package>) =
        packages.iter().partition(|package| package.name == NAME);
    let component = |package: &&Package| {
        let mut value = json!({
            "type": if package.name == NAME { "application" } else { "library" },
            "bom-ref": reference(&package.name, &package.version),
            "name": package.name,
            "version": package.version,
            "purl": reference(&package.name, &package.version),
        });
        if let Some(license) = &package.license {
            // The form with a slash is older than licence expressions.
            value["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(checksum) = &package.checksum {
            value["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        if let Some(url) = &package.repository {
            value["externalReferences"] = json!([{ "type": "vcs", "url": url }]);
        }
        value
    };
    let dependencies = packages.iter().map(|package| {
        let uses: Vec<String> = package.uses.iter().map(|(name, version)| reference(name, version)).collect();
        json!({ "ref": reference(&package.name, &package.version), "dependsOn": uses })
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": program.iter().map(component).next() },
        "components": others.iter().map(component).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}
