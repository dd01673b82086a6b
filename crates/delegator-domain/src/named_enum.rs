//! Enums whose variants have a fixed name, as stored in the registry and shown in JSON.

/// Defines an enum, the lists of its variants and their names, and the conversion from and to their names.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $visibility:vis enum $Enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $Enum {
            $($(#[$doc])* $variant,)*
        }

        impl $Enum {
            #[allow(dead_code, reason = "not every enum is listed")]
            $visibility const ALL: [$Enum; [$($name),*].len()] = [$($Enum::$variant),*];

            #[allow(dead_code, reason = "not every list of names is shown")]
            $visibility const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            $visibility fn name(self) -> &'static str {
                match self {
                    $($Enum::$variant => $name,)*
                }
            }

            #[allow(dead_code, reason = "not every name is read back")]
            $visibility fn from_name(name: &str) -> Option<$Enum> {
                match name {
                    $($name => Some($Enum::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use named_enum;
