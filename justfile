# The daily commands. `just` alone lists them.

default:
    @just --list

# All checks and all tests, as CI runs them
test:
    scripts/test

# Type-check quickly
check:
    cargo check --workspace --all-targets

# Write the generated pages and snapshots anew; look at the change before you commit it
update-generated:
    UPDATE_GENERATED=1 cargo nextest run -p mcp-delegator up_to_date as_committed

# The benchmarks, as tables
bench:
    cargo bench -p delegator-domain --bench redact
    cargo bench -p delegator-transcript --bench decode
    cargo bench -p delegator-git --bench evidence
    cargo bench -p mcp-delegator --bench tasks
    cargo bench -p mcp-delegator --bench serve

# A load tier: L1, L2, L3, L4, L5, L9, L10, F58, F61 or all; `--scale 0.1` for a small try
load tier *words:
    cargo xtask load {{tier}} {{words}}

# kill -9 at random moments, 200 rounds of it
kills *words:
    cargo xtask kills {{words}}

# Fuzz one target for a minute: framer, decoder or mapper (needs cargo-fuzz)
fuzz target seconds="60":
    cargo fuzz run -s none {{target}} -- -max_total_time={{seconds}}
