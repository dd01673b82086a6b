# Daily commands. `just` alone lists them.

default:
    @just --list

# Run all checks and all tests, as CI does
test:
    scripts/test

# Check format and lints and run the quick tests; offline, installs nothing
quick:
    cargo fmt --all -- --check
    cargo clippy --workspace --all-targets --locked --offline -- -D warnings
    cargo nextest run --workspace --profile quick --locked --offline

# Type-check only
check:
    cargo check --workspace --all-targets

# Regenerate the generated pages and snapshots; review the change before you commit it
update-generated:
    UPDATE_GENERATED=1 cargo nextest run -p mcp-delegator up_to_date matches_its_snapshots
    UPDATE_GENERATED=1 cargo nextest run -p mcp-delegator the_readme_lists_the_served_tools

# Count the answers that the tests validated against the published schemas
count-answers:
    scripts/count-answers

# Run the benchmarks, built as for a release (`bench` inherits `dist`); prints tables
bench:
    cargo bench -p delegator-domain --bench redact
    cargo bench -p delegator-transcript --bench decode
    cargo bench -p delegator-git --bench evidence
    cargo bench -p mcp-delegator --bench tasks
    cargo bench -p mcp-delegator --bench serve

# Run a load tier: L1, L2, L3, L4, L5, L9, L10, F58, F61 or all; `--scale 0.1` for a quick run
load tier *args:
    cargo xtask load {{tier}} {{args}}

# Run the kill loop: kill -9 at random moments, 200 rounds
kills *args:
    cargo xtask kills {{args}}

# Measure this program beside its peers from npm and PyPI; `--write docs/reports/performance.md` stores the page
race *args:
    cargo xtask race {{args}}

# Show the pages of docs/ as a site, with a search (needs mdbook)
site:
    mdbook serve docs --open

# Print how large the program is, by crate
weight:
    cargo xtask weight

# Fuzz one target for a minute: framer, decoder or mapper (needs cargo-fuzz)
fuzz target seconds="60":
    cargo fuzz run -s none {{target}} -- -max_total_time={{seconds}}
