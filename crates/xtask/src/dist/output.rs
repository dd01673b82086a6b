//! The folder with the files of a release: writes them, lists their checksums, and says which are missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::archive::archive;
use super::catalogues::{bundle, bundle_name, cursor_link, server_json, vscode_link};
use super::dependencies::packages;
use super::homebrew::formula;
use super::notices::notices;
use super::npm::{self, PlatformFiles, main_package, platform_package};
use super::product::{NAME, PLATFORMS, Platform, Product};
use super::sbom::sbom;
use super::tree::Tree;
use super::wheel::{self, wheel};
use crate::error::LoadError;

const CHECKSUMS: &str = "SHA256SUMS";

#[derive(Debug)]
pub struct Output {
    workspace: PathBuf,
    folder: PathBuf,
    product: Product,
    /// The time of the files in archives, since 1970.
    seconds: u64,
    /// From 0, which only stores, to 9.
    compression: u32,
}

impl Output {
    pub fn new(workspace: &Path, folder: &Path, seconds: u64, compression: u32) -> Result<Output, LoadError> {
        fs::create_dir_all(folder).map_err(LoadError::io(format!("create {}", folder.display())))?;
        let product = Product::read(workspace)?;
        Ok(Output {
            workspace: workspace.to_owned(),
            folder: folder.to_owned(),
            product,
            seconds,
            compression,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the packages of one platform from its program.
    pub fn pack(&self, platform: &Platform, program: &Path) -> Result<(), LoadError> {
        let files = PlatformFiles {
            program: fs::read(program).map_err(LoadError::io(format!("read {}", program.display())))?,
            license: self.license()?,
            notices: notices(&packages(&self.workspace, platform)?)?,
        };
        let product = &self.product;
        let archive = archive(&self.workspace, program, &files)?;
        let name = product.archive_name(platform);
        self.write(&format!("{name}.tar.gz"), archive.to_tar_gz(&name, self.seconds, self.compression)?)?;
        self.write_npm(&platform.npm_package(), &platform_package(product, platform, &files))?;
        self.write(
            &wheel::file_name(product, platform),
            wheel(product, platform, &files).to_zip(self.compression)?,
        )?;
        self.write(&bundle_name(product, platform), bundle(product, &files).to_zip(self.compression)?)
    }

    /// Writes what names the packages of the platforms. Platforms that were not packed are left out.
    pub fn index(&self) -> Result<(), LoadError> {
        let product = &self.product;
        self.write_npm(NAME, &main_package(product, &self.license()?))?;
        let (mut archives, mut bundles) = (Vec::new(), Vec::new());
        let mut sums = BTreeMap::new();
        for platform in &PLATFORMS {
            let archive = format!("{}.tar.gz", product.archive_name(platform));
            let bundle = bundle_name(product, platform);
            for name in [&archive, &bundle] {
                if self.path(name).exists() {
                    sums.insert(name.clone(), self.sha256(name)?);
                }
            }
            archives.extend(sums.get(&archive).map(|sum| (platform, sum.clone())));
            bundles.extend(sums.get(&bundle).map(|sum| (bundle, sum.clone())));
        }
        // The packages differ between platforms only in crates that are not used on Linux.
        let packages = packages(&self.workspace, &PLATFORMS[0])?;
        self.write(&format!("{NAME}-{}.cdx.json", product.version), format!("{:#}\n", sbom(&packages)))?;
        self.write("server.json", format!("{:#}\n", server_json(product, &bundles)))?;
        self.write("mcp-delegator.rb", formula(product, &archives))?;
        let links = format!("- [Add to Cursor]({})\n- [Add to VS Code]({})\n", cursor_link(), vscode_link());
        self.write("install-links.md", links)?;
        let script =
            fs::read(self.workspace.join("scripts/get")).map_err(LoadError::io("read scripts/get"))?;
        self.write("get", script)?;
        self.write(CHECKSUMS, self.checksums(sums)?)
    }

    /// Sizes and names of all files.
    pub(crate) fn listing(&self) -> Result<String, LoadError> {
        let size = |name: &String| {
            let metadata = fs::metadata(self.path(name)).map_err(LoadError::io(format!("read {name}")))?;
            Ok(format!("{:>10}  {name}\n", metadata.len()))
        };
        self.names()?.iter().map(size).collect()
    }

    /// The files that a release must have and this folder has not.
    pub fn missing_files(&self) -> Vec<String> {
        let product = &self.product;
        let mut expected =
            vec![npm::file_name(NAME, &product.version), "server.json".to_owned(), CHECKSUMS.to_owned()];
        for platform in &PLATFORMS {
            expected.extend([
                format!("{}.tar.gz", product.archive_name(platform)),
                npm::file_name(&platform.npm_package(), &product.version),
                wheel::file_name(product, platform),
                bundle_name(product, platform),
            ]);
        }
        expected.retain(|name| !self.path(name).is_file());
        expected
    }

    /// Whether the files are those that were listed when the release was indexed.
    pub(crate) fn is_unchanged(&self) -> Result<bool, LoadError> {
        let listed = fs::read_to_string(self.path(CHECKSUMS)).map_err(LoadError::io("read the checksums"))?;
        Ok(listed == self.checksums(BTreeMap::new())?)
    }

    /// The packages in the order in which they must be published: a package after those that it needs.
    pub(crate) fn npm_packages(&self) -> Vec<PathBuf> {
        let names = PLATFORMS.iter().map(Platform::npm_package).chain([NAME.to_owned()]);
        names.map(|name| self.path(&npm::file_name(&name, &self.product.version))).collect()
    }

    pub(crate) fn wheels(&self) -> Vec<PathBuf> {
        PLATFORMS.iter().map(|platform| self.path(&wheel::file_name(&self.product, platform))).collect()
    }

    fn license(&self) -> Result<Vec<u8>, LoadError> {
        fs::read(self.workspace.join("LICENSE")).map_err(LoadError::io("read LICENSE"))
    }

    fn write_npm(&self, package: &str, tree: &Tree) -> Result<(), LoadError> {
        self.write(
            &npm::file_name(package, &self.product.version),
            tree.to_tar_gz(npm::ROOT, self.seconds, self.compression)?,
        )
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), LoadError> {
        fs::write(self.path(name), bytes).map_err(LoadError::io(format!("write {name}")))
    }

    fn sha256(&self, name: &str) -> Result<String, LoadError> {
        let bytes = fs::read(self.path(name)).map_err(LoadError::io(format!("read {name}")))?;
        Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// As `sha256sum` prints them. `known` are those that need not be computed again.
    fn checksums(&self, mut known: BTreeMap<String, String>) -> Result<String, LoadError> {
        let line = |name: String| {
            let sum = known.remove(&name).map_or_else(|| self.sha256(&name), Ok)?;
            Ok(format!("{sum}  {name}\n"))
        };
        self.names()?.into_iter().map(line).collect()
    }

    /// All files but the list of checksums.
    fn names(&self) -> Result<Vec<String>, LoadError> {
        let entries = fs::read_dir(&self.folder).map_err(LoadError::io("list the packages"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name != CHECKSUMS).collect();
        names.sort();
        Ok(names)
    }
}
