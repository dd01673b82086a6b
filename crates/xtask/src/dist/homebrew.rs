//! The Homebrew formula: it downloads the archive of the platform and installs what is in it.

use super::product::{DESCRIPTION, NAME, Platform, Product};

/// `archives` are the platforms with the SHA-256 of their archives.
pub(crate) fn formula(product: &Product, archives: &[(&Platform, String)]) -> String {
    let sources: String = archives
        .iter()
        .map(|(platform, sha256)| {
            let url = product.download(&format!("{}.tar.gz", product.archive_name(platform)));
            format!("    {} do\n      url \"{url}\"\n      sha256 \"{sha256}\"\n    end\n", platform.homebrew)
        })
        .collect();
    format!(
        r##"class McpDelegator < Formula
  desc "{DESCRIPTION}"
  homepage "{repository}"
  version "{version}"
  license "{license}"

  depends_on :linux

  on_linux do
{sources}  end

  def install
    bin.install "bin/{NAME}"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/{NAME}"
    zsh_completion.install "share/zsh/site-functions/_{NAME}"
    fish_completion.install "share/fish/vendor_completions.d/{NAME}.fish"
    doc.install Dir["share/doc/{NAME}/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/{NAME} --version")
  end
end
"##,
        repository = product.repository,
        version = product.version,
        license = product.license,
    )
}
