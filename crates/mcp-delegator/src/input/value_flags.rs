//! Flags that stand for one value of an input: `-w` for `--mode workspace-write`.

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::spec::InputSchema;
use crate::spec::input_schema::ValueFlag;

/// clap id of the flag.
fn id(flag: &ValueFlag) -> String {
    format!("{}@{}", flag.input, flag.value)
}

pub fn arg(flag: &ValueFlag) -> Arg {
    let id = id(flag);
    Arg::new(id.clone())
        .short(flag.short)
        .long(flag.long)
        .action(ArgAction::SetTrue)
        .overrides_with(id)
        .help(format!("Same as --{} {}", flag.input, flag.value))
}

/// Gives the inputs the values that the flags stand for.
pub fn add_values(
    inputs: &InputSchema,
    matches: &ArgMatches,
    object: &mut Map<String, Value>,
    problems: &mut Vec<Problem>,
) {
    for flag in inputs.value_flags().filter(|flag| matches.get_flag(&id(flag))) {
        match object.get(flag.input) {
            Some(given) if given != flag.value => {
                let problem = format!("contradicts -{}, which means {}", flag.short, flag.value);
                let problem = Problem::invalid(flag.input, problem).value(given.clone());
                problems.push(problem.suggest(Some("Give only one of them.")));
            }
            _ => drop(object.insert(flag.input.to_owned(), flag.value.into())),
        }
    }
}
